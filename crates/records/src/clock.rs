//! When something happened, in a form that still means something after a reboot.

use std::time::Duration;

use jiff::Timestamp;
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
}

impl Stamp {
    /// Returns how long after `earlier` this was.
    ///
    /// Within one boot the difference of the time awake. Between boots the difference of wall times, never below
    /// zero: a stamp from the future is as good as fresh.
    #[must_use]
    pub fn age_of(&self, earlier: &Self) -> Duration {
        let ms = if self.boot == earlier.boot {
            self.up_ms.saturating_sub(earlier.up_ms)
        } else {
            u64::try_from(self.wall_ms.saturating_sub(earlier.wall_ms)).unwrap_or(0)
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
        }
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
        Stamp { wall_ms: Timestamp::now().as_millisecond(), boot: self.boot.clone(), up_ms: up_ms() }
    }
}

fn up_ms() -> u64 {
    // Stands still while the machine sleeps: CLOCK_MONOTONIC does on Linux; macOS names the same thing otherwise.
    #[cfg(target_os = "macos")]
    let clock = ClockId::UptimeRaw;
    #[cfg(not(target_os = "macos"))]
    let clock = ClockId::Monotonic;
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| {
        // Elsewhere the moment of booting stands for it, coarse enough to survive a corrected clock; where that
        // misjudges, ages fall back to wall time.
        let booted = Timestamp::now().as_millisecond() - i64::try_from(up_ms()).unwrap_or(0);
        format!("booted-{}", booted / 600_000)
    })
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
