//! One server for all clients of a checkout: the socket by which their bridges reach it.

pub mod estate;
pub mod folder;
pub mod host;
pub mod preamble;
