//! The form of `share/providers.yaml`, its rules, and the Rust code that it becomes.
//!
//! The build script and the tests share this file. The schema says the same in the language of editors; a test holds the two together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
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
    switch: Vec<String>,
    idle_seconds: u64,
    evidence: ProviderEvidence,
    adapter: Option<Adapter>,
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
    foreign_fields: Vec<String>,
    events: Events,
    mark_sources: Vec<String>,
    project_variables: Vec<String>,
    configuration: Vec<Configuration>,
    stdout: Stdout,
    evidence: AdapterEvidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    session_id: Vec<String>,
    cwd: Vec<String>,
    source: Vec<String>,
    reason: Vec<String>,
    event_name: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Events {
    start: Vec<String>,
    end: Vec<String>,
    compact: Vec<String>,
    activity: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    path: String,
    root: String,
    events: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stdout {
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AdapterEvidence {
    fields: Evidence,
    foreign_fields: Evidence,
    events: Evidence,
    mark_sources: Evidence,
    project_variables: Evidence,
    configuration: Evidence,
    stdout: Evidence,
}

/// Checks the declaration in `yaml` and returns the Rust code of the static `PROVIDERS`.
///
/// # Errors
/// One line that names the provider and what is wrong with it.
pub(crate) fn generate(yaml: &str) -> Result<String, String> {
    let declaration: Declaration = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
    check(&declaration)?;
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
    for provider in &declaration.providers {
        check_provider(provider, &declaration.sources).map_err(|why| format!("provider {}: {why}", provider.id))?;
        if !ids.insert(&provider.id) {
            return Err(format!("provider {}: declared twice", provider.id));
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
    if let Some(both) = provider.deliberate.iter().find(|reason| provider.switch.contains(reason)) {
        return Err(format!("{both} stands under deliberate and under switch"));
    }
    match (provider.offers.episode, &provider.adapter) {
        (Episode::Hooks, Some(adapter)) => check_adapter(adapter, sources)?,
        (Episode::Connection | Episode::None, None) => {}
        (Episode::Hooks, None) => {
            return Err("offers.episode is hooks, so an adapter must be declared".to_owned());
        }
        (Episode::Connection | Episode::None, Some(_)) => {
            return Err("only a provider whose offers.episode is hooks has an adapter".to_owned());
        }
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
    let read = [&fields.session_id, &fields.cwd, &fields.source, &fields.reason, &fields.event_name];
    if let Some(prompt) = read.into_iter().flatten().find(|name| name.to_lowercase().contains("prompt")) {
        return Err(format!("{prompt} looks like a prompt, which is never read"));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = [start, end, compact, activity].into_iter().flatten().find(|name| !names.insert(*name)) {
        return Err(format!("event {twice} serves two purposes"));
    }
    if let Some(unknown) = adapter.configuration.iter().flat_map(|file| &file.events).find(|name| !names.contains(name))
    {
        return Err(format!("configuration looks for the event {unknown}, which serves no purpose"));
    }
    let evidence = &adapter.evidence;
    let claims = [
        ("fields", &evidence.fields),
        ("foreign_fields", &evidence.foreign_fields),
        ("events", &evidence.events),
        ("mark_sources", &evidence.mark_sources),
        ("project_variables", &evidence.project_variables),
        ("configuration", &evidence.configuration),
        ("stdout", &evidence.stdout),
    ];
    check_evidence("adapter.evidence", &claims, sources)
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
    let Provider { id, title, offers, deliberate, switch, idle_seconds, evidence, adapter } = provider;
    let written = writeln!(
        code,
        "Provider {{ id: {id:?}, title: {title:?}, episode: EpisodeSource::{:?}, episode_evidence: {:?}, \
         prompts: PromptSource::{:?}, prompts_evidence: {:?}, deliberate: &{deliberate:?}, switch: &{switch:?}, \
         idle_seconds: {idle_seconds}, adapter: {} }},",
        offers.episode,
        citation(&evidence.episode, sources),
        offers.prompts,
        citation(&evidence.prompts, sources),
        adapter.as_ref().map_or_else(|| "None".to_owned(), adapter_code),
    );
    written.expect("a String takes everything");
}

fn adapter_code(adapter: &Adapter) -> String {
    let Adapter { fields, foreign_fields, events, mark_sources, project_variables, configuration, stdout, .. } =
        adapter;
    let files = configuration.iter().map(|Configuration { path, root, events }| {
        format!("Configuration {{ path: {path:?}, root: {root:?}, events: &{events:?} }}")
    });
    format!(
        "Some(&Adapter {{ session_id: &{:?}, cwd: &{:?}, source: &{:?}, reason: &{:?}, event_name: &{:?}, \
         foreign_fields: &{foreign_fields:?}, start_events: &{:?}, end_events: &{:?}, compact_events: &{:?}, \
         activity_events: &{:?}, mark_sources: &{mark_sources:?}, project_variables: &{project_variables:?}, \
         configuration: &[{}], stdout: HookOutput::{stdout:?} }})",
        fields.session_id,
        fields.cwd,
        fields.source,
        fields.reason,
        fields.event_name,
        events.start,
        events.end,
        events.compact,
        events.activity,
        files.collect::<Vec<_>>().join(", "),
    )
}
