//! The machine, its disk, all processes on it, and everybody who talks to them.

mod callers;
mod processes;
mod serving;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;
use majordomus_providers::EventKind;
use majordomus_records::capture::{self, Captured};
use majordomus_records::clock::Stamp;
use majordomus_records::ending::EndedAs;
use majordomus_records::recovery::Judges;

use crate::disk::{Fault, Platter, View};
use crate::machine::Machine;
use crate::random::Random;
use crate::run::Tally;
use crate::server::{self, Place};
use crate::step::{Asks, Calls, Does, Event, Fires, Side, Step, Who};
use crate::truth::{Actor, At, Key, Truth};
use crate::watch::{Watch, Wrong};

use callers::{ByHandle, Client};
use processes::{Link, Process};

/// Everything.
pub(crate) struct World {
    pub(crate) place: Place,
    pub(crate) machine: Machine,
    pub(crate) platter: Platter,
    processes: BTreeMap<u32, Process>,
    last_process: u32,
    /// Who has the lock that makes a process the server of the checkout.
    lock: Option<u32>,
    links: BTreeMap<u64, Link>,
    last_link: u64,
    clients: BTreeMap<u8, Client>,
    handles: BTreeMap<u8, ByHandle>,
    /// Requests of callers over HTTP are numbered here.
    last_call: u64,
    /// Faults of processes that live for a moment only, for the next one.
    armed: Vec<(Who, Fault, usize)>,
    pub(crate) truth: Truth,
    watch: Watch,
    wrong: Option<Wrong>,
    tally: Tally,
}

impl World {
    pub(crate) fn new(place: Place) -> Self {
        let machine = Machine::new();
        let truth = Truth { boots: [machine.booted()].into(), ..Truth::default() };
        Self {
            watch: Watch::new(&place),
            place,
            machine,
            platter: Platter::default(),
            processes: BTreeMap::new(),
            last_process: 0,
            lock: None,
            links: BTreeMap::new(),
            last_link: 0,
            clients: BTreeMap::new(),
            handles: BTreeMap::new(),
            last_call: 0,
            armed: Vec::new(),
            truth,
            wrong: None,
            tally: Tally { runs: 1, ..Tally::default() },
        }
    }

    pub(crate) fn at(&self) -> At {
        At::of(&self.machine.stamp())
    }

    /// How much happened.
    pub(crate) fn tally(mut self) -> Tally {
        self.watch.count(&mut self.tally);
        self.tally
    }

    fn is_wrong(&mut self, sentence: &'static str, what: impl Into<String>) {
        self.wrong.get_or_insert(Wrong { sentence, what: what.into() });
    }

    /// Lets one thing happen, and looks whether all is true that should be.
    pub(crate) fn run(&mut self, step: Step) -> Result<(), Wrong> {
        // Nothing happens at the same moment as something else.
        self.machine.advance(Duration::from_millis(1100));
        self.happens(step.event);
        if !step.quiet {
            self.settle();
        }
        self.bury();
        self.look()
    }

    fn look(&mut self) -> Result<(), Wrong> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        self.watch.look(&self.platter, &mut self.truth)
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Client(n, does) => self.client_does(n, does),
            Event::Web(n, calls) => self.web_calls(n, calls),
            Event::Handle(n, calls) => self.handle_calls(n, calls),
            Event::Hook(n, fires) => self.hook_fires(n, fires),
            Event::Person(asks) => self.person_asks(asks),
            Event::Serve => self.serve(true),
            Event::Kill(who) => {
                if let Some(process) = self.process_of(who) {
                    self.dies(process);
                }
            }
            Event::Stop(who) => {
                let now = self.machine.awake();
                if let Some(process) = self.process_of(who).and_then(|process| self.processes.get_mut(&process)) {
                    process.stopped_at.get_or_insert(now);
                }
            }
            Event::Continue(who) => {
                if let Some(process) = self.process_of(who) {
                    self.go_on(process);
                }
            }
            Event::Cut(n, side) => self.cut(n, side),
            Event::Wait(seconds) => self.wait(Duration::from_secs(seconds)),
            Event::Sleep(seconds) => self.machine.sleep(Duration::from_secs(seconds)),
            Event::Jump(seconds) => self.machine.jump(seconds * 1000),
            Event::Power { choice, off, jump } => self.power(choice, off, jump),
            Event::Fault(who, fault, at) => match self.process_of(who) {
                Some(process) => self.platter.arm(process, at, fault),
                None => self.armed.push((who, fault, at)),
            },
            Event::Full => self.platter.fill(true),
            Event::Room => self.platter.fill(false),
        }
    }

    fn power(&mut self, choice: u64, off: u64, jump: i64) {
        self.platter.power_off();
        self.tally.power_losses += 1;
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            self.dies(process);
        }
        self.truth.lose_power(self.at());
        self.platter.power_on(&mut Random::new(choice));
        self.machine.boot(Duration::from_secs(off), jump * 1000);
        self.truth.boots.extend([self.machine.booted()]);
        self.lock = None;
        self.links.clear();
        self.armed.clear();
        self.watch.power_lost();
    }

    /// Buries those that a fault has killed.
    fn bury(&mut self) {
        if self.platter.is_powered_off() {
            let choice = self.at().up_ms;
            self.tally.killed_at_work += 1;
            self.power(choice, 60, 0);
        }
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            if self.platter.is_dead(process) {
                self.tally.killed_at_work += 1;
                self.dies(process);
            }
        }
    }

    /// Whether nobody's work is done any more: it was killed while it was at it.
    fn is_dead(&self, process: u32) -> bool {
        self.platter.is_powered_off() || self.platter.is_dead(process)
    }

    /// A process that lives for a moment: its number and its view of the disk.
    fn momentary(&mut self, who: Who) -> (u32, View) {
        self.last_process += 1;
        let number = self.last_process;
        let view = self.platter.view(number);
        self.armed.retain(|(of, fault, at)| {
            if *of == who {
                self.platter.arm(number, *at, *fault);
            }
            *of != who
        });
        (number, view)
    }

    fn hook_fires(&mut self, n: u8, fires: Fires) {
        let key = Key::of_hook(n);
        let now = self.machine.stamp();
        let at = At::of(&now);
        self.last_call += 1;
        let request = (Actor::Hook(n), self.last_call);
        let (kind, source, reason) = match fires {
            Fires::Start(source) => (EventKind::Start, Some(source), None),
            Fires::Activity => (EventKind::Activity, Some("UserPromptSubmit"), None),
            Fires::Compact => (EventKind::Compact, Some("PreCompact"), None),
            Fires::End(reason) => (EventKind::End, None, Some(reason)),
        };
        // Also a mark may begin an episode, or be the first that is recorded of one.
        self.truth.of(&key).owners.insert(Actor::Hook(n));
        match reason {
            Some(reason) => {
                self.truth.of(&key).hook_ends.push((at, reason));
                if ["prompt_input_exit", "clear"].contains(&reason) {
                    self.truth.of(&key).ends_on_purpose.entry(request).or_default().push(at);
                }
            }
            None => {
                self.truth.of(&key).attaches.insert(request);
                if source == Some("resume") {
                    self.truth.resumes.push(now.clone());
                }
            }
        }
        self.truth.evidence(&key, at);
        let (process, view) = self.momentary(Who::Hook(n));
        let store = self.place.store(view, &self.machine);
        let provider = majordomus_providers::find(&key.provider).expect("it is declared");
        let event_key = EpisodeKey::new(&key.provider, &key.id).expect("it is an id");
        let event = capture::Event { source, reason, ..capture::Event::new(provider, kind, &event_key) };
        let captured = capture::record(&store, &event);
        if let Ok(Captured::Ended(EndedAs::Ended { session_id, .. })) = &captured {
            capture::compose_at_once(&store, session_id);
        }
        if !self.is_dead(process) {
            self.hook_was_told(&key, &now, captured.ok());
        }
        self.bury();
        self.platter.forget(process);
    }

    fn hook_was_told(&mut self, key: &Key, now: &Stamp, captured: Option<Captured>) {
        let (session_id, attachments) = match captured {
            Some(Captured::Joined(joined)) => (joined.session_id, joined.attachments),
            Some(Captured::Marked { session_id, .. }) => (session_id, 1),
            Some(Captured::Ended(EndedAs::Ended { session_id, outcome, .. })) => {
                self.truth.told.entry(session_id).or_default().ended = Some(outcome.as_str().into());
                return;
            }
            Some(Captured::JustEnded { .. } | Captured::Ended(_)) | None => return,
        };
        self.was_told(key, &session_id, attachments, Some(At::of(now)));
        self.truth.known_durably(key, &session_id, now);
    }

    /// Somebody was told that what it did is recorded in that session.
    fn was_told(&mut self, key: &Key, session_id: &str, attachments: u32, at: Option<At>) {
        // What was not written was said from a board's memory alone.
        if at.is_some() {
            let before = self.truth.of(key).told.replace(session_id.into());
            if let Some(before) = before.filter(|before| before != session_id) {
                self.watch.must_have_ended(&before);
            }
        }
        let told = self.truth.told.entry(session_id.into()).or_default();
        told.key = Some(key.clone());
        told.attachments = told.attachments.max(attachments);
        told.evidence = told.evidence.max(at);
    }

    fn person_asks(&mut self, asks: Asks) {
        let (process, view) = self.momentary(Who::Person);
        let store = self.place.store(view, &self.machine);
        let at = self.at();
        let holder = self.lock.filter(|holder| self.processes[holder].stopped_at.is_none());
        match asks {
            Asks::List => drop(store.open_episodes()),
            Asks::Sweep => server::sweep(&store, if self.lock.is_none() { Judges::All } else { Judges::Nothing }),
            Asks::CloseConnection(_) | Asks::CloseHook(_) => {
                let key = match asks {
                    Asks::CloseHook(n) => Key::of_hook(n),
                    Asks::CloseConnection(id) => Key::of_connection(id),
                    Asks::List | Asks::Sweep | Asks::Stop => return,
                };
                let request = (Actor::Handle(u8::MAX), u64::from(process));
                self.truth.of(&key).ends_on_purpose.entry(request).or_default().push(at);
                match (holder, self.lock) {
                    (Some(holder), _) => {
                        if let Some(server) = self.processes.get(&holder).and_then(|process| process.server.as_ref()) {
                            let done = server::close_by_operator(server.shared.clone(), &key.id, &key.provider);
                            self.truth.of(&key).is_ending |= !done;
                        }
                    }
                    // It is mute, and nobody knows better.
                    (None, Some(_)) => {}
                    (None, None) => {
                        server::sweep(&store, Judges::All);
                        server::close_by_operator(server::without_server(store), &key.id, &key.provider);
                    }
                }
            }
            Asks::Stop => {
                if let Some(holder) = holder {
                    self.truth.stops.push(at);
                    self.stop_serving(holder);
                }
            }
        }
        self.bury();
        self.platter.forget(process);
    }

    /// Everything goes well from here on, and much time passes: then each session has its record.
    pub(crate) fn heal(&mut self) -> Result<(), Wrong> {
        self.platter.fill(false);
        self.platter.disarm();
        self.armed.clear();
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            self.go_on(process);
        }
        for n in self.clients.keys().copied().collect::<Vec<_>>() {
            self.cut(n, Side::Server);
        }
        self.machine.advance(Duration::from_secs(1));
        self.settle();
        self.wait(Duration::from_secs(60));
        self.bury();
        self.look()?;
        self.everybody_was_answered()?;
        for n in self.clients.keys().copied().collect::<Vec<_>>() {
            self.client_does(n, Does::Leave);
        }
        for n in 0..=u8::MAX {
            if self.has_web(n) {
                self.web_calls(n, Calls::Leave);
            }
        }
        self.settle();
        self.look()?;
        self.serve(true);
        for _ in 0..3 {
            self.wait(Duration::from_secs(30 * 3600));
            self.look()?;
        }
        let (process, view) = self.momentary(Who::Person);
        let store = self.place.store(view, &self.machine);
        for _ in 0..5 {
            server::sweep(&store, Judges::All);
        }
        self.platter.forget(process);
        self.look()?;
        self.watch.the_end(&self.truth)
    }

    fn everybody_was_answered(&mut self) -> Result<(), Wrong> {
        for (n, client) in &self.clients {
            if client.process.is_some() && !client.asked.is_empty() {
                let ids: BTreeSet<u64> = client.asked.keys().copied().collect();
                return Err(Wrong {
                    sentence: "every_request_of_a_client_that_is_there_is_answered",
                    what: format!("c{n} waits for the answers to {ids:?}"),
                });
            }
        }
        Ok(())
    }
}
