//! What each surface shows of the registry.

pub mod mcp;
