//! Times as records write them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the wall time in milliseconds since the epoch.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Reads `2026-01-02T03:04:05.678Z` as milliseconds since the epoch.
///
/// # Panics
/// On any other form.
#[must_use]
pub fn milliseconds(text: &str) -> i64 {
    let form: String = text.chars().map(|char| if char.is_ascii_digit() { '0' } else { char }).collect();
    assert_eq!(form, "0000-00-00T00:00:00.000Z", "{text}");
    let part = |from: usize, to: usize| text[from..to].parse::<i64>().expect("digits are a number");
    let (year, month, day) = (part(0, 4), part(5, 7), part(8, 10));
    // Days since the epoch, with March as the first month so that a leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    ((days * 24 + part(11, 13)) * 60 + part(14, 16)) * 60_000 + part(17, 19) * 1000 + part(20, 23)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_are_read_as_they_are_written() {
        assert_eq!(milliseconds("1970-01-01T00:00:00.000Z"), 0);
        assert_eq!(milliseconds("2000-02-29T12:34:56.789Z"), 951_827_696_789);
        assert_eq!(milliseconds("2026-11-30T21:46:02.718Z"), 1_796_075_162_718);
    }
}
