//! Choices by the hash of a header's value.

use super::*;

pub(super) fn hashed(value: &[u8]) -> SelectionRequest<'_> {
    SelectionRequest {
        hash: Some(value),
        ..SelectionRequest::default()
    }
}

/// Which port serves each of a thousand users.
fn users(pool: &Arc<Pool>) -> Vec<i32> {
    let settings = SelectionSettings::default();
    let of = |user: i32| {
        let user = format!("user-{user}");
        next(
            &mut choice(pool, &settings, hashed(user.as_bytes()), 0),
            &settings,
            0,
        )
    };
    (0..1000).map(of).collect()
}

#[test]
fn the_same_value_goes_to_the_same_instance_and_most_stay_when_one_leaves() {
    let ten: Vec<u16> = (1..=10).collect();
    let before = users(&with_algorithm(&ten, Algorithm::Hash, 0.0));
    let mut other_order = ten.clone();
    other_order.reverse();
    assert_eq!(
        before,
        users(&with_algorithm(&other_order, Algorithm::Hash, 0.0))
    );
    let shares = counts(&before);
    assert_eq!(shares.len(), 10);
    assert!(
        shares.values().all(|count| (50..160).contains(count)),
        "{shares:?}"
    );
    let after = users(&with_algorithm(&ten[..9], Algorithm::Hash, 0.0));
    let moved = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| **before != 10 && before != after);
    assert!(moved.count() < 100, "few move that need not");
}

#[test]
fn a_retry_of_a_hashed_request_goes_to_another_instance() {
    let settings = SelectionSettings {
        in_flight: 1,
        ..SelectionSettings::default()
    };
    let pool = with_algorithm(&[1, 2, 3], Algorithm::Hash, 0.0);
    let offers = |attempts: usize| {
        let mut one = choice(&pool, &settings, hashed(b"user"), 0);
        (0..attempts)
            .map(|_| next(&mut one, &settings, 0))
            .collect::<Vec<_>>()
    };
    let before = offers(4);
    for pair in before.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
    // The one that is full, and the one that failed, are passed over.
    load(&pool, before[0] as u16, 1);
    assert_eq!(offers(1), before[1..2]);
    endpoint(&pool, before[1] as u16).state.fail_until(10);
    let third = offers(1)[0];
    assert!(third != before[0] && third != before[1]);
    load(&pool, third as u16, 1);
    assert_eq!(offers(1), before[1..2], "a failed one is better than none");
    load(&pool, before[1] as u16, 1);
    assert_eq!(offers(1), [0]);
}

#[test]
fn a_hashed_request_leaves_an_instance_far_above_the_average() {
    let settings = SelectionSettings::default();
    let offer = |pool: &Arc<Pool>| {
        next(
            &mut choice(pool, &settings, hashed(b"user"), 0),
            &settings,
            0,
        )
    };
    let pool = with_algorithm(&[1, 2, 3], Algorithm::Hash, 1.5);
    let own = offer(&pool);
    load(&pool, own as u16, 1);
    // 1 against an average of 1/3.
    assert_ne!(offer(&pool), own);
    for port in [1, 2, 3] {
        load(&pool, port, 2);
    }
    // 3 against an average of 7/3.
    assert_eq!(offer(&pool), own);
    let unbalanced = with_algorithm(&[1, 2, 3], Algorithm::Hash, 0.0);
    load(&unbalanced, own as u16, 100);
    assert_eq!(offer(&unbalanced), own);
}

#[test]
fn a_request_without_the_header_is_chosen_for_as_the_router_does() {
    let settings = SelectionSettings::default();
    let pool = with_algorithm(&[1, 2, 3], Algorithm::Hash, 0.0);
    assert_eq!(
        counts(&first_offers(&pool, &settings, 30)).values().max(),
        Some(&10)
    );
    let mut bound = hashed(b"user");
    for port in 1..=3 {
        let id = leak(format!("instance-{port}"));
        bound.sticky = Some(Sticky {
            id: id.as_bytes(),
            must: false,
        });
        assert_eq!(
            next(&mut choice(&pool, &settings, bound, 0), &settings, 0),
            port
        );
    }
}
