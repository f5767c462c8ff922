//! Connections and handshakes that every request pays for.

use units::{show_count, show_share};

use super::resample::{pairs, share_of, sums};
use crate::finding::{Chart, Finding, Kind, Number, Share, ShareOf};

/// The first tenth of a run opens what is then used.
const WARM_UP: f64 = 0.1;

/// Fewest requests or handshakes that say anything.
const FEWEST_REQUESTS: f64 = 100.0;
const FEWEST_HANDSHAKES: f64 = 50.0;

/// Share of requests that open a connection, from which connections are not used again: servers that close one
/// after a number of requests allow at least ten.
const OPENED: f64 = 0.3;

/// Share of handshakes that start anew, and of requests that need one.
const ANEW: f64 = 0.8;
const HANDSHAKES: f64 = 0.05;

/// What was counted in each second.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionCounts<'a> {
    /// The system that was asked.
    pub system: &'a str,
    /// Who asked: the load's name, or a system's.
    pub client: &'a str,
    /// When the first count begins, in seconds.
    pub start_s: f64,
    /// Length of each.
    pub period_s: f64,
    /// Requests that were sent.
    pub requests: &'a [f64],
    /// Connections that were opened.
    pub opened: &'a [f64],
    /// Handshakes of TLS from the start, with certificates.
    pub full: &'a [f64],
    /// Handshakes that resumed a session.
    pub resumed: &'a [f64],
}

/// Connections that are opened for requests instead of being used again.
#[must_use]
pub fn connections(of: &ConnectionCounts<'_>) -> Option<Finding> {
    let (effect, opened, requests) = ratio(of.opened, of.requests)?;
    if requests < FEWEST_REQUESTS || effect.low < OPENED {
        return None;
    }
    let effect = capped(effect);
    let sentence = format!(
        "{} opened {} connections to {} for {} requests: {} of them waited for a connection of their own",
        of.client,
        show_count(opened),
        of.system,
        show_count(requests),
        show_share(effect.value)
    );
    let evidence = [("opened", opened), ("requests", requests)];
    Some(found(of, Kind::Connections, effect, evidence, sentence))
}

/// Handshakes that start anew where a session could be resumed.
#[must_use]
pub fn handshakes(of: &ConnectionCounts<'_>) -> Option<Finding> {
    let all: Vec<f64> = of
        .full
        .iter()
        .zip(of.resumed)
        .map(|(full, resumed)| full + resumed)
        .collect();
    let (anew, full, handshakes) = ratio(of.full, &all)?;
    let (effect, _, _) = ratio(of.full, of.requests)?;
    if handshakes < FEWEST_HANDSHAKES || anew.low < ANEW || effect.low < HANDSHAKES {
        return None;
    }
    let effect = capped(effect);
    let sentence = format!(
        "{} of {} TLS handshakes of {} with {} started anew instead of resuming a session, for {} of the requests",
        show_count(full),
        show_count(handshakes),
        of.client,
        of.system,
        show_share(effect.value)
    );
    let evidence = [("full_handshakes", full), ("handshakes", handshakes)];
    Some(found(of, Kind::Handshakes, effect, evidence, sentence))
}

/// Ratio of two counts after the warm-up, and their sums.
fn ratio(part: &[f64], whole: &[f64]) -> Option<(Share, f64, f64)> {
    let warm = (whole.len() as f64 * WARM_UP).ceil() as usize;
    let pairs = pairs(part, whole);
    let pairs = pairs.get(warm..).unwrap_or_default();
    let (part, whole) = sums(pairs);
    Some((share_of(pairs)?, part, whole))
}

/// More connections than requests are one for each.
fn capped(share: Share) -> Share {
    Share {
        value: share.value.min(1.0),
        low: share.low.min(1.0),
        high: share.high.min(1.0),
    }
}

fn found(
    of: &ConnectionCounts<'_>,
    kind: Kind,
    effect: Share,
    evidence: [(&'static str, f64); 2],
    sentence: String,
) -> Finding {
    Finding {
        kind,
        system: of.system.to_owned(),
        part: of.client.to_owned(),
        from_s: of.start_s,
        to_s: of.start_s + of.requests.len() as f64 * of.period_s,
        chart: Chart::Connections,
        effect,
        of: ShareOf::Work,
        evidence: evidence
            .map(|(name, value)| Number { name, value })
            .to_vec(),
        sentence,
    }
}
