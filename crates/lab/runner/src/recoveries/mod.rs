//! What faults did to loads and to numbers of entities, as numbers.

mod remedy;

use std::collections::BTreeMap;

use lab_experiment::expr::{Affected, FaultNumber, Metric, ProbeSeries};
use lab_experiment::plan::Plan;
use lab_findings::recovery::{
    Effect, Recovery, Return, Signal, Unseen, Window, Worse, recovery, repeated,
};
use lab_generator::Due;
use lab_store::{EntityCount, FaultEffect, FaultRecord};
use stats::Lasted;
use units::{show_count, show_seconds, show_share};

use crate::probes::{self, Seen as SeenByProbe, Tried, between};
use crate::standstill::{Span, shared};

#[cfg(test)]
mod tests;

/// For so long a measure has to be as before to have recovered, in seconds.
const STEADY_S: f64 = 1.0;
/// Time between two samples of a number of entities, in seconds.
const SAMPLE_S: f64 = 0.1;
/// After so many times the usual time between two looks of a probe, one was missed.
const LONG_GAP: f64 = 2.0;
/// So long it may take to undo a fault that should have been, in seconds.
const UNDONE_S: f64 = 0.5;
/// Most milliseconds with requests that are kept of a load: more than an hour of one in each.
const MOST: usize = 4_000_000;

/// What became of the requests of loads.
#[derive(Debug, Default)]
pub(crate) struct Requests(BTreeMap<String, Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// When requests were due, and whether one was answered well: one entry for each
    /// millisecond with good ones, and one for each with others.
    due: Vec<(f64, bool)>,
    /// When requests were due that failed, and how many.
    failures: Vec<(f64, u32)>,
    /// When requests were due that were answered well, and how long the slowest of a
    /// millisecond took, in seconds.
    waits: Vec<(f64, f64)>,
    is_cut: bool,
}

impl Requests {
    /// Adds what became of the requests of a load that began at this second of the run.
    pub(crate) fn add(&mut self, load: &str, began_s: f64, due: impl Iterator<Item = Due>) {
        let seen = self.0.entry(load.to_owned()).or_default();
        for due in due {
            if seen.due.len() >= MOST {
                seen.is_cut = true;
                break;
            }
            let at_s = began_s + due.at.as_secs_f64();
            if due.any_good {
                seen.due.push((at_s, true));
                seen.waits.push((at_s, due.slowest.as_secs_f64()));
            }
            if due.failed > 0 {
                seen.due.push((at_s, false));
                seen.failures.push((at_s, due.failed));
            }
        }
    }
}

/// Says of each fault what it did: to every load that ran, to the tries of every probe, and to
/// the entities and values that expectations ask about.
pub(crate) fn effects(
    plan: &Plan,
    faults: &mut [FaultRecord],
    mut requests: Requests,
    (counts, tried): (&[EntityCount], &Tried),
    end_s: f64,
) {
    faults.sort_by(|a, b| a.begin_s.total_cmp(&b.begin_s));
    for (load, seen) in &mut requests.0 {
        // Two generators of a load may overlap in their last answers.
        seen.due.sort_by(|a, b| a.0.total_cmp(&b.0));
        seen.waits.sort_by(|a, b| a.0.total_cmp(&b.0));
        seen.failures.sort_by(|a, b| a.0.total_cmp(&b.0));
        let of = Affected::Load(load.clone()).to_string();
        let last_s = seen.due.last().map_or(0.0, |last| last.0);
        let first_s = seen.due.first().map_or(0.0, |first| first.0);
        let lost = |from_s: f64, to_s: f64| seen.failed(from_s, to_s);
        let measure = Measure {
            of,
            well: None,
            waits: &seen.waits,
            signal: Signal::Requests(&seen.due),
            span: (first_s, last_s.min(end_s)),
            lost: Some(&lost),
            unit: "requests",
            grain_s: 0.0,
            is_cut: seen.is_cut,
        };
        measure.around(faults);
    }
    for (of, every_s, seen) in probes::series(plan, tried) {
        around_probe(&of, every_s, &seen, faults, end_s);
    }
    for (what, state) in expected_entities(plan) {
        let samples = samples(counts, &what, &state, end_s);
        let of = Affected::Entities { what, state }.to_string();
        let measure = Measure {
            of,
            well: None,
            waits: &[],
            signal: Signal::Samples(&samples),
            span: (samples.first().map_or(0.0, |first| first.0), end_s),
            lost: None,
            unit: "entity-seconds",
            grain_s: 0.0,
            is_cut: false,
        };
        measure.around(faults);
    }
}

/// Says of each fault what it did to one number of a probe, whose copies are asked so often.
fn around_probe(
    of: &Affected,
    every_s: f64,
    seen: &SeenByProbe,
    faults: &mut [FaultRecord],
    end_s: f64,
) {
    let Some((first_s, last_s)) = seen.span() else {
        return;
    };
    let failed = |from_s: f64, to_s: f64| seen.failed(from_s, to_s);
    let (signal, lost, unit): (_, Option<&dyn Fn(f64, f64) -> f64>, _) = match seen {
        SeenByProbe::Tries(tries) | SeenByProbe::Copies { tries, .. } => {
            (Signal::Requests(tries), Some(&failed), "tries")
        }
        SeenByProbe::Level(level) => (Signal::Samples(level), None, "value-seconds"),
    };
    let well = match seen {
        SeenByProbe::Copies { well, .. } => Some(well.as_slice()),
        _ => None,
    };
    let measure = Measure {
        of: of.to_string(),
        well,
        waits: &[],
        signal,
        span: (first_s, last_s.min(end_s)),
        lost,
        unit,
        grain_s: every_s,
        is_cut: false,
    };
    measure.around(faults);
}

/// The entities that expectations about faults name.
fn expected_entities(plan: &Plan) -> Vec<(String, String)> {
    let expects = plan.expects.iter();
    let metrics = expects.flat_map(|expect| expect.that.metrics());
    let mut asked: Vec<(String, String)> = metrics
        .filter_map(|metric| match metric {
            Metric::Fault {
                of: Affected::Entities { what, state },
                ..
            } => Some((what.clone(), state.clone())),
            _ => None,
        })
        .collect();
    asked.sort();
    asked.dedup();
    asked
}

/// Counts are stored when they change; here they are as they were looked at.
fn samples(counts: &[EntityCount], what: &str, state: &str, end_s: f64) -> Vec<(f64, f64)> {
    let own = counts.iter();
    let mut own = own
        .filter(|count| count.what == what && count.state == state)
        .peekable();
    let Some(first) = own.peek() else {
        return Vec::new();
    };
    let (mut at_s, mut now) = (first.t_s, first.count);
    let mut samples = Vec::new();
    while at_s <= end_s {
        while let Some(change) = own.next_if(|change| change.t_s <= at_s) {
            now = change.count;
        }
        samples.push((at_s, now as f64));
        at_s += SAMPLE_S;
    }
    samples
}

impl Seen {
    /// How many requests failed that were due from one second on, and before another. Failures
    /// are in order of time.
    fn failed(&self, from_s: f64, to_s: f64) -> f64 {
        let failures = between(&self.failures, from_s, to_s).iter();
        failures.map(|(_, failed)| f64::from(*failed)).sum()
    }
}

/// What is looked at around faults.
struct Measure<'a> {
    of: String,
    /// Of several copies, the share that answered well when they were asked last.
    well: Option<&'a [(f64, f64)]>,
    /// Of requests that were answered well, when they were due and how long that took.
    waits: &'a [(f64, f64)],
    signal: Signal<'a>,
    /// When it was measured first and last.
    span: (f64, f64),
    /// Requests or tries that failed between two instants.
    lost: Option<&'a dyn Fn(f64, f64) -> f64>,
    /// What is lost.
    unit: &'static str,
    /// No change is known better than to so many seconds, however close samples lie: those of
    /// several copies say nothing of each other.
    grain_s: f64,
    is_cut: bool,
}

impl Measure<'_> {
    /// Adds to each fault what it did to this measure. Faults are in order of their start.
    fn around(&self, faults: &mut [FaultRecord]) {
        // What came before has to be over, or it would be taken for what is usual.
        let mut usual_from_s = self.span.0;
        for place in 0..faults.len() {
            let (begin_s, end_s) = (faults[place].begin_s, faults[place].end_s);
            let end_s = end_s.unwrap_or(self.span.1);
            if begin_s < self.span.0 || begin_s > self.span.1 {
                continue;
            }
            let next_s = next_s(faults, begin_s, end_s).unwrap_or(self.span.1);
            let until_s = next_s.min(self.span.1).max(end_s);
            let window = Window {
                fault_begin_s: begin_s,
                fault_end_s: end_s,
                hold_begin_s: usual_from_s,
                until_s,
                steady_s: STEADY_S,
            };
            let (effect, over_s) = self.effect(&window);
            usual_from_s = usual_from_s.max(over_s);
            faults[place].effects.push(effect);
        }
    }

    /// What a fault did, and from when on all is as usual.
    fn effect(&self, window: &Window) -> (FaultEffect, f64) {
        let unknown = |text: String| FaultEffect {
            of: self.of.clone(),
            text,
            ..FaultEffect::default()
        };
        if self.is_cut {
            let text = format!("more than {MOST} milliseconds with requests, which is not kept");
            return (unknown(text), window.fault_end_s);
        }
        if window.hold_begin_s >= window.fault_begin_s {
            let text = "what a fault before did was not over when this one began, so nobody \
                        knows what is usual; leave time between them";
            return (unknown(text.to_owned()), window.fault_end_s);
        }
        match recovery(self.signal_within(window), window, Worse::Either) {
            Err(error) => (unknown(error.to_string()), window.fault_end_s),
            Ok(Effect::None(unseen)) => {
                let lost = self.lost_beyond_usual(window, window.fault_end_s);
                let lost = lost.unwrap_or(0.0);
                let at_most_s = self.is_doubtful(window).then_some(unseen.lasting_s);
                let remedy = at_most_s.and_then(|_| self.remedy_unseen(window));
                let effect = FaultEffect {
                    at_most_s,
                    remedy: remedy.map(str::to_owned),
                    seen: Some(false),
                    recovery_s: Some(0.0),
                    recovery_from_end_s: Some(0.0),
                    depth_share: Some(0.0),
                    lost: Some(lost),
                    ..unknown(self.waited(window, self.unseen(&unseen, lost)))
                };
                // What had no effect leaves usual what was.
                (effect, window.hold_begin_s)
            }
            Ok(Effect::Seen(mut seen)) => {
                if let Return::After { resolution_s, .. } = &mut seen.returned {
                    *resolution_s = resolution_s.max(self.grain_s);
                }
                if let Some(well) = self.well {
                    seen.depth_share = Some(share_gone(well, window, &seen));
                }
                self.seen(&seen, window)
            }
        }
    }

    /// Nothing is claimed: what would have been, and what failed all the same.
    fn unseen(&self, unseen: &Unseen, lost: f64) -> String {
        if lost <= 0.0 {
            return unseen.to_string();
        }
        format!(
            "{} {} lost, too few in a row to be told from what was usual; {}",
            show_count(lost),
            self.unit,
            unseen.would_have_been()
        )
    }

    /// Adds to a sentence how long answers took: where no request fails all of them may have
    /// waited for the fault's end.
    fn waited(&self, window: &Window, text: String) -> String {
        let waits = within(self.waits, window.hold_begin_s, window.until_s).iter();
        // What was under way when the fault began waited for its end too.
        let (before, since): (Vec<_>, Vec<_>) =
            waits.partition(|(due_s, took_s)| due_s + took_s < window.fault_begin_s);
        let slowest = |waits: Vec<&(f64, f64)>| waits.iter().map(|wait| wait.1).reduce(f64::max);
        match (slowest(before), slowest(since)) {
            (Some(before), Some(since)) => format!(
                "{text}; the slowest good answer took {}, before the fault {}",
                show_seconds(since),
                show_seconds(before)
            ),
            _ => text,
        }
    }

    /// Whether something may have been there that was not enough to be an effect: a failure, or a
    /// time in which a probe was not asked when it should have been.
    fn is_doubtful(&self, window: &Window) -> bool {
        let (from_s, to_s) = (window.fault_begin_s, window.until_s);
        let failed = match self.signal {
            Signal::Requests(requests) => {
                within(requests, from_s, to_s).iter().any(|(_, good)| !good)
            }
            _ => false,
        };
        let looks = self.looks(window, from_s);
        let is_long = |pair: &[f64]| pair[1] - pair[0] > LONG_GAP * self.grain_s;
        failed || self.grain_s > 0.0 && looks.windows(2).any(is_long)
    }

    /// When it was looked at: the last time until an instant, and since.
    fn looks(&self, window: &Window, instant_s: f64) -> Vec<f64> {
        fn since<T>(looks: &[(f64, T)], instant_s: f64) -> Vec<f64> {
            let after = looks.partition_point(|look| look.0 <= instant_s);
            let since = looks[after.saturating_sub(1)..].iter();
            since.map(|look| look.0).collect()
        }
        match self.signal_within(window) {
            Signal::Requests(looks) => since(looks, instant_s),
            Signal::Samples(looks) => since(looks, instant_s),
            _ => Vec::new(),
        }
    }

    /// What lies between the start of what is usual and the end of what is looked at: of many
    /// faults each looks at its own part.
    fn signal_within(&self, window: &Window) -> Signal<'_> {
        let (from_s, to_s) = (window.hold_begin_s, window.until_s);
        match self.signal {
            Signal::Requests(requests) => Signal::Requests(within(requests, from_s, to_s)),
            Signal::Samples(samples) => Signal::Samples(within(samples, from_s, to_s)),
            other => other,
        }
    }

    fn seen(&self, seen: &Recovery, window: &Window) -> (FaultEffect, f64) {
        let (from_begin_s, from_end_s, resolution_s, at_least) = match seen.returned {
            Return::After {
                from_begin_s,
                from_end_s,
                resolution_s,
            } => (from_begin_s, from_end_s, Some(resolution_s), false),
            Return::NotBefore {
                from_begin_s,
                from_end_s,
            } => (from_begin_s, from_end_s, None, true),
        };
        let over_s = window.fault_begin_s + from_begin_s;
        let lost = self.lost_beyond_usual(window, over_s.max(window.fault_end_s));
        let lost = lost.unwrap_or(seen.lost);
        let effect = FaultEffect {
            of: self.of.clone(),
            text: self.sentence(seen, lost),
            at_most_s: None,
            seen: Some(true),
            detection_s: Some(seen.detected_s),
            recovery_s: Some(from_begin_s),
            recovery_from_end_s: Some(from_end_s.max(0.0)),
            at_least,
            resolution_s,
            remedy: self.remedy(seen.returned, window).map(str::to_owned),
            depth_share: seen.depth_share,
            lost: Some(lost),
        };
        (effect, over_s.max(window.fault_end_s))
    }

    /// Requests that failed because of a fault: those since its start, without as many as
    /// failed in that time before it.
    fn lost_beyond_usual(&self, window: &Window, to_s: f64) -> Option<f64> {
        let lost = self.lost?;
        let before_s = window.fault_begin_s - window.hold_begin_s;
        let usual = lost(window.hold_begin_s, window.fault_begin_s) / before_s;
        let since_s = to_s - window.fault_begin_s;
        let found = lost(window.fault_begin_s, to_s);
        Some((found - usual * since_s).max(0.0).round())
    }

    fn sentence(&self, seen: &Recovery, lost: f64) -> String {
        let verb = if seen.fell { "fell" } else { "rose" };
        let depth = match seen.depth_share {
            Some(share) => show_share(share),
            None => show_count(seen.depth),
        };
        let detected = show_seconds(seen.detected_s);
        let mut text = format!("{verb} by {depth}, seen after {detected}; ");
        match seen.returned {
            Return::After {
                from_begin_s,
                from_end_s,
                resolution_s,
            } => {
                let (after, about) = (show_seconds(from_begin_s), show_seconds(resolution_s));
                text += &format!("as before after {after} (± {about})");
                if from_end_s > 0.0 {
                    text += &format!(", {} after the fault's end", show_seconds(from_end_s));
                }
            }
            Return::NotBefore { from_begin_s, .. } => {
                text += &format!("not as before within {}", show_seconds(from_begin_s));
            }
        }
        text += &format!("; {} {} lost", show_count(lost), self.unit);
        match seen.later_exits {
            0 => {}
            1 => text += "; disturbed once more later",
            times => text += &format!("; disturbed {times} times more later"),
        }
        text
    }
}

/// When the first of the faults begins that begin after one, and not while it lasts.
fn next_s(faults: &[FaultRecord], begin_s: f64, end_s: f64) -> Option<f64> {
    let next = faults.partition_point(|fault| fault.begin_s < end_s || fault.begin_s <= begin_s);
    faults.get(next).map(|fault| fault.begin_s)
}

/// What was seen from one second of the run to another; it is in order of time.
fn within<T>(seen: &[(f64, T)], from_s: f64, to_s: f64) -> &[(f64, T)] {
    let from = seen.partition_point(|one| one.0 < from_s);
    let to = seen.partition_point(|one| one.0 <= to_s);
    &seen[from..to.max(from)]
}

/// The largest share of copies that were gone at once, of those that usually answered. Copies
/// are asked one after the other, so that a few tries in a row say nothing of all of them.
fn share_gone(well: &[(f64, f64)], window: &Window, seen: &Recovery) -> f64 {
    let back_s = match seen.returned {
        Return::After { from_begin_s, .. } | Return::NotBefore { from_begin_s, .. } => {
            window.fault_begin_s + from_begin_s
        }
    };
    let shares = |from_s, to_s| within(well, from_s, to_s).iter().map(|one| one.1);
    let before: Vec<f64> = shares(window.hold_begin_s, window.fault_begin_s).collect();
    let usual = stats::mean(&before).unwrap_or(1.0).max(f64::MIN_POSITIVE);
    let least = shares(window.fault_begin_s, back_s).fold(usual, f64::min);
    (1.0 - least / usual).clamp(0.0, 1.0)
}

/// The faults of a step, or of all steps, each with what it did to what is asked about.
fn told<'f>(
    faults: &'f [FaultRecord],
    step: Option<&'f str>,
    of: &Affected,
) -> impl Iterator<Item = (&'f FaultRecord, &'f FaultEffect)> {
    let of = of.to_string();
    let faults = faults
        .iter()
        .filter(move |fault| step.is_none_or(|step| fault.step == step));
    let effects = faults.flat_map(|fault| fault.effects.iter().map(move |effect| (fault, effect)));
    effects.filter(move |(_, effect)| effect.of == of)
}

/// Effects of the faults of a step, or of all steps, on what is asked about.
fn found<'f>(
    faults: &'f [FaultRecord],
    step: Option<&'f str>,
    of: &Affected,
) -> impl Iterator<Item = &'f FaultEffect> {
    told(faults, step, of).map(|(_, effect)| effect)
}

/// The value of a metric of faults: of several the largest, and the sum of what was lost.
/// `None` if that of one of them is not known.
pub(crate) fn value(
    faults: &[FaultRecord],
    step: Option<&str>,
    of: &Affected,
    number: FaultNumber,
) -> Option<f64> {
    value_at_best(faults, step, of, number, &[])
}

/// The same without what a laboratory may have added that stood still at these times when it was to end
/// a fault.
pub(crate) fn value_at_best(
    faults: &[FaultRecord],
    step: Option<&str>,
    of: &Affected,
    number: FaultNumber,
    stood: &[Span],
) -> Option<f64> {
    let values = told(faults, step, of).map(|(fault, effect)| match number {
        FaultNumber::Detection => effect.detection_s,
        FaultNumber::Recovery => {
            let longer_s = made_longer(fault, stood);
            effect.recovery_s.map(|all_s| (all_s - longer_s).max(0.0))
        }
        FaultNumber::RecoveryFromEnd => effect.recovery_from_end_s,
        FaultNumber::Depth => effect.depth_share,
        // Nobody knows when a target that is down loses how many.
        FaultNumber::Lost if made_longer(fault, stood) > 0.0 => effect.lost.map(|_| 0.0),
        FaultNumber::Lost => effect.lost,
    });
    let join = match number {
        FaultNumber::Lost => |all: f64, one: f64| all + one,
        _ => f64::max,
    };
    values
        .collect::<Option<Vec<f64>>>()?
        .into_iter()
        .reduce(join)
}

/// How much longer than it should have a fault lasted, at most, because the laboratory stood still when it
/// was to end, in seconds. It ended soon after.
fn made_longer(fault: &FaultRecord, stood: &[Span]) -> f64 {
    let Some(end_s) = fault.end_s else {
        return 0.0;
    };
    let late = stood
        .iter()
        .filter(|(from_s, to_s)| *from_s < end_s && end_s < to_s + UNDONE_S);
    late.map(|own| shared((fault.begin_s, end_s), *own)).sum()
}

/// Whether the value of a metric of faults is only a lower bound: something had not come
/// back when the measurement ended.
pub(crate) fn is_lower_bound(
    faults: &[FaultRecord],
    step: Option<&str>,
    of: &Affected,
    number: FaultNumber,
) -> bool {
    let grows = !matches!(number, FaultNumber::Detection);
    grows && found(faults, step, of).any(|effect| effect.at_least)
}

/// Fewest turns of a fault that are told together.
const FEWEST: usize = 5;
/// How sure the interval of their median is.
const CONFIDENCE: f64 = 0.9;

/// What faults did that came again and again: for each step, kind and measure a sentence.
pub(crate) fn again_and_again(faults: &[FaultRecord]) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&FaultEffect>> = BTreeMap::new();
    for fault in faults {
        for effect in fault.effects.iter().filter(|effect| effect.seen.is_some()) {
            let key = (&*fault.step, &*fault.kind, &*effect.of);
            groups.entry(key).or_default().push(effect);
        }
    }
    let told = groups
        .into_iter()
        .filter(|(_, effects)| effects.len() >= FEWEST);
    told.map(|((step, kind, of), effects)| {
        let times: Vec<Option<Lasted>> = effects
            .iter()
            .map(|effect| {
                let lasted_s = effect.recovery_s.filter(|_| effect.seen == Some(true))?;
                Some(match effect.at_least {
                    true => Lasted::AtLeast(lasted_s),
                    false => Lasted::For(lasted_s),
                })
            })
            .collect();
        let all = repeated(&times, CONFIDENCE);
        format!("{step}: {kind}, recovery of {of}: {all}")
    })
    .collect()
}

/// How much more a metric of faults may be than what was seen of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UnseenBound {
    /// The most that it may be.
    pub(crate) value: f64,
    /// How long what was not seen may have lasted, in seconds.
    pub(crate) lasting_s: f64,
}

/// The most that a metric of faults may be, where that is more than what was seen of it: an effect
/// that was too short to be told may have been there.
pub(crate) fn at_most(
    faults: &[FaultRecord],
    step: Option<&str>,
    of: &Affected,
    number: FaultNumber,
) -> Option<UnseenBound> {
    let seen = value(faults, step, of, number)?;
    let lasting = found(faults, step, of).filter_map(|effect| effect.at_most_s);
    let lasting_s = lasting.reduce(f64::max)?;
    let value = match number {
        FaultNumber::Recovery | FaultNumber::RecoveryFromEnd => lasting_s,
        // As long as it lasted, all may have failed; a number may have been any.
        FaultNumber::Depth => match of {
            Affected::Load(_)
            | Affected::Probe {
                series: ProbeSeries::Ok,
                ..
            } => 1.0,
            Affected::Probe { .. } | Affected::Entities { .. } => f64::INFINITY,
        },
        // How many of all failed is known whatever was seen.
        FaultNumber::Detection | FaultNumber::Lost => return None,
    };
    (value > seen).then_some(UnseenBound { value, lasting_s })
}

/// The least that a time to recover may be, where nobody looked for long before all was seen to be as
/// before.
pub(crate) fn least(
    faults: &[FaultRecord],
    step: Option<&str>,
    of: &Affected,
    number: FaultNumber,
) -> Option<f64> {
    if !matches!(number, FaultNumber::Recovery | FaultNumber::RecoveryFromEnd) {
        return None;
    }
    let seen_s = value(faults, step, of, number)?;
    let unknown_s = found(faults, step, of).filter_map(|effect| effect.resolution_s);
    let unknown_s = unknown_s.reduce(f64::max)?;
    (unknown_s > STEADY_S / 2.0).then(|| (seen_s - unknown_s).max(0.0))
}

/// What would show better what faults did, of several effects for the one of which most is unknown, and
/// where that is not to ask more often.
pub(crate) fn remedy<'f>(
    faults: &'f [FaultRecord],
    step: Option<&'f str>,
    of: &Affected,
    unknown_s: fn(&FaultEffect) -> Option<f64>,
) -> Option<&'f str> {
    let effects = found(faults, step, of);
    let effects = effects.filter_map(|effect| Some((unknown_s(effect)?, effect)));
    let (_, worst) = effects.max_by(|a, b| a.0.total_cmp(&b.0))?;
    worst.remedy.as_deref()
}

/// Why a metric of faults has no value.
pub(crate) fn why(faults: &[FaultRecord], step: Option<&str>, of: &Affected) -> String {
    let mut effects = found(faults, step, of);
    let Some(first) = effects.next() else {
        return format!("nothing was measured of {of} when a fault began");
    };
    let unknown = std::iter::once(first)
        .chain(effects)
        .find(|effect| effect.detection_s.is_none());
    unknown.map_or_else(String::new, |effect| effect.text.clone())
}
