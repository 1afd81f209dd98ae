//! A disk that hangs for one client, and others that attach meanwhile.

use std::time::Duration;

use majordomus_mcp_server::http::HttpLimits;
use serde_json::json;

use crate::faults_hanging::{Hangs, hang_at, steps_of};
use crate::faults_site::{ID, Site};
use crate::served::HANGS;
use crate::talk::calling;
use crate::world::World;

#[test]
fn whoever_attaches_does_not_wait_for_another_clients_disk() {
    let mut waited = Vec::new();
    for at in 1..=steps_of(Hangs::Attach) {
        let world = World::new();
        let site = Site::within(&world, HttpLimits::default(), Duration::from_millis(300));
        let (mut client, mut other) = (site.over.client(), site.over.client());
        let (begun, go) = hang_at(&world, at);
        client.send(&calling(7, "majordomus_session_attach", &json!({ "external_id": ID })));
        begun.recv_timeout(HANGS).unwrap();
        let answer = other.call("majordomus_session_attach", &json!({"external_id": "other"}));
        if answer["structuredContent"]["recorded"] != true {
            waited.push(format!("step {at}: {answer}"));
        }
        go.send(()).unwrap();
        site.end();
    }
    assert!(waited.is_empty(), "{}", waited.join("\n"));
}
