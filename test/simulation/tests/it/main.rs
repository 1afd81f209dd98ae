//! Many runs by seed, and the scenarios that were found once.

#![allow(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

mod many;
mod scenarios;
