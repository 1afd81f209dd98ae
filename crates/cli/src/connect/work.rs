//! Planning for several clients at once, and then writing.

use std::path::PathBuf;

use majordomus_providers::{ConfigFile, Mcp, Provider, Written};

use super::containers::Change;
use super::files::{FileError, Settings};
use super::hooks::Hooks;
use super::ledger::{FileNote, Ledger};
use super::scope::Scope;
use super::servers::{Servers, There};
use super::{binary, clients, difference};

/// What shall be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Our hooks and our server are declared.
    Connect,
    /// Nothing of ours is left.
    Remove,
}

/// What is to be done in one file for one client.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The file, as the person sees it.
    pub(crate) file: String,
    /// What is missing there, or with [`Asked::Remove`] nothing.
    pub(crate) missing: Vec<String>,
    /// What is there and not as it should be.
    pub(crate) stale: Vec<String>,
    /// What is there and should not be.
    pub(crate) over: Vec<String>,
    /// Why nothing can be done, if so.
    pub(crate) refused: Option<String>,
    /// Whether that is because something that is not ours stands under our name: that hinders nothing else.
    is_taken: bool,
}

/// What is to be done for one client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Which.
    pub(crate) provider: &'static Provider,
    /// Where.
    pub(crate) steps: Vec<Step>,
    /// What the person should know of it.
    pub(crate) notes: Vec<String>,
}

/// All that is to be done.
pub(crate) struct Plan<'a> {
    scope: &'a Scope,
    asked: Asked,
    /// For each client, in the order in which they were asked for.
    pub(crate) clients: Vec<Client>,
    files: Vec<Settings>,
    was: Ledger,
    ledger: Ledger,
}

impl Client {
    /// Whether everything is as it should be.
    pub(crate) fn is_done(&self) -> bool {
        self.steps.iter().all(|step| step.refused.is_none() && step.is_nothing())
    }

    /// Whether something was refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.steps.iter().any(|step| step.refused.is_some())
    }
}

impl Step {
    fn new(file: String, changes: Vec<Change>) -> Self {
        let mut step =
            Self { file, missing: Vec::new(), stale: Vec::new(), over: Vec::new(), refused: None, is_taken: false };
        for change in changes {
            match change {
                Change::Added(name) => step.missing.push(name),
                Change::Updated(name) => step.stale.push(name),
                Change::Removed(name) => step.over.push(name),
            }
        }
        step
    }

    fn refused(file: String, why: &impl ToString) -> Self {
        Self { refused: Some(why.to_string()), ..Self::new(file, Vec::new()) }
    }

    /// Whether nothing is to be done.
    pub(crate) fn is_nothing(&self) -> bool {
        self.missing.is_empty() && self.stale.is_empty() && self.over.is_empty()
    }
}

/// Plans, and writes nothing.
///
/// # Errors
/// Where this program has no path that could be declared.
pub(crate) fn plan<'a>(
    scope: &'a Scope,
    asked: Asked,
    providers: &[&'static Provider],
) -> Result<Plan<'a>, binary::BinaryError> {
    let binary = if asked == Asked::Connect { binary::tried()? } else { String::new() };
    let ledger = scope.ledger();
    let mut plan = Plan { scope, asked, clients: Vec::new(), files: Vec::new(), was: ledger.clone(), ledger };
    for provider in providers {
        plan.add(provider, &binary);
    }
    Ok(plan)
}

impl Plan<'_> {
    /// Whether a file or the ledger has to be written.
    fn is_nothing(&self) -> bool {
        self.files.iter().all(|file| !self.changes(file)) && self.was == self.ledger
    }

    /// What changes in the files, for a person.
    pub(crate) fn difference(&self) -> String {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let shown = |file: &Settings| {
            let (before, after) = (file.before.clone().map(text), self.after(file).map(text));
            difference::shown(file.declared, before.as_deref(), after.as_deref())
        };
        self.files.iter().map(shown).collect()
    }

    /// What shall be in a file; `None` where it shall not be there.
    fn after(&self, file: &Settings) -> Option<Vec<u8>> {
        let bytes = file.document.bytes();
        let created = self.was.note(file.declared).is_some_and(|note| note.created);
        let gone = self.asked == Asked::Remove && created && file.document.is_empty();
        let never = file.before.is_none() && bytes.is_empty();
        (!gone && !never).then_some(bytes)
    }

    fn changes(&self, file: &Settings) -> bool {
        self.after(file) != file.before
    }

    /// Plans for one client. What is refused for it leaves all of its files as they are, unless it is only that our name is
    /// taken.
    fn add(&mut self, provider: &'static Provider, binary: &str) {
        let mut client = Client { provider, steps: Vec::new(), notes: Vec::new() };
        let (mut files, mut ledger) = (self.files.clone(), self.ledger.clone());
        let hooks = provider.adapter.and_then(|adapter| Some((adapter, self.file(adapter.files)?)));
        if let Some((adapter, file)) = hooks.filter(|(adapter, _)| !adapter.written.is_empty()) {
            let hooks = Hooks { provider, adapter, at: file.at };
            let search = crate::variables::value("PATH");
            let known = (self.asked == Asked::Connect).then(|| clients::known(provider, search.as_deref()));
            let step = self.edit(&mut files, &mut ledger, file, &mut client.notes, |settings, note| {
                Ok(match &known {
                    Some(known) => {
                        let unknown = |name: &str| !known.untold.iter().any(|untold| untold.name == name);
                        hooks.connect(&mut settings.document, note, binary, &known.written, &unknown)?
                    }
                    None => hooks.remove(&mut settings.document, Some(note).filter(|note| note.is_any()))?,
                })
            });
            client.steps.push(step);
            if let Some(known) = known {
                note_versions(&mut client.notes, provider, &known);
            }
        }
        if let Some((mcp, file)) = provider.mcp.and_then(|mcp| Some((mcp, self.file(mcp.files)?))) {
            let servers = Servers { provider, mcp, at: file.at };
            let others = self.asked == Asked::Remove && self.others_need(provider, file);
            let mut taken = None;
            let step = self.edit(&mut files, &mut ledger, file, &mut client.notes, |settings, note| {
                if self.asked == Asked::Remove {
                    return Ok(servers.remove(
                        &mut settings.document,
                        Some(note).filter(|note| note.is_any()),
                        others,
                    )?);
                }
                if servers.find(&settings.document) == There::Foreign {
                    taken = servers.connect(&mut settings.document.clone(), &mut note.clone(), binary).err();
                    return Ok(Vec::new());
                }
                Ok(servers.connect(&mut settings.document, note, binary)?)
            });
            if let Some(taken) = taken {
                client.steps.push(Step { is_taken: true, ..Step::refused(step.file, &taken) });
            } else if step.refused.is_some() || !client.is_refused() {
                client.steps.push(step);
            }
        } else if provider.mcp.is_some() {
            let whose = if self.scope.is_persons { "a person" } else { "a project" };
            client.notes.push(format!("it has no file for the MCP servers of {whose} that could be written"));
        }
        if client.steps.iter().all(|step| step.refused.is_none() || step.is_taken) {
            (self.files, self.ledger) = (files, ledger);
        } else {
            for step in &mut client.steps {
                *step = Step { refused: step.refused.take(), ..Step::new(std::mem::take(&mut step.file), Vec::new()) };
            }
        }
        self.clients.push(client);
    }

    /// The file of this scope that is written.
    fn file(&self, files: &'static [ConfigFile]) -> Option<&'static ConfigFile> {
        files.iter().find(|file| file.write && file.is_users() == self.scope.is_persons)
    }

    /// Edits a file as it stands in the plan.
    fn edit(
        &self,
        files: &mut Vec<Settings>,
        ledger: &mut Ledger,
        file: &'static ConfigFile,
        notes: &mut Vec<String>,
        edit: impl FnOnce(&mut Settings, &mut FileNote) -> Result<Vec<Change>, FileError>,
    ) -> Step {
        let shown = file.path.to_owned();
        let index = match self.open(files, file) {
            Ok(index) => index,
            Err(error) => return Step::refused(shown, &error),
        };
        let settings = &mut files[index];
        let mut note = self.note(ledger, settings);
        let changes = match edit(settings, &mut note) {
            Ok(changes) => changes,
            Err(error) => return Step::refused(shown, &error),
        };
        if !settings.real.starts_with(&self.scope.base) && !changes.is_empty() {
            let leads = format!("{shown} leads to {}", settings.real.display());
            if !notes.contains(&leads) {
                notes.push(leads);
            }
        }
        ledger.set(file.path, Some(note));
        Step::new(shown, changes)
    }

    /// Finds a file in the plan, or reads it.
    fn open(&self, files: &mut Vec<Settings>, file: &'static ConfigFile) -> Result<usize, FileError> {
        let path = self.scope.path(file).ok_or(FileError::Kind)?;
        let settings = Settings::read(file.path, &path, file.format)?;
        if !self.scope.is_persons && !settings.real.starts_with(&self.scope.base) {
            return Err(FileError::LeadsOut(settings.real));
        }
        if let Some(index) = files.iter().position(|other| other.real == settings.real) {
            return Ok(index);
        }
        files.push(settings);
        Ok(files.len() - 1)
    }

    /// What is noted of a file, or the beginning of that.
    fn note(&self, ledger: &Ledger, settings: &Settings) -> FileNote {
        let old = ledger.note(settings.declared);
        if let Some(old) = old.filter(|_| settings.before.is_some() || self.asked == Asked::Remove) {
            return old.clone();
        }
        let again = old.filter(|old| old.created && !settings.document.is_empty());
        if let Some(again) = again {
            // Another client's turn in the same plan.
            return again.clone();
        }
        let folders = settings
            .folders()
            .iter()
            .filter_map(|folder| Some(folder.strip_prefix(&self.scope.base).unwrap_or(folder).to_str()?.to_owned()));
        let new = FileNote {
            created: settings.before.is_none(),
            folders: folders.collect(),
            ..FileNote::of(settings.declared)
        };
        // Somebody removed the whole file: what others had in it is as gone as it was.
        FileNote { hooks: old.map(|old| old.hooks.clone()).unwrap_or_default(), ..new }
    }

    /// Whether another client that reads the same file of servers is connected, as far as its hooks show.
    fn others_need(&self, provider: &Provider, file: &ConfigFile) -> bool {
        let reads = |other: &&'static Provider| {
            let writes = |mcp: &Mcp| mcp.files.iter().any(|other| other.write && other.path == file.path);
            other.id != provider.id && other.mcp.is_some_and(writes)
        };
        let scope = |persons| Some(self.scope).filter(|scope| scope.is_persons == persons);
        let connected = |other: &'static Provider| {
            super::wiring(other, scope(false), scope(true)).hooks.iter().any(|wired| !wired.ours.is_empty())
        };
        majordomus_providers::all().iter().filter(reads).any(connected)
    }

    /// Writes the plan. What has been written when something fails is done, and noted.
    ///
    /// # Errors
    /// The file, and why it could not be written.
    pub(crate) fn write(&self) -> Result<Vec<String>, (String, FileError)> {
        let mut warnings = Vec::new();
        if self.is_nothing() {
            return Ok(warnings);
        }
        let mut ledger = self.ledger.clone();
        let keep = |ledger: &Ledger, warnings: &mut Vec<String>| {
            if let Err(error) = self.scope.keep(ledger) {
                warnings.push(format!("what was changed could not be noted: {error}"));
            }
        };
        // Noted first, so that nothing is put in that nobody remembers; and taken out before it is forgotten.
        if self.asked == Asked::Connect {
            keep(&ledger, &mut warnings);
        }
        let mut failed = None;
        for file in self.files.iter().filter(|file| self.changes(file)) {
            if failed.is_none() {
                let done = match self.after(file) {
                    Some(_) => file.write(),
                    None => file.delete(&self.made(file)),
                };
                failed = done.err().map(|error| (file.declared.to_owned(), error));
            }
            if failed.is_some() {
                ledger.set(file.declared, self.was.note(file.declared).cloned());
            }
        }
        if self.asked == Asked::Remove || failed.is_some() {
            keep(&ledger, &mut warnings);
        }
        failed.map_or(Ok(warnings), Err)
    }

    /// The folders that were made for a file.
    fn made(&self, file: &Settings) -> Vec<PathBuf> {
        let folders = self.was.note(file.declared).map_or(&[][..], |note| &note.folders);
        folders.iter().map(|folder| self.scope.base.join(folder)).collect()
    }

    /// Takes the lock under which a plan is made and written.
    ///
    /// # Errors
    /// The operating system's; `TimedOut` where another process does not get done.
    pub(crate) fn lock(scope: &Scope) -> std::io::Result<impl Sized + use<>> {
        scope.lock()
    }
}

fn note_versions(notes: &mut Vec<String>, provider: &Provider, known: &clients::Known) {
    let names = |all: &[&'static Written]| {
        let named = all.iter().map(|written| format!("{} (since {})", written.name, written.since.unwrap_or_default()));
        named.collect::<Vec<_>>().join(", ")
    };
    if !known.untold.is_empty() {
        notes.push(format!(
            "the version of {} cannot be told, so it gets no hooks for {}",
            provider.title,
            names(&known.untold)
        ));
    }
    if !known.unknown.is_empty() {
        notes.push(format!("the installed version does not know {}", names(&known.unknown)));
    }
}
