//! The form of `share/providers.yaml`, its rules, and the Rust code that it becomes.
//!
//! The build script and the tests share this file. The schema says the same in the language of editors; a test holds the two together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What `share/providers.yaml` holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declaration {
    schema: String,
    sources: BTreeMap<String, Source>,
    providers: Vec<Provider>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    url: Option<String>,
    how: Option<String>,
    asof: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    id: String,
    title: String,
    offers: Offers,
    deliberate: Vec<String>,
    finished: Vec<String>,
    switch: Vec<String>,
    late_end: bool,
    idle_seconds: u64,
    evidence: ProviderEvidence,
    found_by: Option<FoundBy>,
    identity: Option<Identity>,
    mcp: Option<Mcp>,
    signs: Option<Signs>,
    adapter: Option<Adapter>,
    limits: Vec<Evidence>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FoundBy {
    programs: Vec<String>,
    folders: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    client_names: Vec<String>,
    #[serde(deserialize_with = "known_or_null")]
    server_variable: Option<String>,
    #[serde(deserialize_with = "known_or_null")]
    shell_variable: Option<String>,
    meta: Vec<String>,
    evidence: IdentityEvidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IdentityEvidence {
    client_names: Evidence,
    variables: Evidence,
    meta: Evidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mcp {
    files: Vec<ConfigFile>,
    command_key: String,
    members: BTreeMap<String, Value>,
    #[serde(deserialize_with = "known_or_null")]
    approval: Option<String>,
    evidence: McpEvidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct McpEvidence {
    files: Evidence,
    approval: Evidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Offers {
    episode: Episode,
    prompts: Prompts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Episode {
    Hooks,
    Connection,
    None,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Prompts {
    Hook,
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderEvidence {
    episode: Evidence,
    prompts: Evidence,
    ends: Evidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evidence {
    says: String,
    from: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Adapter {
    fields: Fields,
    events: Events,
    mark_sources: Vec<String>,
    compact_triggers: Vec<String>,
    also_read_by: Vec<String>,
    project_variables: Vec<String>,
    stdout: Stdout,
    files: Vec<ConfigFile>,
    entry: HookEntry,
    written: Vec<Written>,
    #[serde(deserialize_with = "known_or_null")]
    trust: Option<String>,
    evidence: AdapterEvidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signs {
    shapes: Vec<Shape>,
    variables: Vec<String>,
    #[serde(deserialize_with = "known_or_null")]
    session_variable: Option<String>,
    evidence: SignsEvidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignsEvidence {
    shapes: Evidence,
    variables: Evidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    present: Vec<String>,
    absent: Vec<String>,
    values: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    path: String,
    format: Format,
    at: Vec<String>,
    write: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Json,
    Toml,
    Yaml,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HookEntry {
    shape: EntryShape,
    command_key: String,
    members: BTreeMap<String, Value>,
    timeout_key: String,
    timeout_unit: TimeUnit,
    timeout_seconds: u32,
    document: BTreeMap<String, Value>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryShape {
    Nested,
    Flat,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TimeUnit {
    Seconds,
    Milliseconds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    event: Event,
    #[serde(deserialize_with = "known_or_null")]
    since: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Event {
    Start,
    End,
    Compact,
    Activity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    session_id: Vec<String>,
    cwd: Vec<String>,
    source: Vec<String>,
    reason: Vec<String>,
    event_name: Vec<String>,
    trigger: Vec<String>,
    subagent: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Events {
    start: Vec<String>,
    end: Vec<String>,
    compact: Vec<String>,
    activity: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stdout {
    None,
    Context,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AdapterEvidence {
    fields: Evidence,
    events: Evidence,
    mark_sources: Evidence,
    compact_triggers: Evidence,
    also_read_by: Evidence,
    project_variables: Evidence,
    stdout: Evidence,
    files: Evidence,
    entry: Evidence,
    written: Evidence,
    trust: Evidence,
}

impl AdapterEvidence {
    /// Each claim under its name.
    fn claims(&self) -> [(&str, &Evidence); 11] {
        [
            ("fields", &self.fields),
            ("events", &self.events),
            ("mark_sources", &self.mark_sources),
            ("compact_triggers", &self.compact_triggers),
            ("also_read_by", &self.also_read_by),
            ("project_variables", &self.project_variables),
            ("stdout", &self.stdout),
            ("files", &self.files),
            ("entry", &self.entry),
            ("written", &self.written),
            ("trust", &self.trust),
        ]
    }
}

/// What is not known is written as null; leaving it out is a mistake.
fn known_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

/// Checks the declaration in `yaml` and returns the Rust code of the static `PROVIDERS`.
///
/// # Errors
/// One line that says where, or names the provider, and what is wrong with it.
pub(crate) fn generate(yaml: &str) -> Result<String, String> {
    let declaration: Declaration = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
    code(&declaration)
}

/// Checks the declaration and returns the Rust code of the static `PROVIDERS`.
///
/// # Errors
/// One line that names the provider and what is wrong with it.
pub(crate) fn code(declaration: &Declaration) -> Result<String, String> {
    check(declaration)?;
    let mut code = String::from("static PROVIDERS: &[Provider] = &[\n");
    for provider in &declaration.providers {
        write_provider(&mut code, provider, &declaration.sources);
    }
    code.push_str("];\n");
    Ok(code)
}

fn check(declaration: &Declaration) -> Result<(), String> {
    if declaration.schema != "majordomus/providers@1" {
        return Err(format!("schema {:?} is not majordomus/providers@1", declaration.schema));
    }
    for (key, source) in &declaration.sources {
        if source.url.is_some() == source.how.is_some() || source.asof.trim().is_empty() {
            return Err(format!("source {key}: give either url or how, and asof"));
        }
    }
    let mut ids = BTreeSet::new();
    let mut variables = BTreeSet::new();
    for provider in &declaration.providers {
        let named = |why| format!("provider {}: {why}", provider.id);
        check_provider(provider, &declaration.sources).map_err(named)?;
        check_readers(provider, &declaration.providers).map_err(named)?;
        if !ids.insert(&provider.id) {
            return Err(named("declared twice".to_owned()));
        }
        if let Some(signs) = &provider.signs
            && let Some(both) =
                signs.variables.iter().chain(&signs.session_variable).find(|name| !variables.insert(*name))
        {
            return Err(named(format!("{both} is a sign of more than this")));
        }
    }
    Ok(())
}

/// Those who load a provider's files are others, and can be told from it.
fn check_readers(provider: &Provider, providers: &[Provider]) -> Result<(), String> {
    let readers = provider.adapter.iter().flat_map(|adapter| &adapter.also_read_by);
    let mut met = BTreeSet::new();
    for id in readers {
        let reader = providers.iter().find(|other| other.id == *id && *id != provider.id);
        let signs = reader.and_then(|reader| reader.signs.as_ref());
        if reader.is_none() || !met.insert(id) {
            return Err(format!("also_read_by {id}, which is no other declared provider, or is named twice"));
        }
        if signs.is_none_or(|signs| signs.shapes.is_empty() && signs.variables.is_empty()) {
            return Err(format!("also_read_by {id}, which has no signs by which to tell it"));
        }
    }
    Ok(())
}

fn check_provider(provider: &Provider, sources: &BTreeMap<String, Source>) -> Result<(), String> {
    if provider.id.is_empty() || !provider.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    {
        return Err("an id is made of a-z, 0-9 and -".to_owned());
    }
    if provider.title.trim().is_empty() || provider.idle_seconds == 0 {
        return Err("give a title, and idle_seconds above 0".to_owned());
    }
    let Provider { deliberate, finished, switch, .. } = provider;
    for (above, first, below, second) in [
        ("deliberate", deliberate, "switch", switch),
        ("deliberate", deliberate, "finished", finished),
        ("finished", finished, "switch", switch),
    ] {
        if let Some(both) = first.iter().find(|reason| second.contains(reason)) {
            return Err(format!("{both} stands under {above} and under {below}"));
        }
    }
    match (provider.offers.episode, &provider.adapter) {
        (Episode::Hooks, Some(adapter)) => check_adapter(adapter, sources)?,
        // Its hooks could be read; nobody has found out yet how.
        (_, None) => {}
        (Episode::Connection | Episode::None, Some(_)) => {
            return Err("only a provider whose offers.episode is hooks has an adapter".to_owned());
        }
    }
    if let Some(Identity { evidence, .. }) = &provider.identity {
        let IdentityEvidence { client_names, variables, meta } = evidence;
        let claims = [("client_names", client_names), ("variables", variables), ("meta", meta)];
        check_evidence("identity.evidence", &claims, sources)?;
    }
    if let Some(signs) = &provider.signs {
        let SignsEvidence { shapes, variables } = &signs.evidence;
        signs.shapes.iter().try_for_each(check_shape)?;
        check_evidence("signs.evidence", &[("shapes", shapes), ("variables", variables)], sources)?;
    }
    if let Some(Mcp { files, evidence: McpEvidence { files: where_, approval }, .. }) = &provider.mcp {
        check_files(files)?;
        check_evidence("mcp.evidence", &[("files", where_), ("approval", approval)], sources)?;
    }
    for limit in &provider.limits {
        check_evidence("limits", &[("says", limit)], sources)?;
    }
    let ProviderEvidence { episode, prompts, ends } = &provider.evidence;
    check_evidence("evidence", &[("episode", episode), ("prompts", prompts), ("ends", ends)], sources)
}

fn check_adapter(adapter: &Adapter, sources: &BTreeMap<String, Source>) -> Result<(), String> {
    let Events { start, end, compact, activity } = &adapter.events;
    if adapter.fields.session_id.is_empty() || start.is_empty() {
        return Err("an adapter needs a name for session_id and an event that starts".to_owned());
    }
    let fields = &adapter.fields;
    let Fields { session_id, cwd, source, reason, event_name, trigger, subagent } = fields;
    let read = [session_id, cwd, source, reason, event_name, trigger, subagent];
    if let Some(prompt) = read.into_iter().flatten().find(|name| name.to_lowercase().contains("prompt")) {
        return Err(format!("{prompt} looks like a prompt, which is never read"));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = [start, end, compact, activity].into_iter().flatten().find(|name| !names.insert(folded(name)))
    {
        return Err(format!("event {twice} is named twice; case, _ and - make no other name"));
    }
    if adapter.entry.timeout_seconds == 0 {
        return Err("an entry's timeout_seconds is above 0".to_owned());
    }
    if adapter.files.iter().any(|file| file.write) == adapter.written.is_empty() {
        return Err("files to write to and hooks to write come together".to_owned());
    }
    let mut hooks = BTreeSet::new();
    if let Some(twice) = adapter.written.iter().find(|written| !hooks.insert(&written.name)) {
        return Err(format!("written {} stands there twice", twice.name));
    }
    for Written { name, event, .. } in &adapter.written {
        let serves = match event {
            Event::Start => start,
            Event::End => end,
            Event::Compact => compact,
            Event::Activity => activity,
        };
        if !serves.contains(name) {
            return Err(format!("written {name} does not serve {event:?}"));
        }
    }
    check_files(&adapter.files)?;
    check_evidence("adapter.evidence", &adapter.evidence.claims(), sources)
}

/// As the reader compares the names of events.
fn folded(name: &str) -> String {
    name.chars().filter(|char| !matches!(char, '_' | '-')).map(|char| char.to_ascii_lowercase()).collect()
}

/// A shape fits some payloads and not all, and asks for no prompt.
fn check_shape(shape: &Shape) -> Result<(), String> {
    let Shape { present, absent, values } = shape;
    let fields = || present.iter().chain(values.keys());
    if fields().next().is_none() {
        return Err("a shape names no field that its payloads have".to_owned());
    }
    if let Some(both) = fields().find(|field| absent.contains(field)) {
        return Err(format!("a shape fits nothing: {both} is both there and absent"));
    }
    if let Some((field, _)) = values.iter().find(|(_, values)| values.is_empty()) {
        return Err(format!("a shape fits nothing: {field} has no value"));
    }
    if let Some(prompt) = fields().chain(absent).find(|name| name.to_lowercase().contains("prompt")) {
        return Err(format!("{prompt} looks like a prompt, which is never read"));
    }
    Ok(())
}

/// At most one file for the project and one for the person is written to.
fn check_files(files: &[ConfigFile]) -> Result<(), String> {
    for user in [false, true] {
        let written = files.iter().filter(|file| file.write && file.path.starts_with("~/") == user).count();
        if written > 1 {
            return Err("two files of one scope are written to".to_owned());
        }
    }
    Ok(())
}

fn check_evidence(at: &str, claims: &[(&str, &Evidence)], sources: &BTreeMap<String, Source>) -> Result<(), String> {
    for (claim, evidence) in claims {
        if evidence.says.trim().is_empty() || evidence.from.is_empty() {
            return Err(format!("{at}.{claim}: say what was found and name a source"));
        }
        if let Some(missing) = evidence.from.iter().find(|key| !sources.contains_key(*key)) {
            return Err(format!("{at}.{claim}: no source {missing}"));
        }
    }
    Ok(())
}

/// The finding and its sources in one line, for people.
fn citation(evidence: &Evidence, sources: &BTreeMap<String, Source>) -> String {
    let named = evidence.from.iter().map(|key| {
        let source = &sources[key];
        let what = source.url.as_ref().or(source.how.as_ref()).map_or("", String::as_str);
        format!("{what}, {}", source.asof)
    });
    format!("{} ({})", evidence.says.trim(), named.collect::<Vec<_>>().join("; "))
}

// `{:?}` of a string, or of a list of strings, is a Rust literal of the same value.
fn write_provider(code: &mut String, provider: &Provider, sources: &BTreeMap<String, Source>) {
    let Provider { id, title, offers, deliberate, finished, switch, late_end, idle_seconds, .. } = provider;
    let Provider { evidence, found_by, identity, mcp, signs, adapter, limits, .. } = provider;
    let (programs, folders) = found_by.as_ref().map_or((&[][..], &[][..]), |by| (&by.programs[..], &by.folders[..]));
    let limits: Vec<String> = limits.iter().map(|limit| citation(limit, sources)).collect();
    let written = writeln!(
        code,
        "Provider {{ id: {id:?}, title: {title:?}, episode: EpisodeSource::{:?}, episode_evidence: {:?}, \
         prompts: PromptSource::{:?}, prompts_evidence: {:?}, ends_evidence: {:?}, deliberate: &{deliberate:?}, \
         finished: &{finished:?}, switch: &{switch:?}, late_end: {late_end}, idle_seconds: {idle_seconds}, \
         programs: &{programs:?}, folders: &{folders:?}, limits: &{limits:?}, identity: {}, mcp: {}, signs: {}, \
         adapter: {} }},",
        offers.episode,
        citation(&evidence.episode, sources),
        offers.prompts,
        citation(&evidence.prompts, sources),
        citation(&evidence.ends, sources),
        optional(identity.as_ref(), |identity| identity_code(identity, sources)),
        optional(mcp.as_ref(), |mcp| mcp_code(mcp, sources)),
        optional(signs.as_ref(), |signs| signs_code(signs, sources)),
        optional(adapter.as_ref(), |adapter| adapter_code(adapter, sources)),
    );
    written.expect("a String takes everything");
}

fn optional<T>(value: Option<T>, code: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "None".to_owned(), |value| format!("Some(&{})", code(value)))
}

fn identity_code(identity: &Identity, sources: &BTreeMap<String, Source>) -> String {
    let Identity { client_names, server_variable, shell_variable, meta, evidence } = identity;
    let IdentityEvidence { client_names: names, variables, meta: in_meta } = evidence;
    let claims = claims(&[("client_names", names), ("variables", variables), ("meta", in_meta)], sources);
    format!(
        "Identity {{ client_names: &{client_names:?}, server_variable: {server_variable:?}, \
         shell_variable: {shell_variable:?}, meta: &{meta:?}, claims: {claims} }}"
    )
}

fn mcp_code(mcp: &Mcp, sources: &BTreeMap<String, Source>) -> String {
    let Mcp { files, command_key, members, approval, evidence: McpEvidence { files: where_, approval: how } } = mcp;
    format!(
        "Mcp {{ files: {}, command_key: {command_key:?}, members: {}, approval: {approval:?}, claims: {} }}",
        files_code(files),
        members_code(members),
        claims(&[("files", where_), ("approval", how)], sources),
    )
}

fn signs_code(signs: &Signs, sources: &BTreeMap<String, Source>) -> String {
    let Signs { shapes, variables, session_variable, evidence } = signs;
    let shapes = shapes.iter().map(|Shape { present, absent, values }| {
        let values = values.iter().map(|(field, values)| format!("({field:?}, &{values:?})"));
        let values = values.collect::<Vec<_>>().join(", ");
        format!("Shape {{ present: &{present:?}, absent: &{absent:?}, values: &[{values}] }}")
    });
    format!(
        "Signs {{ shapes: &[{}], variables: &{variables:?}, session_variable: {session_variable:?}, claims: {} }}",
        shapes.collect::<Vec<_>>().join(", "),
        claims(&[("shapes", &evidence.shapes), ("variables", &evidence.variables)], sources),
    )
}

fn files_code(files: &[ConfigFile]) -> String {
    let files = files.iter().map(|ConfigFile { path, format, at, write }| {
        format!("ConfigFile {{ path: {path:?}, format: Format::{format:?}, at: &{at:?}, write: {write} }}")
    });
    format!("&[{}]", files.collect::<Vec<_>>().join(", "))
}

fn members_code(members: &BTreeMap<String, Value>) -> String {
    let members = members.iter().map(|(key, value)| format!("({key:?}, {:?})", value.to_string()));
    format!("&[{}]", members.collect::<Vec<_>>().join(", "))
}

fn claims(claims: &[(&str, &Evidence)], sources: &BTreeMap<String, Source>) -> String {
    let claims = claims.iter().map(|(about, evidence)| format!("({about:?}, {:?})", citation(evidence, sources)));
    format!("&[{}]", claims.collect::<Vec<_>>().join(", "))
}

fn adapter_code(adapter: &Adapter, sources: &BTreeMap<String, Source>) -> String {
    let Adapter { fields, events, mark_sources, compact_triggers, also_read_by, project_variables, .. } = adapter;
    let Adapter { stdout, files, entry, written, trust, evidence, .. } = adapter;
    let written = written.iter().map(|Written { name, event, since }| {
        format!("Written {{ name: {name:?}, event: EventKind::{event:?}, since: {since:?} }}")
    });
    format!(
        "Adapter {{ session_id: &{:?}, cwd: &{:?}, source: &{:?}, reason: &{:?}, event_name: &{:?}, trigger: &{:?}, \
         subagent: &{:?}, start_events: &{:?}, end_events: &{:?}, compact_events: &{:?}, activity_events: &{:?}, \
         mark_sources: &{mark_sources:?}, compact_triggers: &{compact_triggers:?}, also_read_by: &{also_read_by:?}, \
         project_variables: &{project_variables:?}, stdout: HookOutput::{stdout:?}, files: {}, entry: {}, \
         written: &[{}], trust: {trust:?}, claims: {} }}",
        fields.session_id,
        fields.cwd,
        fields.source,
        fields.reason,
        fields.event_name,
        fields.trigger,
        fields.subagent,
        events.start,
        events.end,
        events.compact,
        events.activity,
        files_code(files),
        entry_code(entry),
        written.collect::<Vec<_>>().join(", "),
        claims(&evidence.claims(), sources),
    )
}

fn entry_code(entry: &HookEntry) -> String {
    let HookEntry { shape, command_key, members, timeout_key, timeout_unit, timeout_seconds, document } = entry;
    format!(
        "HookEntry {{ shape: EntryShape::{shape:?}, command_key: {command_key:?}, members: {}, \
         timeout_key: {timeout_key:?}, timeout_unit: TimeUnit::{timeout_unit:?}, timeout_seconds: {timeout_seconds}, \
         document: {} }}",
        members_code(members),
        members_code(document),
    )
}
