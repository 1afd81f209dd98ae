//! What could be recorded only long after the client was last heard.

use std::time::Duration;

use majordomus_records::clock::{Clock, rfc3339};

use crate::faults_site::{Caller, Site};
use crate::sim::{Fault, Restart};
use crate::world::{World, field};

#[test]
fn an_attach_that_is_recorded_later_is_no_evidence_of_a_client_that_said_nothing_since() {
    let world = World::new();
    let site = Site::start(&world);
    let mut caller = Caller::session(&site);
    world.disk.fail_at(1, Fault::Full);
    let heard = rfc3339(world.clock.now().wall_ms);
    assert!(!caller.attach().is_recorded());
    for _ in 0..30 {
        world.clock.advance(Duration::from_secs(10));
        site.reap();
    }
    world.disk.make_room();
    world.clock.advance(Duration::from_secs(10));
    site.reap();
    assert_eq!(world.logs().len(), 1, "the server has recorded it by itself");
    site.crash(&world, Restart::Killed);
    world.recover();
    let (_, record) = &world.records()[0];
    assert_eq!(field(record, "outcome"), "interrupted");
    assert_eq!(field(record, "closed_at"), heard, "it ends at its last evidence");
}
