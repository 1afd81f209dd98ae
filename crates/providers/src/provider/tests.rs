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
fn claude_codes_hooks_are_looked_for_in_three_files_and_print_nothing() {
    let adapter = find("claude-code").unwrap().adapter.unwrap();
    let paths: Vec<_> = adapter.configuration.iter().map(|file| file.path).collect();
    assert_eq!(paths, [".claude/settings.json", ".claude/settings.local.json", "~/.claude/settings.json"]);
    assert!(adapter.configuration.iter().all(|file| file.root == "hooks" && file.events.contains(&"SessionEnd")));
    assert_eq!(adapter.project_variables, ["CLAUDE_PROJECT_DIR"]);
    assert_eq!(adapter.stdout, HookOutput::None);
    assert!(adapter.is_mark("compact"));
    assert!(!adapter.is_mark("resume"));
}

#[test]
fn the_evidence_of_every_provider_names_a_source() {
    for provider in all() {
        assert!(provider.episode_evidence.contains("https://"), "{}", provider.episode_evidence);
        assert!(provider.prompts_evidence.contains("https://"), "{}", provider.prompts_evidence);
        assert!(!provider.episode_evidence.contains('\n') && !provider.prompts_evidence.contains('\n'));
    }
}

#[test]
fn the_words_are_those_of_the_declaration() {
    let episode = [EpisodeSource::Hooks, EpisodeSource::Connection, EpisodeSource::None].map(EpisodeSource::as_str);
    assert_eq!(episode, ["hooks", "connection", "none"]);
    assert_eq!([PromptSource::Hook, PromptSource::None].map(PromptSource::as_str), ["hook", "none"]);
}
