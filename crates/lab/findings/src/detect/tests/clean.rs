//! Runs in which nothing is wrong.

use std::collections::BTreeMap;

use super::run::Run;

/// Of 1,000 runs; one in twenty may accuse anybody, and one in two hundred each kind.
#[test]
fn clean_runs_accuse_nobody() {
    let mut by_kind: BTreeMap<_, usize> = BTreeMap::new();
    let mut told = String::new();
    let accused = (0..1000).filter(|seed| {
        let found = Run::clean(*seed).findings();
        for finding in &found {
            *by_kind.entry(finding.kind).or_default() += 1;
            told += &format!("{seed}: {finding}\n");
        }
        !found.is_empty()
    });
    let accused = accused.count();
    assert!(accused <= 50, "{accused} of 1000\n{told}");
    for (kind, count) in by_kind {
        assert!(count <= 5, "{kind:?}: {count} of 1000\n{told}");
    }
}
