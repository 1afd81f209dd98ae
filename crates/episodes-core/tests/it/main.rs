//! The board as its callers see it.

#![allow(clippy::unwrap_used, reason = "in tests a broken expectation may panic, helpers included")]

mod elsewhere;
mod hanging;
mod holds;
mod invariants;
mod model;
mod racing;
mod returning;
mod support;
