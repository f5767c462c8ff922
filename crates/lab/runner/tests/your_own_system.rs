//! The experiment that shows how to measure a system of one's own works.

use std::path::Path;
use std::process::Command;

use crate::support::lab_process;
use lab_store::{Outcome, RunFolder};

#[test]
fn the_example_is_measured_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(3)
        .unwrap();
    let out_dir = tempfile::tempdir().unwrap();
    let output = Command::new(lab_process())
        .args(["experiments/your-own-system.toml".as_ref(), out_dir.path()])
        .current_dir(root)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let run = std::fs::read_dir(out_dir.path())
        .unwrap()
        .next()
        .expect(&said)
        .unwrap();
    let run = RunFolder::open(&run.path()).unwrap();
    let verdict = run.verdict().unwrap();
    assert_eq!(verdict.reason, None, "{said}");
    // How fast it is depends on the machine; that every order was seen does not.
    let complete = &verdict.expectations[0];
    assert_eq!(
        (complete.that.as_str(), complete.outcome),
        ("order.complete == 100%", Outcome::Pass)
    );
    let orders = std::fs::read_to_string(run.path().join("lifecycles/order.csv")).unwrap();
    assert_eq!(orders.lines().count(), 1 + 1200, "{said}");
    assert!(
        orders.lines().nth(1).unwrap().contains("worker-"),
        "{orders}"
    );
}
