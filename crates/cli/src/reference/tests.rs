use std::sync::Arc;

use majordomus_capability::catalogue;

use super::*;
use crate::registered::tests::registry;

fn page(pages: &[Page], path: &str) -> String {
    pages.iter().find(|page| page.path == path).unwrap_or_else(|| panic!("there is no {path}")).text.clone()
}

#[test]
fn a_capability_that_is_declared_once_is_on_every_page() {
    let pages = pages(&Arc::new(registry()));
    let look = page(&pages, "cli/shelves-look.md");
    for text in [
        "# majordomus shelves look\n",
        "majordomus shelves look [OPTIONS] <SHELF> <HEIGHT>\n",
        "Look at a shelf.\n",
        "| `<SHELF>` | Which shelf it is |\n",
        "| `<HEIGHT>` | How high \\| it stands |\n",
        "| `--kinds <KINDS>` | Which kinds. All of them when absent. One of `book`, `map`. |\n",
        "from \\<below>",
    ] {
        assert!(look.contains(text), "{text:?} is not in {look}");
    }
    assert!(
        page(&pages, "cli/shelves.md").contains("| [`majordomus shelves look`](shelves-look.md) | Look at a shelf |\n")
    );
    assert!(page(&pages, "cli/majordomus.md").contains("(shelves.md)"));
    assert!(page(&pages, "man/majordomus-shelves-look.1").contains("Which shelf it is"));
    for shell in ["_majordomus", "majordomus.bash", "majordomus.fish"] {
        assert!(page(&pages, &format!("completions/{shell}")).contains("sure-enough"), "{shell}");
    }
}

#[test]
fn the_same_version_makes_the_same_pages() {
    let registry = Arc::new(catalogue());
    let first = pages(&registry);
    assert_eq!(first, pages(&registry));
    assert!(first.is_sorted_by(|one, other| one.path < other.path), "each path once");
    let here = env!("CARGO_MANIFEST_DIR");
    assert!(first.iter().all(|page| page.text.ends_with('\n') && !page.text.contains(here)));
}

#[test]
fn a_command_that_answers_by_itself_says_why() {
    let pages = pages(&Arc::new(catalogue()));
    for local in crate::registered::LOCAL {
        let page = page(&pages, &format!("cli/{}.md", local.words.replace(' ', "-")));
        assert!(page.contains(&format!("It needs no server: {}.\n", local.because)), "{local:?}");
    }
    assert!(!page(&pages, "cli/peers.md").contains("needs no server"));
}

#[test]
fn every_variable_is_on_its_page() {
    let page = environment::page().text;
    for variable in crate::variables::VARIABLES {
        assert!(page.contains(&format!("| `{}` | ", variable.name)), "{variable:?}");
    }
    assert!(page.contains("| `CLAUDE_PROJECT_DIR` | "), "what providers declare is there too");
}

#[test]
fn every_table_has_as_many_cells_in_each_row() {
    for page in pages(&Arc::new(registry())).iter().chain(&pages(&Arc::new(catalogue()))) {
        let mut cells = None;
        for line in page.text.lines().filter(|_| page.path.ends_with(".md")) {
            let bars = line.replace("\\|", "").matches('|').count();
            cells = line.starts_with('|').then_some(cells.unwrap_or(bars));
            assert!(cells.is_none_or(|cells| cells == bars), "{}: {line}", page.path);
        }
    }
}

#[test]
fn every_link_leads_to_a_page() {
    let pages = pages(&Arc::new(catalogue()));
    let mut links = 0;
    for page in pages.iter().filter(|page| page.path.ends_with(".md")) {
        // What looks like a link in code is none.
        let prose: String = page.text.split('`').step_by(2).collect::<Vec<_>>().join("``");
        for (at, _) in prose.match_indices("](") {
            let after = &prose[at + 2..];
            let target = &after[..after.find(')').expect("a link ends")];
            if let Some(heading) = target.strip_prefix('#') {
                let headings = page.text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_lowercase);
                assert!(headings.map(|line| line.replace(' ', "-")).any(|line| line == heading), "{}", page.path);
                continue;
            }
            let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = match target.strip_prefix("../") {
                Some(above) => above.to_owned(),
                None if folder.is_empty() => target.to_owned(),
                None => format!("{folder}/{target}"),
            };
            assert!(pages.iter().any(|page| page.path == path), "{} links to {target}", page.path);
            links += 1;
        }
    }
    assert!(links > 30, "there are links at all");
}

#[test]
fn what_somebody_else_wrote_is_not_ours() {
    for page in pages(&Arc::new(catalogue())) {
        assert!(is_ours(&page.path, &page.text), "{}", page.path);
    }
    for (path, text) in [
        ("README.md", "# Read me"),
        ("cli/notes.md", "see majordomus generate"),
        ("notes.json", "{}"),
        ("man/other.1", ""),
        ("completions/notes", ""),
        ("cli/tools.json", "{}"),
        ("majordomus.1", ""),
    ] {
        assert!(!is_ours(path, text), "{path}");
    }
    assert!(is_ours("cli/gone.md", MARK) && is_ours("man/majordomus-gone.1", ""));
}
