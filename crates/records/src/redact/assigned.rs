//! Credentials that are known by the name before them: `token=…`, `Authorization: Bearer …`.

use super::{Found, PLACEHOLDER, Scan};

/// The ends of names that stand before a credential in an assignment: `PGPASSWORD=`, `my_api_token=`.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "access-key",
    "accesskey",
    "secret_key",
    "secretkey",
    "private_key",
    "account_key",
    "accountkey",
];

/// What an `Authorization` header may name before the credential.
const SCHEMES: &[&str] = &["bearer", "basic", "token", "apikey"];

/// How many quotes and spaces may stand between a name and its separator.
const APART_MOST: usize = 4;

impl Scan<'_> {
    /// `password=…`, `token: …`, seen from the separator: a value of eight or more characters without white space.
    pub(super) fn assigned(&self, at: usize) -> Option<Found> {
        let colon = match self.bytes[at] {
            b'=' => false,
            b':' => true,
            _ => return None,
        };
        // `==`, `=>` and `::` assign nothing.
        let doubled = |byte: &u8| matches!(byte, b'=' | b':' | b'>');
        if self.bytes.get(at + 1).is_some_and(doubled) || self.bytes[..at].last().is_some_and(doubled) {
            return None;
        }
        let apart = self.bytes[..at].iter().rev().take(APART_MOST).take_while(|byte| is_apart(byte)).count();
        let before = &self.bytes[..at - apart];
        NAMES.iter().find(|name| ends_with(before, name))?;
        let from = self.behind_apart(at + 1);
        let to = self.value_end[from];
        if to - from < 8 || self.has(from, PLACEHOLDER) {
            return None;
        }
        let value = &self.bytes[from..to];
        // Prose has colons too: after one, only what no word, path or id is.
        let secret = if colon { self.digit[from] < to && !is_path(value) && !is_id(value) } else { !is_path(value) };
        secret.then_some((from, to))
    }

    /// `Bearer …`, and what an `Authorization` header holds. Prose has these words as well, so that the credential
    /// must have a digit or padding in it.
    pub(super) fn authorization(&self, at: usize) -> Option<Found> {
        const HEADER: &str = "authorization";
        if self.has_word(at, HEADER) {
            let apart = self.bytes[at + HEADER.len()..].iter().take(APART_MOST).take_while(|byte| is_apart(byte));
            let separator = at + HEADER.len() + apart.count();
            if !matches!(self.bytes.get(separator), Some(b':' | b'=')) {
                return None;
            }
            let value = self.behind_apart(separator + 1);
            let scheme =
                SCHEMES.iter().find(|scheme| self.has_word(value, scheme) && self.has(value + scheme.len(), " "));
            return self.opaque(scheme.map_or(value, |scheme| self.behind_apart(value + scheme.len())), 8);
        }
        let scheme = "bearer";
        let value = self.has_word(at, scheme).then_some(at + scheme.len()).filter(|&value| self.has(value, " "))?;
        self.opaque(self.behind_apart(value), 16)
    }

    /// A credential in the form that headers give it (RFC 7235, `token68`).
    fn opaque(&self, from: usize, least: usize) -> Option<Found> {
        let mark = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
        let rest = &self.bytes[from..];
        let length = rest.iter().take_while(mark).count();
        let padding = rest[length..].iter().take_while(|&&byte| byte == b'=').count();
        let sure = (padding > 0 || self.digit[from] < from + length) && !is_path(&rest[..length]);
        (length >= least && sure).then_some((from, from + length + padding))
    }

    fn has_word(&self, at: usize, word: &str) -> bool {
        self.bytes.get(at..at + word.len()).is_some_and(|there| there.eq_ignore_ascii_case(word.as_bytes()))
    }

    fn behind_apart(&self, at: usize) -> usize {
        at + self.bytes[at..].iter().take_while(|byte| is_apart(byte)).count()
    }
}

fn is_apart(byte: &u8) -> bool {
    matches!(byte, b'"' | b'\'' | b' ')
}

fn ends_with(text: &[u8], name: &str) -> bool {
    text.len().checked_sub(name.len()).is_some_and(|from| text[from..].eq_ignore_ascii_case(name.as_bytes()))
}

/// Whether a value is a path beyond doubt: from a root on, or folders and a file's extension.
fn is_path(value: &[u8]) -> bool {
    let mark = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'~' | b'@');
    let value = value.trim_ascii_end();
    let value = value.strip_suffix(b".").or_else(|| value.strip_suffix(b")")).unwrap_or(value);
    if !value.iter().all(mark) {
        return false;
    }
    let slashes = value.iter().filter(|&&byte| byte == b'/').count();
    let rooted = value.starts_with(b"./") || value.starts_with(b"../") || value.starts_with(b"~/");
    let file = value.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let extension = file.iter().rposition(|&byte| byte == b'.').map(|dot| file.len() - dot - 1);
    rooted || (value.starts_with(b"/") && slashes > 1) || (slashes > 0 && matches!(extension, Some(1..=5)))
}

/// Whether a value is an object's id or a UUID.
fn is_id(value: &[u8]) -> bool {
    let dashes = value.iter().take(37).filter(|&&byte| byte == b'-').count();
    matches!((value.len(), dashes), (40 | 64, 0) | (36, 4))
        && value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}
