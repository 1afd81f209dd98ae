//! A server over HTTP on a disk that refuses: it answers, says what is wrong, leaves nothing half-written, and records
//! what it is asked to once the disk is well.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use majordomus_e2e::{Request, Server, Session, World, majordomus, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A server in a mount namespace of its own, whose disks are changed while it runs by files that appear in `told`.
struct Inside<'a> {
    world: &'a World,
    told: PathBuf,
}

impl<'a> Inside<'a> {
    /// Where such namespaces cannot be made this says so, loudly.
    #[allow(clippy::print_stderr, reason = "whoever reads the tests' output is to know")]
    fn of(world: &'a World) -> Option<Self> {
        let trial = ["--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"];
        if !Command::new("unshare").args(trial).output().is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: nobody may mount anything here, so no disk can be made to refuse");
            return None;
        }
        let told = world.folder().join("told");
        fs::create_dir(&told).unwrap();
        Some(Self { world, told })
    }

    /// Starts the server after `before`; each of `changes` is a word and what the shell does once it is told that word.
    fn serve(&self, before: &str, changes: &[(&str, &str)]) -> Server {
        let step = |(word, what): &(&str, &str)| {
            format!("if [ -e \"$TOLD/{word}\" ]; then {{ {what}; }}; rm \"$TOLD/{word}\"; fi; ")
        };
        let steps: String = changes.iter().map(step).collect();
        let script = format!(
            "set -e; {before}
             (set +e; while kill -0 $$; do {steps} sleep 0.02; done) >/dev/null 2>&1 &
             exec \"$BIN\" serve --port 0"
        );
        let mut command = self.world.program("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
        command.env("BIN", majordomus()).env("TOLD", &self.told).env("ROOT", self.world.folder());
        Server::start(&mut command)
    }

    fn tell(&self, word: &str) {
        let file = self.told.join(word);
        fs::write(&file, "").unwrap();
        until(word, || (!file.exists()).then_some(()));
    }
}

fn attach(server: &Server, external_id: &str, handle: Option<&str>) -> Value {
    let mut input = json!({ "external_id": external_id });
    if let Some(handle) = handle {
        input["episode_handle"] = handle.into();
    }
    server.ask(&Request::post("/api/v1/episodes/attach", &input)).done()
}

fn detach(server: &Server, handle: &str) -> Value {
    server.ask(&Request::post("/api/v1/episodes/detach", &json!({ "episode_handle": handle }))).done()
}

/// What an answer says of the repository.
fn reported(answer: &Value) -> &str {
    answer["episode"]["repository"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn says_that_nothing_is_recorded(answer: &Value) {
    assert_eq!(answer["recorded"], false, "{answer}");
    assert!(reported(answer).starts_with("no episode was recorded: cannot "), "{answer}");
}

fn is_recorded(answer: &Value) {
    assert_eq!(answer["recorded"], true, "{answer}");
}

fn answers_all_the_same(server: &Server) {
    for path in ["ready", "live", "episodes", "peers", "server", "capabilities"] {
        assert_eq!(server.ask(&Request::get(&format!("/api/v1/{path}"))).status, 200, "{path}");
    }
    // A folder of records that may not be read is no empty one.
    let listed = server.ask(&Request::get("/api/v1/sessions"));
    assert!(listed.status == 200 || listed.code() == "unavailable", "{listed:?}");
    server.session().ping();
}

/// No half of a record, and no log in `open` or `ended` that holds a whole line.
fn nothing_half_written(state: &Path, worktree: &Path) {
    for folder in ["open", "ended", "bad"] {
        for entry in fs::read_dir(state.join(folder)).into_iter().flatten() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(!text.lines().any(|line| serde_json::from_str::<Value>(line).is_ok()), "{folder}: {text}");
        }
    }
    assert!(!worktree.join(".ai").exists(), "a record of nothing");
}

/// One caller of each kind, and what each was told.
struct Callers {
    handle: String,
    session: Session,
}

impl Callers {
    fn are_refused(server: &Server) -> Self {
        let answer = attach(server, "by-rest", None);
        says_that_nothing_is_recorded(&answer);
        let handle = answer["episode_handle"].as_str().unwrap().to_owned();
        let mut session = server.session();
        says_that_nothing_is_recorded(&session.attach("by-mcp"));
        answers_all_the_same(server);
        Self { handle, session }
    }

    fn are_recorded(server: &Server) -> Self {
        let answer = attach(server, "by-rest", None);
        is_recorded(&answer);
        let mut session = server.session();
        is_recorded(&session.attach("by-mcp"));
        Self { handle: answer["episode_handle"].as_str().unwrap().to_owned(), session }
    }

    fn attach_again(&mut self, server: &Server) {
        is_recorded(&attach(server, "by-rest", Some(&self.handle)));
        is_recorded(&self.session.attach("by-mcp"));
    }

    /// What both are told of their ends.
    fn detach(&mut self, server: &Server) -> [Value; 2] {
        [detach(server, &self.handle), self.session.detach()]
    }
}

/// Two sittings, each closed by its client and attached once.
fn two_closed_records(world: &World) {
    let records = world.records();
    let mut ids: Vec<&str> = records.iter().map(|record| record.text("external_id")).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["by-mcp", "by-rest"]);
    for record in &records {
        assert_eq!(record.end(), ("closed", "detach", "connection"));
        assert_eq!(record["attachments"], 1);
        assert!(record.time("closed_at") >= record.time("started_at"));
    }
}

#[test]
fn where_no_byte_may_be_written_a_server_says_so_and_records_once_it_may() {
    let world = World::new();
    let mut shell = world.program("sh");
    shell.args(["-c", "ulimit -S -f 0; exec \"$0\" serve --port 0"]).arg(majordomus());
    let server = Server::start(&mut shell);
    let limit = |bytes: &str| {
        let (pid, limit) = (server.pid().to_string(), format!("--fsize={bytes}:"));
        assert!(Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap().success());
    };
    let mut callers = Callers::are_refused(&server);
    nothing_half_written(&world.state(), world.repository());
    limit("unlimited");
    callers.attach_again(&server);
    limit("0");
    callers.detach(&server).iter().for_each(says_that_nothing_is_recorded);
    answers_all_the_same(&server);
    assert!(world.records().is_empty() && world.logs("open").len() == 2, "what was not made durable did not happen");
    limit("unlimited");
    until("the server tries the ends again", || (server.episodes()["episodes"].as_array()?.is_empty()).then_some(()));
    callers.detach(&server).iter().for_each(is_recorded);
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    two_closed_records(&world);
}

#[test]
fn where_the_state_may_not_be_written_a_server_says_so_and_records_once_it_may() {
    let world = World::new();
    let Some(inside) = Inside::of(&world) else { return };
    let folders = [world.path(".git/majordomus"), world.folder().join("state")];
    let each = |what: &str| {
        let one = |folder: &PathBuf| format!("f='{}'; {what}; ", folder.display());
        folders.iter().map(one).collect::<String>() + "true"
    };
    let before = each("mkdir -p \"$f\"; mount --bind \"$f\" \"$f\"; mount -o remount,ro,bind \"$f\"");
    let server = inside.serve(&before, &[("mend", &each("mount -o remount,rw,bind \"$f\""))]);
    let mut callers = Callers::are_refused(&server);
    nothing_half_written(&world.state(), world.repository());
    inside.tell("mend");
    callers.attach_again(&server);
    callers.detach(&server).iter().for_each(is_recorded);
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    two_closed_records(&world);
}

#[test]
fn where_only_the_repositorys_state_may_not_be_written_the_users_folder_takes_it() {
    let world = World::new();
    let Some(inside) = Inside::of(&world) else { return };
    let before = "f=.git/majordomus; mkdir -p $f; mount --bind $f $f; mount -o remount,ro,bind $f";
    let server = inside.serve(before, &[]);
    let mut callers = Callers::are_recorded(&server);
    answers_all_the_same(&server);
    server.kill9();
    // A new server, where the folder can be written: the old handle is good, and nothing is opened twice.
    let server = world.serve(&[]);
    until("it adopts what waits", || (server.episodes()["detached"] == 2).then_some(()));
    callers.session = server.session();
    is_recorded(&detach(&server, &callers.handle));
    let again = callers.session.attach("by-mcp");
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    is_recorded(&callers.session.detach());
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    assert_eq!(world.records().len(), 2);
}

#[test]
fn a_full_disk_costs_no_sitting_and_leaves_no_half_record() {
    let world = World::new();
    let Some(inside) = Inside::of(&world) else { return };
    fs::create_dir(world.folder().join("disk")).unwrap();
    let before = "unset XDG_STATE_HOME HOME; mount -t tmpfs -o size=1m none \"$ROOT/disk\"; cd \"$ROOT/disk\";
                  git init --quiet --template= --initial-branch=main .";
    let fill = "head -c 512k /dev/zero >\"$ROOT/disk/fill\"; cat /dev/zero >\"$ROOT/disk/more\"";
    let free = "rm -f \"$ROOT/disk/fill\" \"$ROOT/disk/more\"";
    let list = "\"$BIN\" sessions list --json >\"$TOLD/listed\"";
    let server = inside.serve(before, &[("fill", fill), ("free", free), ("list", list)]);
    let disk = PathBuf::from(format!("/proc/{}/root{}", server.pid(), world.folder().join("disk").display()));
    let no_halves = || {
        let halves = Command::new("find").arg(&disk).args(["-name", "*.half"]).output().unwrap();
        assert!(halves.status.success() && halves.stdout.is_empty(), "{halves:?}");
    };
    inside.tell("fill");
    let mut callers = Callers::are_refused(&server);
    nothing_half_written(&disk.join(".git/majordomus/main"), &disk);
    inside.tell("free");
    callers.attach_again(&server);
    callers.detach(&server).iter().for_each(is_recorded);
    let mut callers = Callers::are_recorded(&server);
    inside.tell("fill");
    for told in callers.detach(&server) {
        // There may be room for a line where there is none for a file.
        assert!(told["recorded"] == true || reported(&told).starts_with("no episode was recorded: "), "{told}");
    }
    no_halves();
    answers_all_the_same(&server);
    inside.tell("free");
    until("the server tries the ends again", || (server.episodes()["episodes"].as_array()?.is_empty()).then_some(()));
    callers.detach(&server).iter().for_each(is_recorded);
    inside.tell("list");
    let listed = fs::read_to_string(inside.told.join("listed")).unwrap();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let outcomes: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["closed"; 4], "{listed}");
    no_halves();
}

#[test]
fn where_records_may_not_be_written_they_wait_until_they_may() {
    let world = World::new();
    let Some(inside) = Inside::of(&world) else { return };
    let before = "mkdir .ai; mount --bind .ai .ai; mount -o remount,ro,bind .ai";
    let server = inside.serve(before, &[("mend", "mount -o remount,rw,bind .ai")]);
    let mut callers = Callers::are_recorded(&server);
    callers.detach(&server).iter().for_each(is_recorded);
    answers_all_the_same(&server);
    assert!(world.record_files().is_empty());
    assert_eq!((world.logs("ended").len(), world.logs("bad").len()), (2, 0));
    inside.tell("mend");
    // Whoever comes next publishes them, and a server that ends is somebody.
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    assert_eq!(world.record_files().len(), 2, "a server that ends publishes what waited for it");
    two_closed_records(&world);
}

#[test]
fn a_link_out_of_the_repository_is_not_followed_by_a_server_either() {
    let world = World::new();
    let outside = world.folder().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, world.path(".ai")).unwrap();
    let server = world.serve(&[]);
    let mut callers = Callers::are_recorded(&server);
    callers.detach(&server).iter().for_each(is_recorded);
    answers_all_the_same(&server);
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "a link was followed out of the repository");
    assert_eq!((world.logs("ended").len(), world.logs("bad").len()), (2, 0), "they wait");
    fs::remove_file(world.path(".ai")).unwrap();
    two_closed_records(&world);
}

#[test]
fn without_git_a_sitting_is_recorded_and_what_git_could_say_is_null() {
    let world = World::new();
    let mut command = world.majordomus(&["serve", "--port", "0"]);
    command.env("PATH", world.folder().join("nothing"));
    let server = Server::start(&mut command);
    let mut callers = Callers::are_recorded(&server);
    world.commit("more.txt", "More");
    callers.detach(&server).iter().for_each(is_recorded);
    answers_all_the_same(&server);
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    two_closed_records(&world);
    for record in world.records() {
        assert!(record["commits"].is_null() && record["changed_files"].is_null(), "{record:?}");
        assert_eq!(record.text("branch"), "main");
    }
}
