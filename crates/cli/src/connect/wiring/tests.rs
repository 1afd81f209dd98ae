use std::fs;

use majordomus_providers::find;

use super::*;
use crate::connect::ledger::{FileNote, Hook, Ledger};

#[test]
fn it_is_told_what_is_ours_what_is_gone_and_what_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope::at(folder.path().join("work"), folder.path().join("state"));
    fs::create_dir_all(folder.path().join("work/.claude")).unwrap();
    let claude = find("claude-code").unwrap();
    let look = || wiring(claude, Some(&scope), None);
    let [first, second] = &look().hooks[..] else { panic!("two files of a project, and none of a person") };
    assert_eq!((first.path, first.is_written), (".claude/settings.json", true));
    assert_eq!((second.path, second.is_written), (".claude/settings.local.json", false));
    assert!(!first.is_there && first.ours.is_empty() && !first.was_declared && first.gone.is_empty());

    let line = "/no/majordomus capture session --provider claude-code --event end";
    let settings = serde_json::json!({ "hooks": { "SessionEnd": [{ "hooks": [{ "command": line }] }] } }).to_string();
    fs::write(folder.path().join("work/.claude/settings.json"), settings).unwrap();
    fs::write(folder.path().join("work/.claude/settings.local.json"), "{").unwrap();
    fs::write(folder.path().join("work/.mcp.json"), r#"{"mcpServers": {"majordomus": {"url": "x"}}}"#).unwrap();
    let hook = |event: &str| Hook { provider: "claude-code".into(), event: event.into() };
    let mut ledger = Ledger::default();
    let noted = vec![hook("SessionStart"), hook("SessionEnd")];
    ledger.set(".claude/settings.json", Some(FileNote { hooks: noted, ..FileNote::of(".claude/settings.json") }));
    scope.keep(&ledger).unwrap();
    let wiring = look();
    let first = &wiring.hooks[0];
    assert!(first.is_there && first.was_declared);
    assert_eq!(first.gone, ["SessionStart"], "somebody has overwritten it");
    assert_eq!((first.ours[0].name.as_str(), first.ours[0].program.as_str()), ("SessionEnd", "/no/majordomus"));
    assert!(!first.ours[0].is_current);
    assert!(wiring.hooks[1].trouble.as_ref().is_some_and(|trouble| trouble.starts_with("line 1, column 1: ")));
    assert!(wiring.servers[0].is_taken && wiring.servers[0].ours.is_empty());
}
