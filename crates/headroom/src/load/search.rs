//! The search for the knee, as the command shows it.

use anyhow::{Context, Result};
use lab_load::knee::{Event, Holds, Search, search};
use lab_load::{Generate, Recorded, Workload, validity};
use lab_report::load::capacity_point;
use units::show_seconds;

use super::{Done, Observers};

/// Searches, and keeps the hold at the highest rate that held.
pub(super) fn run(
    generator: &mut dyn Generate,
    settings: &Search,
    workload: &Workload,
    observers: &mut Observers<'_>,
) -> Result<Done> {
    let mut holds = Holds::of(generator);
    let guard = |recorded: &Recorded| -> Vec<String> {
        let judged = settings.slo.judge(recorded);
        let reasons = validity::check_for(workload, recorded, &judged).reasons;
        reasons.into_iter().map(|reason| reason.check).collect()
    };
    let capacity = search(&mut holds, settings, &guard, &mut |event| {
        match event {
            Event::Hold {
                number,
                rate,
                length,
                purpose,
            } => {
                let doing = format!("hold {number}: {purpose} at {rate:.0}/s");
                observers.live.begin(&doing, Some(*length));
            }
            Event::Passed(span) => return observers.span(span),
            Event::Held(point) => observers.screen.line(capacity_point(point)),
            Event::Rest { rate, most } => {
                let most = show_seconds(most.as_secs_f64());
                observers
                    .screen
                    .line(format!("  rest at {rate:.0}/s, {most} at most"));
            }
            Event::Believed(_) => {}
        }
        observers.interrupt.flow()
    })?;
    let recorded = holds.best(&capacity);
    Ok(Done {
        recorded: recorded.context("the search ended before its first hold")?,
        capacity: Some(capacity),
    })
}
