//! What hangs on how the board seats a caller again that has proved to be the one who attached before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::{adopted, key, only, restored};
use crate::handles::{Handles, Minted};
use crate::testing::World;

#[test]
fn a_handle_of_an_earlier_server_whose_episode_has_ended_opens_none() {
    let world = World::new();
    let token = restored(&world, "a");
    world.answer("episodes.close", None, &json!({"external_id": "a"}));
    let (status, message) = world.refused("episodes.list", Some(&token), &json!({}));
    assert_eq!((status, message.as_str()), (404, "the episode of this episode_handle has ended"));
    assert!(world.shared.board.list().is_empty() && world.shared.peers.list().is_empty());
    // Nor does it stand for a later one under the same id.
    world.attach("a");
    assert_eq!(world.refused("episodes.list", Some(&token), &json!({})).0, 404);
    world.answer("episodes.close", None, &json!({"external_id": "a"}));
    super::tidy(&world);
    assert_eq!(world.refused("episodes.list", Some(&token), &json!({})).0, 404);
}

#[test]
fn a_handle_of_an_earlier_server_that_never_knew_its_episode_opens_none() {
    let world = World::new();
    let minted = Handles::mint().unwrap();
    world.shared.handles.restore(&key("a"), &[minted.hash]);
    assert_eq!(world.refused("episodes.list", Some(&minted.token), &json!({})).0, 404);
    assert!(world.shared.board.list().is_empty());
}

#[test]
fn each_attach_that_mints_a_handle_is_an_attachment_and_showing_one_is_none() {
    let world = World::new();
    let token = world.attach("a");
    world.attach("a");
    assert_eq!(only(&world).attachments, 2);
    world.answer("episodes.attach", Some(&token), &json!({"external_id": "a"}));
    world.answer("episodes.list", Some(&token), &json!({}));
    assert_eq!(only(&world).attachments, 2);
}

#[test]
fn a_caller_that_comes_back_by_its_handle_is_the_same_attachment() {
    let world = World::new();
    let token = restored(&world, "a");
    world.answer("episodes.list", Some(&token), &json!({}));
    assert_eq!(only(&world).attachments, 3);
}

#[test]
fn whoever_shows_a_handle_that_was_not_seen_has_what_an_earlier_server_left_taken_over_first_and_once() {
    let world = World::new();
    let Minted { token, hash } = Handles::mint().unwrap();
    let times = Arc::new(AtomicUsize::new(0));
    let (shared, count) = (Arc::downgrade(&world.shared), times.clone());
    world.shared.on_inherit(Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let shared = shared.upgrade().unwrap();
        shared.handles.restore(&key("a"), std::slice::from_ref(&hash));
        shared.board.adopt(adopted("a"));
    }));
    for _ in 0..2 {
        let shown = world.answer("episodes.list", Some(&token), &json!({}));
        assert_eq!(shown["mine"]["external_id"], "a");
        assert_eq!(world.call("episodes.list", Some("ep_AAAAAAAAAAAAAAAAAAAAAA"), &json!({})).status, 404);
    }
    assert_eq!(times.load(Ordering::Relaxed), 1);
}

#[test]
fn a_handle_that_is_shown_before_its_episode_is_on_the_board_is_good_once_it_is() {
    let world = World::new();
    let minted = Handles::mint().unwrap();
    world.shared.handles.restore(&key("a"), std::slice::from_ref(&minted.hash));
    assert_eq!(world.call("episodes.list", Some(&minted.token), &json!({})).status, 404);
    world.shared.board.adopt(adopted("a"));
    let shown = world.answer("episodes.list", Some(&minted.token), &json!({}));
    assert_eq!((&shown["mine"]["external_id"], &shown["mine"]["attachments"]), (&json!("a"), &json!(3)));
}
