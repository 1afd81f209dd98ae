//! `bin/majordomus-mcp`: builds where sources are newer, then becomes the server. In a checkout that only looks like one.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use majordomus_e2e::{Running, Said, World, files, root};

/// A program that says what it was called with.
const BINARY: &str = "#!/bin/sh\necho \"binary: $* in $(pwd)\"\n";
/// A cargo that says that it builds, on both its outputs, and puts that program where it belongs.
const CARGO: &str = "#!/bin/sh
echo \"cargo: $*\"; echo 'cargo: errors' >&2
[ -z \"$CARGO_FAILS\" ] || exit 101
[ \"$(cat)\" = '' ] || exit 102
mkdir -p \"$CARGO_TARGET_DIR/release\" && cp \"$BINARY\" \"$CARGO_TARGET_DIR/release/majordomus\"\n";

struct Pretended {
    world: World,
    checkout: PathBuf,
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    fs::write(path, text).expect("a script can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a script can be made to run");
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let file = File::options().write(true).open(path);
    file.and_then(|file| file.set_modified(time)).expect("a time can be set");
}

impl Pretended {
    fn new() -> Self {
        let world = World::plain();
        let checkout = world.folder().join("a checkout ü");
        fs::create_dir_all(checkout.join("bin")).expect("a folder can be made");
        fs::copy(root().join("bin/majordomus-mcp"), checkout.join("bin/majordomus-mcp"))
            .expect("the launcher is there");
        let sources =
            ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "crates/cli/src/main.rs", "share/providers.yaml"];
        for source in sources {
            script(&checkout.join(source), "");
            age(&checkout.join(source), 1000);
        }
        script(&world.folder().join("tools/cargo"), CARGO);
        script(&world.folder().join("tools/binary"), BINARY);
        Self { world, checkout }
    }

    /// Puts a binary in place that is so many seconds old.
    fn binary(&self, target: &Path, seconds: u64) {
        script(&target.join("release/majordomus"), BINARY);
        age(&target.join("release/majordomus"), seconds);
    }

    fn target(&self) -> PathBuf {
        self.checkout.join("target")
    }

    /// Runs a launcher in the world's work folder.
    fn run(&self, launcher: &Path, environment: &[(&str, &str)]) -> Said {
        let tools = self.world.folder().join("tools");
        let mut command = self.world.program(launcher);
        command.args(["--http-port", "0", "two words"]);
        command.env("PATH", format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default()));
        command.env("BINARY", tools.join("binary")).envs(environment.iter().copied());
        Running::start_with(&mut command).wait()
    }

    fn launcher(&self) -> PathBuf {
        self.checkout.join("bin/majordomus-mcp")
    }

    fn ran(&self) -> String {
        format!("binary: mcp --http-port 0 two words in {}\n", self.world.repository().display())
    }
}

#[test]
fn a_fresh_binary_is_run_where_the_client_started_it_and_nothing_is_built_or_said() {
    let pretended = Pretended::new();
    pretended.binary(&pretended.target(), 10);
    let before = files(&pretended.checkout, &[]);
    let said = pretended.run(&pretended.launcher(), &[]);
    assert_eq!((said.code, said.out, said.err.as_str()), (Some(0), pretended.ran(), ""));
    assert_eq!(files(&pretended.checkout, &[]), before);
}

#[test]
fn a_launcher_is_found_through_links_of_every_kind() {
    let pretended = Pretended::new();
    pretended.binary(&pretended.target(), 10);
    let folder = pretended.world.folder();
    symlink(pretended.launcher(), folder.join("absolute")).unwrap();
    symlink("absolute", folder.join("to a link")).unwrap();
    symlink("a checkout ü/bin/majordomus-mcp", folder.join("relative")).unwrap();
    symlink(&pretended.checkout, folder.join("linked checkout")).unwrap();
    for link in ["absolute", "to a link", "relative", "linked checkout/bin/majordomus-mcp"] {
        let said = pretended.run(&folder.join(link), &[]);
        assert_eq!((said.code, said.out, said.err.as_str()), (Some(0), pretended.ran(), ""), "{link}");
    }
}

#[test]
fn a_missing_binary_is_built_with_what_cargo_says_on_standard_error() {
    let pretended = Pretended::new();
    let said = pretended.run(&pretended.launcher(), &[]);
    assert_eq!((said.code, said.out), (Some(0), pretended.ran()));
    assert!(said.err.contains("cargo: build") && said.err.contains("cargo: errors"), "{}", said.err);
    assert!(pretended.target().join("release/majordomus").is_file());
    let said = pretended.run(&pretended.launcher(), &[]);
    assert_eq!((said.code, said.out, said.err.as_str()), (Some(0), pretended.ran(), ""), "once");
}

#[test]
fn a_source_that_is_newer_than_the_binary_is_built_once() {
    let sources = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "crates/cli/src/main.rs", "share/providers.yaml"];
    for source in sources {
        let pretended = Pretended::new();
        pretended.binary(&pretended.target(), 100);
        age(&pretended.checkout.join(source), 50);
        let said = pretended.run(&pretended.launcher(), &[]);
        assert_eq!((said.code, said.out), (Some(0), pretended.ran()), "{source}");
        assert!(said.err.contains("cargo: build"), "{source}: {}", said.err);
        assert_eq!(pretended.run(&pretended.launcher(), &[]).err, "", "{source}");
    }
}

#[test]
fn the_target_folder_that_the_environment_names_is_used() {
    let pretended = Pretended::new();
    let elsewhere = pretended.world.folder().join("else where");
    for (named, target) in
        [(elsewhere.to_str().unwrap(), elsewhere.clone()), ("relative ü", pretended.checkout.join("relative ü"))]
    {
        let said = pretended.run(&pretended.launcher(), &[("CARGO_TARGET_DIR", named)]);
        assert_eq!((said.code, said.out), (Some(0), pretended.ran()));
        assert!(said.err.contains("cargo: build"), "{}", said.err);
        assert!(target.join("release/majordomus").is_file(), "{}", target.display());
        let said = pretended.run(&pretended.launcher(), &[("CARGO_TARGET_DIR", named)]);
        assert_eq!((said.code, said.out, said.err.as_str()), (Some(0), pretended.ran(), ""));
    }
    assert!(!pretended.target().exists());
}

#[test]
fn a_build_that_fails_leaves_the_old_binary_in_use_and_says_so() {
    let pretended = Pretended::new();
    let failing = [("CARGO_FAILS", "1")];
    let said = pretended.run(&pretended.launcher(), &failing);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "without a binary there is nothing to run");
    assert!(said.err.contains("cannot be built"), "{}", said.err);

    pretended.binary(&pretended.target(), 100);
    age(&pretended.checkout.join("Cargo.toml"), 50);
    let said = pretended.run(&pretended.launcher(), &failing);
    assert_eq!((said.code, said.out), (Some(0), pretended.ran()));
    assert!(said.err.contains("cannot be built"), "{}", said.err);
}
