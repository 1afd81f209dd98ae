use crate::EventKind;

#[test]
fn every_kind_is_read_back_from_its_word() {
    for kind in EventKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
        assert_eq!(kind.to_string(), kind.as_str());
    }
}

#[test]
fn another_word_is_refused_with_the_list() {
    for word in ["", "Start", "start ", "stop"] {
        let error = word.parse::<EventKind>().unwrap_err();
        for kind in EventKind::ALL {
            assert!(error.to_string().contains(kind.as_str()));
        }
    }
}
