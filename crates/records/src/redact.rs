//! Replacing credentials of known shapes before the first byte is written.
//!
//! Only shapes that are unmistakable are replaced: a commit id, a UUID or a path never is.

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
    ("npm_", 36),
    ("pypi-", 40),
    ("hf_", 30),
    ("AIza", 35),
];

/// Names that stand before a credential in an assignment.
const NAMES: &[&str] = &["password", "passwd", "secret", "token", "api_key", "apikey", "api-key", "access_key"];

/// Replaces what looks like a credential in `text`, and tells how many there were.
#[must_use]
pub fn redact(text: &str) -> (String, u64) {
    let mut out = String::with_capacity(text.len());
    let mut count = 0;
    let mut rest = text;
    let mut boundary = true;
    while let Some(char) = rest.chars().next() {
        if let Some((kept, secret)) = boundary.then(|| secret_at(rest)).flatten() {
            out.push_str(&rest[..kept]);
            out.push_str(PLACEHOLDER);
            count += 1;
            rest = &rest[kept + secret..];
            boundary = false;
            continue;
        }
        out.push(char);
        boundary = !char.is_ascii_alphanumeric();
        rest = &rest[char.len_utf8()..];
    }
    (out, count)
}

/// Finds a credential that begins here: how many bytes before it stay, and how many it has.
fn secret_at(text: &str) -> Option<(usize, usize)> {
    prefixed(text)
        .or_else(|| cloud_key(text))
        .or_else(|| long_key(text))
        .or_else(|| web_token(text))
        .or_else(|| private_key(text))
        .map(|secret| (0, secret))
        .or_else(|| user_info(text))
        .or_else(|| assigned(text))
}

fn token_length(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
}

fn prefixed(text: &str) -> Option<usize> {
    let (prefix, least) = PREFIXES.iter().find(|(prefix, _)| text.starts_with(prefix))?;
    let length = token_length(&text[prefix.len()..]);
    (length >= *least).then_some(prefix.len() + length)
}

/// Access key ids of the largest cloud: four letters and sixteen capitals or digits.
fn cloud_key(text: &str) -> Option<usize> {
    if !text.starts_with("AKIA") && !text.starts_with("ASIA") {
        return None;
    }
    let length = text.bytes().take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).count();
    (length == 20).then_some(length)
}

/// `sk-` and at least 32 token characters with a digit and a capital among them; a branch name has not.
fn long_key(text: &str) -> Option<usize> {
    let key = text.strip_prefix("sk-")?;
    let length = token_length(key);
    let key = &key.as_bytes()[..length];
    let mixed = key.iter().any(u8::is_ascii_digit) && key.iter().any(u8::is_ascii_uppercase);
    (length >= 32 && mixed).then_some(3 + length)
}

/// A signed web token: three dotted parts, the first two of which are encoded JSON objects.
fn web_token(text: &str) -> Option<usize> {
    let head = text.starts_with("eyJ").then(|| token_length(text))?;
    let body = text[head..].strip_prefix('.').filter(|body| body.starts_with("eyJ"))?;
    let body_length = token_length(body);
    let signature = token_length(body[body_length..].strip_prefix('.')?);
    (signature > 0).then_some(head + 1 + body_length + 1 + signature)
}

fn private_key(text: &str) -> Option<usize> {
    let head = text.strip_prefix("-----BEGIN ")?;
    let label = head.split_once("-----")?.0;
    if !label.contains("PRIVATE KEY") {
        return None;
    }
    let end = format!("-----END {label}-----");
    Some(text.find(&end).map_or(text.len(), |at| at + end.len()))
}

/// The user part of a URL: `scheme://user:password@`.
fn user_info(text: &str) -> Option<(usize, usize)> {
    let scheme = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'));
    let scheme = scheme.count();
    let authority = text[scheme..].strip_prefix("://").filter(|_| scheme > 0)?;
    let end = authority.find(|char: char| matches!(char, '/' | '?' | '#') || char.is_whitespace());
    let authority = &authority[..end.unwrap_or(authority.len())];
    let at = authority.rfind('@')?;
    (at > 0 && authority[..at] != *PLACEHOLDER).then_some((scheme + 3, at))
}

/// `password=…`, `token: …`: a value of eight or more characters without white space.
fn assigned(text: &str) -> Option<(usize, usize)> {
    let name = NAMES.iter().find(|name| text.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name)))?;
    let after = &text[name.len()..];
    let value = after.trim_start_matches(['"', '\'', ' ']);
    let colon = value.starts_with(':');
    let value = value.strip_prefix(['=', ':'])?.trim_start_matches(['"', '\'', ' ']);
    let length = value.find(|char: char| char.is_whitespace() || matches!(char, '"' | '\'' | '&' | ',' | ';'));
    let length = length.unwrap_or(value.len());
    let kept = text.len() - value.len();
    // Prose has colons too: after one, only what no word is.
    let secret = length >= 8 && (!colon || value[..length].bytes().any(|byte| byte.is_ascii_digit()));
    (secret && !value.starts_with(PLACEHOLDER)).then_some((kept, length))
}

#[cfg(test)]
mod tests;
