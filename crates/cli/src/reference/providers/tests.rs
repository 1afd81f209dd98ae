use std::collections::BTreeSet;

use super::*;
use words::parts;

fn page_of(id: &str) -> String {
    let path = format!("providers/{id}.md");
    pages().into_iter().find(|page| page.path == path).unwrap_or_else(|| panic!("there is no {path}")).text
}

/// All that shows something of a provider.
fn citations(provider: &'static Provider) -> Vec<&'static str> {
    let claims = [
        provider.adapter.map(|adapter| adapter.claims),
        provider.identity.map(|identity| identity.claims),
        provider.mcp.map(|mcp| mcp.claims),
        provider.signs.map(|signs| signs.claims),
    ];
    let claims = claims.into_iter().flatten().flatten().map(|(_, citation)| *citation);
    let own = [provider.episode_evidence, provider.prompts_evidence, provider.ends_evidence];
    own.into_iter().chain(provider.limits.iter().copied()).chain(claims).collect()
}

#[test]
fn every_client_has_a_page_with_all_that_shows_what_it_says_and_from_where() {
    for provider in majordomus_providers::all() {
        let page = page_of(provider.id);
        for citation in citations(provider) {
            let (says, sources) = parts(citation);
            assert!(!sources.is_empty(), "{citation}");
            let says = text(says);
            let line = page.lines().find(|line| line.contains(&says)).unwrap_or_else(|| panic!("{says}\n{page}"));
            for source in sources {
                // An address is a link, as it was written.
                let listed_as = match source.split_once(", ").filter(|_| source.starts_with("https://")) {
                    Some((address, _)) => text(source).replacen(address, &format!("<{address}>"), 1),
                    None => text(source),
                };
                let listed = page.lines().find_map(|line| line.strip_suffix(&listed_as)?.strip_suffix(". "));
                let number = listed.unwrap_or_else(|| panic!("{listed_as}\n{page}"));
                assert!(line.contains(&format!("[{number}](#sources)")), "{number}: {line}");
            }
        }
    }
}

#[test]
fn a_finding_is_taken_from_its_sources() {
    let (says, sources) = parts("it is so (or not) (https://example.org/a, 2026 (Preview); measured, 1.0)");
    assert_eq!((says, sources), ("it is so (or not)", vec!["https://example.org/a, 2026 (Preview)", "measured, 1.0"]));
    let sources = words::Sources::default();
    assert_eq!(sources.cited("it *is* (https://example.org/a_/~b, 2026)"), "it \\*is\\* [1](#sources)");
    assert_eq!(sources.cited("more (a|b, 1; https://example.org/a_/~b, 2026)"), "more [2](#sources), [1](#sources)");
    assert_eq!(sources.list(), "1. <https://example.org/a_/~b>, 2026\n2. a\\|b, 1\n");
}

#[test]
fn the_overview_says_of_each_client_what_it_gives_and_what_has_to_be_done() {
    let overview = overview(majordomus_providers::all());
    let ids: BTreeSet<&str> = majordomus_providers::all().iter().map(|provider| provider.id).collect();
    for id in ids {
        assert_eq!(overview.matches(&format!("](providers/{id}.md) |")).count(), 2, "{id}");
    }
    let row =
        |start: &str, nth: usize| overview.lines().filter(|line| line.starts_with(start)).nth(nth).unwrap_or_default();
    for (start, nth, expected) in [
        (
            "| [Claude Code]",
            0,
            "| its hooks | `prompt_input_exit`, `clear` | seen | joined, by `CLAUDE_CODE_SESSION_ID` | a hook gets it |",
        ),
        (
            "| [Gemini CLI]",
            0,
            "| its hooks | `clear` | seen if its trigger is `manual` | joined, by the client's process | a hook gets it |",
        ),
        (
            "| [OpenAI Codex CLI]",
            0,
            "| its hooks | none | seen | joined, by `threadId` in each call | a hook gets it |",
        ),
        ("| [Cursor]", 0, "| its hooks | none | seen | not joined | a hook gets it |"),
        ("| [Devin CLI]", 0, "| its hooks, which are not read yet | none | not known | not known | a hook gets it |"),
        (
            "| [Goose]",
            0,
            "| its hooks, which are not read yet | none | not known | only the connection is recorded | a hook gets it |",
        ),
        ("| [Goose]", 1, "| *for you* server in `~/.config/goose/config.yaml` | Start a new session of Goose;"),
        (
            "| [Any MCP client]",
            0,
            "| its connection | `detach` | not seen | it has only the connection | cannot be had |",
        ),
        (
            "| [Claude Code]",
            1,
            "| hooks in `.claude/settings.json`, server in `.mcp.json`; *for you* hooks in `~/.claude/settings.json` |",
        ),
        ("| [OpenAI Codex CLI]", 1, "/hooks; until then they are passed over without a word"),
        ("| [Grok Build CLI]", 1, "it runs the hooks of Claude Code and Cursor |"),
    ] {
        assert!(row(start, nth).contains(expected), "{expected}\n{}", row(start, nth));
    }
}

#[test]
fn a_page_says_in_plain_words_how_an_ending_is_recorded() {
    let claude = page_of("claude-code");
    for line in [
        "| the reason `prompt_input_exit` or `clear` | closed: somebody ended it on purpose |",
        "| the reason `resume` | left open: the person went on in another conversation and may come back to it |",
        "| any other reason, or none | interrupted: nothing shows a decision |",
        "| nothing for 24 hours | interrupted, ended at the last that was seen of it |",
        "- time limit: `timeout: 5`, in seconds",
    ] {
        assert!(claude.contains(line), "{line}\n{claude}");
    }
    assert!(!claude.contains("long after the sitting was over"));
    let codex = page_of("codex");
    assert!(codex.contains("| any reason, or none | interrupted") && codex.contains("long after the sitting was over"));
    assert!(codex.contains("| `SessionEnd` | `end` | `0.146.0` or later |"));
    assert!(page_of("gemini-cli").contains("- time limit: `timeout: 5000`, in milliseconds"));
    let code = page_of("vscode-copilot");
    assert!(code.contains("| nothing for 4 hours |") && !code.contains("any reason"), "it tells of no end: {code}");
}

#[test]
fn what_nobody_found_out_is_called_that() {
    let grok = page_of("grok");
    assert!(grok.contains("| its name as an MCP client | not known |"), "{grok}");
    assert!(grok.contains("## MCP server\n\nNot known.\n"), "{grok}");
}
