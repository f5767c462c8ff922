//! Runs in which nothing is wrong.

use std::collections::BTreeMap;

use super::run::Run;

const RUNS: usize = 400;

/// One in twenty may accuse anybody, and one in two hundred each kind.
#[test]
fn clean_runs_accuse_nobody() {
    let mut by_kind: BTreeMap<_, usize> = BTreeMap::new();
    let mut told = String::new();
    let accused = (0..RUNS as u64).filter(|seed| {
        let found = Run::clean(*seed).findings();
        for finding in &found {
            *by_kind.entry(finding.kind).or_default() += 1;
            told += &format!("{seed}: {finding}\n");
        }
        !found.is_empty()
    });
    let accused = accused.count();
    println!("{accused} of {RUNS} clean runs accuse: {by_kind:?}");
    assert!(accused * 20 <= RUNS, "{accused} of {RUNS}\n{told}");
    for (kind, count) in by_kind {
        assert!(count * 200 <= RUNS, "{kind:?}: {count} of {RUNS}\n{told}");
    }
}
