use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::{ConnectError, check, clear_up, connect_in, folders, is_folder_of, is_same_user, listen_in, make};
use crate::testing::{ANOTHER, as_another};

const INSTANCE: &str = "0123456789abcdef0123456789abcdef";

fn uid() -> u32 {
    geteuid().as_raw()
}

/// A place that everybody may enter, and a folder of sockets in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let folder = make(place.path().join("majordomus"), uid()).unwrap();
    (place, folder)
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Why a folder is refused.
fn wrong(folder: &Path) -> String {
    let error = make(folder.into(), uid()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&folder.display().to_string()), "{text}");
    text
}

#[test]
fn a_folder_that_is_missing_is_made_for_its_owner_alone() {
    let (_place, folder) = place();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(make(folder.clone(), uid()).unwrap(), folder);
    let nowhere = folder.join("a/b");
    assert!(make(nowhere, uid()).unwrap_err().to_string().contains("cannot make"));
}

#[test]
fn the_folder_is_named_after_the_user() {
    assert_eq!(folders(7), [Path::new("/run/user/7/majordomus"), Path::new("/tmp/majordomus-7")]);
}

#[test]
fn a_runtime_folder_is_used_if_it_is_a_folder_of_this_user() {
    let (place, folder) = place();
    assert!(is_folder_of(&folder, uid()));
    assert!(!is_folder_of(&folder, uid() + 1));
    assert!(!is_folder_of(&place.path().join("missing"), uid()));
    symlink(&folder, place.path().join("link")).unwrap();
    File::create(place.path().join("file")).unwrap();
    for other in ["link", "file"] {
        assert!(!is_folder_of(&place.path().join(other), uid()), "{other}");
    }
}

#[test]
fn a_link_or_a_file_in_its_place_is_refused() {
    let (place, folder) = place();
    let (link, file) = (place.path().join("link"), place.path().join("file"));
    symlink(&folder, &link).unwrap();
    assert!(wrong(&link).contains("is a symbolic link"));
    fs::remove_file(&link).unwrap();
    symlink(place.path().join("missing"), &link).unwrap();
    assert!(wrong(&link).contains("is a symbolic link"));
    File::create(&file).unwrap();
    assert!(wrong(&file).contains("is no folder"));
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let (_place, folder) = place();
    for wide in [0o755, 0o710, 0o701, 0o777, 0o600] {
        mode(&folder, wide);
        let text = wrong(&folder);
        assert!(text.contains(&format!("{wide:o}")) && text.contains("700"), "{text}");
    }
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let (_place, folder) = place();
    assert!(check(&folder, uid() + 1).unwrap_err().to_string().contains("belongs to user"));
    if chown(&folder, Some(ANOTHER), None).is_err() {
        return eprintln!("not run as root: a folder cannot be given to another user");
    }
    assert!(wrong(&folder).contains(&format!("belongs to user {ANOTHER}")));
}

#[test]
fn whoever_listens_is_found_and_is_this_user_on_both_sides() {
    let (_place, folder) = place();
    let (listener, path) = listen_in(&folder, INSTANCE).unwrap();
    assert_eq!((path.parent(), names(&folder)), (Some(&*folder), vec![format!("{INSTANCE}.sock")]));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = connect_in(std::slice::from_ref(&folder), &path, uid()).unwrap();
    let (server, _) = listener.accept().unwrap();
    assert!(is_same_user(&server).unwrap() && is_same_user(&client).unwrap());
    // It blocks, as streams do.
    let reads = std::thread::spawn(move || std::io::read_to_string(server).unwrap());
    client.write_all(b"hello").unwrap();
    drop(client);
    assert_eq!(reads.join().unwrap(), "hello");
}

#[test]
fn what_was_left_behind_is_cleared_up_and_nothing_else() {
    let (_place, folder) = place();
    for left in ["left.sock", "left.new"] {
        drop(UnixListener::bind(folder.join(left)).unwrap());
    }
    File::create(folder.join("file.sock")).unwrap();
    symlink(folder.join("left.sock"), folder.join("link.sock")).unwrap();
    let (_alive, alive) = listen_in(&folder, "alive").unwrap();
    // Too many wait there, but somebody listens.
    let (full, busy) = listen_in(&folder, "busy").unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let _waits = UnixStream::connect(&busy).unwrap();
    let (_listener, path) = listen_in(&folder, INSTANCE).unwrap();
    assert_eq!(
        names(&folder),
        [&format!("{INSTANCE}.sock"), "alive.sock", "busy.sock", "file.sock", "link.sock"].map(str::to_owned)
    );
    for kept in [&alive, &busy, &path, &folder.join("file.sock"), &folder.join("missing.sock"), &folder] {
        clear_up(kept);
    }
    assert_eq!(names(&folder).len(), 5);
    assert!(matches!(connect_in(std::slice::from_ref(&folder), &busy, uid()), Err(ConnectError::Busy(_))));
}

#[test]
fn servers_that_start_at_once_all_listen() {
    let (_place, folder) = place();
    let listening: Vec<_> = std::thread::scope(|scope| {
        let one = |number| {
            let folder = &folder;
            scope.spawn(move || {
                (0..50)
                    .map(|round| listen_in(folder, &format!("{INSTANCE}-{number}-{round}")).unwrap())
                    .collect::<Vec<_>>()
            })
        };
        let all: Vec<_> = (0..4).map(one).collect();
        all.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    for (_listener, path) in &listening {
        connect_in(std::slice::from_ref(&folder), path, uid()).unwrap();
    }
    assert_eq!(names(&folder).len(), listening.len());
}

#[test]
fn an_instance_that_is_no_name_or_a_path_that_is_too_long_is_refused() {
    let (_place, folder) = place();
    for name in ["", ".", "..", "../a", "a/b", "a.sock", "a\0b", &"a".repeat(65)] {
        assert_eq!(listen_in(&folder, name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
    }
    let deep = make(folder.join("d".repeat(100)), uid()).unwrap();
    assert!(listen_in(&deep, INSTANCE).is_err());
    assert!(names(&deep).is_empty());
    let long = deep.join(format!("{INSTANCE}.sock"));
    assert!(matches!(connect_in(&[deep], &long, uid()), Err(ConnectError::Refused { .. })));
}

#[test]
fn only_a_socket_in_a_folder_that_is_safe_is_connected_to() {
    let (place, folder) = place();
    let (_listener, path) = listen_in(&folder, INSTANCE).unwrap();
    let ours = [folder.clone(), place.path().join("absent")];
    let elsewhere = place.path().join("elsewhere.sock");
    let _stranger = UnixListener::bind(&elsewhere).unwrap();
    let dotted = folder.join("../elsewhere.sock");
    for other in [&elsewhere, &dotted, Path::new("name.sock"), Path::new("/"), Path::new("")] {
        let refused = connect_in(&ours, other, uid());
        assert!(matches!(refused, Err(ConnectError::Elsewhere(_))), "{}: {refused:?}", other.display());
    }
    for nobody in [folder.join("missing.sock"), ours[1].join("missing.sock")] {
        assert!(matches!(connect_in(&ours, &nobody, uid()), Err(ConnectError::Nobody(_))));
    }
    mode(&folder, 0o750);
    assert!(matches!(connect_in(&ours, &path, uid()), Err(ConnectError::Unsafe(_))));
    mode(&folder, 0o700);
    connect_in(&ours, &path, uid()).unwrap();
}

#[test]
fn another_user_does_not_get_in_and_is_known_where_the_folder_was_widened() {
    let (_place, folder) = place();
    let (listener, path) = listen_in(&folder, INSTANCE).unwrap();
    let denied = as_another(|| (fs::read_dir(&folder).map(drop), UnixStream::connect(&path).map(drop)));
    let Some((looked, connected)) = denied else { return };
    assert_eq!(looked.unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(connected.unwrap_err().kind(), ErrorKind::PermissionDenied);
    mode(&folder, 0o777);
    mode(&path, 0o777);
    let _stranger = as_another(|| UnixStream::connect(&path).unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    assert!(!is_same_user(&server).unwrap());
}

#[test]
fn a_socket_that_another_user_put_into_a_folder_that_was_widened_is_not_spoken_to() {
    let (_place, folder) = place();
    mode(&folder, 0o777);
    let planted = folder.join("planted.sock");
    let Some(_listener) = as_another(|| UnixListener::bind(&planted).unwrap()) else { return };
    let left = folder.join("left.sock");
    as_another(|| drop(UnixListener::bind(&left).unwrap())).unwrap();
    let ours = std::slice::from_ref(&folder);
    assert!(matches!(connect_in(ours, &planted, uid()), Err(ConnectError::Unsafe(_))));
    mode(&folder, 0o700);
    assert!(matches!(connect_in(ours, &planted, uid()), Err(ConnectError::Stranger(_))));
    // What is not ours is not ours to remove either.
    clear_up(&left);
    assert!(left.exists());
}
