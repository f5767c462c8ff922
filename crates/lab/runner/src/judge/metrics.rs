//! What other runs can be compared by.

use std::time::Duration;

use lab_experiment::expr::{LoadQuantity, Metric, Metrics, Stat};
use lab_experiment::plan::Plan;
use lab_judgement::{Metric as Judged, MetricValue};
use lab_load::Summary;
use lab_load::summary::Slot;
use lab_load::validity::Bounds;

use super::{Measured, quantity_of};
use crate::loads::Bound;

/// Every metric that gates and expectations of a plan are about, with its value. One that was not
/// measured, or that an INVALID load spoils, is left out.
pub(crate) fn metrics(plan: &Plan, measured: &Measured<'_>) -> Vec<MetricValue> {
    let all = plan.metrics().into_iter();
    let known = all.filter_map(|(name, (metric, direction))| {
        let value = measured.value(&metric)?;
        let value = match value == f64::INFINITY {
            true => without_answer(plan, &metric, measured)?,
            false => value,
        };
        let summary = measured.summary(&metric);
        let spoiled = summary.is_some_and(|summary| summary.validity.spoiled())
            || withheld(&metric, measured);
        (value.is_finite() && !spoiled).then(|| MetricValue {
            metric: Judged {
                name,
                unit: metric.dimension().unit(),
                direction,
            },
            value,
            replicates: replicates(plan, &metric, measured),
        })
    });
    known.collect()
}

/// Whether the laboratory may have made so much of a number that it says nothing of what it is about.
/// Latencies of loads are withheld when they are told, and how much a closed loop is slowed by its
/// generator is far less than its bound.
fn withheld(metric: &Metric, measured: &Measured<'_>) -> bool {
    if let Metric::Load { quantity, .. } = metric {
        let is_open = |summary: &Summary| summary.rate.asked.is_some();
        let is_told = matches!(quantity, LoadQuantity::Latency(_) | LoadQuantity::Actual(_));
        if is_told || !measured.summary(metric).is_some_and(is_open) {
            return false;
        }
    }
    match [Bound::AtBest, Bound::Measured].map(|bound| measured.at(metric, bound)) {
        [Some(best), Some(seen)] => {
            let (low, high) = (best.min(seen), best.max(seen));
            Bounds { low, high }.withheld(Duration::ZERO)
        }
        [None, Some(_)] => true,
        _ => false,
    }
}

/// What a latency is compared as that falls among requests without an answer; `None`: it is none.
fn without_answer(plan: &Plan, metric: &Metric, measured: &Measured<'_>) -> Option<f64> {
    match metric {
        Metric::Load {
            load,
            quantity: LoadQuantity::Latency(_) | LoadQuantity::Actual(_),
            ..
        } => {
            let summary = measured.summary(metric)?;
            Some(at_least(&summary.timeline, timeout(plan, load)))
        }
        _ => None,
    }
}

/// How long requests of a load are waited for, in seconds.
fn timeout(plan: &Plan, load: &str) -> f64 {
    let load = plan.loads.iter().find(|one| one.name == load);
    load.map_or(0.0, |load| load.timeout.as_secs_f64())
}

/// What has no answer took longer than all that has one, and than was waited for, in seconds. To
/// leave it out would make a target that answers fewer look no worse.
fn at_least(timeline: &[Slot], timeout: f64) -> f64 {
    let longest = timeline.iter().filter_map(|slot| slot.max);
    longest.fold(timeout, f64::max)
}

/// Values from within the run, in order of time: what one run can be compared with another by.
fn replicates(plan: &Plan, metric: &Metric, measured: &Measured<'_>) -> Vec<f64> {
    match metric {
        Metric::Load { load, quantity, .. } => match measured.summary(metric) {
            Some(summary) => of_slots(&summary.timeline, *quantity, timeout(plan, load)),
            None => Vec::new(),
        },
        // The other statistics are not those of a shorter time.
        Metric::Process {
            system,
            quantity,
            stat: Stat::Mean,
        } => {
            let copies = measured.copies.get(system);
            let samples = measured.samples.iter();
            let own = samples.filter(|it| copies.is_some_and(|all| all.contains(&it.system)));
            own.map(|sample| quantity_of(sample, *quantity)).collect()
        }
        _ => Vec::new(),
    }
}

/// What a quantity of a load was in each part of its time.
fn of_slots(timeline: &[Slot], quantity: LoadQuantity, timeout: f64) -> Vec<f64> {
    let no_answer = at_least(timeline, timeout);
    let slots = timeline.iter().filter(|slot| !slot.after_end);
    slots
        .filter_map(|slot| of_slot(slot, quantity, no_answer))
        .collect()
}

fn of_slot(slot: &Slot, quantity: LoadQuantity, no_answer: f64) -> Option<f64> {
    let ended = slot.good + slot.failed;
    let latency = |told: Option<f64>| told.or((slot.unanswered > 0).then_some(no_answer));
    match quantity {
        LoadQuantity::Latency(Stat::P50) => latency(slot.p50),
        LoadQuantity::Latency(Stat::P99) => latency(slot.p99),
        LoadQuantity::Latency(Stat::Max) => latency(slot.max),
        LoadQuantity::Rate if slot.length_s > 0.0 => Some(slot.good as f64 / slot.length_s),
        LoadQuantity::Errors if ended > 0 => Some(slot.failed as f64 / ended as f64),
        LoadQuantity::Ok if ended > 0 => Some(slot.good as f64 / ended as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_an_answer_is_slower_than_all_others() {
        let slot = |unanswered: u64, p99: Option<f64>, max: Option<f64>| Slot {
            unanswered,
            p99,
            max,
            ..Slot::default()
        };
        let last = Slot {
            after_end: true,
            ..slot(0, Some(0.02), Some(0.03))
        };
        let timeline = [
            slot(0, Some(0.01), Some(0.02)),
            slot(9, None, None),
            slot(0, None, None),
            last,
        ];
        let of = |timeout| of_slots(&timeline, LoadQuantity::Latency(Stat::P99), timeout);
        // Where nothing ended there is nothing to tell.
        assert_eq!(of(5.0), [0.01, 5.0]);
        // A time-out counts from the send, a latency from when the request was due.
        assert_eq!(of(0.015), [0.01, 0.03]);
    }
}
