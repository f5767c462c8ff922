//! Any bytes as a registration: they are read or refused, and a table that took them
//! still answers for another route. The first byte chooses the subject.

#![no_main]

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use routing::registry::{Intake, RegistryCounters};
use routing::table::{Lookup, Table, TableSettings};
use telemetry::{Level, Logger, Sink};

const OTHER: &[u8] = br#"{"host":"h","port":1,"uris":["other.example.com"]}"#;

static LOGGER: LazyLock<Logger> =
    LazyLock::new(|| Logger::new("registry", Sink::nothing(), Level::Info));

thread_local! {
    /// To make a table costs more than to use it: it serves a while.
    static TABLE: RefCell<(Arc<Table>, u32)> = RefCell::new((fresh(), 0));
}

fn fresh() -> Arc<Table> {
    Arc::new(Table::new(TableSettings::default()))
}

fn table() -> Arc<Table> {
    TABLE.with_borrow_mut(|(table, uses)| {
        *uses += 1;
        if *uses % 1_000 == 0 {
            table.prune(u64::MAX / 2);
            *table = fresh();
        }
        Arc::clone(table)
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, payload)) = data.split_first() else {
        return;
    };
    let table = table();
    let counters = Arc::new(RegistryCounters::default());
    let logger = LOGGER.clone();
    let mut intake = Intake::new(Arc::clone(&table), counters, true, 0, logger);
    let subject: &[u8] = match choice % 3 {
        0 => b"router.register",
        1 => b"router.unregister",
        _ => b"router.other",
    };
    intake.take([(&b"router.register"[..], OTHER), (subject, payload)], 1);
    let found = table.lookup(b"other.example.com", b"/");
    // The payload may name the very route.
    assert!(matches!(found, Lookup::Found(_)) || choice % 3 == 1);
});
