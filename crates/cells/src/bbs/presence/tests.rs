use super::*;

fn request(key: &str, owner: &str, code: i32, ttl: i64) -> LockRequest {
    LockRequest {
        resource: Some(Resource {
            key: key.into(),
            owner: owner.into(),
            value: r#"{"cell_id":"c"}"#.into(),
            type_code: code,
            ..Resource::default()
        }),
        ttl_in_seconds: ttl,
    }
}

#[test]
fn a_key_belongs_to_its_owner_until_it_expires() {
    let (table, start) = (Presences::default(), Instant::now());
    assert!(table.lock(request("a", "o1", 1, 5), start).is_ok());
    assert_eq!(table.lock(request("a", "o2", 1, 5), start), Err(COLLISION));
    let later = start + Duration::from_secs(4);
    assert!(table.lock(request("a", "o1", 1, 5), later).is_ok());
    let much_later = start + Duration::from_secs(8);
    assert_eq!(
        table.lock(request("a", "o2", 1, 5), much_later),
        Err(COLLISION)
    );
    let expired = start + Duration::from_secs(9);
    assert_eq!(table.fetch("a", expired), Err(NOT_FOUND));
    assert!(table.lock(request("a", "o2", 1, 5), expired).is_ok());
}

#[test]
fn refusals_come_in_the_order_type_ttl_owner() {
    let (table, now) = (Presences::default(), Instant::now());
    assert_eq!(table.lock(request("a", "", 0, 0), now), Err(INVALID_TYPE));
    assert_eq!(table.lock(request("a", "", 1, 0), now), Err(INVALID_TTL));
    assert_eq!(table.lock(request("a", "", 1, 1), now), Err(INVALID_OWNER));
    assert_eq!(table.lock(LockRequest::default(), now), Err(NO_RESOURCE));
    assert!(table.lock(request("a", "o", 1, i64::MAX), now).is_ok());
}

#[test]
fn only_presences_are_cells() {
    let (table, now) = (Presences::default(), Instant::now());
    table.lock(request("lock", "o", 1, 9), now).unwrap();
    table.lock(request("c", "o", 2, 9), now).unwrap();
    assert_eq!(table.cells(now).len(), 1);
    assert!(table.cell("lock", now).is_none());
    assert!(table.cell("c", now + Duration::from_secs(9)).is_none());
}

#[test]
fn the_disk_learns_of_holders_and_not_of_renewals() {
    let (table, now) = (Presences::default(), Instant::now());
    let first = table.lock(request("c", "o", 2, 9), now).unwrap().unwrap();
    let again = table.lock(request("c", "o", 2, 9), now).unwrap();
    assert_eq!(again.as_ref(), Some(&first), "it was not stored");
    table.stored("c", first.id);
    assert_eq!(table.lock(request("c", "o", 2, 9), now), Ok(None));
    let longer = table.lock(request("c", "o", 2, 10), now).unwrap().unwrap();
    assert!(longer.id > first.id);
    assert_eq!(table.sweep(now), []);
    let late = now + Duration::from_secs(10);
    assert_eq!(table.sweep(late), [longer]);
    assert_eq!(table.release(first.clone().resource.into(), late), Ok(None));
}

#[test]
fn a_holder_of_before_a_restart_has_its_time_anew_and_is_missed_until_it_renews() {
    let now = Instant::now();
    let before = Presences::default();
    let kept = before.lock(request("c", "o", 2, 9), now).unwrap();
    let table = Presences::of(kept.into_iter().collect(), now);
    assert!(table.cell("c", now).is_some());
    assert_eq!(table.lock(request("c", "other", 2, 9), now), Err(COLLISION));
    assert_eq!(table.missing(&["c".into(), "d".into()]), 2);
    assert_eq!(table.lock(request("c", "o", 2, 9), now), Ok(None));
    assert_eq!(table.missing(&["c".into(), "d".into()]), 1);
    table.lock(request("d", "o", 2, 9), now).unwrap();
    assert_eq!(table.missing(&["c".into(), "d".into()]), 0);
}

#[test]
fn after_a_standstill_every_holder_has_its_time_anew() {
    let (table, start) = (Presences::default(), Instant::now());
    table.lock(request("a", "o1", 1, 5), start).unwrap();
    let later = start + Duration::from_secs(60);
    table.grant_anew(later);
    assert_eq!(table.sweep(later + Duration::from_secs(4)), []);
    assert_eq!(table.lock(request("a", "o2", 1, 5), later), Err(COLLISION));
    assert_eq!(table.sweep(later + Duration::from_secs(5)).len(), 1);
}
