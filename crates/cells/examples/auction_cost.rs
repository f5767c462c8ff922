//! Processor time of placement alone: one batch of instances over empty cells, of one thread.
//!
//! `auction_cost [cells instances [batch]]`; without arguments, the rows of docs/benchmarks.md.

use std::time::Duration;

use cells::auction_sim::{CellKind, Scenario, run};
use nix::time::ClockId;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let numbers = std::env::args().skip(1).map(|text| text.parse());
    let numbers = numbers.collect::<Result<Vec<u32>, _>>()?;
    let rows = match numbers[..] {
        [] => vec![
            (100, 10_000, 0),
            (1000, 10_000, 0),
            (1000, 100_000, 0),
            (10_000, 100_000, 0),
            (10_000, 1_000_000, 0),
            (10_000, 1_000_000, 10_000),
        ],
        [cells, instances] => vec![(cells, instances, 0)],
        [cells, instances, batch] => vec![(cells, instances, batch)],
        _ => return Err("expected CELLS INSTANCES [BATCH]".into()),
    };
    println!("cells\tinstances\trounds\tplaced\ts\tµs/instance\tmemory variation");
    for (cells, instances, batch) in rows {
        let outcome = run(&scenario(cells, instances, batch), processor_time)?;
        println!(
            "{cells}\t{instances}\t{}\t{}\t{:.3}\t{:.3}\t{:.4}",
            outcome.rounds.len(),
            outcome.placed,
            outcome.time.total,
            outcome.time.per_instance_us,
            outcome.memory.variation,
        );
    }
    Ok(())
}

/// Cells of 64 GiB, or larger where there are more than 64 instances to one: then the last of them
/// find no room, and are refused.
fn scenario(cells: u32, instances: u32, batch: u32) -> Scenario {
    let each = i32::try_from(instances.div_ceil(cells)).unwrap_or(i32::MAX);
    let usual = Scenario::default();
    let kind = CellKind {
        count: cells,
        memory_mb: (64 << 10).max(each.saturating_mul(1024)),
        disk_mb: (256 << 10).max(each.saturating_mul(2048)),
        containers: 250.max(each.saturating_mul(2)),
    };
    Scenario {
        cells: vec![kind],
        instances,
        batch,
        ..usual
    }
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock.now().map_or(Duration::ZERO, Duration::from)
}
