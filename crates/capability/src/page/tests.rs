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
    assert!(made.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{made}");
    assert_eq!(place::<3>("episodes", &made).unwrap(), ["0", "", "grün ✓"]);
}

#[test]
fn whatever_this_list_did_not_give_is_refused_with_the_way_to_a_good_one() {
    let other_list = cursor("peers", &["1"]);
    let too_long = cursor("episodes", &["1", "2"]);
    let good = cursor("episodes", &["1"]);
    let odd = &good[1..];
    for bad in ["", "zz", "é", "2", "ff", &good.to_uppercase(), odd, &other_list, &too_long] {
        let refusal = place::<1>("episodes", bad).unwrap_err();
        assert_eq!(refusal.message, "cursor is not one that this list gave", "{bad}");
        assert!(refusal.hint.unwrap().contains("next_cursor"));
    }
}
