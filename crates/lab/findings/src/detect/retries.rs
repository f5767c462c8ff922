//! Requests that are sent again, so that what is too much becomes more.

use stats::student_quantile;
use units::{show_count, show_share};

use super::resample::{longest, pairs, share_of, sums};
use crate::finding::{Chart, Finding, Kind, Number, Share, ShareOf};

/// Periods that are looked at together, and how many attempts for each request there are in them at the
/// worst. A retry here and there stays far below.
const TOGETHER: usize = 5;
const AT_WORST: f64 = 1.4;

/// Attempts for each request, in such times, beyond which they are counted.
const MORE: f64 = 1.1;

/// So many times in a row: retries that are over after a few seconds helped.
const LASTING: usize = 2 * TOGETHER;

/// Fewest attempts more than requests.
const FEWEST: f64 = 50.0;

/// Of calls, whose number may change for other reasons too, so many times in a row.
const CALLS_LASTING: usize = 3 * TOGETHER;

/// Fewest requests that say how many calls each takes, and the one-sided probability that they take more than that
/// is put down to.
const CALM: f64 = 200.0;
const BY_CHANCE: f64 = 0.001;

/// What was counted in each second.
#[derive(Debug, Clone, Copy)]
pub struct AttemptCounts<'a> {
    /// The system that was asked again.
    pub system: &'a str,
    /// Who asked again.
    pub client: &'a str,
    /// When the first count begins, in seconds.
    pub start_s: f64,
    /// Length of each.
    pub period_s: f64,
    /// Requests, each counted once.
    pub requests: &'a [f64],
    /// What was sent for them, first attempts included.
    pub attempts: &'a [f64],
}

/// Retries that add to the load for some seconds or for good.
#[must_use]
pub fn retries(of: &AttemptCounts<'_>) -> Option<Finding> {
    let again = RetryVolume::of(&pairs(of.requests, of.attempts), LASTING)?;
    let sentence = format!(
        "{} sent {} attempts for {} requests to {}, and up to {:.1} for each: retries were {} of the load",
        of.client,
        show_count(again.attempts),
        show_count(again.requests),
        of.system,
        again.worst,
        show_share(again.share.value)
    );
    let evidence = vec![number("attempts_per_request_max", again.worst)];
    Some(again.found(of, 0, evidence, sentence))
}

/// Calls of requests that become more for each than they were: whoever makes them tries again, and so
/// loads what is overloaded the more.
///
/// How many calls a request needs is nobody's business: the time from the first second on in which they were fewest
/// says it. Requests that begin with more calls and then need fewer, as caches fill, accuse nobody.
#[must_use]
pub fn repeats(of: &AttemptCounts<'_>) -> Option<Finding> {
    let pairs = pairs(of.requests, of.attempts);
    let calm = (TOGETHER..pairs.len()).filter_map(|to| Some((to, usual(&pairs[..to])?)));
    let (calm, (usual, at_most)) = calm.min_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    let expected: Vec<(f64, f64)> = pairs[calm..]
        .iter()
        .map(|(requests, attempts)| (requests * at_most, *attempts))
        .collect();
    let again = RetryVolume::of(&expected, CALLS_LASTING)?;
    let most = again.worst * at_most;
    let sentence = format!(
        "{} came up to {most:.1} times for each request of {}, and {usual:.1} times when it was calm: \
         calls that were sent again were {} of all",
        of.system,
        of.client,
        show_share(again.share.value)
    );
    let evidence = vec![
        number("calls_per_request_max", most),
        number("calls_per_request_usual", usual),
    ];
    Some(again.found(of, calm, evidence, sentence))
}

/// Calls for each request, and what they surely do not exceed.
fn usual(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (requests, attempts) = sums(pairs);
    let usual = attempts / requests;
    if requests < CALM || usual <= 0.0 {
        return None;
    }
    let away: Vec<f64> = pairs
        .iter()
        .map(|(requests, attempts)| attempts - usual * requests)
        .collect();
    let count = pairs.len() as f64;
    let error = (stats::variance(&away)? * count).sqrt() / requests;
    let reach = error * student_quantile(1.0 - BY_CHANCE, count - 1.0);
    Some((usual, usual + reach))
}

fn number(name: &'static str, value: f64) -> Number {
    Number { name, value }
}

/// What was sent beyond what was asked for.
struct RetryVolume {
    requests: f64,
    attempts: f64,
    /// Of what was sent, how much was sent again.
    share: Share,
    /// Attempts for each request at the worst.
    worst: f64,
    more: f64,
    from: usize,
    to: usize,
}

impl RetryVolume {
    /// From requests, and attempts for them, if these are too many for long enough.
    fn of(pairs: &[(f64, f64)], lasting: usize) -> Option<Self> {
        let around: Vec<f64> = pairs
            .windows(TOGETHER)
            .map(|some| {
                let (requests, attempts) = sums(some);
                match requests > 0.0 {
                    true => attempts / requests,
                    // What is sent for requests of before goes on; else it is a time like any other.
                    false if attempts > 0.0 => MORE,
                    false => 0.0,
                }
            })
            .collect();
        let worst = around.iter().copied().fold(0.0, f64::max);
        let more = |pair: &(f64, f64)| (pair.1 - pair.0).max(0.0);
        let all_more: f64 = pairs.iter().map(more).sum();
        let (from, to) = longest(around.iter().map(|ratio| *ratio >= MORE));
        if worst < AT_WORST || all_more < FEWEST || to - from < lasting {
            return None;
        }
        let pieces: Vec<(f64, f64)> = pairs.iter().map(|pair| (more(pair), pair.1)).collect();
        let share = share_of(&pieces)?;
        let (requests, attempts) = sums(pairs);
        (share.low > 0.0).then_some(Self {
            requests,
            attempts,
            share,
            worst,
            more: all_more,
            from,
            to: to + TOGETHER - 1,
        })
    }

    /// The finding, where what was looked at begins so many periods after the first.
    fn found(
        &self,
        of: &AttemptCounts<'_>,
        after: usize,
        mut evidence: Vec<Number>,
        sentence: String,
    ) -> Finding {
        evidence.push(number("retries", self.more));
        let at = |period: usize| of.start_s + (after + period) as f64 * of.period_s;
        Finding {
            kind: Kind::Retries,
            system: of.system.to_owned(),
            part: of.client.to_owned(),
            from_s: at(self.from),
            to_s: at(self.to),
            chart: Chart::Load,
            effect: self.share,
            of: ShareOf::Work,
            evidence,
            sentence,
        }
    }
}
