//! The durable side with faults put in its way: a disk that stops, forgets, fills up or is shared, and a clock that is
//! moved by hand.

#![allow(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

mod adoption;
mod bounds;
mod checkouts;
mod clocks;
mod crossing;
mod elsewhere;
mod facts;
mod handles;
mod holders;
mod judging;
mod jumps;
mod layout;
mod operator;
mod returning;
mod roots;
mod sim;
mod stops;
mod world;
mod wrapped;
