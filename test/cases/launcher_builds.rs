//! `bin/majordomus-mcp`: what it builds and says again. In a checkout that only looks like one, with a cargo that is told
//! what to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use majordomus_e2e::{Running, Said, World, executable, root};

const BINARY: &str = "#!/bin/sh\necho \"binary: $*\"\n";
/// Says that it builds, does as `$DURING` says, and fails or puts a binary in place.
const CARGO: &str = "#!/bin/sh
echo 'cargo: build'
eval \"$DURING\"
[ -z \"$FAILS\" ] || exit 101
mkdir -p \"$CARGO_TARGET_DIR/release\" && cp \"$BINARY\" \"$CARGO_TARGET_DIR/release/majordomus\"\n";

struct Pretended {
    world: World,
    checkout: PathBuf,
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let file = fs::File::options().write(true).open(path);
    file.and_then(|file| file.set_modified(time)).expect("a time can be set");
}

const SOURCE: &str = "crates/cli/src/main.rs";

impl Pretended {
    fn new() -> Self {
        let world = World::plain();
        let checkout = world.folder().join("a checkout ü");
        fs::create_dir_all(checkout.join("bin")).expect("a folder can be made");
        fs::copy(root().join("bin/majordomus-mcp"), checkout.join("bin/majordomus-mcp"))
            .expect("the launcher is there");
        for source in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", SOURCE, "share/providers.yaml"] {
            executable(&checkout.join(source), "");
            age(&checkout.join(source), 1000);
        }
        executable(&world.folder().join("tools/cargo"), CARGO);
        executable(&world.folder().join("tools/binary"), BINARY);
        Self { world, checkout }
    }

    /// Prepares a program that finds the pretended cargo.
    fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let tools = self.world.folder().join("tools");
        let mut command = self.world.program(program);
        command.env("PATH", format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default()));
        command.env("BINARY", tools.join("binary"));
        command
    }

    fn run(&self, environment: &[(&str, &str)]) -> Said {
        let mut launcher = self.program(self.checkout.join("bin/majordomus-mcp"));
        Running::start_with(launcher.envs(environment.iter().copied())).wait()
    }
}

/// Whether it built.
fn built(said: &Said) -> bool {
    said.err.contains("cargo: build")
}

const RAN: &str = "binary: mcp\n";

#[test]
fn a_build_that_fails_is_tried_and_reported_every_time_until_it_succeeds() {
    let pretended = Pretended::new();
    for _ in 0..2 {
        let said = pretended.run(&[("FAILS", "1")]);
        assert_eq!((said.code, said.out.as_str(), built(&said)), (Some(1), "", true), "{said:?}");
        assert!(said.err.contains("cannot be built"), "{said:?}");
    }
    let binary = pretended.checkout.join("target/release/majordomus");
    executable(&binary, BINARY);
    age(&binary, 100);
    age(&pretended.checkout.join(SOURCE), 50);
    for _ in 0..3 {
        let said = pretended.run(&[("FAILS", "1")]);
        assert_eq!((said.code, said.out.as_str(), built(&said)), (Some(0), RAN, true), "{said:?}");
        assert!(said.err.contains("cannot be built"), "{said:?}");
    }
    let said = pretended.run(&[]);
    assert!(built(&said) && !said.err.contains("cannot be built"), "{said:?}");
    assert_eq!(pretended.run(&[]).err, "");
}

#[test]
fn an_edit_during_a_build_is_built_the_next_time() {
    let pretended = Pretended::new();
    // Until the file system tells the two times apart.
    let during = "touch \"$TMPDIR/began\"; until [ \"$EDITED\" -nt \"$TMPDIR/began\" ]; do touch \"$EDITED\"; done";
    let edited = pretended.checkout.join(SOURCE);
    let said = pretended.run(&[("DURING", during), ("EDITED", edited.to_str().unwrap())]);
    assert_eq!((said.code, said.out.as_str(), built(&said)), (Some(0), RAN, true), "{said:?}");
    let said = pretended.run(&[]);
    assert_eq!((said.code, said.out.as_str(), built(&said)), (Some(0), RAN, true), "{said:?}");
    assert_eq!(pretended.run(&[]).err, "", "once");
}

#[test]
fn nothing_is_left_in_the_folder_for_temporary_files() {
    let pretended = Pretended::new();
    for fails in ["1", ""] {
        pretended.run(&[("FAILS", fails)]);
        assert_eq!(fs::read_dir(pretended.world.temporary()).unwrap().count(), 0, "{fails:?}");
    }
}

#[test]
fn a_cdpath_leads_the_launcher_nowhere_else() {
    let pretended = Pretended::new();
    let decoy = pretended.world.folder().join("decoy");
    fs::create_dir_all(decoy.join("bin")).unwrap();
    for cdpath in [format!("{}:.", decoy.display()), ".".into(), format!(".:{}", decoy.display())] {
        for launcher in ["bin/majordomus-mcp", "./bin/majordomus-mcp"] {
            let mut shell = pretended.program("sh");
            shell.args(["-c", &format!("exec {launcher}")]).current_dir(&pretended.checkout);
            let said = Running::start_with(shell.env("CDPATH", &cdpath)).wait();
            assert_eq!((said.code, said.out.as_str()), (Some(0), RAN), "{cdpath} {launcher}: {said:?}");
        }
    }
    assert!(pretended.checkout.join("target/release/majordomus").is_file());
    assert!(!decoy.join("target").exists());
}
