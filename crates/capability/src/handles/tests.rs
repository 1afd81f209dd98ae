mod again;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;
use majordomus_episodes_core::board::{
    Adopted, BoardOptions, ConnectionEpisode, ConnectionEpisodeState, EpisodeBoard, Limits,
};
use majordomus_episodes_core::driver::{Closing, EpisodeDriver, NullDriver, Opening, Report};
use serde_json::{Value, json};

use super::{Handles, PATTERN, base64url, hash};
use crate::context::Shared;
use crate::testing::World;

fn key(external_id: &str) -> EpisodeKey {
    EpisodeKey::new("generic", external_id).unwrap()
}

/// The only episode on the board.
fn only(world: &World) -> ConnectionEpisode {
    let mut all = world.shared.board.list();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn tidy(world: &World) {
    world.shared.handles.tidy(&world.shared.board, &world.shared.peers);
}

/// An episode that an earlier server opened.
fn adopted(external_id: &str) -> Adopted {
    Adopted {
        key: key(external_id),
        opened_at: "2026-01-01T00:00:00.000Z".into(),
        attachments: 3,
        silent_for: Duration::ZERO,
        waiting_for: Duration::ZERO,
        line: String::new(),
    }
}

/// Puts an episode on the board that an earlier server opened, with a good handle, and gives that.
fn restored(world: &World, external_id: &str) -> String {
    world.shared.board.adopt(adopted(external_id));
    let minted = Handles::mint().unwrap();
    world.shared.handles.restore(&key(external_id), &[minted.hash]);
    minted.token
}

#[test]
fn a_handle_is_128_bits_in_base64url() {
    assert_eq!(base64url(0), "A".repeat(22));
    assert_eq!(base64url(u128::MAX), "_".repeat(21) + "w");
    assert_eq!(base64url(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f), "AAECAwQFBgcICQoLDA0ODw");
    assert_eq!(base64url(0xfbef_be00_0000_0000_0000_0000_0000_0001), "----AAAAAAAAAAAAAAAAAQ");
    let pattern = jsonschema::draft202012::new(&json!({ "pattern": PATTERN })).unwrap();
    let minted: HashSet<String> = (0..1000).map(|_| Handles::mint().unwrap().token).collect();
    assert_eq!(minted.len(), 1000);
    assert!(minted.iter().all(|token| pattern.is_valid(&json!(token))), "{minted:?}");
}

#[test]
fn only_the_hash_of_a_handle_is_kept() {
    let world = World::new();
    let token = world.attach("a");
    let kept: Vec<String> = world.shared.handles.lock().seats.iter().map(|(hash, _)| hash.clone()).collect();
    assert_eq!(kept, [hash(&token)]);
    assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let shown = format!("{:?}{:?}", world.shared, world.shared.handles.lock().seats.iter().next());
    assert!(!shown.contains(&token[3..]), "{shown}");
}

#[test]
fn a_call_that_shows_its_handle_is_evidence() {
    let world = World::new();
    let token = world.attach("a");
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.shared.board.list()[0].last_activity_seconds_ago, 60);
    world.answer("server.status", None, &json!({}));
    assert_eq!(world.shared.board.list()[0].last_activity_seconds_ago, 60, "who shows none is nobody's evidence");
    let shown = world.answer("episodes.list", Some(&token), &json!({}));
    assert_eq!((&shown["mine"]["external_id"], &shown["mine"]["last_activity_seconds_ago"]), (&json!("a"), &json!(0)));
    assert_eq!(world.shared.peers.list()[0].last_activity_seconds_ago, 0);
}

#[test]
fn the_argument_the_header_and_both_name_the_same_caller() {
    let world = World::new();
    let (token, other) = (world.attach("a"), world.attach("b"));
    let announce = |handle: Option<&str>, argument: Option<&str>| {
        let mut arguments = json!({ "intent": "x" });
        if let Some(argument) = argument {
            arguments["episode_handle"] = argument.into();
        }
        world.answer("peers.announce", handle, &arguments)["peer"]["external_id"].clone()
    };
    assert_eq!([announce(Some(&token), None), announce(None, Some(&token))], ["a", "a"]);
    assert_eq!(announce(Some(&other), Some(&token)), "a", "what a call says itself counts first");
}

#[test]
fn the_handles_of_one_episode_share_a_peer() {
    let world = World::new();
    let (first, second) = (world.attach("a"), world.attach("a"));
    assert_ne!(first, second);
    let you = |token: &str| world.answer("peers.list", Some(token), &json!({}))["you"].clone();
    assert_eq!(you(&first), you(&second));
    assert_eq!(world.shared.peers.list().len(), 1);
    assert_eq!(only(&world).state, ConnectionEpisodeState::Open);
    let again = world.answer("episodes.attach", Some(&first), &json!({"external_id": "a"}));
    assert_eq!(again["episode_handle"], json!(first), "who attaches with a handle keeps it");
    assert_eq!(again["taken_over_from"], Value::Null);
    assert_eq!(world.shared.handles.len(), 2);
    let (status, message) = world.refused("episodes.attach", Some(&first), &json!({"external_id": "b"}));
    assert_eq!((status, message.as_str()), (400, "episode_handle belongs to another external_id"));
}

#[test]
fn an_episode_that_a_connection_took_over_is_a_conflict_every_time() {
    let world = World::new();
    let token = world.attach("a");
    let connection = world.peer();
    world.call_as(&connection, "episodes.attach", &json!({"external_id": "a"}));
    for id in ["episodes.list", "episodes.detach", "episodes.list"] {
        let (status, message) = world.refused(id, Some(&token), &json!({}));
        assert_eq!((status, message.as_str()), (409, "the episode of this episode_handle was taken over by p2"));
        tidy(&world);
    }
    assert_eq!(only(&world).peer, Some(connection.id()));
    // Attaching again takes it back; then the earlier handle names its holder again.
    let later = world.attach("a");
    for token in [&later, &token] {
        assert_eq!(world.answer("episodes.list", Some(token), &json!({}))["mine"]["external_id"], "a");
    }
    // Once the episode is over, who lost it is let go.
    world.call_as(&connection, "episodes.attach", &json!({"external_id": "b"}));
    let third = world.peer();
    world.call_as(&third, "episodes.attach", &json!({"external_id": "a"}));
    world.call_as(&third, "episodes.detach", &json!({}));
    tidy(&world);
    assert_eq!(world.shared.peers.list().iter().map(|peer| peer.id).collect::<Vec<_>>(), [connection.id(), third.id()]);
    assert_eq!(world.refused("episodes.list", Some(&later), &json!({})).0, 409);
}

#[test]
fn a_handle_whose_episode_has_ended_is_not_found_every_time() {
    let world = World::new();
    let (closed, detached) = (world.attach("a"), world.attach("b"));
    world.answer("episodes.close", None, &json!({"external_id": "a"}));
    world.answer("episodes.detach", Some(&detached), &json!({}));
    for token in [&closed, &detached, &closed, &detached] {
        for (id, arguments) in [
            ("episodes.list", json!({})),
            ("peers.list", json!({})),
            ("peers.announce", json!({"intent": "x"})),
            ("episodes.attach", json!({"external_id": if *token == closed { "a" } else { "b" }})),
        ] {
            let (status, message) = world.refused(id, Some(token), &arguments);
            assert_eq!((status, message.as_str()), (404, "the episode of this episode_handle has ended"), "{id}");
        }
        tidy(&world);
    }
    assert_eq!(world.refused("episodes.detach", Some(&closed), &json!({})).0, 404);
}

#[test]
fn a_handle_that_nobody_minted_is_not_found() {
    let world = World::new();
    for token in [&Handles::mint().unwrap().token, "", "ep_", "x", "é", &"x".repeat(1 << 16)] {
        let (status, message) = world.refused("episodes.list", Some(token), &json!({}));
        assert_eq!((status, message.as_str()), (404, "this server does not know that episode_handle"));
    }
}

#[test]
fn detaching_again_with_a_handle_gives_the_first_answer() {
    let world = World::new();
    let token = world.attach("a");
    let first = world.answer("episodes.detach", Some(&token), &json!({}));
    assert_eq!((&first["episode"]["external_id"], &first["episode"]["state"]), (&json!("a"), &Value::Null));
    for arguments in [json!({}), json!({"external_id": "a"}), json!({"episode_handle": token})] {
        world.clock.advance(Duration::from_secs(1));
        tidy(&world);
        assert_eq!(world.answer("episodes.detach", Some(&token), &arguments), first);
    }
}

#[test]
fn who_has_no_handle_can_finish_what_nobody_holds_and_nothing_else() {
    let world = World::new();
    let (token, connection) = (world.attach("held"), world.peer());
    world.call_as(&connection, "episodes.attach", &json!({"external_id": "left"}));
    world.shared.board.detach(&connection);
    world.shared.peers.detach(&connection);
    let ended = world.answer("episodes.detach", None, &json!({"external_id": "left"}));
    assert_eq!(ended["episode"]["external_id"], "left");
    let refused = |arguments: &Value| world.refused("episodes.detach", None, arguments).0;
    assert_eq!(refused(&json!({"external_id": "held"})), 403);
    assert_eq!([refused(&json!({"external_id": "left"})), refused(&json!({}))], [404, 404]);
    assert_eq!(world.shared.peers.list().len(), 1, "who asked has not stayed");
    world.answer("episodes.list", Some(&token), &json!({}));
}

#[test]
fn a_handle_that_is_forgotten_detaches_what_nobody_can_speak_for_any_more() {
    let world = World::with_handles(2);
    let (first, second) = (world.attach("a"), world.attach("a"));
    world.attach("b");
    assert_eq!(world.refused("episodes.list", Some(&first), &json!({})).0, 404);
    world.answer("episodes.list", Some(&second), &json!({}));
    assert_eq!(world.shared.board.list().iter().filter(|one| one.peer.is_some()).count(), 2, "another handle is left");
    world.attach("b");
    world.attach("b");
    let left = world.shared.board.list().into_iter().find(|one| one.external_id == "a").unwrap();
    assert_eq!((left.state, world.shared.peers.list().len()), (ConnectionEpisodeState::Detached, 1));
    assert_eq!(world.shared.handles.len(), 2);
    assert!(!world.shared.handles.is_seen(&second));
}

#[test]
fn who_is_evicted_while_calling_finishes_the_call_first() {
    let world = World::with_handles(1);
    let token = world.attach("a");
    let known = world.shared.handles.show(&token, &world.shared.board, &world.shared.peers).unwrap();
    world.attach("b");
    let state = || world.shared.board.list().into_iter().find(|one| one.external_id == "a").unwrap().state;
    assert_eq!((state(), known.holds), (ConnectionEpisodeState::Open, true));
    drop(known);
    assert_eq!(state(), ConnectionEpisodeState::Detached);
}

#[test]
fn a_handle_of_an_earlier_server_is_good() {
    let world = World::new();
    let token = restored(&world, "a");
    assert!(!world.shared.handles.is_seen(&token) && world.shared.handles.len() == 1);
    let shown = world.answer("episodes.list", Some(&token), &json!({}));
    assert_eq!(shown["mine"]["opened_at"], "2026-01-01T00:00:00.000Z");
    assert!(world.shared.handles.is_seen(&token) && world.shared.handles.len() == 1);
    let you = world.answer("peers.list", Some(&token), &json!({}))["you"].clone();
    let later = world.attach("a");
    assert_eq!(world.answer("peers.list", Some(&later), &json!({}))["you"], you);
}

#[test]
fn a_handle_of_an_earlier_server_whose_episode_a_connection_has_is_told_as_there() {
    let world = World::new();
    let peer = world.peer();
    world.answer_as(&peer, "episodes.attach", &json!({"external_id": "a"}));
    // What was attached since has not reached the log that the handle was read from.
    let token = restored(&world, "a");
    for _ in 0..2 {
        let (status, message) = world.refused("episodes.list", Some(&token), &json!({}));
        assert_eq!(status, 409);
        assert!(message.ends_with("was taken over by p1"), "{message}");
    }
    assert_eq!(world.shared.peers.list().len(), 1, "it leaves no peer behind");
}

#[test]
fn no_more_handles_are_restored_than_are_known_at_once() {
    let world = World::with_handles(2);
    let hashes: Vec<String> = (0..3).map(|_| Handles::mint().unwrap().hash).collect();
    world.shared.handles.restore(&key("a"), &hashes);
    assert_eq!(world.shared.handles.len(), 2);
    let world = World::new();
    let seen = world.attach("b");
    world.shared.handles.restore(&key("b"), &[hash(&seen)]);
    assert_eq!(world.shared.handles.len(), 1, "one that was seen here is not restored");
}

#[test]
fn tidying_lets_go_who_is_there_no_more() {
    let world = World::new();
    let (ended, stays, good) = (world.attach("a"), world.attach("b"), restored(&world, "c"));
    let over = Handles::mint().unwrap();
    world.shared.handles.restore(&key("over"), &[over.hash]);
    world.answer("episodes.close", None, &json!({"external_id": "a"}));
    tidy(&world);
    assert_eq!(world.shared.peers.list().len(), 1);
    assert_eq!(
        world.refused("episodes.list", Some(&ended), &json!({})).1,
        "the episode of this episode_handle has ended"
    );
    assert_eq!(world.refused("episodes.list", Some(&over.token), &json!({})).0, 404);
    for token in [&stays, &good] {
        world.answer("episodes.list", Some(token), &json!({}));
    }
    // A later episode of that id is not the one that has ended.
    let later = world.attach("a");
    tidy(&world);
    let latest = world.attach("a");
    let you = |token: &str| world.answer("peers.list", Some(token), &json!({}))["you"].clone();
    assert_eq!(you(&later), you(&latest));
    assert_eq!(world.refused("episodes.list", Some(&ended), &json!({})).0, 404);
}

#[test]
fn tidying_is_nobodys_evidence() {
    let world = World::new();
    world.attach("a");
    world.clock.advance(Duration::from_secs(60));
    tidy(&world);
    assert_eq!(only(&world).last_activity_seconds_ago, 60);
}

#[test]
fn a_seat_that_is_replaced_leaves_no_peer_behind() {
    let world = World::new();
    for _ in 0..3 {
        let token = world.attach("a");
        world.answer("episodes.detach", Some(&token), &json!({}));
    }
    world.attach("a");
    assert_eq!(world.shared.peers.list().len(), 1);
}

/// A driver that lets a second call for the same episode in while the first is still opening it.
#[derive(Default)]
struct Overlapping {
    shared: OnceLock<Weak<Shared>>,
    /// Which peer opened, and which one a second call would have attached.
    seen: Mutex<Vec<(u64, u64)>>,
}

impl EpisodeDriver for Overlapping {
    fn open(&self, opening: &Opening) -> Report {
        let shared = self.shared.get().and_then(Weak::upgrade).unwrap();
        shared.handles.tidy(&shared.board, &shared.peers);
        let (seat, is_new) = shared.handles.seat_for(&opening.key, &shared.board, &shared.peers);
        assert!(!is_new, "two calls at once for one episode are two peers");
        self.seen.lock().unwrap().push((opening.peer.number(), seat.peer().id().number()));
        NullDriver.open(opening)
    }

    fn close(&self, closing: &Closing) -> Report {
        NullDriver.close(closing)
    }
}

#[test]
fn calls_at_once_for_one_episode_share_a_peer() {
    let driver = Arc::new(Overlapping::default());
    let world = World::with(|shared| {
        shared.board = EpisodeBoard::with(BoardOptions { driver: driver.clone(), ..BoardOptions::default() });
    });
    driver.shared.set(Arc::downgrade(&world.shared)).unwrap();
    let token = restored(&world, "restored");
    world.answer("episodes.list", Some(&token), &json!({}));
    world.attach("fresh");
    let seen = driver.seen.lock().unwrap();
    assert!(seen.contains(&(2, 2)) && seen.iter().all(|(opened, second)| opened == second), "{seen:?}");
}

#[test]
fn a_restored_handle_that_many_show_at_once_is_one_caller() {
    for _ in 0..50 {
        let world = World::new();
        let token = restored(&world, "a");
        let show = || {
            let Shared { handles, board, peers, .. } = &*world.shared;
            handles.show(&token, board, peers).map(|known| known.peer().id())
        };
        let shown: Vec<_> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..4).map(|_| scope.spawn(show)).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let peer = only(&world).peer.unwrap();
        assert_eq!(shown, vec![Ok(peer); 4]);
        assert_eq!(world.shared.peers.list().len(), 1);
        assert!(only(&world).attachments <= 4, "it attached at most once more");
    }
}

#[test]
fn two_that_keep_taking_an_episode_from_each_other_are_told_to_stop() {
    let world = World::new();
    let (connection, mut token) = (world.peer(), world.attach("a"));
    let take = json!({"external_id": "a"});
    assert_eq!(world.call_as(&connection, "episodes.attach", &take).status, 200);
    tidy(&world);
    token = world.answer("episodes.attach", None, &take)["episode_handle"].as_str().map_or(token, str::to_owned);
    assert_eq!(world.call_as(&connection, "episodes.attach", &take).status, 409);
    world.answer("episodes.list", Some(&token), &json!({}));
    assert_eq!(world.shared.peers.list().len(), 2);
}

#[test]
fn an_attach_that_is_refused_leaves_nobody_behind() {
    let limits = Limits { driver_calls: 0, ..Limits::default() };
    let world = World::with(|shared| {
        shared.board = EpisodeBoard::with(BoardOptions { limits, ..BoardOptions::default() });
    });
    assert_eq!(world.refused("episodes.attach", None, &json!({"external_id": "a"})).0, 503);
    assert_eq!((world.shared.peers.list(), world.shared.handles.len()), (Vec::new(), 0));
    assert!(world.shared.board.list().iter().all(|one| one.state == ConnectionEpisodeState::Detached));
    assert_eq!(world.refused("episodes.attach", None, &json!({"external_id": "a\nb"})).0, 400);
    assert_eq!(world.shared.peers.list(), Vec::new());
}

#[test]
fn of_many_handles_of_one_episode_the_latest_are_good() {
    let world = World::new();
    let tokens: Vec<String> = (0..40).map(|_| world.attach("a")).collect();
    assert_eq!(world.shared.handles.len(), 16);
    assert_eq!(world.refused("episodes.list", Some(&tokens[23]), &json!({})).0, 404);
    for token in [&tokens[24], &tokens[39]] {
        assert_eq!(world.answer("episodes.list", Some(token), &json!({}))["mine"]["external_id"], "a");
    }
}

#[test]
fn no_refusal_repeats_a_handle_wherever_it_was_put() {
    let world = World::new();
    let token = world.attach("a");
    for arguments in [json!({ token.as_str(): 1 }), json!({"intent": "x", "scope": token.as_str()})] {
        let reply = world.call("peers.announce", None, &arguments);
        assert!(reply.status == 400 && !reply.body.contains(&token), "{}", reply.body);
    }
    let shown = super::masked("ep_0123456789012345678901 and ep_short, ep_ab_0123456789012345678901");
    assert_eq!(shown, "ep_… and ep_short, ep_…");
}

#[test]
fn a_caller_whose_place_another_took_is_no_peer_for_ever() {
    let world = World::new();
    for _ in 0..5 {
        world.attach("a");
        world.answer("episodes.close", None, &json!({"external_id": "a"}));
    }
    world.shared.handles.tidy(&world.shared.board, &world.shared.peers);
    assert!(world.shared.peers.list().is_empty());
}
