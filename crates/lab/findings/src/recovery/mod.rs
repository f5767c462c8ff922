//! How a measure left its usual level at a fault, and how it came back.
//!
//! The definitions are those of `docs/findings.md`: the reference is the median of a window
//! before the fault, the band around it three standard deviations (by the median absolute
//! deviation) and at least 1 %. What is beyond the band for one sample may be noise, so an
//! effect is claimed only of what noise like that of the window before would show in about one of
//! a hundred faults.

mod events;
mod reference;
mod repeated;
mod samples;
mod sentences;

#[cfg(test)]
mod tests;

pub use repeated::{Repeated, repeated};

use thiserror::Error;

/// What was measured around a fault. Times are seconds since the start of the run, and finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Signal<'a> {
    /// A level looked at from time to time, in order of time: `(at, value)`.
    Samples(&'a [(f64, f64)]),
    /// Something per slot, one slot after the other: each value is that of a whole slot.
    Slots {
        /// When the first slot begins.
        start_s: f64,
        /// Length of each.
        width_s: f64,
        /// What was counted in it, or measured over it; not a rate unless lost work is to be
        /// in units of it.
        values: &'a [f64],
    },
    /// Instants at which something good happened, ascending: an outage is where they are missing.
    Instants(&'a [f64]),
    /// Every request, by when it was due, ascending, with whether it was answered well: an outage is
    /// where they fail. Bursts of arrivals do not matter here.
    Requests(&'a [(f64, bool)]),
}

/// In which direction a measure gets worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worse {
    /// Less is worse: throughput, instances that run.
    Lower,
    /// More is worse: latency, errors.
    Higher,
    /// Either may be.
    Either,
}

/// Where to look and what counts as having come back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// When the fault began.
    pub fault_begin_s: f64,
    /// When it was undone.
    pub fault_end_s: f64,
    /// The window before it that gives the reference begins here; it ends where the fault
    /// begins.
    pub hold_begin_s: f64,
    /// Nothing after this is looked at.
    pub until_s: f64,
    /// For so long it must stay inside the band to have recovered.
    pub steady_s: f64,
}

/// What a fault did to a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// No effect was seen.
    None(Unseen),
    /// It left the band.
    Seen(Recovery),
}

impl Effect {
    /// Time to recover, from the fault's start; `None`: nothing was seen.
    #[must_use]
    pub fn lasted(&self) -> Option<stats::Lasted> {
        match self {
            Self::Seen(recovery) => Some(recovery.returned.lasted()),
            Self::None(_) => None,
        }
    }
}

/// No effect was seen: what would have been.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unseen {
    /// The level before.
    pub reference: f64,
    /// The smallest change of level that would have been seen had it lasted.
    pub smallest: f64,
    /// For at least so long, in seconds.
    pub lasting_s: f64,
    /// The smallest change that two samples in a row would have shown, if any.
    pub smallest_once: Option<f64>,
}

/// How a measure left its band and came back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recovery {
    /// The level that is called usual, at the instant of the fault; per second for events,
    /// a share for requests.
    pub reference: f64,
    /// How far from it is still inside: half the width of the band at the fault.
    pub band: f64,
    /// Change of the reference per second where it had a trend before the fault, else 0.
    pub slope: f64,
    /// From the fault's start to the first exit.
    pub detected_s: f64,
    /// How finely that is known: the exit lies within so much of it.
    pub detected_resolution_s: f64,
    /// When it came back.
    pub returned: Return,
    /// The largest distance from the reference, without a direction: that of the median of three to nine neighbouring
    /// samples, a tenth of the outage.
    pub depth: f64,
    /// By how much noise alone would change it: two standard errors.
    pub depth_noise: f64,
    /// `depth` as a share of the reference; `None` for a reference of 0.
    pub depth_share: Option<f64>,
    /// Whether the measure fell.
    pub fell: bool,
    /// The shortfall (or excess) from the exit to the return, added up: requests for a rate,
    /// instance-seconds for a number of instances.
    pub lost: f64,
    /// By how much noise alone would change it: two standard errors.
    pub lost_noise: f64,
    /// How often it left the band again after it had come back.
    pub later_exits: usize,
}

/// When a measure came back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Return {
    /// It has been inside for as long as was asked, from this on.
    After {
        /// Since the fault began.
        from_begin_s: f64,
        /// Since it was undone; negative when it came back before.
        from_end_s: f64,
        /// How finely that is known: the return lies within so much of it.
        resolution_s: f64,
    },
    /// Not within what was looked at: it was still outside after so long.
    NotBefore {
        /// Since the fault began.
        from_begin_s: f64,
        /// Since it was undone; negative when the measurement ended before.
        from_end_s: f64,
    },
}

impl Return {
    /// Time to recover, from the fault's start.
    #[must_use]
    pub fn lasted(self) -> stats::Lasted {
        match self {
            Self::After { from_begin_s, .. } => stats::Lasted::For(from_begin_s),
            Self::NotBefore { from_begin_s, .. } => stats::Lasted::AtLeast(from_begin_s),
        }
    }
}

/// Why nothing can be said about a fault.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RecoveryError {
    /// The instants contradict each other.
    #[error(
        "the windows of a fault: expected hold < begin <= end <= until and a steady time above 0, found \
         {hold_begin_s} < {fault_begin_s} <= {fault_end_s} <= {until_s} and {steady_s}; correct the step's times"
    )]
    Windows {
        /// See [`Window`].
        hold_begin_s: f64,
        /// See [`Window`].
        fault_begin_s: f64,
        /// See [`Window`].
        fault_end_s: f64,
        /// See [`Window`].
        until_s: f64,
        /// See [`Window`].
        steady_s: f64,
    },
    /// Values that are not finite, instants that go backwards, slots without a length.
    #[error(
        "the series around a fault: value {number} is not a number or not in order of time; record it again"
    )]
    Disordered {
        /// Which, from 0.
        number: usize,
    },
    /// There is no reference.
    #[error(
        "the window before the fault has {found} values, {needed} are needed to know what is usual; \
         hold for longer before the fault, or sample more often"
    )]
    ShortHold {
        /// So many there are.
        found: usize,
        /// So many there must be.
        needed: usize,
    },
    /// Nothing was measured after the fault began.
    #[error(
        "nothing was measured after the fault began; go on measuring for at least the steady time"
    )]
    NothingAfter,
}

/// What a fault did to a measure: when it was seen, when it was over, how deep and how much.
///
/// Only what begins after the fault began counts. With [`Signal::Instants`] and
/// [`Signal::Requests`] edges are known to one event, so that an outage of 100 ms is told as
/// that; `worse` is [`Worse::Lower`] for them whatever is given.
///
/// # Errors
/// When the windows or the series contradict themselves, or hold too little to tell what is usual.
pub fn recovery(
    signal: Signal<'_>,
    window: &Window,
    worse: Worse,
) -> Result<Effect, RecoveryError> {
    let Window {
        fault_begin_s,
        fault_end_s,
        hold_begin_s,
        until_s,
        steady_s,
    } = *window;
    let ordered = hold_begin_s < fault_begin_s
        && fault_begin_s <= fault_end_s
        && fault_end_s <= until_s
        && steady_s > 0.0
        && hold_begin_s.is_finite()
        && until_s.is_finite();
    if !ordered {
        return Err(RecoveryError::Windows {
            hold_begin_s,
            fault_begin_s,
            fault_end_s,
            until_s,
            steady_s,
        });
    }
    match signal {
        Signal::Samples(points) => {
            let samples = samples::of_points(points)?;
            samples::recovery(&samples, window, worse)
        }
        Signal::Slots {
            start_s,
            width_s,
            values,
        } => {
            let samples = samples::of_slots(start_s, width_s, values)?;
            samples::recovery(&samples, window, worse)
        }
        Signal::Instants(instants) => events::of_instants(instants, window),
        Signal::Requests(requests) => events::of_requests(requests, window),
    }
}
