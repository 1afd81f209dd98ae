//! Containers in brackets, of JSON and of YAML: where their items stand, and what stands between these.

use std::ops::Range;

/// How a comment up to the end of its line begins, and whether there are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comments {
    /// `//`, and `/* */`.
    Slashes,
    /// `#`.
    Hash,
}

/// Where a container's brackets and its items stand.
pub(super) struct Brackets {
    /// The brackets and all between them.
    pub(super) range: Range<usize>,
    /// The items, in order.
    pub(super) items: Vec<Range<usize>>,
    pub(super) comments: Comments,
}

/// What stands between two items: space, comments and at most one comma.
pub(super) struct Gap {
    /// Where the comma stands.
    pub(super) comma: Option<usize>,
    /// Where the last comment or the comma ends; where the gap begins, if it has neither.
    pub(super) end: usize,
    /// Whether that was a comment up to the end of its line.
    pub(super) ends_in_line_comment: bool,
    pub(super) has_comment: bool,
}

impl Brackets {
    /// Where what is inside begins.
    fn inside(&self) -> usize {
        self.range.start + 1
    }

    /// Where the closing bracket stands.
    pub(super) fn close(&self) -> usize {
        self.range.end - 1
    }

    /// What stands between the item before `index` and the item at `index`, or the bracket.
    pub(super) fn gap(&self, text: &str, index: usize) -> Gap {
        let from = if index == 0 { self.inside() } else { self.items[index - 1].end };
        let to = self.items.get(index).map_or(self.close(), |item| item.start);
        Gap::read(text, from..to, self.comments)
    }

    /// What stands behind all items.
    pub(super) fn end(&self, text: &str) -> Gap {
        self.gap(text, self.items.len())
    }

    /// Puts an item behind all others, with this before and after it.
    pub(super) fn insert(&self, text: &str, before: &str, item: &str, after: &str) -> String {
        let end = self.end(text);
        // A comma for the last one that has none; what stands behind that on its line stays there.
        let last = self.items.last().filter(|_| end.comma.is_none()).map(|last| last.end);
        let (head, rest) = text[..end.end].split_at(last.unwrap_or(end.end));
        let comma = if last.is_some() { "," } else { "" };
        let rest_of_container = &text[end.end..];
        // Where it was empty the new line takes the place of the blanks, which whoever empties it again knows.
        let blanks = self.close() - end.end;
        let takes_place = self.items.is_empty() && !after.is_empty();
        let tail = if takes_place { &rest_of_container[blanks..] } else { rest_of_container };
        [head, comma, rest, before, item, after, tail].concat()
    }

    /// Takes an item out: the exact opposite of [`Self::insert`] for the last one, and for one that others were put behind.
    pub(super) fn remove(&self, text: &str, index: usize) -> Option<String> {
        let item = self.items.get(index)?;
        let (before, behind) = (self.gap(text, index), self.gap(text, index + 1));
        // The comma behind it, or where it is the last one and has none, the one before it.
        let comma = behind.comma.or(before.comma);
        let mut cuts = vec![(before.end, item.end)];
        let rest =
            behind.comma.filter(|comma| text[item.end..*comma].trim().is_empty()).map_or(item.end, |comma| comma + 1);
        if before.ends_in_line_comment && !text[rest..].trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
            // What follows must not become a part of that comment.
            cuts[0].0 = item.start;
        }
        match comma {
            Some(comma) if comma < before.end => {
                // Where nothing stands between them it is one cut.
                if comma + 1 == before.end { cuts[0].0 = comma } else { cuts.insert(0, (comma, comma + 1)) }
            }
            Some(comma) => cuts.push((comma, comma + 1)),
            None => {}
        }
        let mut kept = String::with_capacity(text.len());
        let mut from = 0;
        for (start, end) in cuts {
            kept.push_str(&text[from..start]);
            from = end;
        }
        kept.push_str(&text[from..]);
        Some(kept)
    }

    /// The space before the closing bracket of an empty container.
    pub(super) fn space<'a>(&self, text: &'a str) -> &'a str {
        &text[self.gap(text, 0).end..self.close()]
    }

    /// Whether a comment stands in an empty container.
    pub(super) fn is_commented(&self, text: &str) -> bool {
        self.gap(text, 0).has_comment
    }

    /// Gives an empty container this space before its closing bracket; `None` where it is not empty, or this no space.
    pub(super) fn set_space(&self, text: &str, space: &str) -> Option<String> {
        let is_space = self.items.is_empty() && space.trim().is_empty();
        is_space.then(|| [&text[..self.gap(text, 0).end], space, &text[self.close()..]].concat())
    }
}

impl Gap {
    fn read(text: &str, range: Range<usize>, comments: Comments) -> Self {
        let mut gap = Self { comma: None, end: range.start, ends_in_line_comment: false, has_comment: false };
        let mut at = range.start;
        while at < range.end {
            let rest = &text[at..range.end];
            let begins_line_comment = rest.starts_with(match comments {
                Comments::Slashes => "//",
                Comments::Hash => "#",
            });
            let long = if begins_line_comment {
                let line = rest.find('\n').unwrap_or(rest.len());
                rest[..line].trim_end_matches('\r').len()
            } else if comments == Comments::Slashes && rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else if rest.starts_with(',') {
                gap.comma = Some(at);
                1
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            gap.ends_in_line_comment = begins_line_comment;
            gap.has_comment |= !rest.starts_with(',');
            at += long;
            gap.end = at;
        }
        gap
    }
}
