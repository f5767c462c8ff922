//! What came of loads: values for expectations, and lines for people.

use lab_experiment::expr::{Dimension, KneeEnd, LoadQuantity, Stat};
use lab_experiment::plan::Load;
use lab_generator::Outage;
use lab_load::Summary;
use lab_load::knee::{Capacity, Usl};
use lab_load::summary::Distribution;
use units::{counted, show_rate, show_seconds, show_share};

/// What came of a load in a step, or over all of them.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) load: String,
    /// `None`: a probe, over all its steps.
    pub(crate) step: Option<String>,
    pub(crate) summary: Summary,
    /// The longest outage, if there was one; `None`: nobody looked for outages.
    pub(crate) outage: Option<Option<Outage>>,
}

/// Outcomes, to be asked for values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured<'a>(pub(crate) &'a [Outcome]);

impl<'a> Measured<'a> {
    /// The value of a quantity of a load in a step, or in the only one, at one of its
    /// bounds.
    pub(crate) fn value(
        self,
        load: &str,
        step: Option<&str>,
        quantity: LoadQuantity,
        bound: Bound,
    ) -> Option<f64> {
        let outcome = self.outcome(load, step)?;
        if step.is_none() && outcome.step.is_some() && quantity.dimension() == Dimension::Count {
            let steps = self.of(load).map(|outcome| &outcome.summary);
            return steps.map(|summary| value(summary, quantity)).sum();
        }
        match quantity {
            LoadQuantity::Outage => Some(length_of(outcome.outage?)),
            quantity => value_at(&outcome.summary, quantity, bound),
        }
    }

    /// The result that a metric means: that of a step, or the only one.
    pub(crate) fn load(self, load: &str, step: Option<&str>) -> Option<&'a Summary> {
        self.outcome(load, step).map(|outcome| &outcome.summary)
    }

    /// What came of a load in each of its steps, but for those that search.
    fn of(self, load: &str) -> impl DoubleEndedIterator<Item = &'a Outcome> {
        let all = self.0.iter();
        all.filter(move |outcome| outcome.load == load && outcome.summary.capacity.is_none())
    }

    fn outcome(self, load: &str, step: Option<&str>) -> Option<&'a Outcome> {
        let mut found = self.of(load);
        match step {
            Some(step) => found.find(|outcome| outcome.step.as_deref() == Some(step)),
            // A probe has a result of its own over all steps, which comes last.
            None => found.next_back(),
        }
    }

    /// The search that a metric means: that of a step, or the only one.
    pub(crate) fn search(self, step: Option<&str>) -> Option<&'a Summary> {
        let mut found = self
            .0
            .iter()
            .filter(|outcome| outcome.summary.capacity.is_some());
        let found = found.find(|outcome| step.is_none() || outcome.step.as_deref() == step);
        found.map(|outcome| &outcome.summary)
    }

    /// Every result that says nothing about its target, but for those of which everything that
    /// was asked is `decided` nevertheless: a count, or what uncertain latencies cannot turn round. Where a probe is decided over all
    /// steps, each of its steps is.
    pub(crate) fn invalid(
        self,
        decided: impl Fn(&Summary) -> bool,
    ) -> impl Iterator<Item = &'a Outcome> {
        self.0.iter().filter(move |outcome| {
            let decided = || decided(&outcome.summary) || self.whole(outcome).is_some_and(&decided);
            !outcome.summary.validity.valid && !decided()
        })
    }

    /// The result over all steps of a probe, of one of which this is a part.
    fn whole(self, part: &Outcome) -> Option<&'a Summary> {
        let mut of_all = self.of(&part.load).filter(|outcome| outcome.step.is_none());
        let whole = of_all.next().filter(|_| part.step.is_some())?;
        Some(&whole.summary)
    }
}

/// Which of the values that a quantity may have, given what the generator may have spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Without all that it may have spoiled: the least latency, the most good answers.
    AtBest,
    /// As it was measured.
    Measured,
}

/// The value of a quantity of a load in a step, at one of its bounds.
fn value_at(summary: &Summary, quantity: LoadQuantity, bound: Bound) -> Option<f64> {
    let (distribution, stat) = match quantity {
        LoadQuantity::Latency(stat) => (&summary.latency.intended, stat),
        LoadQuantity::Actual(stat) => (&summary.latency.actual, stat),
        LoadQuantity::Rate if bound == Bound::AtBest => {
            let rate = &summary.rate;
            return rate.good_at_best.or(Some(rate.good));
        }
        _ if bound == Bound::AtBest => {
            return value_with(summary, quantity, summary.requests.starved);
        }
        _ => return value(summary, quantity),
    };
    match distribution.bounds.get(stat.name()) {
        Some([low, _]) if bound == Bound::AtBest => Some(*low),
        Some([_, high]) => Some(*high),
        None => latency(distribution, stat),
    }
}

/// Length of the longest outage in seconds: 0 where there was none.
pub(crate) fn length_of(outage: Option<Outage>) -> f64 {
    outage.map_or(0.0, |outage| outage.length.as_secs_f64())
}

/// An outage in words; `None` where too few requests failed in a row to call it one.
pub(crate) fn of_outage(outage: Option<Outage>) -> Option<String> {
    let outage = outage.filter(|outage| outage.length >= outage.give_or_take * 3)?;
    let show = |time: std::time::Duration| show_seconds(time.as_secs_f64());
    let length = match outage.open {
        true => format!("at least {}", show(outage.length)),
        false => format!("{} ± {}", show(outage.length), show(outage.give_or_take)),
    };
    Some(format!(
        "longest outage {length}, from {} on",
        show(outage.from)
    ))
}

/// The value of a quantity of a load.
fn value(summary: &Summary, quantity: LoadQuantity) -> Option<f64> {
    value_with(summary, quantity, 0)
}

/// The same if `more` of the requests that failed without being sent had been answered well.
fn value_with(summary: &Summary, quantity: LoadQuantity, more: u64) -> Option<f64> {
    let counts = &summary.requests;
    let failed = || match more {
        0 => counts.failed_share,
        _ => share(counts.failed.saturating_sub(more), counts.tried),
    };
    match quantity {
        LoadQuantity::Latency(stat) => latency(&summary.latency.intended, stat),
        LoadQuantity::Actual(stat) => latency(&summary.latency.actual, stat),
        LoadQuantity::Errors => failed(),
        LoadQuantity::Ok => failed().map(|failed| 1.0 - failed),
        LoadQuantity::Sent => share(counts.sent + more, counts.planned),
        LoadQuantity::Rate => Some(summary.rate.good),
        LoadQuantity::Answered => Some((counts.answered + more) as f64),
        LoadQuantity::Good => Some((counts.answered.saturating_sub(counts.refused) + more) as f64),
        LoadQuantity::Requests => Some((counts.sent + more) as f64),
        // See `Measured::value`.
        LoadQuantity::Outage => None,
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn latency(distribution: &Distribution, stat: Stat) -> Option<f64> {
    match stat {
        _ if distribution.lost(stat.name()) => Some(f64::INFINITY),
        Stat::Min => distribution.min,
        Stat::Mean => distribution.mean,
        Stat::P50 => distribution.p50,
        Stat::P75 => distribution.p75,
        Stat::P90 => distribution.p90,
        Stat::P95 => distribution.p95,
        Stat::P99 => distribution.p99,
        Stat::P999 => distribution.p999,
        Stat::P9999 => distribution.p9999,
        Stat::Max => distribution.max,
        Stat::Count => Some(distribution.count as f64),
        Stat::Last | Stat::Span | Stat::Sum => None,
    }
}

/// A rate that a search found.
pub(crate) fn knee(summary: &Summary, end: KneeEnd) -> Option<f64> {
    let knee = summary.capacity.as_ref()?.knee?;
    Some(match end {
        KneeEnd::Rate => knee.rate,
        KneeEnd::Low => knee.low,
        KneeEnd::High => knee.high,
    })
}

/// Makes the result of a hold that of the whole search.
pub(crate) fn add_capacity(summary: &mut Summary, mut capacity: Capacity, wants_usl: bool) {
    if !wants_usl {
        let refused = "it was not asked for; add fit = \"usl\" to the step".to_owned();
        capacity.usl = Usl::Refused(refused);
    }
    summary.validity = capacity.validity(summary.validity.clone());
    summary.capacity = Some(capacity);
}

/// A search in a line.
pub(crate) fn of_search(load: &Load, capacity: &Capacity) -> String {
    let found = capacity.knee.map_or_else(
        || "found no knee".to_owned(),
        |knee| {
            format!(
                "knee at {} ({} to {})",
                show_rate(knee.rate),
                show_rate(knee.low),
                show_rate(knee.high)
            )
        },
    );
    format!(
        "{}: {found} after {}; {}",
        load.name,
        counted(capacity.points.len() as u64, "hold", "holds"),
        capacity.note
    )
}

/// A load in a line.
pub(crate) fn of_load(summary: &Summary) -> String {
    let mut parts = Vec::new();
    parts.extend(
        summary
            .rate
            .asked
            .map(|asked| format!("{} asked", show_rate(asked))),
    );
    parts.push(format!("{} good", show_rate(summary.rate.good)));
    let p99 = latency(&summary.latency.intended, Stat::P99);
    parts.extend(p99.map(|p99| format!("p99 {}", show_seconds(p99))));
    let errors = value(summary, LoadQuantity::Errors).unwrap_or(0.0);
    if errors > 0.0 {
        parts.push(format!("{} failed", show_share(errors)));
    }
    let mut text = format!("{}: {}", summary.name, parts.join(", "));
    if !summary.validity.valid {
        text += &format!("; INVALID: {}", reasons(summary));
    }
    text
}

/// Why a load is INVALID, in one line.
pub(crate) fn reasons(summary: &Summary) -> String {
    let reasons = summary.validity.reasons.iter();
    reasons
        .map(|reason| reason.found.clone())
        .collect::<Vec<_>>()
        .join("; ")
}

/// That a load is INVALID, and why.
pub(crate) fn is_invalid(outcome: &Outcome) -> String {
    let step = match &outcome.step {
        Some(step) => format!(" in {step:?}"),
        None => String::new(),
    };
    format!(
        "load {}{step} is INVALID: {}",
        outcome.load,
        reasons(&outcome.summary)
    )
}
