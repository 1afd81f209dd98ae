use super::{BoardError, BoardOptions, EpisodeBoard, IntoKey, Limits, Refused, Run};
use std::sync::Arc;

use crate::ids::{EpisodeKey, IdError};
use crate::peers::{PeerBoard, Transport};
use crate::{CloseReason, ConnectionEpisodeState};

struct Never;

impl Run for Never {
    fn run(&self, _call: Box<dyn FnOnce() + Send>) -> Result<(), Refused> {
        Err(Refused("no thread could be started".into()))
    }
}

#[test]
fn a_bare_key_means_generic() {
    let key = EpisodeKey::new("generic", "a").unwrap();
    assert_eq!("a".into_key(), Ok(key.clone()));
    assert_eq!(("generic", "a").into_key(), Ok(key.clone()));
    assert_eq!((&key).into_key(), Ok(key.clone()));
    assert_eq!("".into_key(), Err(IdError::Empty));
    assert_ne!(("codex", "a").into_key(), Ok(key));
}

#[test]
fn a_call_that_is_never_made_leaves_the_key_free_and_the_episode_on_the_board() {
    let peers = PeerBoard::new();
    let peer = peers.attach(Transport::Stdio);
    let board = EpisodeBoard::with(BoardOptions { run: Arc::new(Never), ..BoardOptions::default() });
    let (episode, resumed) = board.attach(&peer, "a", "generic");
    assert_eq!((episode.peer, resumed), (Some(peer.id()), false));
    assert_eq!(episode.repository, "no thread could be started");
    assert_eq!(board.list()[0].repository, "no episode was recorded: the call could not be made");

    let why = BoardError::Unavailable { why: "no thread could be started".into() };
    assert_eq!(board.finish(&peer, None, "generic"), Err(why.clone()));
    assert_eq!(board.close("a", CloseReason::Shutdown), Err(why));
    assert_eq!(board.list()[0].state, ConnectionEpisodeState::Detached);
    assert!(board.settle(std::time::Duration::ZERO));
}

#[test]
fn an_id_that_is_none_is_answered_and_not_put_on_the_board() {
    let peers = PeerBoard::new();
    let peer = peers.attach(Transport::Stdio);
    let board = EpisodeBoard::new();
    let (episode, resumed) = board.attach(&peer, "a\nb", "generic");
    assert_eq!((episode.external_id.as_str(), episode.peer, resumed), ("a\nb", None, false));
    assert!(episode.repository.starts_with("no episode was recorded: external_id holds a control character"));
    assert!(board.list().is_empty());
    let error = board.finish(&peer, Some(""), "generic").unwrap_err();
    assert_eq!(error, BoardError::InvalidId(IdError::Empty));
}

#[test]
fn the_limits_are_those_of_the_design() {
    let limits = Limits::default();
    assert_eq!(limits.grace.as_secs(), 900);
    assert_eq!(limits.handle_idle.as_secs(), 24 * 3600);
    assert_eq!(limits.stream_patience.as_secs(), 90);
    assert_eq!(limits.driver_time.as_secs(), 5);
    assert_eq!(limits.driver_calls, 16);
    assert_eq!(limits.seen_every.as_secs(), 30);
    assert_eq!(limits.retry_every.as_secs(), 10);
}

#[test]
fn boards_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<EpisodeBoard>();
    shared::<PeerBoard>();
}
