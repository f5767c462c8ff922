//! What the holds say of the target beyond its objective: where it saturates, and how
//! its throughput follows concurrency.

use stats::{Scaling, SplitMix};

use super::{Estimate, Point, Usl};
use crate::slo::{Quantity, Slo};

/// Widest interval of a limit that is told, as the ratio of its ends.
const WIDEST: f64 = 1.25;

/// How much more than the limit a hold may have answered by chance.
const CHANCE: f64 = 1.03;

/// Where throughput follows the rate no more, if the holds agree on it.
pub(super) fn physical(points: &[Point], confidence: f64) -> Option<Estimate> {
    let pairs: Vec<(f64, f64)> = counted(points).map(|p| (p.rate, p.good_rate)).collect();
    let found = stats::saturation(&pairs, confidence)?;
    let most = pairs.iter().map(|pair| pair.1).fold(0.0, f64::max);
    let agree = found.high <= found.low * WIDEST && most <= found.high * CHANCE;
    let interval = (found.low, found.high);
    agree.then(|| Estimate::new(found.rate, interval, confidence))
}

/// The highest rate at which an objective can hold on a target that answers no more than `most`
/// well. Without a bound on failures there is none: refusing may be fast.
pub(super) fn asked_at_most(most: &Estimate, slo: &Slo) -> f64 {
    let bounds = slo.terms.iter();
    let bounds = bounds.filter(|term| term.quantity == Quantity::Errors);
    let share = bounds.map(|term| term.bound).reduce(f64::min);
    share.map_or(f64::INFINITY, |share| most.high / (1.0 - share).max(0.0))
}

/// Whether enough holds were saturated for [`physical`].
pub(super) fn saturated(points: &[Point]) -> bool {
    physical(points, 0.9).is_some()
}

/// The universal scalability law through all holds that count: concurrency is the mean
/// number of requests in flight, each hold weighs as much as it is long.
pub(super) fn usl(points: &[Point], confidence: f64, seed: u64) -> Usl {
    let points: Vec<(f64, f64, f64)> = counted(points)
        .map(|p| (p.in_flight, p.good_rate, p.length_s))
        .collect();
    match stats::scalability(&points, confidence, &mut SplitMix::new(seed)) {
        Err(too_little) => Usl::Refused(too_little.to_string()),
        Ok(law) => {
            let (peak, note) = match law.scaling {
                Scaling::Peak(peak) => {
                    let note = format!(
                        "throughput peaks at {} with {:.0} requests in flight ({:.0} to {:.0})",
                        units::show_rate(peak.throughput),
                        peak.at,
                        peak.low,
                        peak.high
                    );
                    let interval = (peak.low, peak.high);
                    (Some(Estimate::new(peak.at, interval, confidence)), note)
                }
                Scaling::NotReached { seen } => {
                    let note = format!(
                        "no peak seen up to {seen:.0} requests in flight, and none that is \
                         near enough to be told"
                    );
                    (None, note)
                }
                Scaling::NoPeak { seen } => (
                    None,
                    format!("no peak seen up to {seen:.0} requests in flight"),
                ),
            };
            Usl::Fit {
                lambda: law.lambda,
                alpha: law.alpha,
                beta: law.beta,
                peak,
                note,
            }
        }
    }
}

fn counted(points: &[Point]) -> impl Iterator<Item = &Point> {
    points.iter().filter(|point| point.invalid.is_empty())
}
