//! A client's whole way over HTTP, with the disk failing at every step of it, and what is true afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::faults_site::{Caller, Site};
use crate::faults_truth::{Told, at_most_one_record, exactly_one_record_for_each_sitting};
use crate::sim::{Fault, Restart};
use crate::world::World;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server is killed.
    Killed,
    /// The power goes.
    PowerLost,
    /// The disk is full from there on.
    Full,
    /// Only that step fails.
    Once,
    /// All steps fail from there on, and the server lives.
    Failing,
}

/// Those that a server does not live to see the end of.
const ENDS: [Trouble; 2] = [Trouble::Killed, Trouble::PowerLost];
/// Those that it lives through.
const PASSES: [Trouble; 3] = [Trouble::Full, Trouble::Once, Trouble::Failing];

impl Trouble {
    fn fault(self) -> Fault {
        match self {
            Self::Killed | Self::PowerLost => Fault::Stop,
            Self::Full => Fault::Full,
            Self::Once => Fault::Once,
            Self::Failing => Fault::Failing,
        }
    }

    fn restart(self) -> Restart {
        if self == Self::PowerLost { Restart::PowerLost } else { Restart::Killed }
    }
}

/// What comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nobody comes back, and the commands of the following days finish what is left.
    Swept,
    /// A new server adopts what is there, and the client comes back and finishes.
    ComesBack,
    /// The disk is well again, the same client asks again for what was not recorded, and goes on.
    GoesOn,
    /// The same, and once that is answered the power is lost.
    GoesOnUntilPowerIsLost,
}

/// Who calls, and whether the server that is put to the test is that client's second one.
#[derive(Clone, Copy, Debug)]
struct Story {
    by_handle: bool,
    second_server: bool,
}

const STORIES: [Story; 4] = [
    Story { by_handle: false, second_server: false },
    Story { by_handle: true, second_server: false },
    Story { by_handle: false, second_server: true },
    Story { by_handle: true, second_server: true },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Attach,
    Work,
    /// The session is deleted, and a new one begins.
    Renew,
    Detach,
}

impl Story {
    fn acts(self) -> &'static [Act] {
        use Act::{Attach, Detach, Renew, Work};
        match (self.by_handle, self.second_server) {
            (false, false) => &[Attach, Work, Renew, Attach, Work, Detach],
            (true, false) => &[Attach, Work, Detach],
            (false, true) => &[Attach, Work, Renew, Attach, Detach],
            // Its handle is an earlier server's.
            (true, true) => &[Work, Work, Detach],
        }
    }
}

/// A story under way.
struct Run {
    world: World,
    site: Site,
    caller: Caller,
    told: Told,
}

impl Run {
    fn begin(story: Story) -> Self {
        let world = World::new();
        let site = Site::start(&world);
        let caller = if story.by_handle { Caller::handle(&site, None) } else { Caller::session(&site) };
        let mut run = Self { world, site, caller, told: Told::default() };
        if !story.second_server {
            return run;
        }
        assert!(run.act(Act::Attach) && run.act(Act::Work));
        let Self { world, site, caller, told } = run;
        site.crash(&world, Restart::Killed);
        world.clock.advance(Duration::from_secs(5));
        let site = Site::start(&world);
        let caller = match caller {
            Caller::Session(_) => Caller::session(&site),
            Caller::Handle { handle, .. } => Caller::handle(&site, handle),
        };
        Self { world, site, caller, told }
    }

    /// Does one thing, and tells whether there is nothing left to ask again for.
    fn act(&mut self, act: Act) -> bool {
        let Self { world, site, caller, told } = self;
        world.clock.advance(Duration::from_secs(40));
        told.hears(world);
        let done = match act {
            Act::Attach => {
                told.attaches += u32::from(!matches!(caller, Caller::Handle { handle: Some(_), .. }));
                let said = caller.attach();
                told.attach(world, &said);
                said.is_recorded()
            }
            Act::Work => {
                caller.works();
                site.settle();
                world.clock.advance(Duration::from_secs(31));
                told.hears(world);
                caller.works();
                true
            }
            Act::Renew => {
                caller.goes();
                *caller = Caller::session(site);
                true
            }
            Act::Detach => {
                let said = caller.detach();
                told.detach(&said);
                said.is_recorded()
            }
        };
        site.settle();
        site.reap();
        site.other_callers_are_answered();
        done
    }

    /// Asks again, once the disk is well and the server has had time to see that.
    fn ask_again(&mut self, act: Act) {
        self.world.disk.make_room();
        if act == Act::Attach {
            let Self { world, site, caller, told } = self;
            told.attaches += u32::from(caller.counts_again());
            told.hears(world);
            let said = caller.attach();
            site.settle();
            told.attach(world, &said);
            assert!(said.is_recorded(), "the disk is well, and an attach was answered with {said:?}");
            return;
        }
        self.world.clock.advance(Duration::from_secs(10));
        self.site.reap();
        assert!(self.act(act), "the disk is well, and a {act:?} is not recorded");
    }

    /// A new server adopts what there is, and the client comes back and finishes.
    fn come_back(mut self, how: Restart) {
        let handle = self.caller.shows();
        self.site.crash(&self.world, how);
        let sittings = 1 + usize::from(self.told.look(&self.world));
        self.world.clock.advance(Duration::from_secs(5));
        let site = Site::start(&self.world);
        site.keep_house();
        let mut caller = match self.caller {
            Caller::Session(_) => Caller::session(&site),
            Caller::Handle { .. } => Caller::handle(&site, handle),
        };
        // An old handle is good, or the server says that it is not and the client attaches without it.
        self.told.hears(&self.world);
        let known = caller.works() && caller.shows().is_some();
        if !known && let Caller::Handle { handle, .. } = &mut caller {
            *handle = None;
        }
        let mut run = Self { site, caller, ..self };
        if !known {
            assert!(run.act(Act::Attach), "the disk is well");
        }
        assert!(run.act(Act::Work) && run.act(Act::Detach), "the disk is well");
        run.site.end();
        run.world.recover();
        exactly_one_record_for_each_sitting(&run.world, sittings);
        run.told.holds_true(&run.world);
    }

    fn finish(mut self, how: Restart, sitting_is_known: bool) {
        self.site.crash(&self.world, how);
        self.told.look(&self.world);
        self.world.recover();
        if sitting_is_known {
            exactly_one_record_for_each_sitting(&self.world, 1);
        } else {
            at_most_one_record(&self.world);
        }
        self.told.holds_true(&self.world);
    }
}

/// How many steps the disk makes where nothing goes wrong; that leaves one truthful record.
fn steps_of(story: Story) -> usize {
    let mut run = Run::begin(story);
    let before = run.world.disk.steps();
    run.site.keep_house();
    for act in story.acts() {
        assert!(run.act(*act), "{story:?}: {act:?}");
    }
    let steps = run.world.disk.steps() - before;
    run.finish(Restart::Killed, true);
    steps
}

/// One story, with trouble at one step.
fn run(story: Story, trouble: Trouble, at: usize, after: After) {
    let mut run = Run::begin(story);
    run.world.disk.fail_at(at, trouble.fault());
    run.site.keep_house();
    let lives = matches!(after, After::GoesOn | After::GoesOnUntilPowerIsLost);
    let mut reached = false;
    for act in story.acts() {
        let done = run.act(*act);
        if reached || run.world.disk.is_waiting() {
            assert!(!lives || done, "{act:?} was not recorded, and the disk is well");
            continue;
        }
        reached = true;
        if lives {
            run.world.disk.make_room();
            if !done {
                run.ask_again(*act);
            }
            if after == After::GoesOnUntilPowerIsLost {
                break;
            }
        }
    }
    assert!(reached, "the fault was not reached");
    let is_known = run.told.has_session();
    match after {
        After::ComesBack => run.come_back(trouble.restart()),
        After::Swept | After::GoesOn => run.finish(trouble.restart(), is_known),
        After::GoesOnUntilPowerIsLost => run.finish(Restart::PowerLost, is_known),
    }
}

/// Every story, each trouble at every step; how many there were.
pub(crate) fn at_every_step(after: After, troubles: &[Trouble]) -> usize {
    let (mut runs, mut wrong) = (0, Vec::new());
    for story in STORIES {
        let steps = steps_of(story);
        assert!(steps > 5, "{story:?} has {steps} steps");
        for trouble in troubles {
            for at in 1..=steps {
                runs += 1;
                let done = catch_unwind(AssertUnwindSafe(|| run(story, *trouble, at, after)));
                if done.is_err() {
                    wrong.push(format!("{story:?}, {trouble:?} at step {at} of {steps}, {after:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {runs} went wrong:\n{}", wrong.len(), wrong.join("\n"));
    runs
}

#[test]
fn where_nobody_comes_back_what_was_acknowledged_is_recorded_once_and_truthfully() {
    assert!(at_every_step(After::Swept, &[&ENDS[..], &PASSES].concat()) > 400);
}

#[test]
fn a_client_that_comes_back_to_a_new_server_finds_its_sitting_and_finishes_it() {
    assert!(at_every_step(After::ComesBack, &[&ENDS[..], &PASSES].concat()) > 400);
}

#[test]
fn once_the_disk_is_well_the_same_client_goes_on_and_leaves_one_truthful_record() {
    assert!(at_every_step(After::GoesOn, &[Trouble::Full, Trouble::Once]) > 160);
}

#[test]
fn what_is_recorded_once_there_is_room_survives_the_loss_of_power() {
    assert!(at_every_step(After::GoesOnUntilPowerIsLost, &[Trouble::Full]) > 80);
}
