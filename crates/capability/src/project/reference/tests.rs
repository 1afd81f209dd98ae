use std::collections::HashSet;

use super::{MARK, Page, pages};
use crate::catalogue::catalogue;
use crate::refusal::Code;

fn page<'a>(pages: &'a [Page], path: &str) -> &'a str {
    let mut found = pages.iter().filter(|page| page.path == path);
    let page = found.next().unwrap_or_else(|| panic!("there is no page {path}"));
    assert!(found.next().is_none(), "{path} is there twice");
    &page.text
}

/// The rows of the tables of a page, cell by cell.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let (mut cells, mut escaped) = (vec![String::new()], false);
        for char in line.chars() {
            if char == '|' && !escaped {
                cells.push(String::new());
            } else if let Some(cell) = cells.last_mut() {
                cell.push(char);
            }
            escaped = char == '\\' && !escaped;
        }
        rows.push(cells[1..cells.len() - 1].iter().map(|cell| cell.trim().to_owned()).collect());
    }
    rows
}

#[test]
fn every_capability_has_a_page_and_a_row_and_nothing_else_has() {
    let registry = catalogue();
    let pages = pages(&registry);
    let ids: Vec<_> = registry.capabilities().iter().map(|one| one.descriptor().id).collect();
    let mut expected: HashSet<String> = ids.iter().map(|id| format!("capabilities/{id}.md")).collect();
    expected.extend(["README.md", "tools.md", "errors.md"].map(str::to_owned));
    assert_eq!(pages.iter().map(|page| page.path.clone()).collect::<HashSet<_>>(), expected);
    assert_eq!(pages.len(), expected.len());
    let listed: Vec<String> = rows(page(&pages, "README.md"))[2..].iter().map(|row| row[0].clone()).collect();
    assert_eq!(listed, ids.iter().map(|id| format!("[{id}](capabilities/{id}.md)")).collect::<Vec<_>>());
}

#[test]
fn every_page_says_that_it_is_generated_and_ends_with_a_newline() {
    for Page { path, text } in pages(&catalogue()) {
        assert!(text.starts_with(MARK), "{path}: {text:.80}");
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{path}");
        assert!(text.lines().nth(2).unwrap().starts_with("# "), "{path}");
    }
}

#[test]
fn the_tables_of_every_page_are_whole() {
    for Page { path, text } in pages(&catalogue()) {
        let mut width = None;
        for line in text.lines() {
            if line.starts_with('|') {
                let cells = rows(line)[0].len();
                assert_eq!(*width.get_or_insert(cells), cells, "{path}: {line}");
            } else {
                width = None;
            }
        }
    }
}

#[test]
fn a_page_says_what_its_capability_takes_gives_and_refuses() {
    let registry = catalogue();
    let pages = pages(&registry);
    for capability in registry.capabilities() {
        let declared = capability.descriptor();
        let text = page(&pages, &format!("capabilities/{}.md", declared.id));
        for surface in [declared.tool, declared.route.map(|route| route.path), declared.cli].into_iter().flatten() {
            assert!(text.contains(surface), "{}: {surface}", declared.id);
        }
        let rows = rows(text);
        let first: HashSet<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        for schema in [capability.input(), capability.output()] {
            for name in schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
                assert!(first.contains(format!("`{name}`").as_str()), "{} {name}", declared.id);
            }
        }
        for code in Code::ALL {
            let row = rows.iter().find(|row| row[0] == format!("`{}`", code.as_str()) && row.len() == 4);
            assert_eq!(row.is_some(), capability.may_refuse(code), "{} {code:?}", declared.id);
            let retry = if code.retry() { "yes" } else { "no" };
            assert!(row.is_none_or(|row| row[1] == code.status().to_string() && row[2] == retry), "{row:?}");
        }
    }
    let list = page(&pages, "capabilities/episodes.list.md");
    assert!(list.contains("| `limit` | integer | no | 1 to 200 | How many at most; 50 when absent. |"), "{list}");
    assert!(list.contains("| `state` | string | no | `open` or `detached` | Only episodes in this state. |"), "{list}");
    assert!(list.contains("| `episodes[].peer` | string | not always |"), "{list}");
    assert!(list.contains("a URL never carries it"), "{list}");
    assert!(page(&pages, "capabilities/health.live.md").contains("## Arguments\n\nNone.\n"));
}

#[test]
fn an_example_is_a_request_that_can_be_sent() {
    let pages = pages(&catalogue());
    for (id, expected) in [
        ("episodes.list", "```sh\ncurl 'http://127.0.0.1:8741/api/v1/episodes'\n```"),
        ("sessions.get", "words in capitals.\n\n```sh\ncurl 'http://127.0.0.1:8741/api/v1/sessions/SESSION_ID'\n```"),
        (
            "episodes.attach",
            "```sh\ncurl 'http://127.0.0.1:8741/api/v1/episodes/attach' \\\n  -H 'Content-Type: application/json' \\\n  \
             -d '{\"external_id\":\"EXTERNAL_ID\"}'\n```",
        ),
        ("peers.announce", "-H 'Majordomus-Episode-Handle: EPISODE_HANDLE' \\\n  -d '{\"intent\":\"INTENT\"}'\n```"),
    ] {
        let text = page(&pages, &format!("capabilities/{id}.md"));
        assert!(text.contains(expected), "{id}: {text}");
    }
}

#[test]
fn every_tool_is_on_its_page_in_order_with_its_hints() {
    let registry = catalogue();
    let pages = pages(&registry);
    let shown: Vec<Vec<String>> = rows(page(&pages, "tools.md"))[2..].to_vec();
    let tools: Vec<_> = registry.capabilities().iter().filter(|one| one.descriptor().tool.is_some()).collect();
    assert_eq!(shown.len(), tools.len());
    for (row, capability) in shown.iter().zip(tools) {
        let declared = capability.descriptor();
        assert_eq!(row[0], format!("`{}`", declared.tool.unwrap()));
        let reads = if declared.effect == crate::Effect::Read { "yes" } else { "no" };
        assert_eq!(row[3..], [reads, "no", "yes", "no"]);
    }
}

#[test]
fn every_code_is_on_its_page() {
    let shown = rows(page(&pages(&catalogue()), "errors.md"))[2..].to_vec();
    assert_eq!(shown.len(), Code::ALL.len());
    for (row, code) in shown.iter().zip(Code::ALL) {
        assert_eq!(row[..2], [format!("`{}`", code.as_str()), code.status().to_string()]);
        assert_eq!(row[3], if code.retry() { "yes" } else { "no" });
        assert_eq!(row[4], code.meaning());
    }
}
