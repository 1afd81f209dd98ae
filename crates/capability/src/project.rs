//! What each surface shows of the registry.

pub mod markdown;
pub mod mcp;
pub mod openapi;
pub mod reference;
pub mod rest;

#[cfg(test)]
mod tests;
