//! What other runs can be compared by.

use lab_experiment::expr::{LoadQuantity, Metric, Metrics, Stat};
use lab_experiment::plan::Plan;
use lab_judgement::{Metric as Judged, MetricValue};
use lab_load::summary::Slot;

use super::{Measured, quantity_of};

/// Every metric that gates and expectations of a plan are about, with its value. One that was not
/// measured, or that an INVALID load spoils, is left out.
pub(crate) fn metrics(plan: &Plan, measured: &Measured<'_>) -> Vec<MetricValue> {
    let all = plan.metrics().into_iter();
    let known = all.filter_map(|(name, (metric, direction))| {
        let value = measured.value(&metric).filter(|value| value.is_finite())?;
        let spoiled = measured.summary(&metric);
        let spoiled = spoiled.is_some_and(|summary| summary.validity.spoiled());
        (!spoiled).then(|| MetricValue {
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

/// Values from within the run, in order of time: what one run can be compared with another by.
fn replicates(plan: &Plan, metric: &Metric, measured: &Measured<'_>) -> Vec<f64> {
    match metric {
        Metric::Load { load, quantity, .. } => {
            let slots = measured.summary(metric).map(|summary| &summary.timeline);
            let slots = slots.into_iter().flatten().filter(|slot| !slot.after_end);
            let slots: Vec<&Slot> = slots.collect();
            let load = plan.loads.iter().find(|one| one.name == *load);
            let timeout = load.map_or(0.0, |load| load.timeout.as_secs_f64());
            of_slots(&slots, *quantity, timeout)
        }
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

/// What a quantity of a load was in each part of its time; requests were waited for so long, in
/// seconds.
fn of_slots(slots: &[&Slot], quantity: LoadQuantity, timeout: f64) -> Vec<f64> {
    // What has no answer is slower than all that has one. To leave it out would make a target
    // that answers fewer look faster.
    let longest = slots.iter().filter_map(|slot| slot.max);
    let no_answer = longest.fold(timeout, f64::max);
    let values = slots
        .iter()
        .filter_map(|slot| of_slot(slot, quantity, no_answer));
    values.collect()
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
        let answered = slot(0, Some(0.01), Some(0.02));
        let slots = [&answered, &slot(9, None, None), &slot(0, None, None)];
        let of = |timeout| of_slots(&slots, LoadQuantity::Latency(Stat::P99), timeout);
        // Where nothing ended there is nothing to tell.
        assert_eq!(of(5.0), [0.01, 5.0]);
        // A time-out counts from the send, a latency from when the request was due.
        assert_eq!(of(0.015), [0.01, 0.02]);
    }
}
