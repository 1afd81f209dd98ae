//! Processes, the bridges in them, and the links between bridges and servers.

use std::collections::VecDeque;
use std::time::Duration;

use majordomus_mcp_server::bridge::relay::{Relay, Told};
use majordomus_mcp_server::sharing::preamble::Why;
use majordomus_records::state::carrier_of;
use serde_json::Value;

use super::World;
use crate::disk::View;

use crate::server::{Before, Server};
use crate::step::{Side, Who};
use crate::truth::{Actor, At};

/// Whether a server acts on what it finds of a connection that its bridge has closed in both directions. It must not: who
/// closes so has asked elsewhere, or is dead and was told nothing.
const HEARS_THE_DEAD: bool = false;

/// How long a server may be mute before its clients pass it by.
const MUTE: Duration = Duration::from_secs(2);

/// One process of ours that lasts.
pub(super) struct Process {
    pub(super) view: View,
    /// Since when it is stopped, in time awake.
    pub(super) stopped_at: Option<Duration>,
    pub(super) bridge: Option<Bridge>,
    pub(super) server: Option<Server>,
    /// Whether it serves on where nobody is there.
    pub(super) stays: bool,
}

/// The part of a `majordomus mcp` that its client talks to.
pub(super) struct Bridge {
    client: u8,
    /// Its own id for its whole life.
    connection: String,
    relay: Relay,
    link: Option<u64>,
    from_client: VecDeque<Vec<u8>>,
    input_ended: bool,
    /// An operator has stopped the server: it waits for its client's next message.
    rests: bool,
    /// Since when it waits for an answer, in time awake.
    waits_since: Option<Duration>,
}

/// One connection between a bridge and a server.
pub(super) struct Link {
    pub(super) client: u8,
    pub(super) server: u32,
    pub(super) connection: String,
    pub(super) to_server: VecDeque<Vec<u8>>,
    pub(super) to_bridge: VecDeque<Vec<u8>>,
    /// What each side finds behind the last line.
    pub(super) bridge_sees_end: bool,
    pub(super) server_sees_end: bool,
    /// Whether that side has done with it.
    pub(super) bridge_is_done: bool,
    pub(super) server_is_done: bool,
}

impl Link {
    /// The bridge's side is closed in both directions.
    fn hang_up(&mut self) {
        (self.server_sees_end, self.bridge_is_done) = (true, true);
        if !HEARS_THE_DEAD {
            self.to_server.clear();
        }
    }
}

impl World {
    pub(super) fn process_of(&self, who: Who) -> Option<u32> {
        match who {
            Who::Client(n) => self.clients.get(&n)?.process,
            Who::Serve => self.processes.iter().rev().find(|(_, process)| process.bridge.is_none()).map(|(id, _)| *id),
            Who::Hook(_) | Who::Person => None,
        }
    }

    pub(super) fn new_process(&mut self, bridge: Option<Bridge>) -> u32 {
        self.last_process += 1;
        let view = self.platter.view(self.last_process);
        let process = Process { view, stopped_at: None, bridge, server: None, stays: false };
        self.processes.insert(self.last_process, process);
        self.last_process
    }

    pub(super) fn start_bridge(&mut self, client: u8) -> u32 {
        let connection = format!("{:032x}", (1_u64 << 40) + u64::from(self.last_process));
        self.truth.carriers.insert(carrier_of(&connection), Actor::Client(client));
        let bridge = Bridge {
            client,
            connection,
            relay: Relay::new(),
            link: None,
            from_client: VecDeque::new(),
            input_ended: false,
            rests: false,
            waits_since: None,
        };
        self.new_process(Some(bridge))
    }

    fn bridge_of(&mut self, n: u8) -> Option<&mut Bridge> {
        let process = self.clients.get(&n)?.process?;
        self.processes.get_mut(&process)?.bridge.as_mut()
    }

    /// A client writes a line.
    pub(super) fn says(&mut self, n: u8, message: &Value) {
        if let Some(bridge) = self.bridge_of(n) {
            bridge.from_client.push_back(message.to_string().into_bytes());
        }
    }

    pub(super) fn input_ends(&mut self, n: u8) {
        if let Some(bridge) = self.bridge_of(n) {
            bridge.input_ended = true;
        }
    }

    /// The connection of a client's bridge is lost.
    pub(super) fn cut(&mut self, n: u8, side: Side) {
        let process = self.clients.get(&n).and_then(|client| client.process);
        let current = self.bridge_of(n).and_then(|bridge| bridge.link);
        // What is inside one process is not lost by itself.
        let current = current.filter(|link| self.links.get(link).map(|link| link.server) != process);
        for (id, link) in self.links.iter_mut().filter(|(_, link)| link.client == n) {
            let is_current = current == Some(*id);
            if is_current && side != Side::Server {
                link.bridge_sees_end = true;
                // What was under way is lost with it.
                link.to_bridge.clear();
                link.to_server.clear();
            }
            if (is_current && side == Side::Both) || (side != Side::Bridge && link.bridge_sees_end) {
                link.server_sees_end = true;
            }
        }
    }

    /// A process is gone, whatever it was at.
    pub(super) fn dies(&mut self, id: u32) {
        self.platter.kill(id);
        let Some(process) = self.processes.remove(&id) else { return };
        self.ends(id, process);
    }

    /// What others see of a process that is not there any more.
    fn ends(&mut self, id: u32, process: Process) {
        let at = self.at();
        for key in self.truth.held_by_process(id) {
            self.truth.release(&key, at);
        }
        if self.lock == Some(id) {
            self.lock = None;
        }
        for link in self.links.values_mut().filter(|link| link.server == id) {
            (link.bridge_sees_end, link.server_is_done) = (true, true);
        }
        if let Some(bridge) = &process.bridge {
            if let Some(link) = bridge.link.and_then(|link| self.links.get_mut(&link)) {
                link.hang_up();
                let server = link.server;
                self.releases_unseen(bridge.client, server);
            }
            if let Some(client) = self.clients.get_mut(&bridge.client) {
                client.is_gone();
            }
        }
        drop(process);
        self.platter.forget(id);
        self.links.retain(|_, link| !link.server_is_done || !link.bridge_is_done);
    }

    /// A client that is served alone looks whether there is a server to share.
    pub(super) fn looks_around(&mut self, id: u32) {
        let free = self.lock.is_none_or(|holder| self.processes[&holder].stopped_at.is_none());
        let Some(process) = self.processes.get_mut(&id).filter(|_| free) else { return };
        if process.bridge.as_ref().is_none_or(|bridge| bridge.relay.in_flight() > 0) {
            return;
        }
        if let Some(server) = process.server.take_if(|server| !server.is_holder) {
            self.leaves(id, server, Some("moved"));
        }
    }

    /// A process goes on that was stopped.
    pub(super) fn go_on(&mut self, id: u32) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        let Some(since) = process.stopped_at.take() else { return };
        let gap = self.machine.awake().saturating_sub(since);
        if gap > Duration::from_secs(60) {
            // It hears its clients first, then moves every deadline.
            self.hear(id);
            if let Some(server) = self.processes.get(&id).and_then(|process| process.server.as_ref()) {
                server.shared.board.excuse(gap);
            }
        }
    }

    /// Lets everybody who can do all that there is to do.
    pub(super) fn settle(&mut self) {
        for _ in 0..64 {
            let mut busy = false;
            for id in self.processes.keys().copied().collect::<Vec<_>>() {
                if self.processes.get(&id).is_none_or(|process| process.stopped_at.is_some()) {
                    continue;
                }
                busy |= self.bridge_turn(id);
                busy |= self.server_turn(id);
                if self.is_dead(id) {
                    self.bury();
                    busy = true;
                }
                if self.platter.is_powered_off() {
                    return;
                }
            }
            if !busy {
                return;
            }
        }
        self.is_wrong("everybody_comes_to_rest", "processes go on and on");
    }

    fn bridge_turn(&mut self, id: u32) -> bool {
        let Some(mut bridge) = self.processes.get_mut(&id).and_then(|process| process.bridge.take()) else {
            return false;
        };
        let (mut busy, mut leaves) = (false, false);
        let mut to_client = Vec::new();
        busy |= self.bridge_reads(&mut bridge, &mut to_client);
        let waits = !bridge.from_client.is_empty() || bridge.relay.in_flight() > 0;
        if bridge.link.is_none() && (waits || !(bridge.rests || bridge.input_ended)) {
            bridge.rests = false;
            self.elect(id, &mut bridge);
            busy = true;
        }
        if !self.is_dead(id) {
            busy |= self.bridge_writes(&mut bridge, &mut to_client);
            leaves = bridge.input_ended && bridge.from_client.is_empty();
            if let Some(link) = bridge.link.and_then(|link| self.links.get_mut(&link)).filter(|_| leaves) {
                busy |= !link.server_sees_end;
                link.server_sees_end = true;
            }
            // What it has asked is answered first.
            leaves &= bridge.link.is_none();
        }
        let client = bridge.client;
        if let Some(process) = self.processes.get_mut(&id) {
            process.bridge = Some(bridge);
        }
        if leaves {
            self.client_left(id);
            return true;
        }
        for line in to_client.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.client_reads(client, line);
        }
        busy
    }

    /// Reads what the server has sent, and finds out whether it is gone.
    fn bridge_reads(&mut self, bridge: &mut Bridge, to_client: &mut Vec<u8>) -> bool {
        let Some(id) = bridge.link else { return false };
        let mut busy = false;
        while let Some(line) = self.links.get_mut(&id).and_then(|link| link.to_bridge.pop_front()) {
            busy = true;
            match bridge.relay.server_line(&line, to_client) {
                Told::Passed | Told::Swallowed => {}
                Told::Farewell(why) => {
                    bridge.rests = matches!(why, Why::Stopped);
                    self.unlink(bridge, to_client);
                    return true;
                }
            }
        }
        let now = self.machine.awake();
        let server = self.links.get(&id).map(|link| link.server);
        let stopped = server.and_then(|server| self.processes.get(&server)?.stopped_at);
        let is_mute = bridge.relay.in_flight() > 0
            && stopped.zip(bridge.waits_since).is_some_and(|(stopped, since)| now >= stopped.max(since) + MUTE);
        if self.links.get(&id).is_none_or(|link| link.bridge_sees_end) || is_mute {
            self.unlink(bridge, to_client);
            busy = true;
        }
        busy
    }

    fn unlink(&mut self, bridge: &mut Bridge, to_client: &mut Vec<u8>) {
        bridge.relay.lost(to_client);
        if let Some(link) = bridge.link.take().and_then(|id| self.links.get_mut(&id)) {
            // A connection that was cut on this side alone tells the other side nothing.
            if link.bridge_sees_end {
                link.bridge_is_done = true;
            } else {
                link.hang_up();
            }
            link.bridge_sees_end = true;
            let server = link.server;
            self.releases_unseen(bridge.client, server);
        }
        self.links.retain(|_, link| !link.server_is_done || !link.bridge_is_done);
    }

    /// Finds a server, or becomes one.
    fn elect(&mut self, id: u32, bridge: &mut Bridge) {
        let server = match self.lock {
            None => {
                self.lock = Some(id);
                self.start_server(id, true);
                id
            }
            Some(holder) if holder == id || self.processes[&holder].stopped_at.is_none() => holder,
            Some(_) => {
                if self.processes[&id].server.is_none() {
                    self.start_server(id, false);
                }
                id
            }
        };
        if self.is_dead(id) {
            return;
        }
        self.last_link += 1;
        let mut to_server = Vec::new();
        let before = Before {
            holds: bridge.relay.holds().map(Into::into),
            ended: bridge.relay.ended().map(Into::into),
            replays: bridge.relay.replays(),
        };
        bridge.relay.replay(&mut to_server);
        bridge.waits_since = Some(self.machine.awake());
        let link = Link {
            client: bridge.client,
            server,
            connection: bridge.connection.clone(),
            to_server: lines(&to_server).collect(),
            to_bridge: VecDeque::new(),
            bridge_sees_end: false,
            server_sees_end: false,
            bridge_is_done: false,
            server_is_done: false,
        };
        self.links.insert(self.last_link, link);
        bridge.link = Some(self.last_link);
        self.welcome(self.last_link, &before);
    }

    fn bridge_writes(&mut self, bridge: &mut Bridge, to_client: &mut Vec<u8>) -> bool {
        let mut busy = false;
        while let Some(line) = bridge.from_client.pop_front_if(|_| bridge.link.is_some()) {
            busy = true;
            let mut to_server = Vec::new();
            if bridge.relay.in_flight() == 0 {
                bridge.waits_since = Some(self.machine.awake());
            }
            bridge.relay.client_line(&line, &mut to_server, to_client);
            if let Some(link) = bridge.link.and_then(|link| self.links.get_mut(&link)) {
                link.to_server.extend(lines(&to_server));
            }
        }
        busy
    }

    /// The client of a process has gone, and all that it said was answered.
    fn client_left(&mut self, id: u32) {
        let server = self.processes.get_mut(&id).and_then(|process| process.server.take());
        let mut handed = None;
        if let Some(mut server) = server {
            if server.is_holder && !server.web.is_empty() {
                let ids = server.web_ids.clone();
                let web = server.hand_over();
                let named = web.into_iter().map(|(n, streams, holds)| (n, ids[&n].clone(), streams, holds));
                handed = Some(named.collect::<Vec<_>>());
            }
            self.leaves(id, server, Some("moved"));
        }
        if self.is_dead(id) {
            return;
        }
        if let Some(process) = self.processes.remove(&id) {
            self.ends(id, process);
        }
        if let Some(handed) = handed {
            self.succeed(handed);
        }
    }

    /// A client is gone from a server that is stopped and will not notice that before it goes on.
    fn releases_unseen(&mut self, client: u8, process: u32) {
        if self.processes.get(&process).is_some_and(|process| process.stopped_at.is_some()) {
            self.releases(Actor::Client(client), process);
        }
    }

    /// The conversations that somebody held at a server are held no more.
    pub(super) fn releases(&mut self, actor: Actor, process: u32) {
        let now = self.at();
        for key in self.truth.held_by(actor, process) {
            self.truth.release(&key, now);
        }
    }

    /// The conversations that somebody held at a server are held no more; that it has made known where the disk did not refuse.
    pub(super) fn lets_go(&mut self, actor: Actor, process: u32, failures: u64) {
        let now = self.machine.stamp();
        for key in self.truth.held_by(actor, process) {
            self.truth.release(&key, At::of(&now));
            if self.platter.failures() == failures && !self.is_dead(process) {
                self.truth.known(&key, &now);
            }
        }
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec)
}
