//! `majordomus capture session` as a library function: what the command, the server's driver and a hook all go through.

use std::path::{Path, PathBuf};
use std::time::Duration;

use majordomus_episodes_core::driver::Judged;
use majordomus_episodes_core::{CloseReason, EpisodeKey};
use majordomus_providers::{EpisodeSource, EventKind, HookOutput, Provider, Unreadable, attribute, read};

use crate::checkout::{Checkout, NotInGit};
use crate::clock::rfc3339;
use crate::compose::Composed;
use crate::ending::{EndedAs, Ending, GoesOn, HookEnd, Own};
use crate::holder::Holder;
use crate::joining::{Joined, Joining, Marked};
use crate::line::{EndOutcome, Kind, Witness};
use crate::redact::redact;
use crate::store::{Policy, Store, StoreError};
use crate::text::visible;
use crate::witnessed::ClientProcess;

/// How long the second step may take in the process that made the end durable.
pub const COMPOSE_AT_ONCE: Duration = Duration::from_millis(100);

/// A hook's call, or what stands for one.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The provider's id.
    pub provider: &'a str,
    /// Which event.
    pub kind: EventKind,
    /// The payload, one JSON object.
    pub payload: &'a [u8],
    /// Where the command runs.
    pub cwd: Option<&'a Path>,
    /// Looks up an environment variable that names the provider's project folder.
    pub variable: fn(&str) -> Option<PathBuf>,
    /// How long silence may last.
    pub policy: Policy,
    /// The process that was started as the hook, whose client is to be found; `None` where that is not asked for.
    pub process: Option<u32>,
}

/// What a hook's call comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The line that it reports.
    pub line: String,
    /// What the client's conversation is to be told, where the provider takes that from its hooks.
    pub context: Option<String>,
}

/// Says why a capture recorded nothing.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The provider is not declared.
    #[error("{0} is not a declared provider; `majordomus capture status` lists them")]
    UnknownProvider(String),
    /// The provider has no sittings to record.
    #[error("{0} offers no episodes")]
    NoEpisodes(&'static str),
    /// The payload cannot be used.
    #[error(transparent)]
    Payload(#[from] Unreadable),
    /// There is no repository to record into.
    #[error(transparent)]
    NotInGit(#[from] NotInGit),
    /// The disk refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CaptureError {
    /// Whether trying again later may succeed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Store(_))
    }
}

/// What a capture did.
#[derive(Clone, Debug)]
pub enum Captured {
    /// An episode was opened or joined.
    Joined(Joined),
    /// An episode was marked.
    Marked {
        /// The session's id.
        session_id: String,
        /// With what.
        kind: EventKind,
    },
    /// A mark came just after its session's end, and changes nothing.
    JustEnded {
        /// The session's id.
        session_id: String,
    },
    /// An episode was ended, or none was open, or it is not over.
    Ended(EndedAs),
}

/// One event of one provider's sitting.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// Who drew the boundary.
    pub provider: &'a Provider,
    /// What happened.
    pub kind: EventKind,
    /// To which episode.
    pub key: &'a EpisodeKey,
    /// What the provider says a start was caused by.
    pub source: Option<&'a str>,
    /// What the provider says an end was caused by.
    pub reason: Option<&'a str>,
    /// The client's process, where a hook could tell.
    pub client_process: Option<&'a ClientProcess>,
    /// The connection, where one stands behind it.
    pub connection: Option<(&'a Holder, u64)>,
    /// What the client says it is.
    pub client: Option<&'a str>,
    /// The hash of the handle that was minted for an attachment.
    pub handle: Option<&'a str>,
    /// Whether it is whom an earlier server knew who attaches.
    pub again: bool,
    /// The hash of the connection's own id, where its transport outlives a server.
    pub carrier: Option<&'a str>,
    /// Whether it was taken from another connection of this process that still held it.
    pub took_over: bool,
    /// Whether a connection asks once more for what its process believes it has.
    pub repeated: bool,
    /// Whether an operator asked for the end.
    pub by_operator: bool,
    /// How long ago this process last saw the client at work, where it knows better than the log.
    pub last_evidence_ago: Option<Duration>,
    /// How long ago a connection's event was first asked for, where it is tried again.
    pub asked_ago: Duration,
    /// By which length this process judged that it is over.
    pub judged: Option<Judged>,
}

impl<'a> Event<'a> {
    /// An event of which nothing is said but what happened to which episode: no connection stands behind it.
    #[must_use]
    pub fn new(provider: &'a Provider, kind: EventKind, key: &'a EpisodeKey) -> Self {
        Self {
            provider,
            kind,
            key,
            source: None,
            reason: None,
            client_process: None,
            connection: None,
            client: None,
            handle: None,
            again: false,
            carrier: None,
            took_over: false,
            repeated: false,
            by_operator: false,
            last_evidence_ago: None,
            asked_ago: Duration::ZERO,
            judged: None,
        }
    }
}

/// Runs a hook's call from its payload to the line that it reports.
#[must_use]
pub fn session(request: &Request<'_>) -> Said {
    take(request).unwrap_or_else(|error| Said { line: not_recorded(&error), context: None })
}

fn take(request: &Request<'_>) -> Result<Said, CaptureError> {
    let provider = majordomus_providers::find(request.provider)
        .ok_or_else(|| CaptureError::UnknownProvider(visible(&redact(request.provider).0)))?;
    if provider.episode == EpisodeSource::None {
        return Err(CaptureError::NoEpisodes(provider.id));
    }
    let text = |name: &str| (request.variable)(name).map(|value| value.to_string_lossy().into_owned());
    let provider = attribute(provider, request.payload, &text);
    let event = read(provider, request.kind, request.payload)?;
    let key = EpisodeKey::new(provider.id, &event.external_id).map_err(StoreError::from)?;
    let store = find_store(provider, event.cwd.as_deref(), request, event.kind, &key)?;
    let by_hook = provider.episode == EpisodeSource::Hooks;
    let own = request.process.filter(|_| by_hook);
    let client_process = own.and_then(|own| ClientProcess::above(own, &store.now().boot));
    let event = Event {
        source: event.source.as_deref(),
        reason: event.reason.as_deref(),
        client_process: client_process.as_ref(),
        ..Event::new(provider, event.kind, &key)
    };
    let captured = record(&store, &event)?;
    if by_hook {
        store.note_fired(provider.id);
        if event.kind == EventKind::End {
            store.note_end_seen(provider.id, event.reason.unwrap_or(UNKNOWN));
        }
    }
    if let Captured::Ended(EndedAs::Ended { session_id, .. }) = &captured
        && compose_at_once(&store, session_id) == Some(Composed::Unused)
    {
        return Ok(Said { line: UNUSED.into(), context: None });
    }
    Ok(Said { line: report(&event, &captured), context: context(&event, &captured) })
}

/// The reason of an end that names none.
const UNKNOWN: &str = "unknown";

/// What a conversation is told whose context was just discarded: what it is recorded as, and what that is good for.
fn context(event: &Event<'_>, captured: &Captured) -> Option<String> {
    let adapter = event.provider.adapter.filter(|adapter| adapter.stdout == HookOutput::Context)?;
    event.source.filter(|source| event.kind == EventKind::Start && adapter.is_mark(source))?;
    let Captured::Joined(joined) = captured else { return None };
    let id = visible(&redact(event.key.external_id.as_str()).0);
    Some(format!(
        "majordomus records this conversation as {id}, session {}. The tool majordomus_session_attach with that \
         external_id shows it among the others at work here; majordomus_session_records lists what earlier sessions left.",
        joined.session_id
    ))
}

/// What is reported of an episode that left no record because nothing happened in it.
pub const UNUSED: &str = "no episode was recorded: nothing happened in it before another session was resumed";

/// The payload's folder if it exists and lies in a checkout, else the provider's project variable, else where the
/// command runs. An agent may go elsewhere during its sitting, so what is not a start belongs to the first of them in
/// which the sitting is open, or was a moment ago.
fn find_store(
    provider: &Provider,
    cwd: Option<&str>,
    request: &Request<'_>,
    kind: EventKind,
    key: &EpisodeKey,
) -> Result<Store, NotInGit> {
    let given = cwd.map(PathBuf::from).filter(|path| path.is_absolute());
    let variables = provider.adapter.map_or(&[][..], |adapter| adapter.project_variables);
    let project = variables.iter().filter_map(|name| (request.variable)(name)).filter(|path| path.is_absolute());
    let here = request.cwd.map(Path::to_path_buf);
    let (mut first, mut nowhere) = (None, None);
    for folder in given.into_iter().chain(project).chain(here) {
        let store = match Checkout::find(&folder) {
            Ok(checkout) => Store::open(checkout, request.policy),
            Err(error) => {
                nowhere = nowhere.or(Some(error));
                continue;
            }
        };
        if kind == EventKind::Start || store.has_log(key) || store.just_ended(key).is_some() {
            return Ok(store);
        }
        first = first.or(Some(store));
    }
    first.ok_or_else(|| nowhere.unwrap_or_else(|| NotInGit(PathBuf::from("."))))
}

/// Records one event: the first, durable step. The record of a session that it ended waits for [`Store::compose`].
///
/// # Errors
/// [`StoreError`] where nothing could be made durable.
pub fn record(store: &Store, event: &Event<'_>) -> Result<Captured, StoreError> {
    let by_connection = event.provider.episode == EpisodeSource::Connection || event.connection.is_some();
    let witness = if by_connection { Witness::Connection } else { Witness::Hook };
    match event.kind {
        EventKind::Start => {
            let marks = event.provider.adapter.map_or(&[][..], |adapter| adapter.mark_sources);
            let joining = Joining {
                by_mark: None,
                connection: event.connection,
                client: event.client,
                source: event.source,
                is_mark: event.source.is_some_and(|source| marks.contains(&source)),
                is_resume: event.source.is_some_and(|source| event.provider.is_switch(source)),
                client_process: event.client_process,
                handle: event.handle,
                again: event.again,
                carrier: event.carrier,
                took_over: event.took_over,
                repeated: event.repeated,
                ago: event.last_evidence_ago.unwrap_or_default(),
                asked_ago: event.asked_ago,
            };
            if joining.is_resume {
                store.note_resumed(event.provider.id);
            }
            Ok(Captured::Joined(store.start(event.key, witness, joining)?))
        }
        EventKind::Compact | EventKind::Activity => {
            let kind = if event.kind == EventKind::Compact { Kind::Compact } else { Kind::Activity };
            Ok(match store.mark(event.key, kind, witness, event.source, event.client_process)? {
                Marked::In(joined) if joined.kept => {
                    Captured::Marked { session_id: joined.session_id, kind: event.kind }
                }
                Marked::In(joined) => Captured::Joined(joined),
                Marked::JustEnded(session_id) => Captured::JustEnded { session_id },
            })
        }
        EventKind::End => Ok(Captured::Ended(store.end(event.key, ending(event, witness))?)),
    }
}

fn ending<'a>(event: &Event<'a>, witness: Witness) -> Ending<'a> {
    let reason = event.reason.unwrap_or(UNKNOWN);
    let holder = event.connection.map(|(holder, _)| holder.id());
    let by_connection = witness == Witness::Connection;
    if let (true, "expired", Some(holder)) = (by_connection, reason, holder) {
        let last_evidence_ago = event.last_evidence_ago.unwrap_or(Duration::MAX);
        return Ending::Silence { own: Some(Own { holder, last_evidence_ago, judged: event.judged }) };
    }
    let by_operator = event.by_operator && reason == CloseReason::Detach.as_str();
    let deliberate = by_operator || event.provider.is_deliberate(reason) || event.provider.is_finished(reason);
    Ending::Said {
        outcome: if deliberate { EndOutcome::Closed } else { EndOutcome::Interrupted },
        reason,
        witness: match (by_connection, reason) {
            _ if by_operator => Witness::Operator,
            (true, "expired") => Witness::Reaper,
            (true, "shutdown") => Witness::Shutdown,
            _ => witness,
        },
        holder,
        last_evidence_ago: event.last_evidence_ago,
        asked_ago: event.asked_ago,
        hook: HookEnd {
            leaves: event.provider.is_switch(reason),
            late: event.provider.late_end && witness == Witness::Hook,
            client: event.client_process,
        },
    }
}

/// Tries the second step within [`COMPOSE_AT_ONCE`]; `None` where it did not fit and is left to whoever comes next.
pub fn compose_at_once(store: &Store, session_id: &str) -> Option<Composed> {
    store.compose(session_id, COMPOSE_AT_ONCE).ok().filter(|composed| *composed != Composed::Later)
}

/// The line that a capture reports: what a hook's stderr ends with and what an episode's `repository` says.
#[must_use]
pub fn report(event: &Event<'_>, captured: &Captured) -> String {
    match captured {
        Captured::Joined(joined) if joined.kept => {
            format!("session {} kept, open since {}", joined.session_id, rfc3339(joined.opened_ms))
        }
        Captured::Joined(joined) => {
            let head = joined.head.as_deref().map_or("none", |head| head.get(..7).unwrap_or(head));
            format!("session {} opened at {} (head {head})", joined.session_id, rfc3339(joined.opened_ms))
        }
        Captured::Marked { session_id, kind } => format!("session {session_id} marked ({})", kind.as_str()),
        Captured::JustEnded { session_id } => {
            format!("no episode was recorded: session {session_id} has just ended, and this came too late for it")
        }
        Captured::Ended(EndedAs::Ended { outcome, record, .. }) => {
            let reason = visible(&redact(event.reason.unwrap_or(UNKNOWN)).0);
            ended_line(*outcome, &reason, record)
        }
        Captured::Ended(EndedAs::NothingOpen { .. }) => {
            let key = visible(&redact(event.key.external_id.as_str()).0);
            format!("no open episode for {} {key}; nothing to close", event.provider.id)
        }
        Captured::Ended(EndedAs::NotOver(left)) => {
            format!("no episode was closed: it is not over for another {} s", left.as_secs())
        }
        Captured::Ended(EndedAs::GoesOn { session_id, because }) => match because {
            GoesOn::Left => format!("session {session_id} left open: its client went on in another conversation"),
            GoesOn::Shared => format!("session {session_id} kept: another process of its client is still in it"),
            GoesOn::Hooks => format!("session {session_id} left open: the client's own hooks end it"),
        },
        Captured::Ended(EndedAs::HeldElsewhere) => "no episode was closed: another connection holds it".into(),
    }
}

/// What is reported of an episode that has ended.
#[must_use]
pub fn ended_line(outcome: EndOutcome, reason: &str, record: &str) -> String {
    format!("episode closed ({}, reason {reason}) into {record}", outcome.as_str())
}

/// The line that says why nothing was recorded.
#[must_use]
pub fn not_recorded(error: &CaptureError) -> String {
    let mut text = format!("no episode was recorded: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    visible(&redact(&text).0)
}
