//! An outcome for people in a terminal, with what Diego's own BBS took beside it.

use std::fmt;

use units::columns::table;
use units::{grouped, show_share};

use super::{Outcome, Times};

/// What Diego's BBS took in 2016, on a database of three nodes, in seconds: fastest, slowest, mean.
struct Published {
    /// Processes and reps.
    size: (u32, u32),
    /// As the rows are named.
    rows: &'static [(&'static str, [&'static str; 3])],
}

const ROUTE_EMITTER: &str = "route-emitter fetch";
const NSYNC: &str = "nsync-bulker fetch";
const CONVERGENCE: &str = "convergence gathering";
const BULK_FETCH: &str = "rep bulk fetch";
const BULK_LOOP: &str = "rep bulk loop";
const START: &str = "start actual LRP";
const CLAIM: &str = "claim actual LRP";

const PUBLISHED: [Published; 2] = [
    Published {
        size: (50_000, 250),
        rows: &[
            (BULK_FETCH, ["0.005", "1.093", "0.011"]),
            (BULK_LOOP, ["0.007", "1.096", "0.014"]),
            (START, ["0.002", "120.516", "0.157"]),
            (CLAIM, ["0.007", "3.162", "0.028"]),
        ],
    },
    Published {
        size: (200_000, 1000),
        rows: &[
            (ROUTE_EMITTER, ["17.671", "51.122", "37.447"]),
            (NSYNC, ["14.950", "15.450", "15.127"]),
            (CONVERGENCE, ["21.318", "28.017", "26.993"]),
            (BULK_FETCH, ["0.006", "7.160", "0.078"]),
            (BULK_LOOP, ["0.008", "7.163", "0.089"]),
            (START, ["0.002", "120.636", "0.163"]),
            (CLAIM, ["0.007", "120.522", "0.434"]),
        ],
    },
];

/// The published run whose size is the nearest, by the number of processes.
fn published(processes: u32) -> &'static Published {
    let [small, large] = &PUBLISHED;
    match processes <= small.size.0 {
        true => small,
        false => large,
    }
}

const HEADS: [&str; 12] = [
    "seconds",
    "count",
    "fastest",
    "slowest",
    "mean",
    "±",
    "p50",
    "p99",
    "p99.9",
    "Diego: fastest",
    "slowest",
    "mean",
];
/// So many of them are of what was measured here.
const MEASURED: usize = 9;

/// Seconds, to the microsecond.
fn seconds(value: f64) -> String {
    format!("{value:.6}")
}

fn row(name: &str, of: &Times, published: &Published) -> Vec<String> {
    let mut row = vec![name.to_owned(), of.count.to_string()];
    let measured = [
        of.fastest,
        of.slowest,
        of.mean,
        of.deviation,
        of.p50,
        of.p99,
        of.p999,
    ];
    row.extend(measured.map(seconds));
    let known = published.rows.iter().find(|(known, _)| *known == name);
    row.extend(
        known
            .map_or([""; 3], |(_, known)| *known)
            .map(str::to_owned),
    );
    row
}

impl fmt::Display for Outcome {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [processes, reps] = [self.processes, self.reps].map(|count| grouped(count.into()));
        writeln!(
            text,
            "{processes} processes of one instance on {reps} reps, {} turns each, {} % writes; filled in {:.1} s",
            self.trials, self.percent_writes, self.populated_s
        )?;
        let published = published(self.processes);
        let rows = [
            (ROUTE_EMITTER, &self.route_emitter_fetch),
            (NSYNC, &self.nsync_bulker_fetch),
            (CONVERGENCE, &self.convergence),
            (BULK_FETCH, &self.rep_bulk_fetch),
            (BULK_LOOP, &self.rep_bulk_loop),
            (START, &self.start),
            (CLAIM, &self.claim),
        ];
        let rows = rows.map(|(name, times)| row(name, times, published));
        table(text, &HEADS, &rows)?;
        let (of_processes, of_reps) = published.size;
        writeln!(
            text,
            "\nDiego: published in 2016, with {} processes on {} reps",
            grouped(of_processes.into()),
            grouped(of_reps.into())
        )?;
        let limits = &self.generator;
        let rows = [
            ("turns began late by", &limits.late),
            ("calls waited for a place", &limits.waited),
        ];
        let rows = rows.map(|(name, times)| row(name, times, published));
        let mut heads = HEADS;
        heads[0] = "the generator itself, seconds";
        table(text, &heads[..MEASURED], &rows)?;
        writeln!(
            text,
            "\nat most {} calls in flight; {:.2} processors used, {} of the machine idle; {} calls sent again",
            grouped(limits.in_flight.into()),
            limits.cores,
            show_share(limits.idle),
            grouped(limits.resent)
        )
    }
}
