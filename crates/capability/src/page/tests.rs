use super::{LIMIT_DEFAULT, LIMIT_MAX, cursor, limit, place};

#[test]
fn a_limit_is_between_1_and_200_and_50_when_absent() {
    assert_eq!(limit(None).unwrap(), LIMIT_DEFAULT as usize);
    assert_eq!((limit(Some(1)).unwrap(), limit(Some(LIMIT_MAX)).unwrap()), (1, 200));
    assert_eq!(limit(Some(0)).unwrap_err().message, "limit is 0; 1 to 200 are allowed");
    assert_eq!(limit(Some(201)).unwrap_err().message, "limit is 201; 1 to 200 are allowed");
}

#[test]
fn a_cursor_comes_back_as_what_it_was_made_of() {
    let made = cursor("episodes", &["0", "", "grün ✓"]);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    assert!(made.bytes().all(plain), "it travels in a URL as it is: {made}");
    assert_eq!(place::<3>("episodes", &made).unwrap(), ["0", "", "grün ✓"]);
}

#[test]
fn whatever_this_list_did_not_give_is_refused_with_the_way_to_a_good_one() {
    let other_list = cursor("sessions", &["1"]);
    let too_long = cursor("episodes", &["1", "2"]);
    let good = cursor("episodes", &["one"]);
    let odd = &good[..good.len() - 1];
    let upper = "episodes.6F";
    for bad in ["", "zz", "é", "2", "episodes", "episodes.zz", upper, odd, &good[1..], &other_list, &too_long] {
        let refusal = place::<1>("episodes", bad).unwrap_err();
        assert_eq!(refusal.message, "cursor is not one that this list gave", "{bad}");
        assert!(refusal.hint.unwrap().contains("next_cursor"));
    }
}

#[test]
fn a_place_that_is_no_text_is_one_all_the_same() {
    assert_eq!(place::<2>("episodes", "episodes.ff.").unwrap(), ["\u{fffd}", ""]);
}
