//! The page of one client.

use majordomus_capability::project::markdown::{code, table, text};
use majordomus_providers::{
    Adapter, ConfigFile, EpisodeSource, HookOutput, Mcp, PromptSource, Provider, TimeUnit, Written,
};

use super::words::{
    NOBODY_KNOWS, Sources, about, carriers, files_of, join, joined_by, length, quoted, quoted_or_unknown,
};

pub(super) fn page(provider: &Provider) -> String {
    let mut page = format!(
        "# {}\n\nIn records and on command lines it is {}. [All clients](../providers.md)\n",
        text(provider.title),
        code(provider.id)
    );
    let sources = Sources::default();
    let mut section = |title: &str, body: String| page.push_str(&format!("\n## {title}\n\n{body}"));
    section("What you get", gets(provider, &sources));
    section("What it cannot give", limits(provider, &sources));
    section("How an ending is recorded", endings(provider, &sources));
    if let Some(adapter) = provider.adapter {
        section("Events", events(adapter, &sources));
        section("Hooks", hooks(adapter, &sources));
    }
    if provider.episode == EpisodeSource::Hooks {
        section(
            "MCP server",
            provider.mcp.map_or_else(|| format!("{}.\n", capital(NOBODY_KNOWS)), |mcp| servers(mcp, &sources)),
        );
        section("How a conversation is known", identity(provider, &sources));
    }
    section("Sources", sources.list());
    page
}

fn gets(provider: &Provider, sources: &Sources) -> String {
    let mut gets = vec![match (provider.episode, provider.adapter) {
        (EpisodeSource::Hooks, Some(_)) => {
            "A record of each sitting; its hooks say where one begins and ends.".to_owned()
        }
        (EpisodeSource::Hooks, None) if provider.mcp.is_some() => {
            "A record of each conversation that its agent attaches over the connection, as of any MCP client; its hooks could \
             be recorded too, but this version cannot read them."
                .to_owned()
        }
        (EpisodeSource::Hooks, None) => {
            "Nothing yet: its hooks could be recorded, but this version cannot read them.".to_owned()
        }
        (EpisodeSource::Connection, _) => {
            "A record of each sitting; its connection, or what it says over it, shows where one begins and ends."
                .to_owned()
        }
        (EpisodeSource::None, _) => "Nothing: it does not show where a sitting begins and ends.".to_owned(),
    }];
    if let Some(adapter) = provider.adapter {
        gets.extend(match (adapter.compact_events, adapter.compact_triggers) {
            ([], _) => None,
            (_, []) => Some("How often the conversation was compacted.".to_owned()),
            (_, triggers) => {
                Some(format!("How often it was compacted, counting only the trigger {}.", join(triggers, "or")))
            }
        });
        if adapter.stdout == HookOutput::Context {
            gets.push("After a compaction, one line in the conversation that names the session.".to_owned());
        }
    }
    if let Some(how) = provider.identity.filter(|_| provider.adapter.is_some()).and_then(joined_by) {
        gets.push(format!("One record for hooks and connection, which are known to belong together by {how}."));
    }
    let list: String = gets.iter().map(|one| format!("- {one}\n")).collect();
    let prompt = match provider.prompts {
        PromptSource::Hook => "A hook gets the text of the prompt. It is not read, stored or logged.",
        PromptSource::None => "No prompt can be had.",
    };
    format!("{list}\n{prompt}\n\n{}", sources.shown([provider.episode_evidence, provider.prompts_evidence]))
}

fn limits(provider: &Provider, sources: &Sources) -> String {
    match provider.limits {
        [] => "Nothing that is known.\n".to_owned(),
        limits => limits.iter().map(|limit| format!("- {}\n", sources.cited(limit))).collect(),
    }
}

fn endings(provider: &Provider, sources: &Sources) -> String {
    let reasons = |reasons: &[&str], recorded: &str| {
        (!reasons.is_empty()).then(|| [format!("the reason {}", join(reasons, "or")), recorded.to_owned()])
    };
    let without_ends = provider.adapter.is_some_and(|adapter| adapter.end_events.is_empty());
    let is_any_named = [provider.deliberate, provider.finished, provider.switch].iter().any(|named| !named.is_empty());
    let other = if is_any_named { "any other reason, or none" } else { "any reason, or none" };
    let silence = match provider.episode {
        EpisodeSource::Hooks => format!("nothing for {}", length(provider.idle_seconds)),
        EpisodeSource::Connection | EpisodeSource::None => {
            "nothing: its connection is lost, and it does not come back within the grace".to_owned()
        }
    };
    let rows = [
        reasons(provider.deliberate, "closed: somebody ended it on purpose"),
        reasons(provider.finished, "closed: a run without a person came to its own end"),
        reasons(provider.switch, "left open: the person went on in another conversation and may come back to it"),
        (!without_ends).then(|| [other.to_owned(), "interrupted: nothing shows a decision".to_owned()]),
        Some([silence, "interrupted, ended at the last that was seen of it".to_owned()]),
    ];
    let mut said = table(["it says", "recorded as"], rows.into_iter().flatten());
    if provider.late_end {
        said.push_str(
            "\nIts end may come long after the sitting was over. So a record ends at the last that was seen before the end.\n",
        );
    }
    if provider.episode == EpisodeSource::Hooks {
        said.push_str(&format!(
            "\nHow long nothing may come is our choice; {} sets another time.\n",
            code("--idle-seconds")
        ));
    }
    format!("{said}\n{}", sources.shown([provider.ends_evidence]))
}

fn events(adapter: &Adapter, sources: &Sources) -> String {
    let rows = [
        ("a sitting starts or goes on", adapter.start_events),
        ("a sitting ends", adapter.end_events),
        ("the conversation is compacted", adapter.compact_events),
        ("it is at work", adapter.activity_events),
    ];
    let named = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { quoted(names) };
    let mut said = table(["what happens", "its events"], rows.map(|(what, names)| [what.to_owned(), named(names)]));
    said.push_str("\nAn event with another name counts as work.");
    if !adapter.mark_sources.is_empty() {
        said.push_str(&format!(
            " A start whose source is {} stands inside a sitting and begins none.",
            join(adapter.mark_sources, "or")
        ));
    }
    if !adapter.compact_triggers.is_empty() {
        said.push_str(&format!(
            " A compaction counts only if its trigger is {}; any other is work.",
            join(adapter.compact_triggers, "or")
        ));
    }
    if !adapter.subagent.is_empty() {
        said.push_str(&format!(
            " What has {} happens in a subagent and is work of the sitting around it.",
            join(adapter.subagent, "or")
        ));
    }
    let read = [
        ("the id of the conversation", adapter.session_id),
        ("its folder", adapter.cwd),
        ("why it starts", adapter.source),
        ("why it ends", adapter.reason),
        ("the event's name", adapter.event_name),
    ];
    let read = table(
        ["what is read", "from the first of these that is there"],
        read.map(|(what, names)| [what.to_owned(), quoted_or_unknown(names.iter().copied())]),
    );
    let shown = sources.shown(about(adapter.claims, &["events", "mark_sources", "compact_triggers", "fields"]));
    format!("{said}\n\n{read}\n{shown}")
}

fn hooks(adapter: &Adapter, sources: &Sources) -> String {
    let entry = &adapter.entry;
    let mut said = files(adapter.files);
    if adapter.written.is_empty() {
        said.push_str("\n`majordomus connect` declares no hooks of its own here.\n");
    } else {
        let row = |written: &Written| {
            let since = written.since.map_or_else(|| "any".to_owned(), |since| format!("{} or later", code(since)));
            [code(written.name), code(written.event.as_str()), since]
        };
        let table = table(["hook", "reports", "versions that know it"], adapter.written.iter().map(row));
        said.push_str(&format!("\n`majordomus connect` declares these:\n\n{table}"));
    }
    let (unit, count) = match entry.timeout_unit {
        TimeUnit::Seconds => ("seconds", u64::from(entry.timeout_seconds)),
        TimeUnit::Milliseconds => ("milliseconds", u64::from(entry.timeout_seconds) * 1000),
    };
    let prints = match adapter.stdout {
        HookOutput::None => "nothing",
        HookOutput::Context => "after a compaction one line, which becomes part of the conversation; otherwise nothing",
    };
    let readers: Vec<_> = adapter.also_read_by.iter().filter_map(|id| majordomus_providers::find(id)).collect();
    let readers = if readers.is_empty() { "nobody that is known".to_owned() } else { files_of(&readers) };
    let facts = [
        ("time limit", format!("{}, in {unit}", code(&format!("{}: {count}", entry.timeout_key)))),
        ("a hook may print", prints.to_owned()),
        ("these files are also run by", readers),
        ("before hooks run, you", adapter.trust.map_or_else(|| "have nothing to do that is known".to_owned(), text)),
    ];
    let list: String = facts.iter().map(|(what, how)| format!("- {what}: {how}\n")).collect();
    let shown = sources.shown(about(adapter.claims, &["files", "entry", "written", "stdout", "also_read_by", "trust"]));
    format!("{said}\n{list}\n{shown}")
}

fn servers(mcp: &Mcp, sources: &Sources) -> String {
    let approval = mcp.approval.map_or_else(|| "have nothing to do that is known".to_owned(), text);
    let shown = sources.shown(about(mcp.claims, &["files", "approval"]));
    format!("{}\n- before it is started, you: {approval}\n\n{shown}", files(mcp.files))
}

fn files(files: &[ConfigFile]) -> String {
    let row = |file: &ConfigFile| {
        let whose = if file.is_users() { "you" } else { "the project" };
        let writes = match (file.write, file.is_users()) {
            (false, _) => "not written",
            (true, false) => "written",
            (true, true) => "written with `--global`",
        };
        [code(file.path), whose.to_owned(), code(&file.at.join(".")), writes.to_owned()]
    };
    table(["file", "for", "under", "by `majordomus connect`"], files.iter().map(row))
}

fn identity(provider: &Provider, sources: &Sources) -> String {
    let identity = provider.identity;
    let hook = provider.signs.and_then(|signs| signs.session_variable);
    let server = identity.and_then(|identity| identity.server_variable);
    let shell = identity.and_then(|identity| identity.shell_variable);
    let project = provider.adapter.map_or(&[][..], |adapter| adapter.project_variables);
    let rows = [
        ("its name as an MCP client", quoted_or_unknown(identity.iter().flat_map(|one| one.client_names).copied())),
        ("a variable with the id, in an MCP server that it starts", quoted_or_unknown(server)),
        ("in a command that its agent runs", quoted_or_unknown(shell)),
        ("in a hook", quoted_or_unknown(hook)),
        ("a variable with the project's folder, in a hook", quoted_or_unknown(project.iter().copied())),
        (
            "a key with the id in `_meta` of a tool call",
            quoted_or_unknown(identity.iter().flat_map(|one| one.meta).copied()),
        ),
    ];
    let mut said = table(["what", "name"], rows.map(|(what, name)| [what.to_owned(), name]));
    let carriers = carriers(provider);
    if !carriers.is_empty() {
        let variables = provider.signs.map_or(&[][..], |signs| signs.variables);
        let by = match (variables, provider.signs.is_some_and(|signs| !signs.shapes.is_empty())) {
            ([], _) => "how its payloads are spelled".to_owned(),
            (variables, false) => format!("{} in the hook's environment", join(variables, "or")),
            (variables, true) => {
                format!("how its payloads are spelled, or {} in the hook's environment", join(variables, "or"))
            }
        };
        said.push_str(&format!(
            "\nIt also runs the hooks of {}. Its own conversations are told there by {by}, and recorded under its name.\n",
            files_of(&carriers)
        ));
    }
    let identity = identity.map_or(&[][..], |identity| identity.claims);
    let signs = provider.signs.map_or(&[][..], |signs| signs.claims);
    let adapter = provider.adapter.map_or(&[][..], |adapter| adapter.claims);
    let shown = sources.shown(
        about(identity, &["client_names", "variables", "meta"])
            .chain(about(signs, &["shapes", "variables"]))
            .chain(about(adapter, &["project_variables"])),
    );
    format!("{said}\n{shown}")
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
