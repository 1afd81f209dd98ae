use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{PAGE, Remains, Seat, Seats, UNIT, Word};
use crate::ids::PeerId;

#[derive(Clone, Copy, Debug)]
enum Step {
    Hold(u32),
    Lose,
    Vacate,
    Touch,
    Told,
    Look,
    Gone,
    Back,
}

/// What a peer holds, its evidence, and since when that waits.
type Naive = BTreeMap<u64, (Option<u32>, i64, Option<i64>)>;

/// Who has been active since somebody looked, and who is said to be gone.
#[derive(Default)]
struct Marks {
    active: BTreeSet<u64>,
    gone: BTreeSet<u64>,
    returned: Vec<u64>,
}

fn oldest(naive: &Naive) -> Option<(u32, i64)> {
    let waiting = naive.values().filter_map(|(slot, _, since)| Some((since.as_ref()?, slot.as_ref()?)));
    waiting.min().map(|(since, slot)| (*slot, *since))
}

fn vacate(naive: &mut Naive, peer: u64) -> Option<Remains> {
    let (slot, evidence, since) = naive.remove(&peer)?;
    slot.map(|_| Remains { evidence, untold: since.is_some() })
}

fn seat(naive: &Naive, peer: u64) -> Seat {
    match naive.get(&peer) {
        None => Seat::Vacant,
        Some((None, ..)) => Seat::Lost,
        Some((Some(_), ..)) => Seat::Held,
    }
}

/// Peers far apart, so that pages come and go.
const NUMBERS: [u64; 7] = [1, 2, 63, 4095, 4096, 4097, 50_000];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<u32>().prop_map(Step::Hold),
        Just(Step::Lose),
        Just(Step::Vacate),
        Just(Step::Touch),
        Just(Step::Touch),
        Just(Step::Told),
        Just(Step::Look),
        Just(Step::Gone),
        Just(Step::Back),
    ]
}

proptest! {
    /// Time goes on by whole units of a word, sometimes by more than a word can say.
    #[test]
    fn seats_are_what_a_map_and_a_scan_would_say(
        steps in prop::collection::vec(
            (prop::sample::select(NUMBERS.to_vec()), step(), prop::sample::select(vec![1, 1, 1, 50, 1 << 30, 1 << 33])),
            0..80,
        )
    ) {
        let (mut seats, mut naive) = (Seats::default(), Naive::new());
        let mut marks = Marks::default();
        let mut now = 0;
        for (number, step, later) in steps {
            now += later * UNIT;
            let peer = PeerId(number);
            let holds = seat(&naive, number) == Seat::Held;
            match step {
                Step::Hold(_) | Step::Lose | Step::Vacate => {
                    marks.active.remove(&number);
                    marks.gone.remove(&number);
                }
                Step::Look => {
                    marks.active.remove(&number);
                }
                Step::Touch if holds => {
                    marks.active.insert(number);
                    if marks.gone.remove(&number) {
                        marks.returned.push(number);
                    }
                }
                Step::Gone if holds => {
                    marks.active.remove(&number);
                    marks.gone.insert(number);
                }
                Step::Touch | Step::Gone | Step::Told | Step::Back => {}
            }
            match step {
                Step::Look => seats.look(peer),
                Step::Gone => {
                    seats.gone(peer);
                    if let Some(row) = naive.get_mut(&number) {
                        row.2 = None;
                    }
                }
                Step::Back => prop_assert_eq!(seats.back(peer), marks.gone.remove(&number)),
                Step::Hold(slot) => {
                    seats.hold(peer, slot, now);
                    naive.insert(number, (Some(slot), now, None));
                }
                Step::Lose => {
                    prop_assert_eq!(seats.lose(peer), vacate(&mut naive, number));
                    naive.insert(number, (None, 0, None));
                }
                Step::Vacate => prop_assert_eq!(seats.vacate(peer), vacate(&mut naive, number)),
                Step::Touch => {
                    prop_assert_eq!(seats.touch(peer, now), seat(&naive, number));
                    if let Some(row) = naive.get_mut(&number).filter(|row| row.0.is_some()) {
                        *row = (row.0, now, row.2.or(Some(now)));
                    }
                }
                Step::Told => {
                    seats.told(peer);
                    if let Some(row) = naive.get_mut(&number) {
                        row.2 = None;
                    }
                }
            }
            prop_assert_eq!(seats.oldest_untold(), oldest(&naive));
            prop_assert_eq!((seats.gone, &seats.returned), (marks.gone.len(), &marks.returned));
            prop_assert!(seats.returned.capacity() >= seats.returned.len() + seats.gone, "a touch allocates nothing");
            for number in NUMBERS.into_iter().chain([7, 999_999]) {
                let row = naive.get(&number);
                prop_assert_eq!(seats.word(number).seat(), seat(&naive, number));
                prop_assert_eq!(seats.active(PeerId(number)), marks.active.contains(&number));
                prop_assert_eq!(seats.untold(PeerId(number)), row.is_some_and(|row| row.2.is_some()));
                prop_assert_eq!(seats.slot(PeerId(number)), row.and_then(|row| row.0));
                prop_assert_eq!(seats.evidence(PeerId(number)), row.and_then(|row| row.0.and(Some(row.1))));
            }
        }
        while let Some((peer, slot)) = seats.take_returned() {
            prop_assert!(marks.returned.contains(&peer.number()));
            prop_assert_eq!(naive[&peer.number()].0, Some(slot));
        }
        for number in NUMBERS {
            seats.vacate(PeerId(number));
        }
        prop_assert!(seats.pages.iter().all(Option::is_none), "pages go with their last peer");
        prop_assert_eq!((seats.waiting.len(), seats.stale, seats.quiet), (0, 0, 0));
    }
}

#[test]
fn a_touch_has_room_in_the_queue_already() {
    let mut seats = Seats::default();
    for number in 1..=1_000 {
        seats.hold(PeerId(number), 0, UNIT);
        // Places that no longer count take no room from others.
        seats.touch(PeerId(number), UNIT);
        seats.hold(PeerId(number), 0, UNIT);
    }
    let room = seats.waiting.capacity();
    for number in 1..=1_000 {
        seats.touch(PeerId(number), 2 * UNIT);
    }
    assert_eq!(seats.waiting.capacity(), room, "a touch allocates nothing");
}

#[test]
fn places_that_no_longer_count_do_not_pile_up_behind_one_that_does() {
    let mut seats = Seats::default();
    seats.hold(PeerId(1), 0, UNIT);
    seats.touch(PeerId(1), UNIT);
    for _ in 0..10 * PAGE {
        seats.hold(PeerId(2), 0, UNIT);
        seats.touch(PeerId(2), UNIT);
    }
    assert!(seats.waiting.len() <= PAGE + 4, "{} places", seats.waiting.len());
    assert_eq!(seats.oldest_untold(), Some((0, UNIT)));
}

#[test]
fn what_a_touch_reads_of_a_peer_is_four_bytes() {
    assert_eq!(size_of::<Word>(), 4);
}
