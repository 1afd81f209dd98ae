//! Choosing what happens, by seed.

use crate::disk::Fault;
use crate::random::Random;
use crate::step::{Asks, Calls, Does, Event, Fires, REASONS, SOURCES, Side, Step, Who};

const CLIENTS: u8 = 4;
const IDS: [char; 3] = ['a', 'b', 'c'];

/// Chooses a whole script.
pub(crate) struct Chooser {
    random: Random,
    /// How often things go wrong in this run, in a hundred.
    trouble: u64,
    /// How many clients there are.
    clients: u8,
}

#[derive(Clone, Copy)]
enum Kind {
    Client,
    Web,
    Handle,
    Hook,
    Person,
    Serve,
    Time,
}

impl Chooser {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let trouble = random.pick(&[2, 10, 20, 35]);
        let clients = 1 + u8::try_from(random.below(usize::from(CLIENTS))).unwrap_or(0);
        Self { random, trouble, clients }
    }

    pub(crate) fn script(mut self) -> Vec<Step> {
        let length = match self.random.below(10) {
            0 => 100 + self.random.below(200),
            1..=3 => 70 + self.random.below(40),
            _ => 50 + self.random.below(20),
        };
        (0..length).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        let event = if self.random.percent(self.trouble) { self.trouble() } else { self.ordinary() };
        Step { event, quiet: self.random.percent(15) }
    }

    fn client(&mut self) -> u8 {
        1 + u8::try_from(self.random.below(usize::from(self.clients))).unwrap_or(0)
    }

    fn one_of(&mut self, most: u8) -> u8 {
        1 + u8::try_from(self.random.below(usize::from(most))).unwrap_or(0)
    }

    fn ordinary(&mut self) -> Event {
        let kinds = [
            (60, Kind::Client),
            (8, Kind::Web),
            (6, Kind::Handle),
            (12, Kind::Hook),
            (5, Kind::Person),
            (1, Kind::Serve),
            (18, Kind::Time),
        ];
        match self.random.weighted(&kinds) {
            Kind::Client => {
                let n = self.client();
                Event::Client(n, self.does(n))
            }
            Kind::Web => Event::Web(self.one_of(2), self.calls()),
            Kind::Handle => Event::Handle(self.one_of(2), self.calls()),
            Kind::Hook => Event::Hook(self.one_of(2), self.fires()),
            Kind::Person => Event::Person(self.asks()),
            Kind::Serve => Event::Serve,
            Kind::Time => Event::Wait(self.random.pick(&[1, 3, 10, 31, 31, 95, 600, 890, 910, 1900, 7200, 90_000])),
        }
    }

    /// A client mostly works under an id of its own.
    fn id(&mut self, n: u8) -> char {
        if self.random.percent(75) { IDS[usize::from(n - 1) % IDS.len()] } else { self.random.pick(&IDS) }
    }

    fn does(&mut self, n: u8) -> Does {
        let id = self.id(n);
        let named = self.random.percent(40).then_some(id);
        self.random.weighted(&[
            (25, Does::Up),
            (30, Does::Attach(id)),
            (30, Does::Call),
            (8, Does::Detach(named)),
            (5, Does::Leave),
        ])
    }

    fn calls(&mut self) -> Calls {
        let id = self.random.pick(&IDS);
        self.random.weighted(&[
            (35, Calls::Attach(id)),
            (30, Calls::Call),
            (8, Calls::Detach),
            (6, Calls::Leave),
            (10, Calls::Stream),
            (8, Calls::Unstream),
        ])
    }

    fn fires(&mut self) -> Fires {
        let (source, reason) = (self.random.pick(&SOURCES), self.random.pick(&REASONS));
        self.random.weighted(&[
            (30, Fires::Start(source)),
            (35, Fires::Activity),
            (8, Fires::Compact),
            (20, Fires::End(reason)),
        ])
    }

    fn asks(&mut self) -> Asks {
        let (id, n) = (self.random.pick(&IDS), self.one_of(2));
        self.random.weighted(&[
            (25, Asks::List),
            (40, Asks::Sweep),
            (12, Asks::CloseConnection(id)),
            (8, Asks::CloseHook(n)),
            (8, Asks::Stop),
        ])
    }

    fn who(&mut self) -> Who {
        if self.random.percent(85) { Who::Client(self.client()) } else { Who::Serve }
    }

    fn trouble(&mut self) -> Event {
        let who = self.who();
        let (seconds, hours) =
            (self.random.pick(&[-7200, -600, -3, 3, 600, 7200]), self.random.pick(&[60, 1200, 28_800]));
        let side = self.random.pick(&[Side::Both, Side::Bridge, Side::Server]);
        let power = Event::Power {
            choice: self.random.next() % 1000,
            off: self.random.pick(&[20, 300, 1200, 100_000]),
            jump: self.random.pick(&[0, 0, 0, -7200, 7200]),
        };
        let momentary = self.random.pick(&[Who::Hook(1), Who::Hook(2), Who::Person]);
        let faulty = if self.random.percent(80) { who } else { momentary };
        let fault =
            self.random.weighted(&[(40, Fault::Kill), (15, Fault::Power), (25, Fault::Once), (10, Fault::Some)]);
        let at = 1 + self.random.below(12);
        let client = self.client();
        self.random.weighted(&[
            (25, Event::Kill(who)),
            (10, Event::Stop(who)),
            (12, Event::Continue(who)),
            (8, Event::Cut(client, side)),
            (4, Event::Sleep(hours)),
            (5, Event::Jump(seconds)),
            (5, power),
            (30, Event::Fault(faulty, fault, at)),
            (2, Event::Full),
            (5, Event::Room),
        ])
    }
}
