//! What stands where the servers of a checkout are looked for: junk, copies, other checkouts, nothing.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use majordomus_e2e::{Client, Running, Told, World, named_pipe, record_files, session_id, told_in, until, within};
use serde_json::{Value, json};

/// How long a client may have to wait for its first answer, whatever stands in the way.
const BOUND: Duration = Duration::from_secs(4);

/// A client that is answered in time, in a folder.
fn client_in(world: &World, folder: &Path) -> Client {
    let since = Instant::now();
    let mut client = Client::start(world.majordomus(&["mcp"]).current_dir(folder));
    client.initialize();
    client.ping();
    assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    client
}

/// A client that is answered and recorded in time, whoever serves it, and leaves without trouble.
fn is_served(world: &World, what: &str) {
    let mut client = client_in(world, world.repository());
    let since = Instant::now();
    assert_eq!(client.attach(what)["recorded"], true, "{what}");
    client.detach();
    assert_eq!(client.lose().code, Some(0), "{what}");
    assert!(since.elapsed() < BOUND, "{what}: {:?}", since.elapsed());
}

/// A process that has nothing to do with all this, and must not be signalled.
struct Stranger(Running);

impl Stranger {
    fn new(world: &World) -> Self {
        Self(Running::start_with(world.program("sleep").arg("1000").stdin(Stdio::null())))
    }

    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn was_left_alone(mut self) {
        assert!(!self.0.ended_within(Duration::ZERO), "somebody else's process was signalled");
    }
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
}

/// Puts something where servers say where they answer.
type Put = Box<dyn Fn(&Path) + Send + Sync>;

fn junk(stranger: u32) -> Vec<(&'static str, Put)> {
    let text = |text: String| -> Put { Box::new(move |path| fs::write(path, &text).expect("it can be written")) };
    let told = |pid: u32, socket: &str| {
        let told = json!({ "format": 2, "url": "http://127.0.0.1:9", "instance": "0".repeat(32), "version": "0.1.0", "pid": pid, "socket": socket });
        format!("{told}\n")
    };
    vec![
        ("nothing in it", text(String::new())),
        ("garbage", text("not json\n".into())),
        ("half of it", text(r#"{"format":2,"url":"http://127.0."#.into())),
        ("a number", text("42\n".into())),
        ("megabytes", text("x".repeat(5 << 20))),
        ("a later format", text(r#"{"format":99,"answers":"elsewhere"}"#.into())),
        ("somebody else's process", text(told(stranger, "/nonexistent/socket"))),
        ("the first process of all", text(told(1, "/nonexistent/socket"))),
        ("no socket", text(told(stranger, ""))),
        ("a socket that is a file", text(told(stranger, "/etc/hostname"))),
        ("a folder", Box::new(|path| fs::create_dir(path).expect("a folder can be made"))),
        ("a full folder", Box::new(|path| fs::create_dir_all(path.join("below")).expect("a folder can be made"))),
        ("a pipe", Box::new(named_pipe)),
        (
            "a link to nowhere",
            Box::new(|path| std::os::unix::fs::symlink("/nonexistent", path).expect("a link can be made")),
        ),
        ("a link to itself", Box::new(|path| std::os::unix::fs::symlink(path, path).expect("a link can be made"))),
        (
            "nobody may read it",
            Box::new(|path| {
                fs::write(path, "{}").expect("it can be written");
                fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("its mode can be set");
            }),
        ),
        (
            "a time to come",
            Box::new(|path| {
                let later = SystemTime::now() + Duration::from_secs(10 * 365 * 86_400);
                File::create(path).and_then(|file| file.set_modified(later)).expect("its time can be set");
            }),
        ),
    ]
}

/// Tries each piece of junk in a world of its own, some of them at the same time: most of it is waiting.
fn for_all_junk(check: impl Fn(&World, &Path, &str, &Put) + Sync) {
    let somewhere = World::plain();
    let stranger = Stranger::new(&somewhere);
    for some in junk(stranger.pid()).chunks(6) {
        thread::scope(|scope| {
            for (what, put) in some {
                scope.spawn(|| {
                    let world = World::new();
                    check(&world, &world.state().join("server.json"), what, put);
                });
            }
        });
    }
    stranger.was_left_alone();
}

#[test]
fn whatever_stands_where_a_server_would_be_named_a_client_is_served() {
    for_all_junk(|world, file, what, put| {
        fs::create_dir_all(world.state()).expect("a folder can be made");
        put(file);
        let mut first = client_in(world, world.repository());
        first.attach(what);
        is_served(world, &format!("{what}, beside another one"));
        first.ping();
        for arguments in [&["server", "status"][..], &["episodes"], &["doctor"], &["serve", "status"]] {
            let since = Instant::now();
            let _ = world.run(arguments);
            assert!(since.elapsed() < BOUND, "{what}: {arguments:?}: {:?}", since.elapsed());
        }
        assert_eq!(first.lose().code, Some(0), "{what}");
        until("all have gone", || world.processes().is_empty().then_some(()));
        // Whoever is told to end the server ends nobody else, and the next client is served as ever.
        remove(file);
        put(file);
        let _ = world.run(&["serve", "stop"]);
        is_served(world, "in the end");
    });
}

#[test]
fn whatever_stands_where_the_living_server_was_named_a_client_is_served_and_nobody_is_signalled() {
    for_all_junk(|world, file, what, put| {
        let mut holder = world.holder();
        holder.attach("of the holder");
        remove(file);
        put(file);
        is_served(world, what);
        let said = world.run(&["serve", "stop"]);
        assert!(holder.mine()["state"] == "open" || said.code == Some(0), "{what}: {said:?}");
        assert_eq!(holder.lose().code, Some(0), "{what}");
        until("all have gone", || world.processes().is_empty().then_some(()));
        remove(file);
        is_served(world, "afterwards");
    });
}

#[test]
fn a_file_that_is_written_again_and_again_is_read_until_it_is_whole() {
    let world = World::new();
    let mut holder = world.holder();
    let file = world.state().join("server.json");
    let whole = fs::read(&file).expect("it is there");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // As somebody does who knows nothing of atomic writes.
                fs::write(&file, b"").expect("it can be written");
                thread::park_timeout(Duration::from_millis(1));
                fs::write(&file, &whole).expect("it can be written");
                thread::park_timeout(Duration::from_micros(300));
            }
        });
        let clients = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let clients: Vec<Client> = (0..5).map(|_| client_in(&world, world.repository())).collect();
            assert_eq!(holder.peers().len(), 6, "all are served by the one that serves");
            clients
        }));
        done.store(true, Ordering::Relaxed);
        for client in clients.expect("all are served") {
            let left = client.lose();
            assert_eq!((left.code, left.err.as_str()), (Some(0), ""));
        }
    });
    holder.ping();
}

/// Puts something else where a server listens; what is returned has to stay.
fn in_the_place_of(socket: &Path, what: usize) -> (&'static str, Option<UnixListener>) {
    remove(socket);
    match what {
        0 => ("nothing", None),
        1 => {
            fs::write(socket, "x").expect("it can be written");
            ("a file", None)
        }
        2 => {
            fs::create_dir(socket).expect("a folder can be made");
            ("a folder", None)
        }
        3 => {
            named_pipe(socket);
            ("a pipe", None)
        }
        4 => ("a socket on which nobody listens any more", UnixListener::bind(socket).map(drop).ok().and(None)),
        _ => ("a socket that never answers", Some(UnixListener::bind(socket).expect("it can be bound"))),
    }
}

#[test]
fn whatever_stands_in_the_place_of_a_living_servers_socket_a_client_is_served() {
    for number in 0..6 {
        let world = World::new();
        let (mut holder, mut before) = (world.holder(), world.bridge());
        let told = world.told().expect("it serves");
        before.attach("before");
        let (what, listener) = in_the_place_of(&told.socket, number);
        is_served(&world, what);
        for client in [&mut holder, &mut before] {
            client.ping();
        }
        assert_eq!(before.mine()["attachments"], 1, "{what}");
        let since = Instant::now();
        assert_eq!(before.lose().code, Some(0), "{what}");
        assert_eq!(holder.lose().code, Some(0), "{what}");
        assert!(since.elapsed() < BOUND, "{what}: {:?}", since.elapsed());
        drop(listener);
        remove(&told.socket);
        let records = world.records();
        assert_eq!(records.len(), 1, "{what}");
        is_served(&world, "as ever");
    }
}

#[test]
fn whatever_stands_in_the_place_of_a_dead_servers_socket_the_next_one_serves() {
    for number in 0..6 {
        let world = World::new();
        let (holder, mut client) = (world.holder(), world.bridge());
        let told = world.told().expect("it serves");
        client.attach("before");
        let (what, listener) = in_the_place_of(&told.socket, number);
        let since = Instant::now();
        holder.kill9();
        client.ping();
        assert!(since.elapsed() < BOUND, "{what}: {:?}", since.elapsed());
        let mine = client.mine();
        assert_eq!((&mine["state"], &mine["attachments"]), (&json!("open"), &json!(1)), "{what}: {mine}");
        let serves = format!("{what}: it serves");
        let after = until(&serves, || world.told().filter(|told| told.pid == client.pid()));
        world.bridge().attach("new");
        assert_eq!(client.lose().code, Some(0), "{what}");
        until("all have gone", || world.processes().is_empty().then_some(()));
        assert!(!after.socket.exists(), "{what}");
        drop(listener);
        remove(&told.socket);
    }
}

#[test]
fn a_state_folder_that_vanishes_while_a_server_lives_stops_nobody() {
    let world = World::new();
    let (mut holder, mut client) = (world.holder(), world.bridge());
    client.attach("before");
    fs::remove_dir_all(world.path(".git/majordomus")).expect("it can be removed");
    holder.ping();
    client.ping();
    is_served(&world, "after");
    assert_eq!(client.lose().code, Some(0));
    assert_eq!(holder.lose().code, Some(0));
    until("all have gone", || world.processes().is_empty().then_some(()));
}

fn copy(world: &World, to: &str) -> PathBuf {
    let to = world.folder().join(to);
    let copied = world.program("cp").args(["-R", "-p"]).arg(world.repository()).arg(&to).status();
    assert!(copied.is_ok_and(|copied| copied.success()));
    to
}

fn told_by(client: &Client, state: &Path) -> Told {
    until("it says where it answers", || told_in(state).filter(|told| told.pid == client.pid()))
}

#[test]
fn a_copied_checkout_has_a_server_of_its_own() {
    let world = World::new();
    let (mut holder, mut bridge) = (world.holder(), world.bridge());
    holder.attach("held");
    bridge.attach("bridged");
    let told = world.told();
    let copied = copy(&world, "copy");
    let state = copied.join(".git/majordomus/main");
    assert_eq!(told_in(&state), told, "what says where a server answers is copied too");
    let mut first = client_in(&world, &copied);
    let of_copy = told_by(&first, &state);
    let mut second = client_in(&world, &copied);
    assert_eq!((first.peers().len(), second.peers().len()), (2, 2));
    assert_eq!((holder.peers().len(), bridge.peers().len()), (2, 2));
    assert_eq!(world.told(), told, "the original's server is still the same");
    assert_ne!(Some(&of_copy.url), told.as_ref().map(|told| &told.url));
    // What is open in the original is not open in its copy, whose logs were copied.
    let listed = second.done("majordomus_episodes", &json!({}));
    assert_eq!(listed["open"], 0, "{listed}");
    second.attach("of the copy");
    second.detach();
    assert_eq!(record_files(&copied).len(), 1);
    assert!(world.record_files().is_empty());
    // Copied once more, what it says is where the original's server answers; that one takes in nobody of the copy.
    fs::copy(world.state().join("server.json"), state.join("server.json")).expect("it can be copied");
    let mut misled = client_in(&world, &copied);
    assert_eq!((misled.peers().len(), holder.peers().len(), first.peers().len()), (1, 2, 2));
    for client in [misled, first, second] {
        assert_eq!(client.lose().code, Some(0));
    }
    assert_eq!(world.told(), told);
    for client in [&mut holder, &mut bridge] {
        assert_eq!(client.mine()["state"], "open");
        client.detach();
    }
    assert_eq!(world.records().len(), 2);
}

#[test]
fn a_checkout_that_is_moved_while_it_is_served_has_one_server() {
    let world = World::new();
    let (mut holder, mut bridge) = (world.holder(), world.bridge());
    bridge.attach("my-thread");
    let moved = world.folder().join("moved");
    fs::rename(world.repository(), &moved).expect("it can be moved");
    holder.ping();
    bridge.ping();
    // Whether it is let in there or served by itself: it is served, and nothing is served twice.
    let mut comes = client_in(&world, &moved);
    comes.attach("new");
    comes.detach();
    assert_eq!(comes.lose().code, Some(0));
    bridge.tool("majordomus_session_detach", &json!({}));
    assert_eq!(bridge.lose().code, Some(0));
    assert_eq!(holder.lose().code, Some(0));
    fs::rename(&moved, world.repository()).expect("it can be moved back");
    let records = world.records();
    assert!(records.iter().any(|record| record["external_id"] == "new"), "{records:#?}");
    assert!(records.len() <= 2, "{records:#?}");
    is_served(&world, "afterwards");
}

fn linked(world: &World, name: &str) -> PathBuf {
    let path = world.folder().join(name);
    world.git(&["worktree", "add", "--quiet", path.to_str().expect("a path is text"), "-b", name]);
    path
}

#[test]
fn a_linked_worktree_has_a_server_of_its_own() {
    let world = World::new();
    let side = linked(&world, "side");
    let (mut holder, mut bridge) = (world.holder(), world.bridge());
    let mut there = client_in(&world, &side);
    let told = told_by(&there, &world.path(".git/majordomus/side"));
    let mut also_there = client_in(&world, &side);
    assert_ne!(Some(&told.url), world.told().as_ref().map(|told| &told.url));
    holder.done("majordomus_announce", &json!({ "intent": "in the main worktree" }));
    there.done("majordomus_announce", &json!({ "intent": "in the linked worktree" }));
    for (client, intent) in [
        (&mut holder, "in the main worktree"),
        (&mut bridge, "in the main worktree"),
        (&mut there, "in the linked worktree"),
        (&mut also_there, "in the linked worktree"),
    ] {
        let peers = client.peers();
        let intents: Vec<&str> = peers.iter().filter_map(|peer| peer["intent"].as_str()).collect();
        assert_eq!((peers.len(), &intents[..]), (2, &[intent][..]), "{peers:?}");
    }
    // One id here and there is two sittings.
    bridge.attach("my-thread");
    let attached = also_there.attach("my-thread");
    assert_eq!((&attached["resumed"], &attached["episode"]["attachments"]), (&json!(false), &json!(1)), "{attached}");
    bridge.detach();
    also_there.detach();
    assert_eq!((world.record_files().len(), record_files(&side).len()), (1, 1));
    // The death of one server is nothing to the other.
    there.kill9();
    also_there.ping();
    assert_eq!((holder.peers().len(), also_there.peers().len()), (2, 1));
}

#[test]
fn a_worktree_that_is_removed_while_it_is_served_stops_nobody_and_loses_no_record() {
    let world = World::new();
    let side = linked(&world, "side");
    let mut holder = client_in(&world, &side);
    told_by(&holder, &world.path(".git/majordomus/side"));
    let mut bridge = client_in(&world, &side);
    let opened = bridge.attach("my-thread");
    holder.attach("of the holder");
    world.git(&["worktree", "remove", "--force", side.to_str().expect("a path is text")]);
    assert!(!side.exists());
    for client in [&mut holder, &mut bridge] {
        client.ping();
        assert_eq!(client.mine()["state"], "open");
    }
    // Its server dies as well.
    let since = Instant::now();
    holder.kill9();
    bridge.ping();
    assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    let closed = bridge.detach();
    assert_eq!(closed["recorded"], true, "{closed}");
    assert_eq!(bridge.lose().code, Some(0));
    until("all have gone", || world.processes().is_empty().then_some(()));
    let found = until("its record is in the main worktree", || {
        let records = world.records();
        records.into_iter().find(|record| record.text("session_id") == session_id(&opened))
    });
    assert_eq!((&found["attachments"], found.end().0), (&json!(1), "closed"));
}

#[test]
fn checkouts_with_one_configured_port_never_meet() {
    let (one, other) = (World::new(), World::new());
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it has an address").port().to_string();
    drop(listener);
    let start = |world: &World| {
        let mut client = world.server(&["mcp", "--http-port", &port]);
        client.initialize();
        client
    };
    let mut clients: Vec<Client> = [&one, &other, &one, &other].into_iter().map(start).collect();
    within(Duration::from_secs(2), "both are served", || one.told().and(other.told()));
    for (number, client) in clients.iter_mut().enumerate() {
        client.attach(&format!("client {number}"));
    }
    for client in &mut clients {
        let listed = client.done("majordomus_episodes", &json!({}));
        assert_eq!(listed["open"], 2, "{listed}");
        assert_eq!(client.peers().len(), 2);
    }
    let urls = [&one, &other].map(|world| world.told().map(|told| told.url));
    assert_ne!(urls[0], urls[1]);
    for mut client in clients {
        client.detach();
        assert_eq!(client.lose().code, Some(0));
    }
    let names =
        |world: &World| -> Vec<Value> { world.records().iter().map(|record| record["external_id"].clone()).collect() };
    assert_eq!((names(&one).len(), names(&other).len()), (2, 2));
}

#[test]
fn outside_a_repository_each_client_is_served_by_itself() {
    let world = World::plain();
    let (mut first, mut second) = (world.client(), world.client());
    assert_eq!((first.peers().len(), second.peers().len()), (1, 1));
    let attached = first.attach("my-thread");
    assert_eq!(attached["recorded"], false, "{attached}");
    for client in [first, second] {
        assert_eq!(client.lose().code, Some(0));
    }
    assert!(world.processes().is_empty());
}

#[test]
fn a_client_that_stands_alone_shares_nothing_and_is_in_nobodys_way() {
    let world = World::new();
    let alone = |world: &World| {
        let mut client = world.server(&["mcp", "--standalone"]);
        client.initialize();
        client
    };
    let mut first = alone(&world);
    first.attach("a");
    assert_eq!(world.told(), None, "nobody is sent to it");
    let (mut holder, mut second) = (world.holder(), alone(&world));
    second.attach("b");
    assert_eq!((first.peers().len(), second.peers().len(), holder.peers().len()), (1, 1, 1));
    assert_eq!(world.episodes()["open"], 2);
    for client in [first, second, holder] {
        assert_eq!(client.lose().code, Some(0));
    }
    assert_eq!(world.episodes()["detached"], 2);
}

#[test]
fn a_client_that_stands_alone_at_a_port_is_not_the_server_of_its_checkout() {
    let world = World::new();
    let mut alone = world.server(&["mcp", "--standalone", "--http-port", "0"]);
    alone.initialize();
    until("it listens", || (!world.listening().ports.is_empty()).then_some(()));
    let mut holder = world.holder();
    assert_eq!((alone.peers().len(), holder.peers().len()), (1, 1));
    assert_eq!(world.listening().processes.len(), 2);
    assert_eq!(alone.lose().code, Some(0));
    assert_eq!(world.told().map(|told| told.pid), Some(holder.pid()));
}
