//! The server itself, and what it can do.

use majordomus_episodes_core::board::ConnectionEpisodeState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::descriptor::{Descriptor, Effect};
use crate::refusal::{Code, Refusal};
use crate::registry::Capability;

/// What a call without arguments takes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Serialize, JsonSchema)]
pub(super) struct CapabilitiesOutput {
    /// In the order in which every surface shows them.
    capabilities: Vec<Declared>,
}

/// What is declared of one capability.
#[derive(Serialize, JsonSchema)]
struct Declared {
    /// Its id; it never changes.
    id: &'static str,
    /// A few words.
    title: &'static str,
    /// What it does, when to call it, and what it does not do.
    description: &'static str,
    /// What it does to what it finds.
    effect: Word,
    /// Whether the same call made again changes nothing more.
    idempotent: bool,
    /// The tool that models call.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'static str>,
    /// The HTTP method that programs use.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    /// The path that programs call.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'static str>,
    /// The words after `majordomus` that people type.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    /// The codes of the refusals that it can give.
    errors: Vec<&'static str>,
    /// What it belongs to.
    tags: Vec<&'static str>,
}

/// What a capability does to what it finds.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// Nothing: a query.
    Read,
    /// It adds or moves something.
    Add,
    /// It can remove or overwrite something.
    Destroy,
}

impl Declared {
    fn new(capability: &Capability) -> Self {
        let Descriptor { id, title, description, effect, idempotent, tool, route, cli, tags, .. } =
            *capability.descriptor();
        Self {
            id,
            title,
            description,
            effect: match effect {
                Effect::Read => Word::Read,
                Effect::Add => Word::Add,
                Effect::Destroy => Word::Destroy,
            },
            idempotent,
            tool,
            method: route.map(|route| route.method.as_str()),
            path: route.map(|route| route.path),
            command: cli,
            errors: capability.refusals().map(Code::as_str).collect(),
            tags: tags.to_vec(),
        }
    }
}

pub(super) fn capabilities(context: &Context, _: Nothing) -> Result<CapabilitiesOutput, Refusal> {
    let all = context.shared.registry.capabilities();
    Ok(CapabilitiesOutput { capabilities: all.iter().map(Declared::new).collect() })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DescribeInput {
    /// Its id, as the list gives it.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z_]+\\.[a-z_]+$"))]
    id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DescribeOutput {
    /// What is declared of it.
    capability: Declared,
    /// The JSON Schema of its arguments.
    input: Map<String, Value>,
    /// The JSON Schema of its answer.
    output: Map<String, Value>,
}

pub(super) fn describe(context: &Context, input: DescribeInput) -> Result<DescribeOutput, Refusal> {
    let unknown = || Refusal::new(Code::NotFound, format!("there is no capability {}", input.id));
    let found = context.shared.registry.capability(&input.id);
    let found = found.ok_or_else(|| unknown().hint("`majordomus capabilities` lists those that there are"))?;
    let object = |schema: &Value| schema.as_object().cloned().unwrap_or_default();
    Ok(DescribeOutput {
        capability: Declared::new(found),
        input: object(found.input()),
        output: object(found.output()),
    })
}

#[derive(Serialize, JsonSchema)]
pub(super) struct StatusOutput {
    /// Whether it takes new work.
    standing: Standing,
    /// Its version.
    version: &'static str,
    /// The number of its process.
    pid: u32,
    /// 32 hexadecimal digits that no other server has; absent where it does not answer over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    /// Where it answers over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// When it began to answer over HTTP, RFC 3339 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// What stands for the checkout that it serves, the same for every server of it; absent outside a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkout: Option<String>,
    /// `main`, or the linked worktree that it serves; absent outside a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<String>,
    /// How many connections and handles there are.
    peers: u64,
    /// How many episodes are open.
    open: u64,
    /// How many are detached.
    detached: u64,
    /// How long an episode waits for its client once a connection was seen to go.
    reattach_grace_seconds: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Standing {
    /// It does.
    Serving,
    /// It is about to end.
    Stopping,
}

pub(super) fn status(context: &Context, _: Nothing) -> Result<StatusOutput, Refusal> {
    let shared = &context.shared;
    let episodes = shared.board.list();
    let open = episodes.iter().filter(|episode| episode.state == ConnectionEpisodeState::Open).count();
    let standing = shared.standing.get();
    Ok(StatusOutput {
        standing: if shared.is_stopping() { Standing::Stopping } else { Standing::Serving },
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        instance: standing.map(|standing| standing.instance.clone()),
        url: standing.map(|standing| standing.url.clone()),
        started_at: standing.map(|standing| standing.started_at.clone()),
        checkout: shared.records.as_ref().map(|records| records.checkout().id()),
        worktree: shared.records.as_ref().map(|records| records.checkout().name.clone()),
        peers: shared.peers.list().len() as u64,
        open: open as u64,
        detached: (episodes.len() - open) as u64,
        reattach_grace_seconds: shared.grace.as_secs(),
    })
}

#[derive(Serialize, JsonSchema)]
pub(super) struct HealthOutput {
    /// `live` or `ready`.
    status: &'static str,
}

pub(super) fn live(_: &Context, _: Nothing) -> Result<HealthOutput, Refusal> {
    Ok(HealthOutput { status: "live" })
}

pub(super) fn ready(context: &Context, _: Nothing) -> Result<HealthOutput, Refusal> {
    if context.shared.is_stopping() {
        return Err(Refusal::new(Code::Unavailable, "this server is about to end").hint("call the next one"));
    }
    Ok(HealthOutput { status: "ready" })
}
