use super::{Scan, value_end};

/// Feeds `bytes` in chunks of `size` and returns the end of the value in the whole stream.
fn end_in_chunks(bytes: &[u8], size: usize) -> Option<usize> {
    let mut state = Scan::default();
    let mut before = 0;
    for chunk in bytes.chunks(size) {
        if let Some(end) = value_end(chunk, &mut state) {
            return Some(before + end);
        }
        before += chunk.len();
    }
    None
}

#[test]
fn the_end_is_where_the_value_ends_however_the_stream_is_cut() {
    let cases: &[(&[u8], Option<usize>)] = &[
        (b"{}", Some(2)),
        (b"{\"a\": [1, {\"b\": \"}\"}]} {", Some(22)),
        (b" \r\n\t[]x", Some(6)),
        (b"\xEF\xBB\xBF{}", Some(5)),
        (b"\xEF\xBB\xBF  \"a\"", Some(8)),
        (b"\"a\\\"b\" c", Some(6)),
        (b"\"a\\\\\"b\"", Some(5)),
        (b"{\"\\\\\": \"{\\\"\"}]", Some(13)),
        (b"12 ", Some(2)),
        (b"true,", Some(4)),
        (b"null{", Some(4)),
        (b"-1.5e3\"", Some(6)),
        (b"12", None),
        (b"", None),
        (b" \n", None),
        (b"{\"a\": \"}", None),
        (b"[[]", None),
        (b"\xEF\xBB", None),
    ];
    for (bytes, expected) in cases {
        for size in 1..=bytes.len().max(1) {
            assert_eq!(end_in_chunks(bytes, size), *expected, "{} in chunks of {size}", bytes.escape_ascii());
        }
    }
}

#[test]
fn a_byte_that_begins_no_value_ends_the_wait_at_once() {
    let cases: [(&[u8], usize); 6] =
        [(b"hello", 1), (b"  }", 3), (b"\xFF", 1), (b"\xEF{}", 2), (b"\xEF\xBB\xBF\xEF", 4), (b"\0{}", 1)];
    for (bytes, expected) in cases {
        assert_eq!(end_in_chunks(bytes, bytes.len()), Some(expected), "{}", bytes.escape_ascii());
        assert_eq!(end_in_chunks(bytes, 1), Some(expected), "{}", bytes.escape_ascii());
    }
}

#[test]
fn after_the_end_nothing_more_belongs_to_the_value() {
    let mut state = Scan::default();
    assert_eq!(value_end(b"{} {}", &mut state), Some(2));
    assert_eq!(value_end(b"{}", &mut state), Some(0));
    assert_eq!(value_end(b"", &mut state), Some(0));
}

#[test]
fn a_number_that_a_later_chunk_ends_ends_before_that_chunk() {
    let mut state = Scan::default();
    assert_eq!(value_end(b"12", &mut state), None);
    assert_eq!(value_end(b"3\n", &mut state), Some(1));
    let mut state = Scan::default();
    assert_eq!(value_end(b"12", &mut state), None);
    assert_eq!(value_end(b"\n", &mut state), Some(0));
}

#[test]
fn two_megabytes_one_byte_at_a_time_are_passed_over_once() {
    // A scanner that began anew with each chunk would look at 2 * 10^12 bytes here.
    let mut payload = b"{\"session_id\": \"a\", \"blob\": \"".to_vec();
    payload.resize(2 << 20, b'{');
    payload.extend_from_slice(b"\"}\n");
    assert_eq!(end_in_chunks(&payload, 1), Some(payload.len() - 1));
}
