//! How the hooks of a client stand: what its settings say now, what was put into them, and what was seen firing.
//!
//! Settings only promise. What counts is that a hook was seen firing here, and that what was put there is still there.

use std::path::{Path, PathBuf};

use majordomus_providers::{Adapter, Provider, Written};
use majordomus_records::clock::{Stamp, rfc3339};
use majordomus_records::text::visible;
use majordomus_records::{Checkout, Store};
use rustix::fs::{Access, access};

use crate::connect::{Declared, Scope, Wired, Wiring, wiring};

/// Where settings are looked for.
pub(super) struct Scopes {
    project: Option<Scope>,
    person: Option<Scope>,
}

impl Scopes {
    pub(super) fn of(checkout: &Checkout) -> Self {
        Self { project: Scope::project(checkout.clone()), person: Scope::person() }
    }

    /// How a client's settings stand here.
    pub(super) fn wiring(&self, provider: &'static Provider) -> Wiring {
        wiring(provider, self.project.as_ref(), self.person.as_ref())
    }
}

/// How the hooks of one client stand.
pub(super) struct Standing {
    provider: &'static Provider,
    adapter: &'static Adapter,
    /// Every file that may declare them.
    pub(super) files: Vec<Wired>,
    /// The files of others that it runs too and that declare something.
    carriers: Vec<(&'static Provider, &'static str)>,
    /// When one was last seen firing here.
    pub(super) fired: Option<Stamp>,
    /// The last end that was seen here, and its reason.
    ended: Option<(Stamp, String)>,
}

/// That somebody else has changed what was put into settings.
pub(super) struct Overwritten {
    /// Which hooks, and in which files.
    pub(super) what: String,
    /// What to run.
    pub(super) hint: String,
}

impl Standing {
    pub(super) fn find(
        provider: &'static Provider,
        adapter: &'static Adapter,
        hooks: Vec<Wired>,
        scopes: &Scopes,
        store: &Store,
    ) -> Self {
        let runs = |other: &&Provider| other.adapter.is_some_and(|adapter| adapter.also_read_by.contains(&provider.id));
        let files = |other: &'static Provider| {
            let files = scopes.wiring(other).hooks.into_iter();
            files.filter(|file| file.ours.iter().any(is_live)).map(move |file| (other, file.path))
        };
        let carriers = majordomus_providers::all().iter().filter(runs).flat_map(files).collect();
        let (fired, ended) = (store.last_fired(provider.id), store.last_end_seen(provider.id));
        Self { provider, adapter, files: hooks, carriers, fired, ended }
    }

    /// The state, in a word of DESIGN's table, and why.
    pub(super) fn state(&self) -> (&'static str, String) {
        let live = self.live();
        let fired = self.fired.as_ref().map(|at| format!("last seen firing at {}", rfc3339(at.wall_ms)));
        let looked = || format!("looked in {}", paths(self.adapter.files.iter().map(|file| file.path)));
        if let Some(Overwritten { what, hint }) = self.overwritten() {
            let overwritten = format!("overwritten by somebody else since; {hint} (gone or changed: {what})");
            return ("unconfigured", and(&[Some(overwritten), fired]));
        }
        if let Some((file, program)) = self.dead().filter(|_| live.is_empty()) {
            let gone = format!("{file} runs {}, which does not exist any more; {}", visible(program), self.hint(file));
            return ("unconfigured", and(&[Some(gone), fired]));
        }
        if live.is_empty() && self.carriers.is_empty() {
            let trouble = self.troubles().next().map(|(path, why)| format!("{path} cannot be read: {}", visible(why)));
            return (
                "unconfigured",
                match (trouble, fired) {
                    (Some(trouble), fired) => and(&[Some(trouble), fired]),
                    (None, Some(fired)) => format!("{fired}, but no settings file names it now; {}", looked()),
                    (None, None) => format!("no settings file names it; {}", looked()),
                },
            );
        }
        let declared = Some(self.declared());
        let dead = self.dead().map(|(file, program)| {
            format!("{file} also runs {}, which does not exist any more; {}", visible(program), self.hint(file))
        });
        match fired {
            None => {
                let trust = self.adapter.trust.map(|trust| trust.trim_end_matches('.').to_owned());
                let never = Some("never seen firing".to_owned());
                (
                    "wired",
                    and(&[declared.zip(never).map(|(declared, never)| format!("{declared}, {never}")), trust, dead]),
                )
            }
            Some(_) => ("verified", and(&[fired, self.last_end(), declared, dead])),
        }
    }

    /// What was put into settings and is not there any more, if so.
    pub(super) fn overwritten(&self) -> Option<Overwritten> {
        let gone: Vec<(&str, Vec<&str>)> = self.gone().filter(|(_, events)| !events.is_empty()).collect();
        let (first, _) = gone.first()?;
        let what = gone.iter().map(|(path, events)| format!("{} in {path}", paths(events.iter().copied())));
        Some(Overwritten { what: what.collect::<Vec<_>>().join(", "), hint: self.hint(first) })
    }

    /// What was put into each file and is gone from it, or reports something else, unless another file declares it.
    fn gone(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let live = self.live();
        self.files.iter().filter(|file| file.was_declared).map(move |file| {
            let changed = file.ours.iter().filter(|ours| !self.reports(ours)).map(|ours| ours.name.as_str());
            let events = file.gone.iter().map(String::as_str).chain(changed);
            let events = events.filter(|event| live.iter().all(|(_, declared)| declared.name != *event)).collect();
            (file.path, events)
        })
    }

    /// Whether a line reports what the event that it stands under is to report.
    fn reports(&self, ours: &Declared) -> bool {
        let written = self.adapter.written.iter().find(|written| written.name == ours.name);
        written.is_none_or(|written| ours.event == Some(written.event))
    }

    /// What is declared and can run, with its file.
    fn live(&self) -> Vec<(&'static str, &Declared)> {
        let all = self.files.iter().flat_map(|file| file.ours.iter().map(|ours| (file.path, ours)));
        all.filter(|(_, ours)| is_live(ours) && self.reports(ours)).collect()
    }

    /// The first program that is named and does not exist, with its file.
    fn dead(&self) -> Option<(&'static str, &str)> {
        let all = self.files.iter().flat_map(|file| file.ours.iter().map(|ours| (file.path, ours)));
        all.filter(|(_, ours)| !is_live(ours)).map(|(path, ours)| (path, ours.program.as_str())).next()
    }

    /// The files that cannot be read, and why.
    pub(super) fn troubles(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.files.iter().filter_map(|file| file.trouble.as_deref().map(|why| (file.path, why)))
    }

    /// The hooks that no file declares. One that not every version knows may be left out on purpose.
    pub(super) fn missing(&self) -> Vec<&'static Written> {
        let live = self.live();
        let is_there = |written: &Written| live.iter().any(|(_, ours)| ours.name == written.name);
        self.adapter.written.iter().filter(|written| !is_there(written)).collect()
    }

    fn declared(&self) -> String {
        let mut files: Vec<&str> = self.live().iter().map(|(path, _)| *path).collect();
        files.dedup();
        if files.is_empty() {
            let carriers =
                self.carriers.iter().map(|(other, path)| format!("what {path} declares for {}", other.title));
            return format!("it runs {}", carriers.collect::<Vec<_>>().join(" and "));
        }
        let missing = self.missing();
        let missing = missing.iter().map(|written| match written.since {
            None => written.name.to_owned(),
            Some(since) => format!("{} (which versions from {since} on know)", written.name),
        });
        let missing = missing.collect::<Vec<_>>().join(", ");
        let without = if missing.is_empty() { String::new() } else { format!(" without {missing}") };
        format!("declared in {}{without}", paths(files))
    }

    /// The last end that was seen, or that none was.
    pub(super) fn last_end(&self) -> Option<String> {
        if self.adapter.end_events.is_empty() {
            return None;
        }
        Some(match &self.ended {
            Some((at, reason)) => format!("last end seen at {} with reason {}", rfc3339(at.wall_ms), visible(reason)),
            None => "no end seen yet".to_owned(),
        })
    }

    /// What mends a file.
    pub(super) fn hint(&self, file: &str) -> String {
        let global = if file.starts_with("~/") { " --global" } else { "" };
        format!("run majordomus connect {}{global}", self.provider.id)
    }
}

fn paths<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    paths.into_iter().collect::<Vec<_>>().join(", ")
}

fn and(parts: &[Option<String>]) -> String {
    parts.iter().flatten().cloned().collect::<Vec<_>>().join("; ")
}

fn is_live(declared: &Declared) -> bool {
    path_of(&declared.program).is_none_or(|path| is_program(&path))
}

/// Where a program lies that is named by an absolute path or below the home folder. Others depend on who runs them.
pub(super) fn path_of(program: &str) -> Option<PathBuf> {
    let below = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|home| program.strip_prefix(home));
    match below {
        Some(below) => super::folder_variable("HOME").map(|home| home.join(below)),
        None => Some(PathBuf::from(program)).filter(|path| path.is_absolute()),
    }
}

/// Whether there is a file that can be run.
pub(super) fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
