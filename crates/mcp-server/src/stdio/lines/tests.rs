use super::{Line, Lines};

/// Every line that comes out when `chunks` go in, as text; `!` is one over the limit of 8 bytes.
fn lines(chunks: &[&str], ended: bool) -> Vec<String> {
    let (mut lines, mut seen) = (Lines::new(8), Vec::new());
    let mut take = |lines: &mut Lines| {
        while let Some(line) = lines.next() {
            seen.push(match line {
                Line::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                Line::TooLong => "!".into(),
            });
        }
    };
    for chunk in chunks {
        lines.push(chunk.as_bytes());
        take(&mut lines);
    }
    if ended {
        lines.end();
        take(&mut lines);
        assert!(lines.is_done());
    }
    seen
}

#[test]
fn lines_come_out_whole_however_the_bytes_were_cut() {
    assert_eq!(lines(&["one\ntwo\n\nthr", "e", "e\n"], false), ["one", "two", "", "three"]);
    assert_eq!(lines(&["12345678\n"], false), ["12345678"]);
}

#[test]
fn what_stands_after_the_last_newline_is_a_line_once_the_input_has_ended() {
    assert_eq!(lines(&["one\ntw"], false), ["one"]);
    assert_eq!(lines(&["one\ntw"], true), ["one", "tw"]);
    assert_eq!(lines(&["one\n"], true), ["one"]);
    assert_eq!(lines(&[], true), [""; 0]);
}

#[test]
fn a_line_over_the_limit_is_said_once_and_skipped_to_its_newline() {
    assert_eq!(lines(&["123456789\nnext\n"], false), ["!", "next"]);
    assert_eq!(lines(&["12345", "6789", "0123456789", "0\nnext\n"], false), ["!", "next"]);
    assert_eq!(lines(&["123456789", "\n123456789", "\nx\n"], false), ["!", "!", "x"]);
    assert_eq!(lines(&["123456789", "0"], true), ["!"]);
}

#[test]
fn a_skipped_line_takes_no_memory() {
    let mut lines = Lines::new(8);
    for _ in 0..1000 {
        lines.push(&[b'x'; 64 * 1024]);
        lines.next();
        assert!(lines.buffer.capacity() <= 256 * 1024, "{}", lines.buffer.capacity());
    }
    lines.push(b"\nnext\n");
    assert_eq!(lines.next(), Some(Line::Whole(b"next")));
}
