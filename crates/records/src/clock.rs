//! When something happened, in a form that still means something after a reboot.

use std::time::Duration;

use jiff::Timestamp;
#[cfg(not(target_os = "macos"))]
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One reading of the wall clock, of the time awake since boot, and of which boot that was.
///
/// Stands in every log line. Ages within one boot come from `up_ms`, which neither jumps nor counts a sleeping
/// machine; between boots only the wall clock is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Wall time in milliseconds since the Unix epoch; RFC 3339 UTC with milliseconds in the file.
    #[serde(rename = "time", with = "rfc3339")]
    pub wall_ms: i64,
    /// First 16 hexadecimal digits of the SHA-256 of the boot's id.
    pub boot: String,
    /// Milliseconds awake since boot.
    #[serde(rename = "up")]
    pub up_ms: u64,
    /// Milliseconds that the machine has slept since boot, where it tells: by what the wall clock may be ahead of `up`.
    #[serde(rename = "asleep", default, skip_serializing_if = "is_zero")]
    pub asleep_ms: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

/// By how much an age that was rounded to milliseconds may be off.
pub(crate) const ROUNDING: Duration = Duration::from_millis(2);

/// By how much the wall clocks of two machines that share a repository may differ.
const FUTURE_MOST_MS: i64 = 3_600_000;

impl Stamp {
    /// Returns how long after `earlier` this was.
    ///
    /// Within one boot the difference of the time awake. Between boots the difference of wall times, never below
    /// zero: a stamp from the future is as good as fresh. One from so far in the future that a clock was set is as old as
    /// this boot, which came after it, so that nobody waits until the wall clock has caught up.
    #[must_use]
    pub fn age_of(&self, earlier: &Self) -> Duration {
        let ms = if self.boot == earlier.boot {
            self.up_ms.saturating_sub(earlier.up_ms)
        } else {
            match self.wall_ms.saturating_sub(earlier.wall_ms) {
                since if since < -FUTURE_MOST_MS => self.up_ms,
                since => u64::try_from(since).unwrap_or(0),
            }
        };
        Duration::from_millis(ms)
    }

    /// Returns the stamp of the moment `ago` before this one.
    #[must_use]
    pub fn before(&self, ago: Duration) -> Self {
        let ms = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        Self {
            wall_ms: self.wall_ms.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)),
            boot: self.boot.clone(),
            up_ms: self.up_ms.saturating_sub(ms),
            asleep_ms: self.asleep_ms,
        }
    }

    /// Whether this was later than `ago` before `now`, and not only by rounding. What another boot saw was before all that
    /// a process of this one remembers.
    pub(crate) fn is_after(&self, ago: Duration, now: &Self) -> bool {
        self.boot == now.boot && now.age_of(self).saturating_add(ROUNDING) < ago
    }

    /// Tells what the wall clock should say at this stamp, going by an `earlier` one of the same boot: what it said then
    /// and how long the machine has run and slept since. `None` between boots.
    #[must_use]
    pub fn expected_wall_ms(&self, earlier: &Self) -> Option<i64> {
        if self.boot != earlier.boot {
            return None;
        }
        let since_boot = |stamp: &Self| i64::try_from(stamp.up_ms.saturating_add(stamp.asleep_ms)).unwrap_or(i64::MAX);
        Some(earlier.wall_ms.saturating_add(since_boot(self).saturating_sub(since_boot(earlier)).max(0)))
    }
}

/// Tells what time it is.
pub trait Clock: Send + Sync {
    /// Reads wall time, boot and time awake.
    fn now(&self) -> Stamp;
}

/// The machine's own clocks.
#[derive(Clone, Debug)]
pub struct SystemClock {
    boot: String,
}

impl SystemClock {
    /// Reads the boot's id once; the clocks are read at each [`Clock::now`].
    #[must_use]
    pub fn new() -> Self {
        Self { boot: hex_prefix(&Sha256::digest(boot_id().as_bytes()), 8) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Stamp {
        let up_ms = up_ms();
        Stamp {
            wall_ms: Timestamp::now().as_millisecond(),
            boot: self.boot.clone(),
            up_ms,
            asleep_ms: asleep_ms(up_ms),
        }
    }
}

/// Stands still while the machine sleeps.
#[cfg(not(target_os = "macos"))]
fn up_ms() -> u64 {
    read_ms(clock_gettime(ClockId::Monotonic))
}

/// What goes on while the machine sleeps, less what stands still. The two are not read at one moment, so a few
/// milliseconds are no sleep.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn asleep_ms(up_ms: u64) -> u64 {
    let asleep = read_ms(clock_gettime(ClockId::Boottime)).saturating_sub(up_ms);
    if asleep < 100 { 0 } else { asleep }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn asleep_ms(_up_ms: u64) -> u64 {
    0
}

#[cfg(not(target_os = "macos"))]
fn read_ms(now: rustix::time::Timespec) -> u64 {
    u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

/// `CLOCK_MONOTONIC` goes on while this system sleeps; `CLOCK_UPTIME_RAW` stands still.
#[cfg(target_os = "macos")]
fn up_ms() -> u64 {
    use nix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::from_raw(nix::libc::CLOCK_UPTIME_RAW));
    now.map_or(0, |now| u64::try_from(std::time::Duration::from(now).as_millis()).unwrap_or(0))
}

#[cfg(not(target_os = "macos"))]
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| {
        // Elsewhere the moment of booting stands for it, coarse enough to survive a corrected clock; where that
        // misjudges, ages fall back to wall time.
        let booted = Timestamp::now().as_millisecond() - i64::try_from(up_ms()).unwrap_or(0);
        format!("booted-{}", booted / 600_000)
    })
}

#[cfg(target_os = "macos")]
fn boot_id() -> String {
    let asked = std::process::Command::new("/usr/sbin/sysctl").args(["-n", "kern.bootsessionuuid"]).output();
    asked.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes the first `bytes` of a digest as lower-case hexadecimal.
pub(crate) fn hex_prefix(digest: &[u8], bytes: usize) -> String {
    use std::fmt::Write;
    digest.iter().take(bytes).fold(String::with_capacity(bytes * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Formats milliseconds since the epoch as RFC 3339 UTC with milliseconds.
#[must_use]
pub fn rfc3339(wall_ms: i64) -> String {
    Timestamp::from_millisecond(wall_ms).map_or_else(|_| "unknown".into(), |time| format!("{time:.3}"))
}

mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(wall_ms: &i64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::rfc3339(*wall_ms))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        let time: Timestamp = text.parse().map_err(D::Error::custom)?;
        Ok(time.as_millisecond())
    }
}
