//! What hangs on how the board seats a caller again that has proved to be the one who attached before.

use serde_json::json;

use super::{key, only, restored};
use crate::handles::Handles;
use crate::testing::World;

#[test]
fn a_handle_of_an_earlier_server_whose_episode_has_ended_opens_none() {
    let world = World::new();
    let token = restored(&world, "a");
    world.answer("episodes.close", None, &json!({"external_id": "a"}));
    let (status, message) = world.refused("episodes.list", Some(&token), &json!({}));
    assert_eq!((status, message.as_str()), (404, "the episode of this episode_handle has ended"));
    assert!(world.shared.board.list().is_empty() && world.shared.peers.list().is_empty());
    assert_eq!(world.shared.handles.len(), 0);
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
