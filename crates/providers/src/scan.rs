//! Where the first JSON value of a stream ends.

/// Remembers how far [`value_end`] has come. Begin with `Scan::default()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    place: Place,
    depth: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Begin,
    Mark1,
    Mark2,
    Before,
    Scalar,
    Inside,
    Text,
    Escape,
    Done,
}

/// Finds where the first complete JSON value of a stream ends, without parsing it.
///
/// Feed the chunks of the stream in order. `Some(n)` says that the value ends before byte `n` of this chunk, which is 0 where only
/// this chunk shows that a number or a word was over; later calls give `Some(0)`. `None` says that the value goes on. A byte order
/// mark and white space before the value are passed over. Each byte is looked at once, however the stream is cut.
///
/// It only finds the end: brackets are counted, not matched, and what it found may turn out not to be JSON. A byte that begins no
/// value is taken for a value of its own, so that a reader stops at once and reports it.
///
/// At the end of the stream a number or a word is complete although this function could not know it; [`read`](crate::read) does.
pub fn value_end(bytes: &[u8], state: &mut Scan) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if state.place == Place::Text {
            // Most bytes of a large payload are plain text.
            let plain = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\'));
            at += plain?;
            if bytes[at] == b'\\' {
                state.place = Place::Escape;
            } else if state.depth == 0 {
                state.place = Place::Done;
                return Some(at + 1);
            } else {
                state.place = Place::Inside;
            }
            at += 1;
            continue;
        }
        match state.step(byte) {
            Step::On => at += 1,
            Step::EndAfter => {
                state.place = Place::Done;
                return Some(at + 1);
            }
            Step::EndBefore => {
                state.place = Place::Done;
                return Some(at);
            }
        }
    }
    (state.place == Place::Done).then_some(0)
}

enum Step {
    On,
    EndAfter,
    EndBefore,
}

impl Scan {
    /// Takes one byte that stands outside a string.
    fn step(&mut self, byte: u8) -> Step {
        match (self.place, byte) {
            (Place::Done, _) => return Step::EndBefore,
            (Place::Begin, 0xEF) => self.place = Place::Mark1,
            (Place::Mark1, 0xBB) => self.place = Place::Mark2,
            (Place::Mark2, 0xBF) => self.place = Place::Before,
            (Place::Begin | Place::Before, byte) => return self.first(byte),
            (Place::Mark1 | Place::Mark2, _) => return Step::EndAfter,
            (Place::Scalar, b' ' | b'\t' | b'\n' | b'\r' | b'"' | b',' | b':' | b'[' | b']' | b'{' | b'}') => {
                return Step::EndBefore;
            }
            (Place::Scalar, _) => {}
            (Place::Escape, _) => self.place = Place::Text,
            (Place::Inside, b'"') => self.place = Place::Text,
            (Place::Inside, b'{' | b'[') => self.depth += 1,
            (Place::Inside, b'}' | b']') => {
                self.depth -= 1;
                if self.depth == 0 {
                    return Step::EndAfter;
                }
            }
            (Place::Inside | Place::Text, _) => {}
        }
        Step::On
    }

    /// Takes a byte that stands before the value.
    fn first(&mut self, byte: u8) -> Step {
        self.place = match byte {
            b' ' | b'\t' | b'\n' | b'\r' => Place::Before,
            b'{' | b'[' => {
                self.depth = 1;
                Place::Inside
            }
            b'"' => Place::Text,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Place::Scalar,
            _ => return Step::EndAfter,
        };
        Step::On
    }
}

#[cfg(test)]
mod tests;
