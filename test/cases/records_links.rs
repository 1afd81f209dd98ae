//! A repository may ship links where records belong: none of them is followed to anything outside, and nobody waits.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use majordomus_e2e::{Running, Said, World, named_pipe};
use serde_json::{Value, json};

/// Stands in every file outside, and must be seen nowhere.
const OUTSIDE: &str = "what-lies-outside";
/// Far above what reading takes; what follows such a link waits for ever.
const AT_ONCE: Duration = Duration::from_secs(5);

fn id(nr: usize) -> String {
    format!("s-20260101000000-{nr:08x}")
}

fn record_text(id: &str) -> String {
    format!(
        "---\nschema: \"majordomus/session@1\"\nsession_id: \"{id}\"\nbranch: \"{OUTSIDE}\"\nclient: \"{OUTSIDE}\"\n---\n\n{OUTSIDE}\n"
    )
}

/// Runs a command whose standard input stays open, and says nothing.
fn run(world: &World, arguments: &[&str]) -> Said {
    let mut process = Running::start(&mut world.majordomus(arguments));
    assert!(process.ended_within(AT_ONCE), "{arguments:?} waits");
    process.wait()
}

/// Reads everything in every way, and gives back what was listed.
fn read_in_every_way(world: &World, ids: &[String]) -> Vec<Value> {
    let said = run(world, &["sessions", "list", "--json"]);
    let shown = run(world, &["sessions", "list"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!format!("{said:?}{shown:?}").contains(OUTSIDE), "{said:?}{shown:?}");
    let listed = said.json();
    for id in ids {
        let said = run(world, &["sessions", "show", id]);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        assert!(!said.err.contains(OUTSIDE) && said.err.contains("hint: "), "{said:?}");
    }
    let mut client = world.client();
    let answer = client.tool("majordomus_session_records", &json!({}));
    assert!(answer["isError"] != true && !answer.to_string().contains(OUTSIDE), "{answer}");
    for id in ids {
        let refused = client.tool("majordomus_session_record", &json!({ "session_id": id }));
        assert!(refused["isError"] == true && !refused.to_string().contains(OUTSIDE), "{id}: {refused}");
    }
    client.ping();
    assert_eq!(client.lose().code, Some(0));
    listed["sessions"].as_array().expect("a list").clone()
}

#[test]
fn links_in_place_of_records_show_nothing_of_what_they_lead_to_and_nobody_waits_for_it() {
    let world = World::new();
    let outside = world.folder().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), record_text(&id(0))).unwrap();
    named_pipe(&outside.join("pipe"));
    let month = world.path(".ai/repo/sessions/2026/01");
    fs::create_dir_all(&month).unwrap();
    let targets = [
        outside.join("file"),
        "/dev/stdin".into(),
        "/dev/zero".into(),
        outside.join("pipe"),
        outside.clone(),
        "../../../../../../outside/file".into(),
        outside.join("missing"),
    ];
    let mut ids: Vec<String> = (0..targets.len()).map(id).collect();
    for (target, id) in targets.iter().zip(&ids) {
        symlink(target, month.join(format!("{id}--x.md"))).unwrap();
    }
    world.git(&["add", "--", ".ai"]);
    world.git(&["commit", "--quiet", "--message", "Links"]);
    assert_eq!(world.git(&["ls-files", "--", ".ai"]).lines().count(), targets.len(), "they are tracked");
    // What git does not track, but an unpacked archive may hold.
    ids.extend([id(targets.len()), id(targets.len() + 1)]);
    named_pipe(&month.join(format!("{}--x.md", ids[targets.len()])));
    fs::create_dir(month.join(format!("{}--x.md", ids[targets.len() + 1]))).unwrap();
    let listed = read_in_every_way(&world, &ids);
    // A name says of itself which session it is; the rest is unknown.
    assert!(listed.iter().all(|session| session["branch"].is_null() && session["client"].is_null()), "{listed:#?}");
}

#[test]
fn a_year_or_month_that_leads_out_shows_nothing_of_what_is_there() {
    let world = World::new();
    let outside = world.folder().join("outside");
    let month = outside.join("2026/01");
    fs::create_dir_all(&month).unwrap();
    fs::write(month.join(format!("{}--x.md", id(1))), record_text(&id(1))).unwrap();
    for (below, target) in [("2026", outside.join("2026")), ("2026/01", month)] {
        let link = world.path(".ai/repo/sessions").join(below);
        let _ = fs::remove_dir_all(world.path(".ai"));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, &link).unwrap();
        world.git(&["add", "--", ".ai"]);
        world.git(&["commit", "--quiet", "--message", below]);
        assert!(read_in_every_way(&world, &[id(1)]).is_empty(), "{below}");
    }
}
