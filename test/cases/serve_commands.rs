//! The commands about the server of a checkout: whether there is one, that there be one, and that there be none.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use majordomus_e2e::{
    DEADLINE, Running, Said, Session, World, address, majordomus, named_pipe, run_at_once, state_of, until,
};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

/// How long a server that says nothing is waited for.
const MUTE: Duration = Duration::from_secs(2);

const NOBODY: &str =
    "error: no server runs for this checkout\nhint: start one in this checkout: majordomus serve ensure\n";
const MUTE_ERROR: &str = "error: the server of this checkout does not answer\nhint: ";

/// A server that was started in a world and is nobody's child. Dropped, every server of that world is ended.
struct Detached<'a> {
    world: &'a World,
    status: Value,
}

impl<'a> Detached<'a> {
    fn of(world: &'a World, said: &Said) -> Self {
        assert_eq!(said.err, "", "{said:?}");
        let status = said.json();
        assert_eq!(status["standing"], "serving", "{status}");
        Self { world, status }
    }

    fn start(world: &'a World) -> Self {
        Self::of(world, &world.run(&["serve", "ensure", "--json"]))
    }

    fn pid(&self) -> Pid {
        pid_of(&self.status)
    }

    fn session(&self) -> Session {
        Session::begin(address(self.status["url"].as_str().expect("a url")), "2025-06-18")
    }

    /// That it serves on, and nobody else does.
    fn serves(&self) {
        let told = self.world.run(&["serve", "status", "--json"]).json();
        assert_eq!((&told["pid"], &told["instance"]), (&self.status["pid"], &self.status["instance"]), "{told}");
    }
}

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        for server in servers(self.world) {
            let _ = kill_process(server, Signal::KILL);
        }
    }
}

fn pid_of(status: &Value) -> Pid {
    let pid = status["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    pid.unwrap_or_else(|| panic!("no process in {status}"))
}

/// Whether a process has ended; whoever has to look after it may not have done so yet.
fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid).is_err() || stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z"))
}

/// The servers that were started in this world.
fn servers(world: &World) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").expect("processes are listed").flatten().map(|entry| entry.path());
    let works_here = |process: &PathBuf| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == world.repository());
    let serves = |process: &PathBuf| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).nth(1) == Some(b"serve")
    };
    let number = |process: PathBuf| Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?);
    processes.filter(works_here).filter(serves).filter_map(number).collect()
}

/// A process beside what is tested. Dropped, it is ended.
struct Bystander(Child);

impl Bystander {
    fn start(world: &World) -> Self {
        Self(world.program("sleep").arg("600").spawn().expect("sleep can be run"))
    }

    fn lives(&mut self) {
        assert!(self.0.try_wait().expect("a child can be looked at").is_none(), "it was ended");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Has the right to be the server of the world's checkout, and does nothing with it.
fn held(world: &World) -> File {
    let lock = File::open(world.path(".git")).expect("a folder can be opened");
    flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
    lock
}

/// What a server of the checkout would have published.
fn publish(world: &World, url: &str, pid: u32) {
    fs::create_dir_all(world.state()).expect("a folder can be made");
    let instance = "0123456789abcdef0123456789abcdef";
    let told = json!({ "format": 2, "url": url, "instance": instance, "version": "0.1.0", "pid": pid, "socket": null });
    fs::write(world.state().join("server.json"), told.to_string()).expect("it can be written");
}

#[test]
fn without_a_server_status_exits_3_and_stop_has_nothing_to_do() {
    let world = World::new();
    let said = world.run(&["serve", "status"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(3), "", NOBODY));
    let said = world.run(&["serve", "status", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (Some(3), ""), "{said:?}");
    assert_eq!(serde_json::from_str::<Value>(&said.out).expect("it is JSON"), json!({ "standing": "none" }));
    for _ in 0..2 {
        let said = world.run(&["serve", "stop"]);
        let nothing = "no server runs for this checkout\n";
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), nothing, ""));
        assert_eq!(world.run(&["serve", "stop", "--json"]).json(), json!({ "stopped": false }));
    }
    assert!(!world.path(".git/majordomus").exists(), "who only looks writes nothing");
}

#[test]
fn outside_a_repository_there_is_nothing_to_serve() {
    let world = World::plain();
    for word in ["status", "ensure", "stop"] {
        let said = world.run(&["serve", word, "--json"]);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{word}: {said:?}");
        assert!(said.err.contains("\nhint: run this inside a git repository"), "{word}: {said:?}");
    }
}

#[test]
fn the_commands_take_no_arguments_of_a_server() {
    let world = World::new();
    for line in [
        &["serve", "--port", "0", "status"][..],
        &["serve", "status", "--port", "0"],
        &["serve", "--detached", "ensure"],
        &["serve", "restart"],
    ] {
        assert_eq!(world.run(line).code, Some(2), "{line:?}");
    }
}

#[test]
fn a_server_in_the_foreground_is_told_of_and_is_enough() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    session.attach("my-thread");
    let told = world.run(&["serve", "status", "--json"]).json();
    let expected = json!({ "standing": "serving", "version": "0.1.0", "pid": server.pid(), "url": server.url() });
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&told[field], value, "{told}");
    }
    assert_eq!((&told["peers"], &told["open"]), (&json!(1), &json!(1)), "{told}");
    let [text, same] = ["serve", "server"].map(|word| world.run(&[word, "status"]));
    assert_eq!((text.code, text.out.as_str(), text.err.as_str()), (Some(0), same.out.as_str(), ""));
    assert!(text.out.starts_with("standing: serving\n") && text.out.contains("\npeers: 1\n"), "{text:?}");
    let ensured = world.run(&["serve", "ensure", "--json"]).json();
    assert_eq!(ensured["pid"], server.pid(), "there is one already");
    assert_eq!(servers(&world).len(), 1);
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    assert_eq!(world.run(&["serve", "status"]).code, Some(3));
}

#[test]
fn what_ensure_starts_is_nobodys_child_and_ends_at_term() {
    let world = World::new();
    let mut command = world.majordomus(&["serve", "ensure", "--json"]);
    command.env("MAJORDOMUS_EPISODE_HANDLE", "ep_secret");
    let server = Detached::of(&world, &Running::start_with(&mut command).wait());
    assert_eq!(server.status["worktree"], "main", "{}", server.status);
    let about = |what: &str| fs::read_to_string(format!("/proc/{}/{what}", server.pid().as_raw_nonzero()));
    let stat = about("stat").expect("it lives");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let pid = server.pid().to_string();
    assert_eq!((fields[2], fields[3], fields[4]), (&*pid, &*pid, "0"), "group, session, terminal: {stat}");
    assert!(!about("environ").expect("it lives").contains("ep_secret"), "it outlives whose secret that is");
    assert_eq!(about("comm").expect("it lives"), "majordomus\n");
    let log = world.state().join("server.log");
    let mode = fs::metadata(&log).expect("there is a log").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let said = fs::read_to_string(&log).expect("it can be read");
    assert!(said.contains(server.status["url"].as_str().expect("a url")), "{said:?}");
    let again = Detached::start(&world);
    assert_eq!(again.status["pid"], server.status["pid"]);
    assert_eq!(servers(&world).len(), 1);
    kill_process(server.pid(), Signal::TERM).expect("it lives");
    until("it ends", || is_gone(server.pid()).then_some(()));
    assert!(!world.state().join("server.json").exists());
    assert_eq!(world.run(&["serve", "status"]).code, Some(3));
}

#[test]
fn ten_ensures_at_once_start_one_server() {
    let world = World::new();
    let commands = (0..10).map(|_| (world.majordomus(&["serve", "ensure", "--json"]), Vec::new())).collect();
    let all: Vec<Detached> = run_at_once(commands).iter().map(|said| Detached::of(&world, said)).collect();
    for server in &all {
        assert_eq!(server.status["pid"], all[0].status["pid"]);
    }
    until("the others have left", || (servers(&world).len() == 1).then_some(()));
    all[0].serves();
}

#[test]
fn whoever_waits_for_the_end_of_what_ensure_says_waits_for_no_server() {
    let world = World::new();
    let fifo = world.folder().join("pipe");
    named_pipe(&fifo);
    // Besides its standard streams it is given a descriptor that it knows nothing of.
    let mut shell = world.program("sh");
    shell.args(["-c", "exec 7>../pipe; exec \"$0\" serve ensure --json"]).arg(majordomus());
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let reader = fs::OpenOptions::new().read(true).custom_flags(flags).open(&fifo);
    let mut reader = reader.expect("a pipe can be opened");
    let said = Running::start(&mut shell).wait();
    let server = Detached::of(&world, &said);
    let mut rest = Vec::new();
    assert_eq!(reader.read_to_end(&mut rest).ok(), Some(0), "somebody holds the pipe open");
    server.serves();
}

/// A terminal: who has it, and its other end.
fn terminal() -> (OwnedFd, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("there are terminals");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let flags = OFlags::NOCTTY.bits().cast_signed();
    let slave = fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(name.to_str().expect("text"));
    (master, slave.expect("it can be opened"))
}

#[test]
fn a_server_outlives_its_starter_the_terminal_and_hup() {
    let world = World::new();
    let (master, slave) = terminal();
    let stream = || Stdio::from(slave.try_clone().expect("descriptors are left"));
    let mut shell = world.program("setsid");
    shell.args(["--ctty", "sh", "-c", "\"$0\" serve ensure --json >told && echo done >>told; read line"]);
    shell.arg(majordomus()).stdin(stream()).stdout(stream()).stderr(stream());
    let mut shell = Bystander(shell.spawn().expect("it runs"));
    drop(slave);
    let told = until("ensure has answered", || {
        let told = fs::read_to_string(world.path("told")).ok()?;
        told.strip_suffix("done\n").map(str::to_owned)
    });
    let server = Detached { world: &world, status: serde_json::from_str(&told).expect("it is JSON") };
    drop(master);
    until("the shell loses its terminal", || shell.0.try_wait().expect("it is a child"));
    server.serves();
    kill_process(server.pid(), Signal::HUP).expect("it lives");
    // Two requests later the signal has arrived.
    server.session().ping();
    server.serves();
    assert!(!is_gone(server.pid()));
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let world = World::new();
    let mut command = world.majordomus(&["serve", "ensure"]);
    let said = Running::start_with(command.env("MAJORDOMUS_GRACE_SECONDS", "soon")).wait();
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    let reason = "error: the server that was started has ended: MAJORDOMUS_GRACE_SECONDS is \"soon\"";
    assert!(said.err.starts_with(reason) && said.err.contains("\nhint: unset MAJORDOMUS_GRACE_SECONDS"), "{said:?}");
    assert_eq!(world.run(&["serve", "status"]).code, Some(3));
    Detached::start(&world).serves();
}

#[test]
fn a_log_that_is_long_begins_anew_and_what_is_no_file_is_no_log() {
    let world = World::new();
    let log = world.state().join("server.log");
    fs::create_dir_all(world.state()).expect("a folder can be made");
    fs::write(&log, vec![b'x'; (1 << 20) + 1]).expect("it can be written");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let server = Detached::start(&world);
    let said = fs::read_to_string(&log).expect("it can be read");
    assert!(said.starts_with("majordomus serves "), "{} bytes", said.len());
    assert_eq!(fs::metadata(&log).expect("it is there").permissions().mode() & 0o777, 0o600);
    drop(server);
    fs::remove_file(&log).expect("it can be removed");
    let elsewhere = world.folder().join("elsewhere");
    fs::write(&elsewhere, "kept\n").expect("it can be written");
    std::os::unix::fs::symlink(&elsewhere, &log).expect("a link can be made");
    until("the first one is gone", || (world.run(&["serve", "status"]).code == Some(3)).then_some(()));
    let server = Detached::start(&world);
    assert_eq!(fs::read_to_string(&elsewhere).expect("it is there"), "kept\n", "no link is followed");
    server.serves();
}

#[test]
fn a_server_that_is_mute_is_told_apart_from_none_and_from_one_that_answers() {
    let world = World::new();
    let server = world.serve(&[]);
    server.signal(Signal::STOP);
    let since = Instant::now();
    let said = world.run(&["serve", "status"]);
    assert!(since.elapsed() >= MUTE, "it was given its time");
    assert_eq!((said.code, said.out.as_str()), (Some(3), ""), "{said:?}");
    assert!(said.err.starts_with(MUTE_ERROR) && said.err.contains("kill -CONT"), "{said:?}");
    for word in ["status", "ensure"] {
        let said = world.run(&["serve", word, "--json"]);
        assert_eq!((said.code, said.err.as_str()), (Some(3), ""), "{word}: {said:?}");
        let told: Value = serde_json::from_str(&said.out).expect("it is JSON");
        assert_eq!(told, json!({ "standing": "mute", "url": server.url() }), "{word}");
    }
    assert_eq!(servers(&world).len(), 1, "beside one that is mute no other is started");
    server.signal(Signal::CONT);
    assert_eq!(world.run(&["serve", "status", "--json"]).json()["pid"], server.pid());
}

#[test]
fn nothing_is_ever_judged_or_ended_by_a_process_id() {
    let world = World::new();
    let mut bystander = Bystander::start(&world);
    // Left behind by a server that was killed: its number is somebody else's now.
    publish(&world, "http://127.0.0.1:9", bystander.0.id());
    assert_eq!(world.run(&["serve", "status"]).err, NOBODY);
    assert_eq!(world.run(&["serve", "stop", "--json"]).json(), json!({ "stopped": false }));
    bystander.lives();
    let lock = held(&world);
    let said = world.run(&["serve", "status", "--json"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let said = world.run(&["serve", "stop"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    bystander.lives();
    fs::remove_file(world.state().join("server.json")).expect("it is there");
    assert_eq!(world.run(&["serve", "stop"]).code, Some(1), "there is a server, wherever it answers");
    drop(lock);
    let server = Detached::start(&world);
    bystander.lives();
    assert_ne!(server.status["pid"], bystander.0.id());
}

#[test]
fn a_server_that_begins_is_waited_for() {
    let world = World::new();
    let lock = held(&world);
    let mut status = Running::start_with(&mut world.majordomus(&["serve", "status", "--json"]));
    assert!(!status.ended_within(MUTE / 4), "it may publish yet");
    drop(lock);
    assert_eq!(status.wait().out, "{\n  \"standing\": \"none\"\n}\n");
}

// What follows needs the server's socket.

fn socket(world: &World) -> PathBuf {
    let told = fs::read(world.state().join("server.json")).expect("a server has published");
    let told: Value = serde_json::from_slice(&told).expect("it is JSON");
    told["socket"].as_str().unwrap_or_else(|| panic!("no socket in {told}")).into()
}

#[test]
fn stop_ends_the_server_and_leaves_nothing_of_it() {
    let world = World::new();
    let server = Detached::start(&world);
    let (socket, at) = (socket(&world), address(server.status["url"].as_str().expect("a url")));
    assert!(socket.exists());
    let mut sessions = [server.session(), server.session()];
    sessions[0].attach("thread-a");
    sessions[1].attach("thread-b");
    let said = world.run(&["serve", "stop"]);
    let ended = "stopped; 2 episodes were closed (interrupted, reason shutdown)\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), ended, ""));
    until("its process is gone", || is_gone(server.pid()).then_some(()));
    assert!(TcpStream::connect(at).is_err(), "its port is closed");
    assert!(!socket.exists() && !world.state().join("server.json").exists());
    let said = world.run(&["serve", "stop", "--json"]);
    assert_eq!(said.json(), json!({ "stopped": false }), "a second time there is nothing to do");
    assert_eq!(world.run(&["serve", "status"]).code, Some(3));
    let records = world.records();
    assert_eq!(records.len(), 2);
    for record in records {
        assert_eq!(record.end(), ("interrupted", "shutdown", "shutdown"), "{record:#?}");
    }
}

#[test]
fn stop_says_in_json_what_it_ended_and_ensure_starts_another_one() {
    let world = World::new();
    let first = Detached::start(&world);
    let stopped = world.run(&["serve", "stop", "--json"]).json();
    assert_eq!(stopped, json!({ "stopped": true, "closed": 0, "pid": first.status["pid"] }));
    let second = Detached::start(&world);
    assert_ne!(first.status["instance"], second.status["instance"]);
    assert_eq!(world.run(&["serve", "stop"]).out, "stopped; no episode was open\n");
    until("nothing is left", || servers(&world).is_empty().then_some(()));
}

#[test]
fn a_server_in_the_foreground_can_be_stopped_too() {
    let world = World::new();
    let server = world.serve(&[]);
    server.session().attach("my-thread");
    assert_eq!(state_of(&world.episodes(), "my-thread"), "open");
    let stopped = world.run(&["serve", "stop", "--json"]).json();
    assert_eq!((&stopped["closed"], &stopped["pid"]), (&json!(1), &json!(server.pid())), "{stopped}");
    assert_eq!(server.wait().code, Some(0));
    assert_eq!(world.record().end(), ("interrupted", "shutdown", "shutdown"));
}

#[test]
fn stop_is_answered_by_the_server_and_not_by_the_process_that_its_file_names() {
    let world = World::new();
    let server = Detached::start(&world);
    let mut bystander = Bystander::start(&world);
    let file = world.state().join("server.json");
    let mut told: Value = serde_json::from_slice(&fs::read(&file).expect("it is there")).expect("it is JSON");
    told["pid"] = json!(bystander.0.id());
    File::create(&file).and_then(|mut file| file.write_all(told.to_string().as_bytes())).expect("it can be written");
    let stopped = world.run(&["serve", "stop", "--json"]).json();
    assert_eq!(stopped["pid"], server.status["pid"]);
    bystander.lives();
    until("its process is gone", || is_gone(server.pid()).then_some(()));
}

#[test]
fn stop_of_a_server_that_is_mute_says_what_to_do_and_ends_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    server.session().attach("my-thread");
    server.signal(Signal::STOP);
    let since = Instant::now();
    let said = world.run(&["serve", "stop"]);
    assert!(since.elapsed() < DEADLINE, "it is not waited for");
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.starts_with(MUTE_ERROR), "{said:?}");
    server.signal(Signal::CONT);
    assert_eq!(server.status()["standing"], "serving", "whoever asked has hung up meanwhile");
    assert_eq!(state_of(&world.episodes(), "my-thread"), "open");
}
