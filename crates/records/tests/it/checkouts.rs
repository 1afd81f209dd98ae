//! Checkouts that are copied, moved or removed while episodes are open in them, and those whose git directory takes nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;
use majordomus_records::disk::Disk;
use majordomus_records::ending::EndedAs;
use majordomus_records::joining::Joining;
use majordomus_records::line::Witness;
use majordomus_records::serving::FORMAT;
use majordomus_records::state::RECORDS;
use majordomus_records::store::Silence;
use majordomus_records::{Checkout, Policy, Published, Returning};

use crate::world::{GRACE, Process, World, field, key};
use crate::wrapped::Wrapped;

const SECOND: Duration = Duration::from_secs(1);

/// A repository `one` in a folder on the machine's own disk.
fn repository(world: &World) -> PathBuf {
    let one = world.root().join("one");
    for part in ["objects", "refs/heads"] {
        fs::create_dir_all(one.join(".git").join(part)).unwrap();
    }
    fs::write(one.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    one
}

fn process_in(world: &World, folder: &Path) -> Process {
    world.process_in(Checkout::find(folder).unwrap(), None)
}

fn silence(process: &Process) -> Option<Silence> {
    process.store.find(&key()).unwrap().map(|open| open.silence)
}

/// The records below a checkout.
fn records(folder: &Path) -> Vec<String> {
    let mut folders = vec![folder.join(RECORDS)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

fn published() -> Published {
    let url = "http://127.0.0.1:8741".into();
    Published { format: FORMAT, url, socket: None, instance: "a".into(), pid: 1, version: "1".into() }
}

#[test]
fn a_copy_has_a_server_and_an_end_of_its_own_and_the_original_goes_on() {
    let world = World::new();
    let one = repository(&world);
    let server = process_in(&world, &one);
    let mut serving = server.store.serve().unwrap().unwrap();
    server.store.advertise(&mut serving, &published()).unwrap();
    server.attach().unwrap();
    let two = world.root().join("two");
    assert!(Command::new("cp").arg("-a").arg(&one).arg(&two).status().unwrap().success());

    let copy = process_in(&world, &two);
    assert_ne!(copy.store.checkout().id(), server.store.checkout().id());
    assert_eq!((copy.store.published(), copy.store.is_served()), (None, false), "that server is another checkout's");
    assert!(copy.store.serve().unwrap().is_some());
    assert_eq!(silence(&copy), Some(Silence::Waiting(GRACE)), "nobody holds the copy");
    world.clock.advance(GRACE);
    assert_eq!(copy.store.sweep(SECOND).expired.len(), 1);
    assert_eq!(field(&records(&two)[0], "end_reason"), "expired");

    assert_eq!(silence(&process_in(&world, &one)), Some(Silence::Held));
    assert!(server.seen().unwrap());
    assert!(matches!(server.detach(), Ok(EndedAs::Ended { .. })));
    server.store.sweep_as(majordomus_records::recovery::Judges::All, SECOND);
    assert_eq!((records(&one).len(), records(&two).len()), (1, 1));
    assert_eq!(field(&records(&one)[0], "outcome"), "closed");
}

#[test]
fn what_is_open_moves_with_its_checkout_and_nothing_is_begun_where_it_was() {
    let world = World::new();
    let one = repository(&world);
    let server = process_in(&world, &one);
    let joined = server.attach().unwrap();
    let there = world.root().join("moved");
    fs::rename(&one, &there).unwrap();

    let here = process_in(&world, &there);
    assert_eq!(silence(&here), Some(Silence::Held), "its server lives, wherever it believes to be");
    assert!(server.seen().is_err(), "nor is it said to be somebody else's");
    assert!(matches!(server.detach(), Ok(EndedAs::NothingOpen { .. })));
    let other = EpisodeKey::new("generic", "another").unwrap();
    assert!(server.store.start(&other, Witness::Connection, Joining::default()).is_err());
    assert!(!one.exists(), "that would be half a repository in nobody's way");

    drop(server);
    let (of, open) = here.store.adoptable().unwrap().remove(0);
    assert_eq!((of, open.log.attachments, open.log.session_id()), (key(), 1, Some(&*joined.session_id)));
    assert!(here.attach().unwrap().kept);
    assert!(matches!(here.detach(), Ok(EndedAs::Ended { session_id, .. }) if session_id == joined.session_id));
    here.store.sweep(SECOND);
    assert_eq!(field(&records(&there)[0], "attachments"), "2");
}

/// A linked worktree, as git makes it.
fn linked(one: &Path, folder: &Path) -> PathBuf {
    let git = one.join(".git/worktrees/feature");
    fs::create_dir_all(&git).unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(git.join("commondir"), "../..\n").unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/feature\n").unwrap();
    fs::write(git.join("gitdir"), format!("{}\n", folder.join(".git").display())).unwrap();
    fs::write(folder.join(".git"), format!("gitdir: {}\n", git.display())).unwrap();
    git
}

#[test]
fn what_was_open_in_a_worktree_that_is_removed_is_recorded_in_the_main_one() {
    for said in [false, true] {
        let world = World::new();
        let one = repository(&world);
        let folder = world.root().join("feature");
        let git = linked(&one, &folder);
        let server = process_in(&world, &folder);
        let serving = server.store.serve().unwrap();
        assert!(
            serving.is_some() && process_in(&world, &one).store.serve().unwrap().is_some(),
            "a checkout of its own"
        );
        server.attach().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        fs::remove_dir_all(&git).unwrap();
        let main = process_in(&world, &one);
        assert!(main.store.sweep(SECOND).expired.is_empty(), "it is held still");
        if said {
            assert!(matches!(server.detach(), Ok(EndedAs::Ended { .. })));
        }
        drop(server);
        world.clock.advance(GRACE);
        assert_eq!(main.store.sweep(SECOND).expired.len(), usize::from(!said));
        main.store.sweep(SECOND);
        let found = records(&one);
        assert_eq!(found.len(), 1);
        let outcome = if said { "closed" } else { "interrupted" };
        assert_eq!((field(&found[0], "worktree"), field(&found[0], "outcome")), ("feature", outcome));
        assert!(!git.exists() && !folder.exists());
    }
}

#[test]
fn a_git_directory_that_only_can_be_read_has_one_server_too_and_its_episodes_are_given_back() {
    // The state is in the user's own folder; the lock needs no more than reading.
    let world = World::new();
    let user = world.root().join("user");
    let read_only = || {
        let disk = Wrapped::full_below(&world.disk, world.root().join(".git"));
        let policy = Policy { grace: Some(GRACE), ..Policy::default() };
        world.process_on(Arc::new(disk), Some(&user), policy)
    };
    let join = |process: &Process, again| {
        let joining =
            Joining { connection: Some((&process.holder, 1)), carrier: Some("c"), again, ..Joining::default() };
        process.store.start(&key(), Witness::Connection, joining).unwrap()
    };
    let first = read_only();
    let mut serving = first.store.serve().unwrap().unwrap();
    assert!(read_only().store.serve().unwrap().is_none());
    first.store.advertise(&mut serving, &published()).unwrap();
    assert_eq!(read_only().store.published(), Some(published()));
    join(&first, false);
    drop((first, serving));

    // Once it can be written again, what was begun is gone on with where it is.
    let next = world.process_on(Arc::new(world.disk.clone()), Some(&user), Policy::default());
    assert!(matches!(next.store.returning(&key(), "c"), Ok(Returning::Open(_))));
    assert_eq!(join(&next, true).attachments, 1);
    assert!(world.disk.below(&world.state().join("open")).is_empty());
    assert!(matches!(next.detach(), Ok(EndedAs::Ended { .. })));
    assert!(matches!(next.store.returning(&key(), "c"), Ok(Returning::Ended(_))));
    next.store.sweep(SECOND);
    assert!(matches!(read_only().store.returning(&key(), "c"), Ok(Returning::Ended(_))));
    assert_eq!(world.records().len(), 1);
    assert!(world.disk.names(&world.state().join("ended")).is_err(), "nothing of it is here");
}
