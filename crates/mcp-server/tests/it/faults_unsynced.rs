//! What could not be made durable at first, and is asked for again.

use crate::faults::{After, Trouble, at_every_step};

#[test]
fn a_detach_whose_line_was_written_and_not_synced_is_recorded_when_it_is_asked_for_again() {
    assert!(at_every_step(After::GoesOn, &[Trouble::Failing]) > 100);
}

#[test]
fn an_attach_that_is_acknowledged_at_the_second_try_survives_the_loss_of_power() {
    assert!(at_every_step(After::GoesOnUntilPowerIsLost, &[Trouble::Once, Trouble::Failing]) > 200);
}
