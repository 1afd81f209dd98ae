use std::fs;
use std::path::Path;

use majordomus_simulation::{Ground, run_script};

#[test]
fn every_scenario_goes_well() {
    let ground = Ground::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut ran = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let script = fs::read_to_string(&path).unwrap();
        if let Err(failure) = run_script(&ground, &script) {
            panic!("{}:\n{failure}", path.display());
        }
        ran += 1;
    }
    assert!(ran > 0, "there is no scenario");
}
