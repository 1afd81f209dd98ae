//! Where a value ends does not depend on how its stream is cut, and is where a parser says. The last four bytes say where it is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use majordomus_providers::{Scan, value_end};
use serde::de::IgnoredAny;

fuzz_target!(|data: &[u8]| {
    let (stream, cuts) = data.split_at(data.len().saturating_sub(4));
    let whole = end_when_cut(stream, std::iter::empty());
    let mut places: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) * (stream.len() + 1) / 256).collect();
    places.sort_unstable();
    assert_eq!(end_when_cut(stream, places.into_iter()), whole, "cut at four places");
    assert_eq!(end_when_cut(stream, 0..=stream.len()), whole, "cut everywhere");
    assert!(whole.is_none_or(|end| end <= stream.len()), "{whole:?}");

    let unmarked = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut parser = serde_json::Deserializer::from_slice(unmarked).into_iter::<IgnoredAny>();
    if matches!(parser.next(), Some(Ok(_))) {
        let end = stream.len() - unmarked.len() + parser.byte_offset();
        // At the end of the stream only the reader knows that a number or a word is over.
        let open = end == stream.len() && !matches!(stream[end - 1], b'}' | b']' | b'"');
        assert_eq!(whole, (!open).then_some(end), "where the parser says");
    }
});

fn end_when_cut(stream: &[u8], places: impl Iterator<Item = usize>) -> Option<usize> {
    let mut state = Scan::default();
    let mut before = 0;
    for place in places.chain([stream.len()]) {
        if let Some(end) = value_end(&stream[before..place], &mut state) {
            return Some(before + end);
        }
        before = place;
    }
    None
}
