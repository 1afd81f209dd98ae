//! Pages of a list, found again by an opaque cursor.

use crate::refusal::{Code, Refusal};

/// How many entries a page has when nobody asks for a number.
pub const LIMIT_DEFAULT: u32 = 50;
/// The most entries that a page can have.
pub const LIMIT_MAX: u32 = 200;

/// Checks how many entries a page shall have.
///
/// # Errors
/// [`Code::InvalidInput`] for 0 and for more than [`LIMIT_MAX`].
pub(crate) fn limit(asked: Option<u32>) -> Result<usize, Refusal> {
    match asked.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit as usize),
        other => Err(Refusal::new(Code::InvalidInput, format!("limit is {other}; 1 to {LIMIT_MAX} are allowed"))),
    }
}

/// The place after one entry of the list `list`: the values that the list is ordered by.
///
/// It names a place rather than a number of entries, so that entries which come or go on earlier pages shift nothing.
/// Each value stands in hexadecimal behind a period, so that a JSON Schema pattern can say what a cursor is.
pub(crate) fn cursor(list: &str, place: &[&str]) -> String {
    let mut text = list.to_owned();
    for value in place {
        text.push('.');
        let halves = value.bytes().flat_map(|byte| [byte >> 4, byte & 15]);
        text.extend(halves.map(|half| char::from(DIGITS[usize::from(half)])));
    }
    text
}

/// Reads a cursor of the list `list` back into `N` values.
///
/// # Errors
/// [`Code::InvalidInput`] for whatever [`cursor`] did not make for this list.
pub(crate) fn place<const N: usize>(list: &str, cursor: &str) -> Result<[String; N], Refusal> {
    read(list, cursor).ok_or_else(foreign)
}

/// Refuses a cursor.
pub(crate) fn foreign() -> Refusal {
    Refusal::new(Code::InvalidInput, "cursor is not one that this list gave")
        .hint("leave cursor out for the first page, then pass next_cursor as it came")
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn read<const N: usize>(list: &str, cursor: &str) -> Option<[String; N]> {
    let values = cursor.strip_prefix(list)?.strip_prefix('.')?.split('.');
    values.map(value).collect::<Option<Vec<_>>>()?.try_into().ok()
}

fn value(hexadecimal: &str) -> Option<String> {
    let digit = |byte: &u8| DIGITS.iter().position(|known| known == byte).and_then(|value| u8::try_from(value).ok());
    let halves: Vec<u8> = hexadecimal.as_bytes().iter().map(digit).collect::<Option<_>>()?;
    let pairs = halves.chunks_exact(2);
    let whole = pairs.remainder().is_empty();
    let bytes: Vec<u8> = pairs.map(|pair| pair[0] << 4 | pair[1]).collect();
    // What is no text names a place all the same: any will do to go on from.
    whole.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
