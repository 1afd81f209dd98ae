//! Starting an episode, joining one, and showing that its client is at work.

use std::path::Path;
use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;

use crate::append::{ATTEMPTS, Durable, Part, folder_of, millis, random, read};
use crate::clock::{ROUNDING, Stamp};
use crate::ending::is_of;
use crate::holder::Holder;
use crate::line::{Kind, Opened, Witness};
use crate::log::Log;
use crate::state;
use crate::store::{Appender, Silence, Store, StoreError};
use crate::witnessed::ClientProcess;

/// Who joins an episode.
#[derive(Clone, Copy, Default)]
pub struct Joining<'a> {
    /// The connection's number in its process and the process's holder file; none for hooks.
    pub connection: Option<(&'a Holder, u64)>,
    /// What the client says it is.
    pub client: Option<&'a str>,
    /// What the provider says it was caused by.
    pub source: Option<&'a str>,
    /// Whether this is a mark inside a running episode rather than a client that came back.
    pub is_mark: bool,
    /// Whether the provider says that it resumes an earlier session.
    pub is_resume: bool,
    /// The mark that came where nothing was open.
    pub by_mark: Option<Kind>,
    /// The client's process, where a hook could tell.
    pub client_process: Option<&'a ClientProcess>,
    /// The hash of the handle that was minted for this attachment.
    pub handle: Option<&'a str>,
    /// Whether this is whom an earlier server knew, so that it is no further attachment.
    pub again: bool,
    /// The SHA-256 of the connection's own id, where its transport outlives a server; without a handle it is by this that an
    /// earlier server knew it.
    pub carrier: Option<&'a str>,
    /// Whether it was taken from another connection of this process that still held it.
    pub took_over: bool,
    /// Whether it is a connection that asks once more for what its process believes it has: where that is so, nothing is
    /// written.
    pub repeated: bool,
    /// How long ago the client showed itself, where that could not be written at once.
    pub ago: Duration,
    /// How long ago it was first asked for, where this is tried again: whoever was heard at another process since keeps
    /// what it has.
    pub asked_ago: Duration,
}

/// Whose an open episode is, as its log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That connection's: nobody has joined since.
    Its,
    /// A hook joined last, or another connection of the same process, which knows its own better.
    Beside,
    /// That of a connection to another process; or it is over.
    Others,
}

/// What became of a start.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The session's id.
    pub session_id: String,
    /// When it began, in milliseconds since the epoch.
    pub opened_ms: i64,
    /// How often a client has attached, this time included.
    pub attachments: u32,
    /// Whether it was there before.
    pub kept: bool,
    /// Where HEAD stood at the start.
    pub head: Option<String>,
    /// Whether it was the connection's already, and nothing was written.
    pub unchanged: bool,
    /// Sessions that ended on the way and wait for their records.
    pub ended: Vec<String>,
}

/// What became of a mark.
#[derive(Clone, Debug)]
pub enum Marked {
    /// It stands in this episode, or began it.
    In(Joined),
    /// The session has just ended, and this came too late to matter.
    JustEnded(String),
}

impl Joining<'_> {
    /// Whether a log shows that this is whom an earlier server knew: by its handle, or since nobody else has joined since.
    fn is_known(&self, log: &Log) -> bool {
        let by_handle = |handle: &str| log.handles.iter().any(|known| known == handle);
        log.start.is_some() && (self.handle.is_some_and(by_handle) || self.is_last_carrier(log))
    }

    /// Whether it came last, whichever server it was at.
    fn is_last_carrier(&self, log: &Log) -> bool {
        self.carrier.is_some() && self.carrier == log.carrier.as_deref()
    }
}

impl Store {
    /// Starts the episode of a key, or joins the one that is open.
    ///
    /// # Errors
    /// [`StoreError`] where nothing could be made durable; then nothing is claimed.
    pub fn start(&self, key: &EpisodeKey, witness: Witness, joining: Joining<'_>) -> Result<Joined, StoreError> {
        self.start_after(key, witness, joining, Before::default())
    }

    fn start_after(
        &self,
        key: &EpisodeKey,
        witness: Witness,
        joining: Joining<'_>,
        mut before: Before,
    ) -> Result<Joined, StoreError> {
        let connection = joining.connection.map(|(holder, number)| format!("{}-{number}", holder.id()));
        let mut roots = self.state.roots();
        for attempt in 0..ATTEMPTS {
            let Some(mut at) = self.open_in(roots, key, !joining.again)? else {
                if joining.again {
                    return Err(StoreError::Gone);
                }
                continue;
            };
            let (log, length) = read(&mut at, Part::Whole)?;
            let now = self.now();
            if self.ended_before(&mut at, &log, length, &now, &mut before)? {
                continue;
            }
            if joining.again && !joining.is_known(&log) {
                return Err(StoreError::Gone);
            }
            let same = connection.is_some() && log.connection == connection;
            if attempt > 0 && !same && joining.is_last_carrier(&log) {
                // While this server was stopped, its client has gone on at another one.
                return Err(StoreError::Gone);
            }
            if let Some(connection) = connection.as_deref().filter(|_| !joining.again)
                && whose(&log, connection) == Whose::Others
                && log.is_heard_since(joining.asked_ago, &now)
            {
                // What was asked for before somebody else came does not take it from them.
                return Err(StoreError::Gone);
            }
            if let Some((holder, _)) = joining.connection
                && let Err(error) = self.hold(holder, &at.root, &now, key)
            {
                if log.start.is_none() {
                    self.take_back(&mut at);
                }
                return Err(error);
            }
            let mut line = self.line(Kind::Start, now.before(log.clamp(joining.ago, &now)), witness)?;
            line.again = joining.again;
            line.handle = joining.handle.map(Into::into);
            line.carrier = joining.carrier.map(Into::into);
            line.after = log.joined_last().filter(|_| joining.carrier.is_some());
            if let (true, Some((stamp, at))) = (line.is_silent(), &log.last_evidence) {
                // Nothing of its client was seen: an end for silence is still counted from, and looks at, what was.
                (line.stamp, line.at, line.redactions) = (stamp.clone(), at.clone(), 0);
            }
            line.connection.clone_from(&connection);
            line.process = joining.client_process.cloned();
            line.grace_ms = connection.is_some().then(|| millis(self.policy.own_grace()));
            line.redacting(|line, redact| {
                line.client = joining.client.map(&mut *redact);
                line.source = joining.source.map(redact);
            });
            if let Some(start) = log.start.as_ref().filter(|_| joining.repeated && same) {
                let joined = joined(&log, start.opened.session_id.clone(), true, before.ended);
                return Ok(Joined { unchanged: true, ..joined });
            }
            if let Some(start) = &log.start {
                // What was written by a call that could not tell so is not written again; whoever was elsewhere
                // meanwhile and comes back over the same connection is younger than that.
                let known = |handle: &str| log.handles.iter().any(|known| known == handle);
                let is_written = log.silent_for(&now).is_some_and(|silent| silent <= joining.ago + ROUNDING);
                if same && is_written && joining.handle.is_none_or(known) {
                    // That call may have failed because it could not make it durable.
                    self.make_durable(&mut at)?;
                    return Ok(joined(&log, start.opened.session_id.clone(), true, before.ended));
                }
                line.kind = if joining.is_mark { Kind::Activity } else { Kind::Attach };
                line.took_over = !joining.is_mark && self.is_taken_over(&log, joining, &now);
            } else {
                let session_id = state::session_id(line.stamp.wall_ms, random()?);
                let resumes = before.resumes.clone();
                let beside_resume = !joining.is_resume && self.resumed_beside(key.provider.as_str(), &line.stamp);
                line.redacting(|line, redact| {
                    let external_id = redact(key.external_id.as_str());
                    let provider = key.provider.as_str().to_owned();
                    let key = state::key_hash(key);
                    let by_mark = joining.by_mark;
                    line.opened =
                        Some(Opened { session_id, key, provider, external_id, resumes, by_mark, beside_resume });
                });
            }
            let is_new = log.start.is_none();
            let appended = match self.append(&mut at, log, length, &line, Durable::WithName) {
                // A folder that takes a name but no content is as good as one that cannot be written.
                Err(error) if is_new => {
                    self.take_back(&mut at);
                    if roots.len() == 1 {
                        return Err(error);
                    }
                    roots = &roots[1..];
                    continue;
                }
                appended => appended?,
            };
            if let Some(log) = appended {
                let start = log.start.as_ref().ok_or(StoreError::Contended(ATTEMPTS))?;
                let session_id = start.opened.session_id.clone();
                let kept = line.opened.as_ref().is_none_or(|opened| opened.session_id != session_id);
                return Ok(joined(&log, session_id, kept, before.ended));
            }
        }
        Err(StoreError::Contended(ATTEMPTS))
    }

    /// Makes what a log holds durable, and its name.
    fn make_durable(&self, at: &mut Appender) -> Result<(), StoreError> {
        at.file.sync().map_err(StoreError::io("cannot write", &at.path))?;
        let folder = folder_of(&at.path);
        self.disk.sync_folder(folder).map_err(StoreError::io("cannot write", folder))
    }

    /// Whether joining takes the episode from a connection that still holds it. Of its own connections a process knows
    /// that better than its file says, which already speaks of the one that joins.
    fn is_taken_over(&self, log: &Log, joining: Joining<'_>, now: &Stamp) -> bool {
        // Also where a server that is stopped still seems to hold it for whom it was.
        if joining.again || joining.is_last_carrier(log) {
            return false;
        }
        match (joining.connection, &log.connection) {
            (Some((holder, _)), Some(connection)) if is_of(connection, holder.id()) => joining.took_over,
            _ => self.judge(log, now) == Silence::Held,
        }
    }

    /// Notes that this process holds the episode: beside its log, or where else that can be written.
    pub(crate) fn hold(&self, holder: &Holder, root: &Path, now: &Stamp, key: &EpisodeKey) -> Result<(), StoreError> {
        let hash = state::key_hash(key);
        let hold = |root: &Path| holder.hold(&*self.disk, root, now, &hash);
        let Err(refused) = hold(root) else { return Ok(()) };
        if self.state.roots().iter().any(|other| other != root && hold(other).is_ok()) {
            return Ok(());
        }
        Err(StoreError::io("cannot stand up in", root)(refused))
    }

    /// Takes a new log away that could not be begun, unless somebody else has begun it meanwhile.
    fn take_back(&self, at: &mut Appender) {
        let aside = at.path.with_extension("aside");
        let named =
            matches!((self.disk.identity(&at.path), at.file.identity()), (Ok(Some(there)), Ok(ours)) if there == ours);
        if named && self.disk.rename(&at.path, &aside).is_ok() {
            // Only now does nobody append to it any more and call that done.
            let begun = read(at, Part::Whole).is_ok_and(|(log, _)| log.start.is_some());
            // What somebody has begun is not removed, whatever stands in its place.
            let _ = if begun { self.disk.rename_new(&aside, &at.path) } else { self.disk.remove(&aside) };
        }
    }

    /// Marks that a hook showed its client at work. Where nothing is open under the key, that is where it begins:
    /// whatever was before, nobody recorded it.
    ///
    /// # Errors
    /// [`StoreError`] where nothing could be made durable.
    pub fn mark(
        &self,
        key: &EpisodeKey,
        kind: Kind,
        witness: Witness,
        source: Option<&str>,
        client_process: Option<&ClientProcess>,
    ) -> Result<Marked, StoreError> {
        let mut before = Before::default();
        for _ in 0..ATTEMPTS {
            let Some(mut at) = self.open_for_append(key, false)? else {
                // Hooks that run at once may arrive in any order; the end that was just recorded includes this.
                if let Some(session_id) = self.just_ended(key) {
                    return Ok(Marked::JustEnded(session_id));
                }
                break;
            };
            let (log, length) = read(&mut at, Part::Ends)?;
            let now = self.now();
            if self.ended_before(&mut at, &log, length, &now, &mut before)? {
                continue;
            }
            if log.start.is_none() {
                break;
            }
            let mut line = self.line(kind, now, witness)?;
            line.redacting(|line, redact| line.source = source.map(redact));
            if let Some(log) = self.append(&mut at, log, length, &line, Durable::Content)? {
                let session_id = log.session_id().unwrap_or_default().to_owned();
                return Ok(Marked::In(joined(&log, session_id, true, before.ended)));
            }
        }
        let joining = Joining {
            source: source.or(Some(kind_word(kind))),
            by_mark: Some(kind),
            client_process,
            ..Joining::default()
        };
        self.start_after(key, witness, joining, before).map(Marked::In)
    }

    /// Notes that a connection's client was at work `ago`, unless the episode is not its; tells whose it is.
    /// Not made durable on its own: a process that is killed leaves it, a loss of power may take it.
    ///
    /// # Errors
    /// [`StoreError`] where it could not be read or written.
    pub fn seen(&self, key: &EpisodeKey, connection: (&str, u64), ago: Duration) -> Result<Whose, StoreError> {
        let Some(mut at) = self.open_for_append(key, false)? else { return self.of_nobody_here() };
        let connection = format!("{}-{}", connection.0, connection.1);
        let (log, whose) = read_whose(&mut at, &connection)?;
        if whose != Whose::Its {
            return Ok(whose);
        }
        let mut line = self.line(Kind::Seen, self.now().before(ago), Witness::Connection)?;
        // Evidence that was written late, by whoever joined last, may be younger than this.
        if log.silent_for(&line.stamp).is_some_and(|since| since > Duration::ZERO) {
            line.connection = Some(connection);
            at.file.append(&line.to_bytes()).map_err(StoreError::io("cannot write", &at.path))?;
        }
        Ok(Whose::Its)
    }

    /// Tells whose the episode of a key is, as a connection sees it.
    ///
    /// # Errors
    /// [`StoreError`] where its log could not be read.
    pub fn whose(&self, key: &EpisodeKey, connection: (&str, u64)) -> Result<Whose, StoreError> {
        let Some(mut at) = self.open_for_append(key, false)? else { return self.of_nobody_here() };
        let (_, whose) = read_whose(&mut at, &format!("{}-{}", connection.0, connection.1))?;
        Ok(whose)
    }

    /// What is to be said of an episode without a log: it is over, unless the checkout itself has gone from here.
    fn of_nobody_here(&self) -> Result<Whose, StoreError> {
        self.demand_checkout()?;
        Ok(Whose::Others)
    }

    /// Puts what stands in the way of joining aside: a log that has ended, or one whose time is over. Tells whether
    /// there was something, so that the caller looks again.
    fn ended_before(
        &self,
        at: &mut Appender,
        log: &Log,
        length: u64,
        now: &Stamp,
        before: &mut Before,
    ) -> Result<bool, StoreError> {
        let Some(start) = &log.start else { return Ok(false) };
        let session_id = start.opened.session_id.clone();
        let retired = if log.end.is_some() {
            self.retire_or_leave(at, log)?;
            true
        } else if let Silence::Over(judged) = self.judge(log, now) {
            let line = self.silence_line(log, judged, now.clone())?;
            if let Some(log) = self.append(at, log.clone(), length, &line, Durable::Content)? {
                self.retire_or_leave(at, &log)?;
            }
            true
        } else {
            false
        };
        if retired {
            if !before.ended.contains(&session_id) {
                before.ended.push(session_id.clone());
            }
            before.resumes = Some(session_id);
        }
        Ok(retired)
    }
}

/// Reads a log to see whose it is: whole, as the last joiner may stand anywhere between its ends.
fn read_whose(at: &mut Appender, connection: &str) -> Result<(Log, Whose), StoreError> {
    let (log, _) = read(at, Part::Whole)?;
    let whose = whose(&log, connection);
    Ok((log, whose))
}

fn whose(log: &Log, connection: &str) -> Whose {
    match log.connection.as_deref() {
        _ if log.start.is_none() || log.end.is_some() => Whose::Others,
        None => Whose::Beside,
        Some(last) if last == connection => Whose::Its,
        Some(last) => {
            let same = connection.rsplit_once('-').is_some_and(|(holder, _)| is_of(last, holder));
            if same { Whose::Beside } else { Whose::Others }
        }
    }
}

/// What was put aside before an episode could be joined.
#[derive(Default)]
struct Before {
    ended: Vec<String>,
    resumes: Option<String>,
}

fn joined(log: &Log, session_id: String, kept: bool, ended: Vec<String>) -> Joined {
    let start = log.start.as_ref();
    Joined {
        session_id,
        opened_ms: start.map_or(0, |start| start.stamp.wall_ms),
        attachments: log.attachments,
        kept,
        unchanged: false,
        head: start.and_then(|start| start.at.head.clone()),
        ended,
    }
}

fn kind_word(kind: Kind) -> &'static str {
    if kind == Kind::Compact { "compact" } else { "activity" }
}
