use crate::{EpisodeSource, HookOutput, PromptSource, all, find};

#[test]
fn every_id_finds_its_own_provider_and_nothing_else_does() {
    for provider in all() {
        assert!(std::ptr::eq(find(provider.id).unwrap(), provider));
    }
    for stranger in ["", "Generic", "generic ", "claude", "claude-code\0"] {
        assert_eq!(find(stranger), None, "{stranger:?}");
    }
}

#[test]
fn generic_is_drawn_by_its_connection_and_only_a_detach_closes_it() {
    let generic = find("generic").unwrap();
    assert_eq!((generic.episode, generic.prompts), (EpisodeSource::Connection, PromptSource::None));
    assert_eq!(generic.adapter, None);
    assert!(generic.is_deliberate("detach"));
    for reason in ["shutdown", "expired", "Detach", "detach ", ""] {
        assert!(!generic.is_deliberate(reason), "{reason:?}");
    }
}

#[test]
fn claude_code_closes_only_for_reasons_that_were_seen_to_be_deliberate() {
    let claude = find("claude-code").unwrap();
    assert_eq!((claude.episode, claude.prompts), (EpisodeSource::Hooks, PromptSource::Hook));
    assert_eq!(claude.deliberate, ["prompt_input_exit", "clear"]);
    for reason in ["other", "logout", "resume", "bypass_permissions_disabled", "", "CLEAR"] {
        assert!(!claude.is_deliberate(reason), "{reason:?}");
    }
    assert!(claude.is_switch("resume"));
    assert!(!claude.is_switch("clear"));
    assert_eq!(claude.idle_seconds, 24 * 60 * 60);
}

#[test]
fn claude_codes_hooks_are_looked_for_in_three_files_and_may_print_context() {
    let adapter = find("claude-code").unwrap().adapter.unwrap();
    let paths: Vec<_> = adapter.files.iter().map(|file| file.path).collect();
    assert_eq!(paths, [".claude/settings.json", ".claude/settings.local.json", "~/.claude/settings.json"]);
    assert!(adapter.files.iter().all(|file| file.at == ["hooks"]));
    assert_eq!(adapter.project_variables, ["CLAUDE_PROJECT_DIR"]);
    assert_eq!(adapter.stdout, HookOutput::Context);
    assert!(adapter.is_mark("compact"));
    assert!(!adapter.is_mark("resume"));
}

#[test]
fn only_reasons_that_were_shown_to_mean_it_close() {
    let reasons = [
        "other",
        "exit",
        "clear",
        "logout",
        "prompt_input_exit",
        "user_exit",
        "complete",
        "completed",
        "user_close",
        "window_close",
        "aborted",
        "abort",
        "error",
        "timeout",
        "end_turn",
        "",
        "unknown",
    ];
    for (id, deliberate) in [
        ("claude-code", &["clear", "prompt_input_exit"][..]),
        ("codex", &[]),
        ("gemini-cli", &["clear"]),
        ("cursor", &[]),
        ("copilot-cli", &[]),
        ("vscode-copilot", &[]),
        ("grok", &[]),
        ("devin-cli", &[]),
        ("goose", &[]),
    ] {
        let provider = find(id).unwrap();
        let closing: Vec<_> = reasons.into_iter().filter(|reason| provider.is_deliberate(reason)).collect();
        assert_eq!(closing, deliberate, "{id}");
        assert!(!reasons.into_iter().any(|reason| provider.is_finished(reason)), "{id}");
        assert!(!reasons.into_iter().any(|reason| provider.is_switch(reason)), "{id}");
        assert_eq!(provider.late_end, id == "codex", "{id}");
        assert_eq!(provider.episode, EpisodeSource::Hooks, "{id}");
    }
}

#[test]
fn what_is_declared_for_a_client_is_in_its_own_unit_and_names_only_events_it_sends() {
    let hooks = |id: &str| {
        let adapter = find(id).unwrap().adapter.unwrap();
        let names: Vec<_> = adapter.written.iter().map(|hook| hook.name).collect();
        (names, adapter.entry.timeout_key, adapter.entry.timeout_unit, adapter.entry.timeout_seconds)
    };
    use crate::TimeUnit::{Milliseconds, Seconds};
    let claudes = vec!["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"];
    assert_eq!(hooks("claude-code"), (claudes.clone(), "timeout", Seconds, 5));
    assert_eq!(hooks("codex"), (claudes, "timeout", Seconds, 3));
    let geminis = vec!["SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"];
    assert_eq!(hooks("gemini-cli"), (geminis, "timeout", Milliseconds, 5));
    let cursors = vec!["sessionStart", "beforeSubmitPrompt", "stop", "preCompact", "sessionEnd"];
    assert_eq!(hooks("cursor"), (cursors, "timeout", Seconds, 5));
    let copilots = vec!["sessionStart", "userPromptSubmitted", "agentStop", "preCompact", "sessionEnd"];
    assert_eq!(hooks("copilot-cli"), (copilots, "timeoutSec", Seconds, 5));
}

#[test]
fn every_line_of_evidence_is_one_line_and_names_where_or_how_and_when() {
    for provider in all() {
        let parts = [provider.identity.map(|it| it.claims), provider.mcp.map(|it| it.claims)];
        let more = [provider.signs.map(|it| it.claims), provider.adapter.map(|it| it.claims)];
        let claims = parts.into_iter().chain(more).flatten().flatten().map(|(_, line)| *line);
        let own = [provider.episode_evidence, provider.prompts_evidence, provider.ends_evidence];
        for line in claims.chain(own).chain(provider.limits.iter().copied()) {
            assert!(!line.contains(['\n', '\r']) && line.ends_with(')') && line.contains("20"), "{line}");
        }
    }
}

#[test]
fn the_words_are_those_of_the_declaration() {
    let episode = [EpisodeSource::Hooks, EpisodeSource::Connection, EpisodeSource::None].map(EpisodeSource::as_str);
    assert_eq!(episode, ["hooks", "connection", "none"]);
    assert_eq!([PromptSource::Hook, PromptSource::None].map(PromptSource::as_str), ["hook", "none"]);
}
