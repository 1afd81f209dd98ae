//! What a process has in memory.

use std::fs;

use anyhow::{Context, Result};

/// Bytes that a process has.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Backed by no file: its heap and its stacks.
    pub(crate) anonymous: u64,
    /// In memory at all, its program included.
    pub(crate) resident: u64,
    /// The same, with what it shares divided by who shares it.
    pub(crate) proportional: u64,
    /// Written by it, and nobody else's.
    pub(crate) private_dirty: u64,
}

impl Memory {
    /// What a process has now.
    pub(crate) fn of(process: u32) -> Result<Self> {
        let path = format!("/proc/{process}/smaps_rollup");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            kilobytes.map(|kilobytes| kilobytes * 1024).with_context(|| format!("no {name} in {path}"))
        };
        Ok(Self {
            anonymous: bytes("Anonymous:")?,
            resident: bytes("Rss:")?,
            proportional: bytes("Pss:")?,
            private_dirty: bytes("Private_Dirty:")?,
        })
    }
}
