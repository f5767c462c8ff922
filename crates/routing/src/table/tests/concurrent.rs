//! Readers beside a writer.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A route that is always there is always found, with a list of endpoints that existed as
/// a whole, whatever goes on around it.
#[test]
fn readers_see_whole_pools_while_a_writer_floods() {
    let table = table();
    let stop = AtomicBool::new(false);
    // All in one shard: its slots are filled, emptied and rebuilt all the time.
    add(&table, "one.host/always", "0.0.0.0:0");
    std::thread::scope(|threads| {
        let readers: Vec<_> = (0..2)
            .map(|_| threads.spawn(|| read(&table, &stop)))
            .collect();
        for round in 0..200 {
            for route in 0..100 {
                add(&table, &format!("one.host/{round}/{route}"), "1.1.1.1:1");
            }
            churn(&table, round);
            for route in 0..100 {
                let uri = format!("one.host/{round}/{route}");
                let none = Modification::default();
                let left = table.unregister(&key(&uri), "1.1.1.1:1", &none, 0);
                assert_eq!(left, Unregistered::Removed { route: true });
            }
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    assert_eq!(table.len(), 1);
}

/// Endpoints of a round come one after the other and leave in the opposite order, and the
/// settings of the route change with each: it always has those from 0 to some n.
fn churn(table: &Table, round: u32) {
    let none = Modification::default();
    let url = |it: u32| {
        if it.is_multiple_of(2) {
            ""
        } else {
            "https://rs.ex"
        }
    };
    for port in 1..8 {
        let (identity, url) = (format!("0.0.0.0:{port}"), url(port + round));
        let registration = Registration {
            route_service_url: url,
            ..at(&identity)
        };
        table.register_with(&key("one.host/always"), &registration, 0);
    }
    for port in (1..8).rev() {
        let identity = format!("0.0.0.0:{port}");
        table.unregister(&key("one.host/always"), &identity, &none, 0);
    }
}

fn read(table: &Table, stop: &AtomicBool) -> u64 {
    let mut lookups = 0;
    loop {
        let Lookup::Found(pool) = table.lookup(b"one.host", b"/always/x") else {
            panic!("the route is gone");
        };
        for (port, endpoint) in pool.endpoints().iter().enumerate() {
            assert_eq!(endpoint.identity, format!("0.0.0.0:{port}"));
        }
        assert!(matches!(
            table.lookup(b"one.host", b"/never"),
            Lookup::Nothing
        ));
        lookups += 1;
        if stop.load(Ordering::Relaxed) {
            return lookups;
        }
    }
}

/// Writers of several threads lose nothing of each other.
#[test]
fn writers_wait_for_each_other() {
    let table = table();
    std::thread::scope(|threads| {
        for writer in 0..4 {
            let table = &table;
            threads.spawn(move || {
                for route in 0..500 {
                    add(
                        table,
                        &format!("shared-{route}.ex"),
                        &format!("1.1.1.{writer}:1"),
                    );
                    add(table, &format!("own-{writer}-{route}.ex"), "1.1.1.1:1");
                }
            });
        }
    });
    assert_eq!((table.len(), table.pools().len()), (2500, 2500));
    for pool in table.pools() {
        let expected = if pool.key().starts_with("shared") {
            4
        } else {
            1
        };
        assert_eq!(pool.endpoints().len(), expected, "{}", pool.key());
    }
}
