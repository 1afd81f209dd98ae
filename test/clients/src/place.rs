//! Where one run happens: a repository, a home and what was noted, in one folder.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use majordomus_e2e::now_ms;
use serde_json::{Value, json};

/// One run's folder.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    /// The run in a folder that is there already.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// Makes a run's folder, with a repository of one commit and the programs that run in it.
    pub(crate) fn make(root: &Path, majordomus: &Path) -> anyhow::Result<Self> {
        let place = Self::at(root);
        for folder in [place.home(), place.work(), place.tmp(), place.bin()] {
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        fs::copy(majordomus, place.bin().join("majordomus"))?;
        fs::copy(std::env::current_exe()?, place.own())?;
        place.put(&place.work().join("README.md"), "A throwaway repository.\n")?;
        place.git(&["init", "--quiet", "--initial-branch=main"])?;
        place.commit("Begin")?;
        Ok(place)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// This program, as it is run inside.
    pub(crate) fn own(&self) -> PathBuf {
        self.bin().join("majordomus-clients")
    }

    /// What the service was asked.
    pub(crate) fn model(&self) -> PathBuf {
        self.root.join("model.jsonl")
    }

    /// What hooks of our own were given.
    pub(crate) fn witness(&self) -> PathBuf {
        self.root.join("witness.jsonl")
    }

    /// The command of a hook of our own.
    pub(crate) fn witness_command(&self, event: &str) -> String {
        format!("{} witness {} {event}", self.own().display(), self.witness().display())
    }

    /// What was done to the client, and when.
    pub(crate) fn marks(&self) -> PathBuf {
        self.root.join("marks.jsonl")
    }

    pub(crate) fn mark(&self, what: &str, more: &Value) -> anyhow::Result<()> {
        note(&self.marks(), &json!({"at_ms": now_ms(), "what": what, "more": more}))
    }

    /// Writes a file and makes the folders above it.
    pub(crate) fn put(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(crate) fn put_json(&self, path: &Path, value: &Value) -> anyhow::Result<()> {
        self.put(path, &format!("{value:#}\n"))
    }

    /// Prepares a program that knows of nothing outside the run but where programs are.
    pub(crate) fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment()).current_dir(self.work()).stdin(Stdio::null());
        command
    }

    /// The environment that everything in the run has.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", self.bin().display());
        let own = [
            ("HOME", self.home().display().to_string()),
            ("PATH", path),
            ("LANG", "C.UTF-8".into()),
            ("SHELL", "/bin/sh".into()),
            ("TERM", "xterm-256color".into()),
            ("TMPDIR", "/tmp".into()),
            ("USER", "somebody".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ];
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn git(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut git = self.program(Path::new("git"));
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@example.org");
        }
        let output = git.args(arguments).output().context("git cannot be run")?;
        ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Commits all that is there.
    pub(crate) fn commit(&self, subject: &str) -> anyhow::Result<()> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", subject])
    }

    /// Runs majordomus in the repository, outside of any client, and returns its standard output.
    pub(crate) fn majordomus(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.program(&self.bin().join("majordomus"));
        let output = command.env("TMPDIR", self.tmp()).args(arguments).output()?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "majordomus {}: {err}{out}", arguments.join(" "));
        Ok(out.into_owned())
    }
}

/// Appends one line to a log that several processes write, in one write.
pub(crate) fn note(path: &Path, value: &Value) -> anyhow::Result<()> {
    let mut file: File = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(file.write_all(format!("{value}\n").as_bytes())?)
}

/// Reads such a log; a log that is not there yet is empty.
pub(crate) fn noted(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
