//! One core for what is measured and another for who measures, so that neither takes time from the other.

use anyhow::Result;

/// Two cores. While this lives, this program runs on one of them, and what it starts [`for_server`](Self::for_server) on
/// the other.
#[cfg(target_os = "linux")]
pub(crate) struct Cores {
    before: rustix::thread::CpuSet,
    server: usize,
    load: usize,
}

#[cfg(target_os = "linux")]
impl Cores {
    /// Takes the first two cores that this program may use.
    pub(crate) fn take_two() -> Result<Self> {
        use anyhow::Context;
        use rustix::thread::{CpuSet, sched_getaffinity};
        let before = sched_getaffinity(None).context("cannot tell which cores there are")?;
        let mut all = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core));
        let (server, load) = all.next().zip(all.next()).context("this takes two cores")?;
        let cores = Self { before, server, load };
        pin(load)?;
        Ok(cores)
    }

    /// Starts something on the server's core: a process is born where its parent is.
    pub(crate) fn for_server<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        pin(self.server)?;
        let started = start();
        pin(self.load)?;
        started
    }

    /// Says who has which.
    pub(crate) fn describe(&self) -> String {
        format!("the servers on core {}, the load on core {}", self.server, self.load)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Cores {
    fn drop(&mut self) {
        // It could be done before, so it can now.
        let _ = rustix::thread::sched_setaffinity(None, &self.before);
    }
}

#[cfg(target_os = "linux")]
fn pin(core: usize) -> Result<()> {
    use anyhow::Context;
    let mut only = rustix::thread::CpuSet::new();
    only.set(core);
    rustix::thread::sched_setaffinity(None, &only).with_context(|| format!("cannot move to core {core}"))
}

/// Elsewhere nobody can be told which core to use.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Cores;

#[cfg(not(target_os = "linux"))]
impl Cores {
    /// Takes none.
    pub(crate) fn take_two() -> Result<Self> {
        Ok(Self)
    }

    /// Starts something.
    pub(crate) fn for_server<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        start()
    }

    /// Says so.
    pub(crate) fn describe(&self) -> String {
        "NOT on one core each, which this system has no way to ask for".into()
    }
}
