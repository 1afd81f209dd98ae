use std::cell::Cell;
use std::time::Duration;

use super::{MOST, Marks};
use crate::protocol::watching::LOOK;

#[test]
fn a_mark_is_made_once_for_all_who_ask_within_a_moment() {
    let (marks, looks) = (Marks::default(), Cell::new(0));
    let get = |now| {
        marks.get("a", now, || {
            looks.set(looks.get() + 1);
            Some(looks.get())
        })
    };
    assert_eq!([get(Duration::ZERO), get(LOOK / 4), get(LOOK / 2), get(LOOK)], [Some(1), Some(1), Some(2), Some(3)]);
}

#[test]
fn while_somebody_looks_the_others_are_given_what_was_seen_last() {
    let marks = Marks::default();
    assert_eq!(marks.get("a", Duration::ZERO, || Some(1)), Some(1));
    let seen = marks.get("a", LOOK, || {
        assert_eq!(marks.get("a", LOOK * 5, || panic!("two look at once")), Some(1));
        assert_eq!(marks.get("b", LOOK, || Some(7)), Some(7), "nobody waits for another one's look");
        Some(2)
    });
    assert_eq!((seen, marks.get("a", LOOK, || Some(9))), (Some(2), Some(2)));
}

#[test]
fn no_more_uris_are_remembered_than_there_is_room_for() {
    let marks = Marks::default();
    for at in 0..MOST + 5 {
        assert_eq!(marks.get(&at.to_string(), Duration::ZERO, || Some(1)), Some(1));
    }
    assert_eq!(marks.lock().len(), MOST);
    assert_eq!(marks.get("later", LOOK, || Some(1)), Some(1));
    assert_eq!(marks.lock().len(), 1, "what nobody asks for goes when there is no room");
}
