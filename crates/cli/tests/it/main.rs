//! What holds across crates: the arrows between them, and that both drivers write the same.

#![allow(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

mod drivers;
mod layering;
