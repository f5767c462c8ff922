//! What a sync changes, and what it must not.

use super::*;

fn answer(fresh: &[&str], desired: &[DesiredLrp], instances: &[ActualLrp]) -> Snapshot {
    let snapshot = Snapshot::new(fresh.iter().map(ToString::to_string), None);
    filled(snapshot, desired, instances)
}

fn of_cell(fresh: &[&str], asked: &[&str], desired: &[DesiredLrp], runs: &[ActualLrp]) -> Snapshot {
    let asked = asked.iter().map(|guid| Arc::from(*guid)).collect();
    let snapshot = Snapshot::new(fresh.iter().map(ToString::to_string), Some(asked));
    filled(snapshot, desired, runs)
}

fn filled(mut snapshot: Snapshot, desired: &[DesiredLrp], runs: &[ActualLrp]) -> Snapshot {
    for lrp in desired {
        snapshot.desired(Desired::of(lrp).unwrap());
    }
    let instances = runs.iter().filter_map(Instance::of);
    instances.for_each(|instance| snapshot.instance(instance));
    snapshot
}

fn two() -> Heard {
    let mut heard = Heard::default();
    let runs = [runs(0, 1, 0), runs(1, 2, 0)];
    heard.sync(answer(&["d"], &[web(2, 0, &["a.x"])], &runs));
    assert_eq!(
        heard.router.routes(),
        ["a.x 10.0.0.1:61001", "a.x 10.0.0.1:61002"]
    );
    heard
}

#[test]
fn the_first_sync_registers_everything_and_an_equal_one_nothing() {
    let mut heard = two();
    let again = answer(
        &["d"],
        &[web(2, 0, &["a.x"])],
        &[runs(0, 1, 0), runs(1, 2, 0)],
    );
    assert_eq!(heard.sync(again), Changes::default());
    assert_eq!(heard.table.counts().http, 2);
}

#[test]
fn what_is_missing_in_a_fresh_domain_is_over() {
    let mut heard = two();
    heard.sync(answer(&["d"], &[web(2, 1, &["b.x"])], &[runs(1, 2, 0)]));
    assert_eq!(heard.router.routes(), ["b.x 10.0.0.1:61002"]);
    heard.sync(answer(&["d"], &[], &[]));
    assert!(heard.router.0.is_empty());
    assert_eq!(heard.table.counts(), Counts::default());
}

#[test]
fn a_database_that_was_lost_takes_no_route_from_anybody() {
    let mut heard = two();
    for _ in 0..2 {
        assert_eq!(heard.sync(answer(&["other"], &[], &[])), Changes::default());
    }
    assert_eq!(heard.router.routes().len(), 2);
    // One is reported again, in a record of another epoch, and the other one has ended meanwhile:
    // its port has another instance.
    let back = with(runs(0, 1, 0), |lrp| lrp.modification_tag = tag("new", 0));
    let other = with(runs(0, 2, 0), |lrp| {
        lrp.actual_lrp_key.as_mut().unwrap().process_guid = "q".into();
        lrp.actual_lrp_instance_key.as_mut().unwrap().instance_guid = "guid-q".into();
    });
    heard.sync(answer(&[], &[], &[back.clone(), other.clone()]));
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
    // Whoever desires it comes back and says what there is.
    heard.sync(answer(&["d"], &[], &[back, other]));
    assert!(heard.router.0.is_empty());
}

#[test]
fn an_instance_that_has_ended_is_not_kept_while_its_process_is_desired() {
    let mut heard = two();
    heard.sync(answer(&[], &[web(2, 0, &["a.x"])], &[runs(0, 1, 0)]));
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
}

#[test]
fn routes_that_are_missing_stay_until_the_domain_is_fresh() {
    let mut heard = two();
    let all = [runs(0, 1, 0), runs(1, 2, 0)];
    let changes = heard.sync(answer(&[], &[web(2, 1, &["b.x"])], &all));
    assert_eq!(
        (changes.registered.len(), changes.unregistered.len()),
        (2, 0)
    );
    assert_eq!(heard.router.routes().len(), 4);
    let changes = heard.sync(answer(&["d"], &[web(2, 1, &["b.x"])], &all));
    assert_eq!(
        (changes.registered.len(), changes.unregistered.len()),
        (0, 2)
    );
    // What an event says is no matter of freshness.
    heard.sync(answer(&[], &[web(2, 1, &["b.x"])], &all));
    heard.update(web(2, 1, &["b.x"]), web(2, 2, &["c.x"]));
    let hosts: Vec<_> = heard
        .router
        .0
        .values()
        .map(|it| &*http(it).uris[0])
        .collect();
    assert_eq!(hosts, ["c.x", "c.x"]);
}

#[test]
fn events_during_a_sync_count_at_once_and_in_its_outcome() {
    let mut heard = two();
    heard.table.begin_sync();
    // Later than the answer.
    let third = runs(2, 3, 0);
    heard.update(web(2, 0, &["a.x"]), web(3, 1, &["a.x", "b.x"]));
    heard.create(third);
    heard.remove(runs(0, 1, 0));
    let during = heard.router.clone();
    assert_eq!(during.routes().len(), 4);
    let old = answer(
        &["d"],
        &[web(2, 0, &["a.x"])],
        &[runs(0, 1, 0), runs(1, 2, 0)],
    );
    assert_eq!(heard.answer(old), Changes::default());
    assert_eq!(heard.router, during);
}

#[test]
fn an_answer_that_is_newer_than_an_event_wins() {
    let mut heard = two();
    heard.table.begin_sync();
    heard.update(web(2, 0, &["a.x"]), web(2, 1, &["b.x"]));
    heard.change(
        runs(0, 1, 0),
        with(runs(0, 1, 1), |lrp| lrp.routable = Some(false)),
    );
    let newer = answer(
        &["d"],
        &[web(2, 2, &["c.x"])],
        &[runs(0, 1, 2), runs(1, 2, 0)],
    );
    heard.answer(newer);
    assert_eq!(
        heard.router.routes(),
        ["c.x 10.0.0.1:61001", "c.x 10.0.0.1:61002"]
    );
}

#[test]
fn a_sync_without_an_answer_changes_nothing() {
    let mut heard = two();
    heard.table.begin_sync();
    heard.remove(runs(0, 1, 0));
    heard.table.abandon_sync();
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61002"]);
    // What came in one sync is not put over the answer of the next.
    heard.sync(answer(&["d"], &[web(2, 0, &["a.x"])], &[runs(0, 1, 0)]));
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
}

#[test]
fn a_cell_keeps_what_it_was_not_asked_about_and_forgets_what_does_not_run_on_it() {
    let mut heard = Heard::default();
    heard.desire(web(2, 0, &["a.x"]));
    let other = DesiredLrp {
        process_guid: "elsewhere".into(),
        ..web(2, 0, &["b.x"])
    };
    heard.desire(other);
    heard.table.begin_sync();
    // It starts while the BBS is asked about other processes.
    heard.create(runs(0, 1, 0));
    heard.answer(of_cell(&["d"], &[], &[], &[]));
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
    assert_eq!(heard.table.processes.len(), 1);
    // Asked about, it is not desired any more.
    heard.sync(of_cell(&["d"], &["p"], &[], &[runs(0, 1, 0)]));
    assert!(heard.router.0.is_empty());
}

#[test]
fn a_cell_of_a_database_that_was_lost_keeps_its_routes() {
    let mut heard = Heard::default();
    heard.sync(of_cell(
        &["d"],
        &["p"],
        &[web(1, 0, &["a.x"])],
        &[runs(0, 1, 0)],
    ));
    assert_eq!(
        heard.sync(of_cell(&[], &["p"], &[], &[])),
        Changes::default()
    );
    assert_eq!(
        heard
            .sync(of_cell(&["d"], &["p"], &[], &[]))
            .unregistered
            .len(),
        1
    );
}
