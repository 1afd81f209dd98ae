//! What holds across crates, the arrows between them and that both drivers write the same, and the commands that call a
//! server or write files.

#![allow(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

mod calling;
mod canned;
mod drivers;
mod generate;
mod layering;
mod place;
mod stopping;
