//! Datagrams that the kernel dropped because nobody took them.

use units::{show_count, show_share};

use super::resample::{longest, share_of, sums};
use crate::finding::{Chart, Finding, Kind, Number, ShareOf};

/// Fewest datagrams, share of all, and samples that saw any: a single burst in a run is an accident.
const FEWEST: f64 = 20.0;
const SHARE: f64 = 0.001;
const SAMPLES: usize = 3;

/// What the kernel counted for a system's sockets between samples.
#[derive(Debug, Clone, Copy)]
pub struct DatagramCounts<'a> {
    /// The system.
    pub system: &'a str,
    /// The socket, by its address.
    pub socket: &'a str,
    /// When the first count begins, in seconds.
    pub start_s: f64,
    /// Time between samples.
    pub period_s: f64,
    /// Datagrams that were taken.
    pub received: &'a [f64],
    /// That were dropped as the socket's buffer was full.
    pub dropped: &'a [f64],
}

/// Datagrams lost in the kernel: nobody but the kernel's counter tells of them.
#[must_use]
pub fn drops(of: &DatagramCounts<'_>) -> Option<Finding> {
    let pieces: Vec<(f64, f64)> = of
        .dropped
        .iter()
        .zip(of.received)
        .map(|(dropped, received)| (*dropped, dropped + received))
        .collect();
    let (dropped, all) = sums(&pieces);
    let seen = pieces.iter().filter(|piece| piece.0 > 0.0).count();
    let effect = share_of(&pieces)?;
    if dropped < FEWEST || seen < SAMPLES || effect.value < SHARE || effect.low <= 0.0 {
        return None;
    }
    let (from, to) = longest(pieces.iter().map(|piece| piece.0 > 0.0));
    let sentence = format!(
        "the kernel dropped {} of {} datagrams for {} ({}): they came faster than {} took them",
        show_count(dropped),
        show_count(all),
        of.socket,
        show_share(effect.value),
        of.system
    );
    let number = |name, value| Number { name, value };
    Some(Finding {
        kind: Kind::Drops,
        system: of.system.to_owned(),
        part: of.socket.to_owned(),
        from_s: of.start_s + from as f64 * of.period_s,
        to_s: of.start_s + to as f64 * of.period_s,
        chart: Chart::Datagrams,
        effect,
        of: ShareOf::Work,
        evidence: vec![number("dropped", dropped), number("sent", all)],
        sentence,
    })
}
