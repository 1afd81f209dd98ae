use super::{read, write};
use crate::choose::Chooser;

#[test]
fn what_was_chosen_is_read_as_it_was_written() {
    for seed in 0..200 {
        let steps = Chooser::new(seed).script();
        assert_eq!(read(&write(&steps)), Ok(steps));
    }
}

#[test]
fn what_is_no_step_is_named() {
    assert_eq!(read("c1 up\nc1 fly # why not\n"), Err("c1 fly".into()));
}
