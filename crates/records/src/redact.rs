//! Replacing credentials of known shapes before the first byte is written.
//!
//! Only shapes that are unmistakable are replaced: a commit id, a UUID or a path never is, unless somebody has assigned
//! it to a name like `token=`. The text is hostile, so the work is linear in its length: what a decision needs of the
//! rest of the text is found in one pass before the first decision.

mod assigned;

/// What stands where a credential stood.
pub const PLACEHOLDER: &str = "[redacted]";

/// Prefixes that vendors give their tokens, with the fewest token characters that must follow.
const PREFIXES: &[(&str, usize)] = &[
    ("github_pat_", 22),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("glpat-", 20),
    ("glrt-", 20),
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("whsec_", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xoxr-", 16),
    ("xoxs-", 16),
    ("xapp-1-", 16),
    ("npm_", 36),
    ("pypi-", 40),
    ("hf_", 30),
    ("AIza", 35),
    ("ya29.", 20),
    ("GOCSPX-", 20),
    ("shpat_", 32),
    ("dop_v1_", 40),
    ("AGE-SECRET-KEY-1", 40),
];

/// Replaces what looks like a credential in `text`, and tells how many there were.
#[must_use]
pub fn redact(text: &str) -> (String, u64) {
    let scan = Scan::new(text);
    let mut out = String::with_capacity(text.len());
    let (mut count, mut copied, mut at) = (0, 0, 0);
    let mut boundary = true;
    while let Some(byte) = scan.bytes.get(at) {
        let found = boundary.then(|| scan.begins(at)).flatten().or_else(|| scan.follows(at));
        if let Some((from, to)) = found {
            out.push_str(&text[copied..from]);
            out.push_str(PLACEHOLDER);
            (copied, at) = (to, to);
            count += 1;
            boundary = false;
            continue;
        }
        boundary = !byte.is_ascii_alphanumeric();
        at += 1;
    }
    out.push_str(&text[copied..]);
    (out, count)
}

/// Where a credential begins and ends, in bytes. Both stand beside ASCII, so that a character is never cut.
type Found = (usize, usize);

/// The text, and for each byte where what begins there ends.
struct Scan<'a> {
    bytes: &'a [u8],
    /// The end of the token characters from here on.
    token_end: Vec<usize>,
    /// The end of an assigned value that begins here.
    value_end: Vec<usize>,
    /// The next digit.
    digit: Vec<usize>,
    /// The next capital.
    capital: Vec<usize>,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let next = |stops: fn(&u8) -> bool| {
            let mut ends = vec![bytes.len(); bytes.len() + 1];
            for (at, byte) in bytes.iter().enumerate().rev() {
                ends[at] = if stops(byte) { at } else { ends[at + 1] };
            }
            ends
        };
        Self {
            bytes,
            token_end: next(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-')),
            value_end: next(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'&' | b',' | b';')),
            digit: next(u8::is_ascii_digit),
            capital: next(u8::is_ascii_uppercase),
        }
    }

    fn has(&self, at: usize, what: &str) -> bool {
        self.bytes.get(at..).is_some_and(|rest| rest.starts_with(what.as_bytes()))
    }

    /// Finds a credential that begins here.
    fn begins(&self, at: usize) -> Option<Found> {
        self.prefixed(at)
            .or_else(|| self.cloud_key(at))
            .or_else(|| self.long_key(at))
            .or_else(|| self.dotted_key(at))
            .or_else(|| self.web_token(at))
            .or_else(|| self.private_key(at))
            .map(|end| (at, end))
            .or_else(|| self.authorization(at))
    }

    /// Finds a credential that the character here introduces.
    fn follows(&self, at: usize) -> Option<Found> {
        self.user_info(at).or_else(|| self.assigned(at))
    }

    fn prefixed(&self, at: usize) -> Option<usize> {
        let (prefix, least) = PREFIXES.iter().find(|(prefix, _)| self.has(at, prefix))?;
        let end = self.token_end[at + prefix.len()];
        (end - at >= prefix.len() + least).then_some(end)
    }

    /// Access key ids of the largest cloud: four letters and sixteen capitals or digits.
    fn cloud_key(&self, at: usize) -> Option<usize> {
        if !self.has(at, "AKIA") && !self.has(at, "ASIA") {
            return None;
        }
        let mark = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        (self.bytes[at..].iter().take(21).take_while(mark).count() == 20).then_some(at + 20)
    }

    /// `sk-` and at least 32 token characters with a digit and a capital among them; a branch name has not.
    fn long_key(&self, at: usize) -> Option<usize> {
        let key = self.has(at, "sk-").then_some(at + 3)?;
        let end = self.token_end[key];
        (end - key >= 32 && self.digit[key] < end && self.capital[key] < end).then_some(end)
    }

    /// `SG.` and two dotted parts.
    fn dotted_key(&self, at: usize) -> Option<usize> {
        let first = self.has(at, "SG.").then_some(at + 3)?;
        let second = self.token_end[first] + 1;
        let end = self.has(second - 1, ".").then(|| self.token_end[second])?;
        (second - 1 - first >= 16 && end - second >= 16).then_some(end)
    }

    /// A signed web token: three dotted parts, the first two of which are encoded JSON objects.
    fn web_token(&self, at: usize) -> Option<usize> {
        let body = self.has(at, "eyJ").then(|| self.token_end[at] + 1)?;
        let signature = self.has(body - 1, ".eyJ").then(|| self.token_end[body] + 1)?;
        let end = self.has(signature - 1, ".").then(|| self.token_end[signature])?;
        (end > signature).then_some(end)
    }

    fn private_key(&self, at: usize) -> Option<usize> {
        const LABEL_MOST: usize = 64;
        let label = self.has(at, "-----BEGIN ").then_some(at + 11)?;
        let near = &self.bytes[label..self.bytes.len().min(label + LABEL_MOST)];
        let length = near.windows(5).position(|window| window == b"-----")?;
        let label = std::str::from_utf8(&near[..length]).ok().filter(|label| label.contains("PRIVATE KEY"))?;
        // Whatever the answer, the scan goes on behind it: this is done once for each byte.
        let rest = std::str::from_utf8(&self.bytes[at..]).ok()?;
        let end = format!("-----END {label}-----");
        Some(rest.find(&end).map_or(self.bytes.len(), |found| at + found + end.len()))
    }

    /// The user part of a URL, found from its `://`: `scheme://user:password@`.
    fn user_info(&self, at: usize) -> Option<Found> {
        let scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-');
        if self.bytes[at] != b':' || !self.has(at, "://") || !self.bytes[..at].last().is_some_and(scheme) {
            return None;
        }
        // It ends at the latest at the next slash, and so before the next `://` is looked at.
        let authority = &self.bytes[at + 3..];
        let ends = |byte: &u8| matches!(byte, b'/' | b'?' | b'#') || byte.is_ascii_whitespace();
        let authority = &authority[..authority.iter().position(ends).unwrap_or(authority.len())];
        let user = authority.iter().rposition(|&byte| byte == b'@')?;
        (user > 0 && authority[..user] != *PLACEHOLDER.as_bytes()).then_some((at + 3, at + 3 + user))
    }
}

#[cfg(test)]
mod tests;
