//! What the servers do, and how time passes for them.

use std::time::Duration;

use majordomus_episodes_core::CloseReason;
use majordomus_episodes_core::peers::Transport;
use serde_json::Value;

use super::World;
use super::callers::{Caller, Moment, What, initialize};
use super::processes::Link;
use crate::answer::Claim;
use crate::server::{Before, HOUSEKEEPING, Server};
use crate::truth::{Actor, Held, Key};

/// The most looks that servers take at their houses in one long wait: what happens in between looks the same.
const LOOKS: u32 = 4;

impl World {
    pub(super) fn start_server(&mut self, id: u32, is_holder: bool) {
        let Some(view) = self.processes.get(&id).map(|process| process.view.clone()) else { return };
        let server = Server::start(&self.place, view, &self.machine, is_holder);
        if let Some(process) = self.processes.get_mut(&id) {
            process.server = Some(server);
        }
    }

    /// A server for nobody in particular, where there is none.
    pub(super) fn serve(&mut self, stays: bool) {
        if self.lock.is_some() {
            return;
        }
        let id = self.new_process(None);
        self.lock = Some(id);
        self.start_server(id, true);
        if let Some(process) = self.processes.get_mut(&id) {
            process.stays = stays;
        }
    }

    /// A process that goes on for those who called its predecessor over HTTP.
    pub(super) fn succeed(&mut self, handed: Vec<(u8, String, u32, Option<String>)>) {
        self.serve(false);
        let Some(id) = self.lock else { return };
        let since = self.at();
        for (n, connection, streams, holds) in handed {
            let failures = self.platter.failures();
            let Some(server) = self.processes.get_mut(&id).and_then(|process| process.server.as_mut()) else { return };
            let mut session =
                server.session(Transport::Http, &connection, &Before { holds, replays: 1, ..Before::default() });
            let is_recorded = self.platter.failures() == failures;
            session.handle(initialize(0).to_string().as_bytes(), &mut Vec::new());
            (0..streams).for_each(|_| server.shared.board.hold(session.peer()));
            let seat = server.seat_of(session.peer()).and_then(|id| id.chars().next());
            server.web.insert(n, (session, streams));
            server.web_ids.insert(n, connection);
            if let Some(key) = seat.filter(|_| is_recorded && streams > 0).map(Key::of_connection) {
                self.truth.hold(&key, Held { by: Actor::Web(n), process: id, since });
            }
        }
    }

    /// A server takes a bridge's connection up.
    pub(super) fn welcome(&mut self, link: u64, before: &Before) {
        let Some(Link { server: id, connection, client, .. }) = self.links.get(&link) else { return };
        let (id, connection, n) = (*id, connection.clone(), *client);
        // The same bridge comes again: its connection of before ends first, whether its loss was noticed or not.
        let same = |(old, other): &(&u64, &Link)| {
            **old != link && other.server == id && other.connection == connection && !other.server_is_done
        };
        let earlier: Vec<u64> = self.links.iter().filter(same).map(|(old, _)| *old).collect();
        for old in earlier {
            self.hear_one(id, old);
            self.hang_up(id, old);
        }
        let Some(server) = self.processes.get_mut(&id).and_then(|process| process.server.as_mut()) else { return };
        let failures = self.platter.failures();
        let session = server.session(Transport::Stdio, &connection, before);
        let is_recorded = self.platter.failures() == failures;
        let seat = server.seat_of(session.peer()).and_then(|id| id.chars().next());
        server.sessions.insert(link, session);
        if let Some(id_of) = seat.filter(|_| is_recorded && !self.is_dead(id)) {
            let since = self.at();
            self.tally.returns += 1;
            self.truth.hold(&Key::of_connection(id_of), Held { by: Actor::Client(n), process: id, since });
        }
    }

    fn hang_up(&mut self, id: u32, link: u64) {
        let Some(client) = self.links.get(&link).map(|link| link.client) else { return };
        let failures = self.platter.failures();
        let session = self.processes.get_mut(&id).and_then(|process| process.server.as_mut()?.sessions.remove(&link));
        drop(session);
        self.lets_go(Actor::Client(client), id, failures);
        if let Some(link) = self.links.get_mut(&link) {
            (link.bridge_sees_end, link.server_is_done) = (true, true);
        }
        self.links.retain(|_, link| !link.server_is_done || !link.bridge_is_done);
    }

    /// Answers what was said to a server.
    pub(super) fn hear(&mut self, id: u32) -> bool {
        let mut busy = false;
        let of = |(_, link): &(&u64, &Link)| link.server == id && !link.server_is_done;
        for link in self.links.iter().filter(of).map(|(id, _)| *id).collect::<Vec<_>>() {
            busy |= self.hear_one(id, link);
            if self.is_dead(id) {
                return true;
            }
            if self.links.get(&link).is_some_and(|link| link.server_sees_end) {
                busy = true;
                self.hang_up(id, link);
            }
        }
        busy
    }

    fn hear_one(&mut self, id: u32, link: u64) -> bool {
        let mut busy = false;
        while let Some(line) = self.links.get_mut(&link).and_then(|link| link.to_server.pop_front()) {
            busy = true;
            self.answer(id, link, &line);
            if self.is_dead(id) {
                break;
            }
        }
        busy
    }

    fn answer(&mut self, id: u32, at_link: u64, line: &[u8]) {
        let Some(n) = self.links.get(&at_link).map(|link| link.client) else { return };
        let seat = self.seat_at(id, at_link);
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        let number = message["id"].as_u64();
        // What a client that is gone has asked is known by its words alone.
        let what = What::in_message(&message);
        let caller = Caller { actor: Actor::Client(n), process: id, seat, holds: true };
        let taken_up = Moment { at: self.at(), is_written: caller.writes(what) };
        if let Some(asked) = number.and_then(|number| self.clients.get_mut(&n)?.asked.get_mut(&number)) {
            asked.taken_up = Some(taken_up);
        }
        // What a bridge says again to a new server is no sign of its client.
        if !matches!(message["method"].as_str(), Some("initialize" | "notifications/initialized")) {
            self.takes_up(caller, number.unwrap_or_default(), what);
        }
        let mut out = Vec::new();
        let session =
            self.processes.get_mut(&id).and_then(|process| process.server.as_mut()?.sessions.get_mut(&at_link));
        let Some(session) = session else { return };
        session.handle(line, &mut out);
        if self.is_dead(id) {
            return;
        }
        let answer: Value = serde_json::from_slice(&out).unwrap_or_default();
        let claim = answer.get("result").filter(|_| what != What::Other).and_then(Claim::read);
        self.has_answered(caller, what, claim.as_ref());
        if let Some(link) = self.links.get_mut(&at_link)
            && !out.is_empty()
            && !link.bridge_sees_end
        {
            link.to_bridge.push_back(out.trim_ascii_end().to_vec());
        }
    }

    /// Where the client of a link has a seat.
    fn seat_at(&self, id: u32, link: u64) -> Option<char> {
        let server = self.processes.get(&id)?.server.as_ref()?;
        server.seat_of(server.sessions.get(&link)?.peer())?.chars().next()
    }

    pub(super) fn server_turn(&mut self, id: u32) -> bool {
        let Some(process) = self.processes.get(&id) else { return false };
        if process.server.is_none() {
            return false;
        }
        let busy = self.hear(id);
        if self.is_dead(id) {
            return true;
        }
        self.look_at_the_time(id);
        let Some(process) = self.processes.get_mut(&id).filter(|process| process.bridge.is_none() && !process.stays)
        else {
            return busy;
        };
        let Some(server) = process.server.take() else { return busy };
        if self.has_peers(id, &server) {
            if let Some(process) = self.processes.get_mut(&id) {
                process.server = Some(server);
            }
            return busy;
        }
        self.leaves(id, server, None);
        if !self.is_dead(id) {
            self.dies(id);
        }
        true
    }

    /// Does what is due by the clock.
    fn look_at_the_time(&mut self, id: u32) {
        let now = self.machine.awake();
        let Some(server) = self.processes.get_mut(&id).and_then(|process| process.server.as_mut()) else { return };
        if server.shared.board.next_due().is_some_and(|due| due <= now) {
            server.reap();
        }
        if server.chores_at > now {
            return;
        }
        let failures = self.platter.failures();
        server.recorder.beat();
        let (made_known, stamp) =
            (self.platter.failures() == failures && !self.platter.is_full(), self.machine.stamp());
        if made_known && !self.platter.is_dead(id) && !self.platter.is_powered_off() {
            for key in self.truth.held_by_process(id) {
                self.truth.known(&key, &stamp);
            }
        }
        let (is_holder, judging) = (server.is_holder, server.is_holder || self.lock.is_none());
        server.look_after_the_house(now, judging);
        if !is_holder && !self.is_dead(id) {
            self.looks_around(id);
        }
    }

    pub(super) fn has_peers(&self, id: u32, server: &Server) -> bool {
        !server.web.is_empty() || self.links.values().any(|link| link.server == id && !link.server_is_done)
    }

    /// A server lets all go and leaves; what it says to those who are there before.
    pub(super) fn leaves(&mut self, id: u32, server: Server, farewell: Option<&str>) {
        let failures = self.platter.failures();
        let web: Vec<u8> = server.web.keys().copied().collect();
        server.leave();
        let mut clients: Vec<u8> = Vec::new();
        for link in self.links.values_mut().filter(|link| link.server == id) {
            clients.push(link.client);
            link.server_is_done = true;
            if let Some(why) = farewell.filter(|_| !link.bridge_sees_end) {
                link.to_bridge.push_back(format!(r#"{{"majordomus":"farewell","why":"{why}"}}"#).into_bytes());
            }
            link.bridge_sees_end = true;
        }
        for actor in clients.into_iter().map(Actor::Client).chain(web.into_iter().map(Actor::Web)) {
            self.lets_go(actor, id, failures);
        }
        if self.lock == Some(id) && !self.is_dead(id) {
            self.lock = None;
        }
        self.links.retain(|_, link| !link.server_is_done || !link.bridge_is_done);
    }

    /// An operator stops a server.
    pub(super) fn stop_serving(&mut self, id: u32) {
        self.hear(id);
        let Some(mut server) = self.processes.get_mut(&id).and_then(|process| process.server.take()) else { return };
        server.close_doors(false);
        let now = self.at();
        for key in self.truth.held_by_process(id) {
            self.truth.release(&key, now);
        }
        server.shared.board.close_all(CloseReason::Shutdown);
        self.leaves(id, server, Some("stopped"));
        if !self.is_dead(id) && self.processes.get(&id).is_some_and(|process| process.bridge.is_none()) {
            self.dies(id);
        }
    }

    /// Time passes, and everybody does what is due meanwhile.
    pub(super) fn wait(&mut self, time: Duration) {
        let boot = self.at().boot;
        let until = self.machine.awake() + time;
        let coarse = (time / LOOKS).max(HOUSEKEEPING);
        for _ in 0..10 * LOOKS {
            let now = self.machine.awake();
            if now >= until || self.at().boot != boot {
                return;
            }
            let due = self.processes.values().filter(|process| process.stopped_at.is_none());
            let due = due.filter_map(|process| process.server.as_ref()?.shared.board.next_due());
            let next = due.filter(|due| *due > now).chain([now + coarse, until]).min().unwrap_or(until);
            self.machine.advance(next.saturating_sub(now).max(Duration::from_millis(1)));
            self.settle();
            self.bury();
        }
        let left = until.saturating_sub(self.machine.awake());
        if self.at().boot == boot {
            self.machine.advance(left);
            self.settle();
        }
    }
}

/// Reading it again where its client is gone.
impl What {
    pub(super) fn in_message(message: &Value) -> Self {
        let id = message["params"]["arguments"]["external_id"].as_str().and_then(|id| id.chars().next());
        match (message["params"]["name"].as_str(), id) {
            (Some("majordomus_session_attach"), Some(id)) => Self::Attach(id),
            (Some("majordomus_session_detach"), id) => Self::Detach(id),
            _ => Self::Other,
        }
    }
}
