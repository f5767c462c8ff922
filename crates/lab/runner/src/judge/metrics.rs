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
            replicates: replicates(&metric, measured),
        })
    });
    known.collect()
}

/// Values from within the run, in order of time: what one run can be compared with another by.
fn replicates(metric: &Metric, measured: &Measured<'_>) -> Vec<f64> {
    match metric {
        Metric::Load { quantity, .. } => {
            let slots = measured.summary(metric).map(|summary| &summary.timeline);
            let slots = slots.into_iter().flatten().filter(|slot| !slot.after_end);
            slots.filter_map(|slot| of_slot(slot, *quantity)).collect()
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

/// What a quantity of a load was in a part of its time.
fn of_slot(slot: &Slot, quantity: LoadQuantity) -> Option<f64> {
    let ended = slot.good + slot.failed;
    match quantity {
        LoadQuantity::Latency(Stat::P50) => slot.p50,
        LoadQuantity::Latency(Stat::P99) => slot.p99,
        LoadQuantity::Latency(Stat::Max) => slot.max,
        LoadQuantity::Rate if slot.length_s > 0.0 => Some(slot.good as f64 / slot.length_s),
        LoadQuantity::Errors if ended > 0 => Some(slot.failed as f64 / ended as f64),
        LoadQuantity::Ok if ended > 0 => Some(slot.good as f64 / ended as f64),
        _ => None,
    }
}
