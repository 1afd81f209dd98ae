//! One run of the suite.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use majordomus_e2e::World;
use serde::Deserialize;

use crate::install::Installed;

/// How long the scenarios of one revision may take; they take seconds.
const BOUND: Duration = Duration::from_secs(120);
/// How long a scenario may take, as the suite is told.
const SCENARIO_MS: &str = "10000";
/// The parts of the path in which the suite keeps what it found: a folder for each scenario.
const RESULTS: (&str, &str) = ("server-", "checks.json");
/// How many bytes of the name of such a folder say when: a hyphen, and a time such as `2026-07-28T00-00-00-000Z`.
const WHEN: usize = 25;

/// The suite, ready to be run.
#[derive(Debug)]
pub(crate) struct Suite {
    installed: Installed,
}

/// What the suite found out.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The checks of every scenario of the revision, scored or not; none where the scenario was not run.
    pub(crate) scenarios: Vec<(String, Vec<Check>)>,
    /// Whether the suite says that all that failed was expected to, of what it scores.
    pub(crate) agrees: bool,
    /// All that it said.
    pub(crate) said: String,
}

/// One thing that a scenario looks at.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Check {
    pub(crate) id: String,
    pub(crate) status: Status,
    #[serde(default, rename = "errorMessage")]
    pub(crate) error: Option<String>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    Success,
    Failure,
    /// Something that should be otherwise; it counts as a failure.
    Warning,
    Info,
    Skipped,
}

impl Status {
    /// Whether something is not as it should be.
    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::Failure | Self::Warning)
    }

    /// Whether it was looked at.
    pub(crate) fn is_known(self) -> bool {
        self.is_bad() || self == Self::Success
    }
}

/// The scenarios of a revision, as the suite lists them.
#[derive(Deserialize)]
struct Requirements {
    server: Vec<String>,
    #[serde(default)]
    not_scored: Vec<NotScored>,
}

#[derive(Deserialize)]
struct NotScored {
    scenario: String,
    leg: String,
}

impl Suite {
    pub(crate) fn new(installed: Installed) -> Self {
        Self { installed }
    }

    /// Runs the scenarios of a revision against a server.
    pub(crate) fn run(&self, world: &World, url: &str, revision: &str, expected: &Path) -> anyhow::Result<Ran> {
        let out = world.folder().join(format!("found-{revision}"));
        fs::create_dir(&out).with_context(|| format!("cannot make {}", out.display()))?;
        let log = out.join("said.txt");
        let file = File::create(&log).context("cannot keep what the suite says")?;
        let mut node = world.program(&self.installed.node);
        node.arg(self.installed.suite.join("dist/index.js")).args(["server", "--url", &format!("{url}/mcp")]);
        node.args(["--requirements", revision, "--timeout", SCENARIO_MS]);
        node.arg("--expected-failures").arg(expected).arg("--output-dir").arg(&out);
        node.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let ended = wait(&mut node.spawn().context("the suite cannot be run")?)?;
        let said = fs::read_to_string(&log).context("what the suite said cannot be read")?;
        let Some(status) = ended else { bail!("the suite takes longer than {BOUND:?}:\n{said}") };
        let mut found = found(&out)?;
        let scenarios = self.scenarios(revision)?.into_iter().map(|name| {
            let checks = found.remove(&name).unwrap_or_default();
            (name, checks)
        });
        Ok(Ran { scenarios: scenarios.collect(), agrees: status.success(), said })
    }

    /// Which scenarios a revision has for servers.
    fn scenarios(&self, revision: &str) -> anyhow::Result<Vec<String>> {
        let path = self.installed.suite.join("requirements").join(revision).with_extension("yaml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let all: Requirements = serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
        let not_scored = all.not_scored.into_iter().filter(|one| one.leg == "server").map(|one| one.scenario);
        Ok(all.server.into_iter().chain(not_scored).collect())
    }
}

/// Waits for the end of a process; `None` where it took too long and was ended.
fn wait(child: &mut Child) -> anyhow::Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > BOUND {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Reads what was found, by scenario.
fn found(out: &Path) -> anyhow::Result<BTreeMap<String, Vec<Check>>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let scenario = name.strip_prefix(RESULTS.0).and_then(|rest| rest.get(..rest.len().checked_sub(WHEN)?));
        let Some(scenario) = scenario else { continue };
        let path = entry.path().join(RESULTS.1);
        // A scenario that could not be run at all leaves an empty folder.
        let text = fs::read_to_string(&path).unwrap_or_else(|_| "[]".into());
        let checks = serde_json::from_str(&text).with_context(|| format!("{name}/{}", RESULTS.1))?;
        all.insert(scenario.to_owned(), checks);
    }
    Ok(all)
}
