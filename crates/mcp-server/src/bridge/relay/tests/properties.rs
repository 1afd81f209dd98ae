//! Any interleaving of a client, its servers and their deaths.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use serde_json::Value;

use super::super::Relay;
use super::{attach, call, cancel, detach, request, result};

#[derive(Clone, Copy, Debug)]
enum Action {
    Read,
    Write,
    Attach,
    Detach,
    Subscribe,
    Ready,
    Broken,
    /// Of so many requests, the last of which writes or not.
    Batch(u8, bool),
    /// A request under the id of the opening.
    Again,
    Cancel(prop::sample::Index),
    /// The server answers the first line that it has.
    Answer,
    /// Everything that it answered comes through.
    Deliver,
    /// It dies; so many of the bytes that it answered come through.
    Die(prop::sample::Index),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => Just(Action::Read),
        2 => Just(Action::Write),
        1 => Just(Action::Attach),
        1 => Just(Action::Detach),
        1 => Just(Action::Subscribe),
        1 => Just(Action::Ready),
        1 => Just(Action::Broken),
        1 => (1..4u8, any::<bool>()).prop_map(|(count, writes)| Action::Batch(count, writes)),
        1 => Just(Action::Again),
        1 => any::<prop::sample::Index>().prop_map(Action::Cancel),
        6 => Just(Action::Answer),
        3 => Just(Action::Deliver),
        2 => any::<prop::sample::Index>().prop_map(Action::Die),
    ]
}

/// A client and the server that it has now, with everything that must stay true of them.
#[derive(Default)]
struct World {
    relay: Relay,
    /// What the client sent, by its bytes: its place, and whether it may come once only.
    lines: BTreeMap<String, (usize, bool)>,
    asked: BTreeMap<String, usize>,
    answered: BTreeMap<String, usize>,
    cancelled: BTreeSet<String>,
    next: usize,
    opened: bool,
    /// How often a line that may come once only has come to any server.
    once: BTreeMap<String, usize>,
    inbox: VecDeque<String>,
    /// The place of the last of the client's lines that this server got.
    last: Option<usize>,
    outbox: Vec<u8>,
}

const OPENING: &str = r#"{"jsonrpc": "2.0","id":"open","method":"initialize","params":{}}"#;

impl World {
    fn says(&mut self, line: String, ids: &[String], once: bool) {
        self.next += 1;
        self.lines.insert(line.clone(), (self.next, once));
        for id in ids {
            *self.asked.entry(id.clone()).or_default() += 1;
        }
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        self.relay.client_line(line.as_bytes(), &mut to_server, &mut to_client);
        assert!(to_client.is_empty());
        assert_eq!(to_server, format!("{line}\n").into_bytes());
        self.arrive(&to_server, 0);
    }

    /// Bytes come to the server, of which so many lines open the session.
    fn arrive(&mut self, bytes: &[u8], opening: usize) {
        for (at, line) in std::str::from_utf8(bytes).unwrap().lines().enumerate() {
            self.inbox.push_back(line.into());
            if at < opening {
                assert!(at > 0 || line == OPENING);
                continue;
            }
            let Some((place, once)) = self.lines.get(line) else {
                assert!(line.contains("resources/subscribe") || line.contains("notifications/initialized"), "{line}");
                continue;
            };
            assert!(self.last < Some(*place), "{line} came out of order");
            self.last = Some(*place);
            if *once {
                let times = self.once.entry(line.into()).or_default();
                *times += 1;
                assert_eq!(*times, 1, "{line}");
            }
        }
    }

    fn id(&self) -> String {
        format!("\"r{}\"", self.next)
    }

    fn act(&mut self, action: Action) {
        let id = self.id();
        let ids = std::slice::from_ref(&id);
        match action {
            Action::Read => self.says(request(&id, "resources/read", "{ }"), ids, false),
            Action::Write => self.says(call(&id, "majordomus_announce", "{ }"), ids, true),
            Action::Attach => self.says(attach(&id, &format!("e{}", self.next % 3)), ids, false),
            Action::Detach => self.says(detach(&id), ids, false),
            Action::Subscribe => {
                self.says(request(&id, "resources/subscribe", r#"{ "uri":"a:b"}"#), ids, false);
            }
            Action::Ready => {
                self.says(format!(r#"{{"method":"notifications/initialized","n":{id}}}"#), &[], false);
            }
            Action::Broken => self.says(format!("{{ {id}"), &[], false),
            Action::Again => self.says(
                format!(r#"{{"jsonrpc":"2.0","id":"open","method":"ping","n":{id}}}"#),
                &[r#""open""#.into()],
                false,
            ),
            Action::Batch(count, writes) => {
                let ids: Vec<String> = (0..count).map(|at| format!("\"b{}.{at}\"", self.next)).collect();
                let last = ids.len() - 1;
                let element = |(at, id): (usize, &String)| match writes && at == last {
                    true => call(id, "majordomus_announce", "{}"),
                    false => request(id, "ping", "{}"),
                };
                let elements: Vec<String> = ids.iter().enumerate().map(element).collect();
                self.says(format!("[{}]", elements.join(", ")), &ids, writes);
            }
            Action::Cancel(which) => {
                let open: Vec<String> = self.asked.keys().filter(|id| *id != r#""open""#).cloned().collect();
                if !open.is_empty() {
                    let id = open[which.index(open.len())].clone();
                    if !self.answered.contains_key(&id) && self.cancelled.insert(id.clone()) {
                        self.says(cancel(&id), &[], false);
                    }
                }
            }
            Action::Answer => self.answer(),
            Action::Deliver => self.deliver(self.outbox.len()),
            Action::Die(which) => {
                self.deliver(which.index(self.outbox.len() + 1));
                self.die();
            }
        }
        self.check();
    }

    /// The server answers a line as one would that never heard of this bridge.
    fn answer(&mut self) {
        let Some(line) = self.inbox.pop_front() else { return };
        let answered = match serde_json::from_str::<Value>(&line) {
            Err(_) => Some(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#.into()),
            Ok(Value::Array(all)) => Some(format!(
                "[{}]",
                all.iter().map(|one| result(&one["id"].to_string())).collect::<Vec<_>>().join(",")
            )),
            Ok(one) => one.get("id").map(|id| result(&id.to_string())),
        };
        if let Some(answered) = answered {
            self.outbox.extend_from_slice(answered.as_bytes());
            self.outbox.push(b'\n');
        }
    }

    fn deliver(&mut self, bytes: usize) {
        let whole = self.outbox[..bytes].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut to_client = Vec::new();
        for line in self.outbox.drain(..whole).collect::<Vec<u8>>().split_inclusive(|byte| *byte == b'\n') {
            self.relay.server_line(&line[..line.len() - 1], &mut to_client);
        }
        self.show(&to_client);
    }

    fn die(&mut self) {
        self.inbox.clear();
        self.last = None;
        let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
        self.relay.lost(&mut to_client);
        self.relay.lost(&mut to_client);
        // What comes from the dead after all is nobody's.
        for line in std::mem::take(&mut self.outbox).split(|byte| *byte == b'\n') {
            self.relay.server_line(line, &mut to_client);
        }
        self.show(&to_client);
        self.relay.replay(&mut to_server);
        self.arrive(&to_server, usize::from(self.opened));
    }

    fn show(&mut self, bytes: &[u8]) {
        for line in std::str::from_utf8(bytes).unwrap().lines() {
            let said: Value = serde_json::from_str(line).unwrap();
            let all = said.as_array().cloned().unwrap_or_else(|| vec![said]);
            for id in all.iter().filter_map(|one| one.get("id")).map(Value::to_string) {
                self.opened |= id == r#""open""#;
                *self.answered.entry(id).or_default() += 1;
            }
        }
    }

    fn check(&self) {
        for (id, times) in &self.answered {
            assert!(Some(times) <= self.asked.get(id), "{id} was answered more often than asked");
        }
    }
}

proptest! {
    #[test]
    fn each_request_is_answered_exactly_once_and_what_writes_is_sent_once(
        actions in prop::collection::vec(action(), 0..120)
    ) {
        let mut world = World::default();
        world.says(OPENING.into(), &[r#""open""#.into()], false);
        for action in actions {
            world.act(action);
        }
        while !world.inbox.is_empty() {
            world.answer();
        }
        world.deliver(world.outbox.len());
        world.check();
        prop_assert_eq!(world.relay.in_flight(), 0);
        for (id, times) in &world.asked {
            prop_assert!(world.answered.get(id) == Some(times) || world.cancelled.contains(id), "{} was never answered", id);
        }
    }
}
