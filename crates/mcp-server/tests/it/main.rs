//! The transports through real pipes, sockets and files.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

mod ending;
mod flow;
mod http;
mod served;
mod talk;
mod time;
