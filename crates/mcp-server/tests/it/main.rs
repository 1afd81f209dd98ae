//! The transports through real pipes, sockets and files.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

mod callers;
mod ending;
mod faults;
mod faults_hanging;
mod faults_late;
mod faults_site;
mod faults_truth;
mod faults_unsynced;
mod faults_waiting;
mod flow;
mod http;
mod served;
mod talk;
mod time;

#[allow(dead_code, reason = "the crate of the records uses all of it")]
#[path = "../../../records/tests/it/sim.rs"]
mod sim;
#[allow(dead_code, reason = "the crate of the records uses all of it")]
#[path = "../../../records/tests/it/world.rs"]
mod world;
