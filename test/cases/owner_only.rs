//! Nobody but the user who started a server: not over loopback, which every user of a machine reaches, nor its socket.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use majordomus_e2e::{Request, Running, Said, Server, World, initialize, install, majordomus};
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A user who is nobody on any machine.
const ANOTHER: u32 = 61_234;

/// Runs the rest of a command as another user, who is in no group.
const AS_ANOTHER: [&str; 4] = ["--reuid=61234", "--regid=61234", "--clear-groups", "--"];

/// Whether there can be a second user; says why not.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: not run as root, so there is no second user");
    }
    root
}

/// Whether this system tells whose connections are; elsewhere a token stands for that.
fn is_told(world: &World) -> bool {
    let told = !world.state().join("token").exists();
    if !told {
        eprintln!("skipped: this system does not tell whose connections are");
    }
    told
}

fn run(command: &mut Command) -> Said {
    Running::start_with(command.stdin(Stdio::null())).wait()
}

/// A command that another user runs.
fn another(world: &World, program: &Path) -> Command {
    let mut command = world.program("setpriv");
    command.args(AS_ANOTHER).arg(program).current_dir("/");
    command
}

/// What curl prints of an answer: its status, then its body.
fn curl(mut command: Command, address: SocketAddr, target: &str, body: Option<&Value>) -> (u16, String) {
    command.args(["--silent", "--show-error", "--max-time", "20", "--noproxy", "*", "--write-out", "\n%{http_code}"]);
    if let Some(body) = body {
        command.args(["--header", "Content-Type: application/json", "--data", &body.to_string()]);
    }
    let said = run(command.arg(format!("http://{address}{target}")));
    let (body, status) = said.out.rsplit_once('\n').unwrap_or_else(|| panic!("{said:?}"));
    (status.parse().unwrap_or_else(|_| panic!("{said:?}")), body.to_owned())
}

/// Both addresses of a server, as far as this machine has both.
fn addresses(server: &Server) -> Vec<SocketAddr> {
    let port = server.address().port();
    let both = [SocketAddr::from(([127, 0, 0, 1], port)), SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port))];
    both.into_iter().filter(|address| std::net::TcpStream::connect(address).is_ok()).collect()
}

/// Asks in every way and expects to be told who is served and who is not.
fn is_refused(ask: impl Fn() -> Command, server: &Server, names: &[&str]) {
    let attach = json!({ "external_id": "never" });
    let ways = [
        ("/", None),
        ("/api/v1/episodes", None),
        ("/api/v1/server", None),
        ("/docs/", None),
        ("/api/v1/episodes/attach", Some(attach)),
        ("/mcp", None),
        ("/mcp", Some(initialize("2025-06-18"))),
    ];
    for address in addresses(server) {
        for (target, body) in &ways {
            let (status, text) = curl(ask(), address, target, body.as_ref());
            assert_eq!(status, 403, "{address}{target}: {text}");
            let error = &serde_json::from_str::<Value>(&text).expect("a refusal is JSON")["error"];
            let code = if *target == "/mcp" { json!(-32600) } else { json!("forbidden") };
            assert_eq!(error["code"], code, "{error}");
            let said = format!("{} {}", error["message"], error["hint"]);
            assert!(names.iter().all(|name| said.contains(name)), "{said}");
        }
    }
}

/// Nothing of what was refused has happened.
fn untouched(world: &World, server: &Server) {
    assert_eq!(server.episodes()["episodes"], json!([]));
    assert_eq!(server.status()["peers"], 0);
    assert!(world.logs("open").is_empty());
}

#[test]
fn another_user_is_refused_over_both_loopbacks_and_its_own_is_served() {
    let world = World::new();
    let server = world.serve(&[]);
    if !is_root() || !is_told(&world) {
        return;
    }
    let theirs = || another(&world, Path::new("curl"));
    is_refused(theirs, &server, &["for user 0 alone", "of user 61234", "majordomus serve"]);
    untouched(&world, &server);
    for address in addresses(&server) {
        let (status, text) = curl(world.program("curl"), address, "/api/v1/episodes", None);
        assert_eq!(status, 200, "{address}: {text}");
    }
    server.session().ping();
}

#[test]
fn strangers_who_say_nothing_keep_nobody_out() {
    let world = World::new();
    let server = world.serve(&[]);
    if !is_root() || !is_told(&world) {
        return;
    }
    let address = server.address();
    let script =
        format!("for i in $(seq 200); do exec {{fd}}<>/dev/tcp/127.0.0.1/{}; done; echo; read", address.port());
    let mut holds = another(&world, Path::new("bash"));
    let mut holds = Running::start(holds.args(["-c", &script]));
    for _ in 0..50 {
        assert_eq!(server.ask(&Request::get("/api/v1/live")).status, 200);
    }
    holds.feed(b"\n");
    assert_eq!(holds.wait().code, Some(0));
}

/// A server of another user, in a repository and with a binary of their own.
fn of_another() -> (World, Server) {
    let world = World::new();
    let folder = world.folder();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let binary = folder.join("majordomus");
    install(&binary);
    let everything = run(world.program("chown").args(["-R", &format!("{ANOTHER}:{ANOTHER}")]).arg(&folder));
    assert_eq!(everything.code, Some(0), "{everything:?}");
    let mut serve = another(&world, &binary);
    let server = Server::start(serve.args(["serve", "--port", "0"]).current_dir(world.repository()));
    (world, server)
}

#[test]
fn root_is_nobody_to_the_server_of_another_user() {
    if !is_root() {
        return;
    }
    let (world, server) = of_another();
    if !is_told(&world) {
        return;
    }
    is_refused(|| world.program("curl"), &server, &["for user 61234 alone", "of user 0"]);
    let theirs = another(&world, Path::new("curl"));
    let (status, text) = curl(theirs, server.address(), "/api/v1/episodes", None);
    assert_eq!(status, 200, "{text}");
    assert!(world.logs("open").is_empty());
}

#[test]
fn a_call_whose_connection_was_closed_before_the_answer_is_not_taken_for_roots() {
    let world = World::new();
    let server = world.serve(&[]);
    if !is_root() || !is_told(&world) {
        return;
    }
    let body = r#"{"external_id":"stolen"}"#;
    let request = format!(
        "POST /api/v1/episodes/attach HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // The system says of a socket that nobody has open any more that it is root's, and the server is root's.
    let script = "for i in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/$1; printf %s \"$2\" >&3; exec 3>&-; done";
    let mut bash = another(&world, Path::new("bash"));
    // While the server is stopped they are all closed before it accepts any.
    server.signal(Signal::STOP);
    let said = run(bash.args(["-c", script, "bash", &server.address().port().to_string(), &request]));
    server.signal(Signal::CONT);
    assert_eq!(said.code, Some(0), "{said:?}");
    server.session().ping();
    assert_eq!(server.episodes()["episodes"], json!([]));
}

/// Starts a server where the system tells of no user who it is; `None` where there are no namespaces for that.
fn untold(world: &World) -> Option<Server> {
    let probe = run(world.program("unshare").args(["--user", "true"]));
    if probe.code != Some(0) {
        eprintln!("skipped: no user namespaces here: {}", probe.err);
        return None;
    }
    let mut unshare = world.program("unshare");
    unshare.arg("--user").arg(majordomus()).args(["serve", "--port", "0"]);
    Some(Server::start(&mut unshare))
}

/// The folder of sockets of a user without a number. It has the name of another user's folder, who is to find none.
struct Unnumbered;

impl Drop for Unnumbered {
    fn drop(&mut self) {
        let (folder, own) = (Path::new("/tmp/majordomus-65534"), rustix::process::geteuid().as_raw());
        if own != 65_534 && fs::metadata(folder).is_ok_and(|data| data.uid() == own) {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

#[test]
fn where_users_are_not_told_the_token_of_the_file_stands_for_its_reader() {
    let world = World::new();
    let _unnumbered = Unnumbered;
    let Some(server) = untold(&world) else { return };
    let file = world.state().join("token");
    let token = fs::read_to_string(&file).expect("there is a token");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let attach = Request::post("/api/v1/episodes/attach", &json!({ "external_id": "a" }));
    for request in [attach.clone(), Request::post("/mcp", &initialize("2025-06-18")), Request::new("DELETE", "/mcp")] {
        let reply = server.ask(&request);
        assert_eq!(reply.status, 403, "{reply:?}");
        let named = [&*file.to_string_lossy(), "majordomus-token"];
        assert!(named.iter().all(|named| reply.text().contains(named)), "{reply:?}");
        assert_eq!(server.ask(&request.header("majordomus-token", &"0".repeat(32))).status, 403);
    }
    untouched(&world, &server);
    assert_eq!(server.ask(&attach.header("majordomus-token", &token)).status, 200);
    // The command line finds it by itself.
    let said = world.run(&["episodes", "attach", "b"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(server.episodes()["open"], 2);
    let left = server.end(Signal::TERM);
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(!file.exists());
}

/// The socket of a server that runs in the mount namespace of this process, where `/run/user` is its own.
fn socket(world: &World) -> Option<PathBuf> {
    let told = fs::read(world.state().join("server.json")).expect("a server says where it answers");
    let told: Value = serde_json::from_slice(&told).expect("it is JSON");
    let socket = told["socket"].as_str().map(PathBuf::from);
    if socket.is_none() {
        eprintln!("skipped: the server has no socket");
    }
    socket
}

#[test]
fn another_user_does_not_get_to_the_socket_even_where_its_folder_was_widened() {
    const CONNECT: &str = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect(sys.argv[1])
try:
    s.sendall(sys.argv[2].encode() + b'\\n')
    print(s.recv(4096).decode())
except (BrokenPipeError, ConnectionResetError):
    print('hung up')";
    if !is_root() {
        return;
    }
    let world = World::new();
    // A place for sockets that no other test has.
    let script = "mount -t tmpfs -o mode=755 none /run/user && mkdir -m 700 /run/user/0 && exec \"$@\"";
    let mut unshare = world.program("unshare");
    unshare.args(["--mount", "sh", "-c", script, "sh"]).arg(majordomus()).args(["serve", "--port", "0"]);
    let server = Server::start(&mut unshare);
    let Some(socket) = socket(&world) else { return };
    let folder = socket.parent().expect("a socket is in a folder");
    assert_eq!(folder, Path::new("/run/user/0/majordomus"));
    let inside = |program: &str| {
        let mut command = world.program("nsenter");
        command.args(["--mount", "--target", &server.pid().to_string(), "--"]).arg(program);
        command
    };
    let theirs = |arguments: &[&str]| {
        let mut command = inside("setpriv");
        run(command.args(AS_ANOTHER).args(arguments))
    };
    let (socket, folder) = (socket.to_str().expect("it is UTF-8"), folder.to_str().expect("it is UTF-8"));
    assert_ne!(theirs(&["ls", folder]).code, Some(0));
    let python = ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|path| Path::new(path).exists());
    let Some(python) = python else {
        return eprintln!("skipped: no python3 that another user can run");
    };
    let digest = Sha256::digest(world.path(".git").to_str().expect("it is UTF-8"));
    let checkout: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let probe = json!({
        "majordomus": "probe", "format": 1, "version": env!("CARGO_PKG_VERSION"), "checkout": checkout,
        "connection": "0".repeat(32), "pid": std::process::id(),
    });
    let ask = ["-c", CONNECT, socket, &probe.to_string()];
    let as_theirs = || theirs(&[&[python], &ask[..]].concat());
    let denied = as_theirs();
    assert!(denied.err.contains("PermissionError"), "{denied:?}");
    let own = run(inside(python).args(ask));
    assert!(own.out.contains("\"served\""), "{own:?}");
    for wide in ["/run/user/0", folder, socket] {
        assert_eq!(run(inside("chmod").args(["777", wide])).code, Some(0));
    }
    // Now only the server itself is left to keep others out.
    let stranger = as_theirs();
    assert!(stranger.code == Some(0) && !stranger.out.contains("\"served\""), "{stranger:?}");
}
