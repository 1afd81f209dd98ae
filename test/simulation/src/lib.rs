//! The real core, log, recovery and protocol over a simulated machine, with everything going wrong by seed.
//!
//! A run is a script of steps, chosen by its seed: clients come, work and go, hooks fire, people type commands; processes
//! are killed or stopped at any step of the disk, the power goes, the machine sleeps, clocks jump, disks fail. Only the
//! disk, the clocks, the processes and the links between them are simulated; whatever decides, writes, reads and answers is
//! the product. After every step the disk is held against what really happened, by functions whose names are sentences.
//!
//! A run that fails prints its script, made as short as it goes; that script, put into `scenarios/`, is a test.

#![allow(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

mod answer;
mod choose;
mod disk;
mod machine;
mod random;
mod run;
mod server;
mod step;
mod truth;
mod watch;
mod world;

pub use run::{Failure, Ground, Tally, minimise, run_script, run_seed, run_seeds};
