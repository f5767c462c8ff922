//! A load over time, as lines of comma-separated values.

use std::fmt::Write;

use crate::summary::{Slot, Summary};

const HEAD: &str = "t_s,length_s,planned,sent,good,failed,p50_s,p99_s,max_s,in_flight,backlog\n";

/// One line for each slot of the timeline under a line of names. Times are in seconds.
/// Latencies are empty in a slot in which nothing ended, and `inf` where they fall among
/// requests without an answer.
pub fn csv(summary: &Summary) -> String {
    let mut text = HEAD.to_owned();
    for slot in &summary.timeline {
        let time = |of: fn(&Slot) -> Option<f64>| {
            slot.latency(of)
                .map_or(String::new(), |time| time.to_string())
        };
        // Writing into a String does not fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{}",
            slot.t_s,
            slot.length_s,
            slot.planned,
            slot.sent,
            slot.good,
            slot.failed,
            time(|slot| slot.p50),
            time(|slot| slot.p99),
            time(|slot| slot.max),
            slot.in_flight,
            slot.backlog
        );
    }
    text
}
