//! Clients over standard streams, over HTTP and by handle: what they ask, and what they make of the answers.

use std::collections::BTreeMap;

use majordomus_episodes_core::peers::Transport;
use majordomus_records::state::carrier_of;
use serde_json::{Value, json};

use super::World;
use crate::answer::Claim;
use crate::server::{Before, Server};
use crate::step::{Calls, Does};
use crate::truth::{Actor, At, Held, Key};

/// A client with a process of its own.
#[derive(Default)]
pub(super) struct Client {
    pub(super) process: Option<u32>,
    last_id: u64,
    /// What has not been answered.
    pub(super) asked: BTreeMap<u64, Asked>,
    /// The session that it was told it has ended, if it has attached nothing since.
    ended: Option<String>,
    /// The number of the request by which it attached last.
    last_attach: u64,
}

impl Client {
    /// Its process has ended; the next one knows nothing of what this one did.
    pub(super) fn is_gone(&mut self) {
        self.process = None;
        self.asked.clear();
        self.ended = None;
    }
}

/// A request, and when a server last took it up.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) what: What,
    pub(super) taken_up: Option<Moment>,
}

/// When a server took a request up, and whether it had to write that down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: At,
    pub(super) is_written: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Attach(char),
    Detach(Option<char>),
    Other,
}

/// A caller by handle.
#[derive(Default)]
pub(super) struct ByHandle {
    token: Option<String>,
    id: Option<char>,
}

/// Somebody who called a server, as far as that is known outside it.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub(super) actor: Actor,
    /// The server's process.
    pub(super) process: u32,
    /// Where it has a seat.
    pub(super) seat: Option<char>,
    /// Whether what it attaches is held for as long as it is there.
    pub(super) holds: bool,
}

impl Caller {
    /// Whether what it asks is written down: not what it is known for already.
    pub(super) fn writes(self, what: What) -> bool {
        !matches!(what, What::Attach(id) if self.seat == Some(id))
    }
}

const ATTACH: &str = "majordomus_session_attach";
const DETACH: &str = "majordomus_session_detach";

pub(super) fn initialize(id: u64) -> Value {
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
}

fn message(id: u64, what: What) -> Value {
    let (tool, external_id) = match what {
        What::Attach(id) => (ATTACH, Some(id)),
        What::Detach(id) => (DETACH, id),
        What::Other => return json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }),
    };
    let arguments = external_id.map_or_else(|| json!({}), |id| json!({ "external_id": id.to_string() }));
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

impl World {
    pub(super) fn client_does(&mut self, n: u8, does: Does) {
        let there = self.clients.entry(n).or_default().process.is_some();
        match does {
            Does::Up if !there => {
                let process = self.start_bridge(n);
                let id = self.asks(n, What::Other);
                if let Some(client) = self.clients.get_mut(&n) {
                    client.process = Some(process);
                }
                self.says(n, &initialize(id));
                self.says(n, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            }
            Does::Attach(id) if there => self.calls(n, What::Attach(id)),
            Does::Call if there => self.calls(n, What::Other),
            Does::Detach(id) if there => self.calls(n, What::Detach(id)),
            Does::Leave if there => self.input_ends(n),
            Does::Up | Does::Attach(_) | Does::Call | Does::Detach(_) | Does::Leave => {}
        }
    }

    fn asks(&mut self, n: u8, what: What) -> u64 {
        let client = self.clients.entry(n).or_default();
        client.last_id += 1;
        if matches!(what, What::Attach(_)) {
            (client.ended, client.last_attach) = (None, client.last_id);
        }
        client.asked.insert(client.last_id, Asked { what, taken_up: None });
        client.last_id
    }

    fn calls(&mut self, n: u8, what: What) {
        let id = self.asks(n, what);
        self.says(n, &message(id, what));
    }

    /// A client reads a line.
    pub(super) fn client_reads(&mut self, n: u8, line: &[u8]) {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        let asked = message["id"].as_u64().and_then(|id| self.clients.get_mut(&n)?.asked.remove(&id));
        let Some(asked) = asked else {
            let line = String::from_utf8_lossy(line).into_owned();
            self.is_wrong("no_id_is_answered_twice", format!("c{n} did not wait for {line}"));
            return;
        };
        let written = asked.taken_up.filter(|moment| moment.is_written).map(|moment| moment.at);
        let claim = message.get("result").and_then(Claim::read);
        if let (What::Detach(Some(_)), Some(Claim::Recorded { session_id, .. })) = (asked.what, &claim)
            && let Some(client) = self.clients.get_mut(&n)
        {
            // That one is the last now.
            client.ended = Some(session_id.clone()).filter(|_| client.ended.is_some());
        }
        if asked.what == What::Detach(None) {
            self.ends_again(n, message["id"].as_u64().unwrap_or_default(), claim.as_ref());
        }
        self.reads_answer(asked.what, written, claim);
    }

    /// Whoever finishes again what it has finished is told the same, whoever serves it by now.
    fn ends_again(&mut self, n: u8, id: u64, claim: Option<&Claim>) {
        let session = match claim {
            Some(Claim::Recorded { session_id, .. }) => Some(session_id.clone()),
            Some(Claim::Unrecorded | Claim::Refused) | None => None,
        };
        // The note of that is no promise where the disk refuses.
        let refused = self.platter.failures() > 0;
        let client = self.clients.get_mut(&n).filter(|client| id > client.last_attach);
        let Some(client) = client else { return };
        if let Some(before) = client.ended.clone()
            && !refused
            && session.as_ref() != Some(&before)
        {
            self.is_wrong(
                "a_detach_that_is_asked_again_is_answered_as_the_first",
                format!("c{n} had ended {before}, and is told {claim:?}"),
            );
        } else if session.is_some() {
            client.ended = session;
        }
    }

    /// Somebody reads what became of its request.
    fn reads_answer(&mut self, what: What, written: Option<At>, claim: Option<Claim>) {
        let Some(Claim::Recorded { session_id, attachments, opened_at, closed_as }) = claim else { return };
        match what {
            What::Attach(id) => {
                self.was_told(&Key::of_connection(id), &session_id, attachments, written);
                let told = self.truth.told.entry(session_id.clone()).or_default();
                let before = told.opened_at.replace(opened_at.clone());
                if let Some(before) = before.filter(|before| *before != opened_at) {
                    self.is_wrong(
                        "a_client_that_comes_back_under_its_id_gets_its_own_episode",
                        format!("{session_id} was opened at {before}, and now at {opened_at}"),
                    );
                }
            }
            What::Detach(_) => self.truth.told.entry(session_id).or_default().ended = closed_as,
            What::Other => {}
        }
    }

    /// What somebody asks, as it is known outside before a server has made anything of it.
    pub(super) fn takes_up(&mut self, caller: Caller, number: u64, what: What) {
        let (at, actor) = (self.at(), caller.actor);
        match what {
            What::Attach(id) => {
                let known_elsewhere = self.is_seated_elsewhere(id, caller.process);
                let conversation = self.truth.of(&Key::of_connection(id));
                conversation.is_contested |= known_elsewhere;
                conversation.evidence.push(at);
                // Who has it already attaches once more only where somebody else had it since, or ended it.
                let others = known_elsewhere || conversation.owners.iter().any(|owner| *owner != actor);
                let others = others || !conversation.ends_on_purpose.is_empty();
                conversation.owners.insert(actor);
                if caller.seat != Some(id) || others || conversation.is_contested {
                    conversation.attaches.insert((actor, number));
                }
            }
            What::Detach(id) => {
                if let Some(id) = id.or(caller.seat) {
                    let conversation = self.truth.of(&Key::of_connection(id));
                    conversation.ends_on_purpose.entry((actor, number)).or_default().push(at);
                    conversation.evidence.push(at);
                }
            }
            What::Other => {}
        }
        if let Some(id) = caller.seat {
            let conversation = self.truth.of(&Key::of_connection(id));
            if conversation.owners.contains(&actor) {
                conversation.evidence.push(at);
            }
        }
    }

    /// What became of it, as a server that lives on has answered; returns where the caller has a seat now.
    pub(super) fn has_answered(&mut self, caller: Caller, what: What, claim: Option<&Claim>) -> Option<char> {
        let now = self.machine.stamp();
        let at = At::of(&now);
        match (what, claim) {
            (What::Attach(id), Some(Claim::Recorded { .. } | Claim::Unrecorded)) => {
                if let Some(left) = caller.seat.filter(|left| *left != id) {
                    self.truth.release(&Key::of_connection(left), at);
                }
                let key = Key::of_connection(id);
                let known_elsewhere = self.is_seated_elsewhere(id, caller.process);
                let conversation = self.truth.of(&key);
                conversation.is_recorded = matches!(claim, Some(Claim::Recorded { .. }));
                // Whoever was there already has changed nothing, also where another server knows of somebody else since; what
                // is not recorded is known nowhere else.
                if conversation.is_recorded {
                    conversation.pending.remove(&caller.actor);
                    let others = known_elsewhere || !conversation.pending.is_empty();
                    conversation.is_contested = others || (caller.seat == Some(id) && conversation.is_contested);
                } else {
                    conversation.pending.insert(caller.actor);
                }
                if conversation.is_recorded && caller.seat != Some(id) {
                    conversation.owners = [caller.actor].into();
                    conversation.owners.extend(&conversation.pending);
                    if matches!(caller.actor, Actor::Handle(_)) {
                        // All handles of one conversation share a seat.
                        conversation.handles.insert(caller.actor);
                        conversation.owners.extend(&conversation.handles);
                    }
                }
                if !self.truth.of(&key).owners.contains(&caller.actor) {
                    return Some(id);
                }
                self.truth.release(&key, at);
                if let Some(Claim::Recorded { session_id, .. }) = claim {
                    if caller.holds {
                        self.truth.hold(&key, Held { by: caller.actor, process: caller.process, since: at });
                    }
                    if caller.seat != Some(id) {
                        self.truth.known_durably(&key, session_id, &now);
                    } else {
                        self.truth.is_another(&key, session_id);
                    }
                }
                Some(id)
            }
            (What::Detach(id), Some(Claim::Recorded { .. } | Claim::Unrecorded)) => {
                let id = id.or(caller.seat)?;
                if matches!(claim, Some(Claim::Unrecorded)) {
                    self.truth.of(&Key::of_connection(id)).is_ending = true;
                }
                self.truth.release(&Key::of_connection(id), at);
                caller.seat.filter(|seat| *seat != id)
            }
            _ => caller.seat,
        }
    }

    /// Whether another server believes that somebody has a seat there.
    fn is_seated_elsewhere(&self, id: char, process: u32) -> bool {
        let others = self.processes.iter().filter(|(other, _)| **other != process);
        let mut others = others.filter_map(|(_, other)| other.server.as_ref());
        others.any(|server| server.has_seat(id))
    }

    /// The server that answers over HTTP, taken out of its process for a call.
    fn take_server(&mut self) -> Option<(u32, Server)> {
        let holder = self.lock.filter(|holder| self.processes[holder].stopped_at.is_none())?;
        Some((holder, self.processes.get_mut(&holder)?.server.take()?))
    }

    fn put_back(&mut self, process: u32, server: Server) {
        if let Some(process) = self.processes.get_mut(&process) {
            process.server = Some(server);
        }
        self.bury();
    }

    pub(super) fn has_web(&self, n: u8) -> bool {
        let servers = self.processes.values().filter_map(|process| process.server.as_ref());
        servers.into_iter().any(|server| server.web.contains_key(&n))
    }

    pub(super) fn web_calls(&mut self, n: u8, calls: Calls) {
        let Some((process, mut server)) = self.take_server() else { return };
        let actor = Actor::Web(n);
        let (mut session, mut streams) = server.web.remove(&n).unwrap_or_else(|| {
            self.last_call += 1;
            let connection = format!("{:032x}", self.last_call);
            self.truth.carriers.insert(carrier_of(&connection), Actor::Web(n));
            let mut session = server.session(Transport::Http, &connection, &Before::default());
            server.web_ids.insert(n, connection);
            session.handle(initialize(0).to_string().as_bytes(), &mut Vec::new());
            (session, 0)
        });
        let seat = server.seat_of(session.peer()).and_then(|id| id.chars().next());
        let caller = Caller { actor, process, seat, holds: streams > 0 };
        let what = match calls {
            Calls::Attach(id) => Some(What::Attach(id)),
            Calls::Call => Some(What::Other),
            Calls::Detach => Some(What::Detach(None)),
            Calls::Leave | Calls::Stream | Calls::Unstream => None,
        };
        let failures = self.platter.failures();
        if let Some(what) = what {
            self.last_call += 1;
            let (number, at) = (self.last_call, self.at());
            self.takes_up(caller, number, what);
            let mut out = Vec::new();
            session.handle(message(number, what).to_string().as_bytes(), &mut out);
            if !self.is_dead(process) {
                let answer: Value = serde_json::from_slice(&out).unwrap_or_default();
                let claim = answer.get("result").and_then(Claim::read);
                self.has_answered(caller, what, claim.as_ref());
                self.reads_answer(what, Some(at).filter(|_| caller.writes(what)), claim);
            }
        } else if calls == Calls::Stream {
            streams += 1;
            server.shared.board.hold(session.peer());
            let since = self.at();
            if let Some(key) = seat.map(Key::of_connection)
                && self.truth.of(&key).is_recorded
                && self.truth.of(&key).owners.contains(&actor)
            {
                self.truth.hold(&key, Held { by: actor, process, since });
            }
        } else if calls == Calls::Unstream && streams > 0 {
            streams -= 1;
            server.shared.board.release(session.peer());
            if streams == 0 {
                // Nobody else is told before the patience with it is over.
                self.releases(actor, process);
            }
        }
        if calls == Calls::Leave {
            session.end();
            self.lets_go(actor, process, failures);
        } else {
            server.web.insert(n, (session, streams));
        }
        self.put_back(process, server);
    }

    pub(super) fn handle_calls(&mut self, n: u8, calls: Calls) {
        let ByHandle { mut token, id: mut seat } = self.handles.remove(&n).unwrap_or_default();
        let (what, tool, mut arguments) = match calls {
            Calls::Attach(id) => {
                if seat != Some(id) {
                    // It is none for another conversation.
                    (token, seat) = (None, None);
                }
                (What::Attach(id), ATTACH, json!({ "external_id": id.to_string() }))
            }
            Calls::Detach if token.is_some() => (What::Detach(None), DETACH, json!({})),
            Calls::Leave => return,
            Calls::Call | Calls::Detach | Calls::Stream | Calls::Unstream => {
                (What::Other, "majordomus_episodes", json!({}))
            }
        };
        let Some((process, server)) = self.take_server() else {
            self.handles.insert(n, ByHandle { token, id: seat });
            return;
        };
        if let Some(token) = &token {
            arguments["episode_handle"] = token.as_str().into();
        }
        self.last_call += 1;
        let (number, at) = (self.last_call, self.at());
        let caller = Caller { actor: Actor::Handle(n), process, seat, holds: false };
        self.takes_up(caller, number, what);
        let result = server.call_by_handle(tool, &arguments);
        if !self.is_dead(process) {
            let claim = Claim::read(&result);
            seat = self.has_answered(caller, what, claim.as_ref());
            if let Some(minted) = result["structuredContent"]["episode_handle"].as_str() {
                token = Some(minted.into());
            }
            if matches!(claim, Some(Claim::Refused)) {
                // It is good no more, whatever the reason.
                (token, seat) = (None, None);
            }
            self.reads_answer(what, Some(at).filter(|_| caller.writes(what)), claim);
        }
        self.handles.insert(n, ByHandle { token, id: seat });
        self.put_back(process, server);
    }
}
