//! Verdicts in plain sentences.

use crate::Unit;
use crate::gate::{GateJudgement, MetricJudgement};
use crate::groups::{Comparison, ComparisonBasis};
use crate::history::{Change, Drift, FastAlarm};
use crate::verdict::{Effect, Needs, Verdict};

/// From this on a share is told as so many times.
const TIMES_FROM: f64 = 100.0;

/// Nobody wants to know how many more times.
const TIMES_MOST: f64 = 1e6;

/// What keeps a metric such as a growth from being compared.
const NEGATIVE: &str =
    "the value is below zero, of which there is no ratio: compare another metric";

/// A share as people read it, without its sign.
fn percent(share: f64) -> String {
    match share.abs() {
        share if share > TIMES_MOST => "over 1,000,000 times".to_owned(),
        share if share >= TIMES_FROM => format!("{} times", units::grouped(share.round() as u64)),
        share => units::share(share, 2).text,
    }
}

/// "4.8 % worse", "1.2 % better".
fn worse_or_better(share: f64) -> String {
    let word = if share < 0.0 { "better" } else { "worse" };
    match share.abs() < 5e-5 {
        true => "no different".to_owned(),
        false => format!("{} {word}", percent(share)),
    }
}

/// "4.8 % worse (between 2.1 % and 7.6 % worse)".
fn effect(effect: &Effect) -> String {
    let estimate = worse_or_better(effect.worse_by_share);
    match (effect.low_share, effect.high_share) {
        (Some(low), Some(high)) if (low < 0.0) == (high < 0.0) => {
            format!(
                "{estimate} (between {} and {})",
                percent(low),
                worse_or_better(high)
            )
        }
        (Some(low), Some(high)) => {
            format!(
                "{estimate} (between {} and {})",
                worse_or_better(low),
                worse_or_better(high)
            )
        }
        _ => format!("{estimate} (too few for an interval)"),
    }
}

/// "31 pairs, noise of 80 % of this, or a limit of 3.6 % would settle it".
fn needs_of(needs: &Needs, of: &str, interval: bool) -> String {
    if let (false, Some(runs)) = (interval, needs.runs) {
        return format!("it takes at least {runs} {of}");
    }
    let mut ways = Vec::new();
    ways.extend(needs.runs.map(|runs| format!("about {runs} {of} in all")));
    let quieter = needs.noise_share.filter(|share| *share < 0.995);
    ways.extend(quieter.map(|share| {
        let noise = percent(share);
        format!("a machine with {noise} of the noise")
    }));
    let limit = needs.limit_share;
    ways.extend(limit.map(|share| format!("a limit of {}", percent(share))));
    let last = ways.pop();
    match (last, ways.is_empty()) {
        (None, _) => format!("the noise is too large for any number of {of}"),
        (Some(last), true) => format!("{last} would settle it"),
        (Some(last), false) => format!("{} or {last} would settle it", ways.join(", ")),
    }
}

fn times(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// The parts of a sentence that pairs and groups share.
struct Parts<'a> {
    name: &'a str,
    verdict: Verdict,
    effect: Option<&'a Effect>,
    medians: Option<String>,
    limit: String,
    detectable: Option<f64>,
    needs: Option<&'a Needs>,
    /// "24 pairs", and of what more are needed.
    from: String,
    of: &'a str,
    missing: Option<String>,
}

impl Parts<'_> {
    /// Beyond chance.
    fn better(&self) -> bool {
        let high = self.effect.and_then(|effect| effect.high_share);
        high.is_some_and(|high| high < 0.0)
    }

    /// Nothing where values are missing: more of the same settle nothing.
    fn needs_in_words(&self) -> String {
        let interval = self.effect.and_then(|effect| effect.low_share).is_some();
        let needs = self.needs.filter(|_| self.missing.is_none());
        needs.map_or_else(String::new, |found| {
            format!("; {}", needs_of(found, self.of, interval))
        })
    }

    fn sentence(&self) -> String {
        let (name, limit, from) = (self.name, &self.limit, &self.from);
        let effect = self.effect.map_or_else(|| "unknown".to_owned(), effect);
        let medians = self
            .medians
            .iter()
            .map(|text| format!(": {text}"))
            .collect::<String>();
        let seen = self.detectable.iter().map(|share| {
            let share = percent(*share);
            format!("; a slowdown of {share} would have been noticed")
        });
        let seen: String = seen.collect();
        let mut text = match self.verdict {
            Verdict::Worse => {
                format!("{name} is worse: {effect} in {from}, over the limit of {limit}{medians}")
            }
            Verdict::NotWorse if self.better() => {
                format!("{name} is better: {effect} in {from}{medians}{seen}")
            }
            Verdict::NotWorse => {
                format!("{name} is not worse by more than {limit}: {effect} in {from}{seen}")
            }
            Verdict::CannotTell if self.effect.is_none() => {
                let needs = self.needs_in_words();
                format!("cannot tell whether {name} is worse: {from} are too few{needs}")
            }
            Verdict::CannotTell => {
                let needs = self.needs_in_words();
                format!(
                    "cannot tell whether {name} is worse by more than {limit}: {effect} in {from}{needs}"
                )
            }
        };
        if let Some(missing) = &self.missing {
            text += &format!("; {missing}");
        }
        text
    }
}

impl MetricJudgement {
    pub(crate) fn in_words(&self) -> String {
        let unit = self.metric.unit;
        let medians = self.base_median.zip(self.new_median);
        let missing = match (self.missing.negative, self.missing.in_new) {
            (0, 0) => None,
            (0, pairs) => Some(format!(
                "the new program gave no value in {}, which is never a pass",
                times(pairs, "pair")
            )),
            (pairs, _) => Some(format!("in {} {NEGATIVE}", times(pairs, "pair"))),
        };
        let parts = Parts {
            name: &self.metric.name,
            verdict: self.verdict,
            effect: self.effect.as_ref(),
            medians: medians
                .map(|(base, new)| format!("{} became {}", unit.show(base), unit.show(new))),
            limit: percent(self.limit_share),
            detectable: self.detectable_share,
            needs: self.needs.as_ref(),
            from: times(self.pairs, "pair"),
            of: "pairs",
            missing,
        };
        parts.sentence()
    }
}

impl GateJudgement {
    pub(crate) fn in_words(&self) -> String {
        let names = |verdict| -> String {
            let of = self
                .metrics
                .iter()
                .filter(|metric| metric.verdict == verdict);
            let names: Vec<&str> = of.map(|metric| metric.metric.name.as_str()).collect();
            names.join(", ")
        };
        let pairs = times(self.pairs, "pair");
        match self.verdict {
            Verdict::Worse => format!("worse, after {pairs}: {}", names(Verdict::Worse)),
            Verdict::NotWorse => format!("not worse, after {pairs}"),
            Verdict::CannotTell if self.budget_spent => {
                let open = names(Verdict::CannotTell);
                format!("cannot tell, and the budget of {pairs} is spent: {open}")
            }
            Verdict::CannotTell => format!("not decided after {pairs}"),
        }
    }
}

impl Effect {
    /// "4.8 % worse (between 2.1 % and 7.6 % worse)".
    #[must_use]
    pub fn in_words(&self) -> String {
        effect(self)
    }
}

impl Comparison {
    pub(crate) fn in_words(&self) -> String {
        format!("{}. {}", self.finding_in_words(), self.licence_in_words())
    }

    /// The sentence without what it can be held to, which is often the same for several metrics.
    #[must_use]
    pub fn finding_in_words(&self) -> String {
        let unit = self.metric.unit;
        let medians = self.base_median.zip(self.new_median);
        let (base, new) = (self.base_count, self.new_count);
        let of = match self.licence {
            ComparisonBasis::Unpaired => "runs of each",
            ComparisonBasis::WithinRun | ComparisonBasis::Nothing => "batches of each",
        };
        let missing = match self.negative {
            0 => (self.new_missing > self.base_missing).then(|| {
                format!(
                    "{} of the new program have no value, which is never a pass",
                    self.new_missing
                )
            }),
            values => Some(format!("in {values} of all {NEGATIVE}")),
        };
        let parts = Parts {
            name: &self.metric.name,
            verdict: self.verdict,
            effect: self.effect.as_ref(),
            medians: medians
                .map(|(base, new)| format!("{} became {}", unit.show(base), unit.show(new))),
            limit: percent(self.limit_share),
            detectable: self.detectable_share,
            needs: self.needs.as_ref(),
            from: match self.licence {
                ComparisonBasis::Unpaired => format!("{} beside {new}", times(base, "run")),
                _ => format!("{base} beside {new} batches of one run each"),
            },
            of,
            missing,
        };
        parts.sentence()
    }

    /// What the comparison can be held to, in a sentence.
    #[must_use]
    pub fn licence_in_words(&self) -> String {
        match self.licence {
            ComparisonBasis::Unpaired => {
                "These runs were not made in random pairs: whatever the machine \
                did between them counts as a difference of the programs."
                    .to_owned()
            }
            ComparisonBasis::WithinRun => {
                "One run of each: this holds for these two runs; whether the \
                program or the machine made the difference, they cannot say."
                    .to_owned()
            }
            ComparisonBasis::Nothing => format!(
                "One run of each says nothing without at least 8 batches in both; a batch is {} \
                 values here, as neighbours resemble each other: make longer runs, or at least 4 of each.",
                self.batch_length.unwrap_or_default()
            ),
        }
    }
}

/// "1.12 times (1.09 to 1.15)".
fn ratio(ratio: Option<f64>, low: Option<f64>, high: Option<f64>) -> String {
    let times = |ratio: f64| units::count(ratio, 3).text;
    match (ratio, low, high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("{} times ({} to {})", times(ratio), times(low), times(high))
        }
        (Some(ratio), ..) => format!("{} times (too few for an interval)", times(ratio)),
        (None, ..) => "no ratio, as values reach zero".to_owned(),
    }
}

fn for_the(worse: bool) -> &'static str {
    if worse { "worse" } else { "better" }
}

impl Change {
    pub(crate) fn in_words(&self, unit: Unit) -> String {
        let span = match (self.earliest_index, self.latest_index) {
            (one, other) if one == other => format!("with run {one}"),
            (one, other) => format!("with run {} ({one} to {other})", self.index),
        };
        let ratio = ratio(self.ratio, self.ratio_low, self.ratio_high);
        let (before, after) = (unit.show(self.before), unit.show(self.after));
        let whose = match self.before == self.after {
            true => ": only some of the runs changed",
            false => "",
        };
        let text = format!(
            "{} {span}: {before} became {after}, {ratio}{whose}",
            for_the(self.worse)
        );
        match self.certain {
            true => text,
            false => format!("{text}; not certain before more runs follow"),
        }
    }
}

impl Drift {
    pub(crate) fn in_words(&self) -> String {
        format!(
            "drifts for the {} from run {} to {}, at no single one: {} in all",
            for_the(self.worse),
            self.first_index,
            self.last_index,
            ratio(self.ratio, self.ratio_low, self.ratio_high)
        )
    }
}

impl FastAlarm {
    pub(crate) fn in_words(&self, unit: Unit) -> String {
        format!(
            "may have got {} since run {}: {} before, {} since; more runs will tell",
            for_the(self.worse),
            self.since_index,
            unit.show(self.before),
            unit.show(self.since)
        )
    }
}

#[cfg(test)]
mod tests;
