//! The stdio transport through real pipes, sockets and files.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

mod ending;
mod flow;
mod served;
mod time;
