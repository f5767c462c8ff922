//! Recovery in words.

use std::fmt;

use stats::{Lasted, MedianLasted};
use units::{show_count, show_seconds, show_share};

use super::{Effect, Recovery, Repeated, Return, Unseen};

impl fmt::Display for Effect {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None(unseen) => unseen.fmt(text),
            Self::Seen(recovery) => recovery.fmt(text),
        }
    }
}

impl fmt::Display for Unseen {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "no effect seen; {}", self.would_have_been())
    }
}

impl Unseen {
    /// Which change would have been seen.
    #[must_use]
    pub fn would_have_been(&self) -> String {
        let size = |change: f64| match self.reference {
            0.0 => show_count(change),
            level => show_share(change / level.abs()),
        };
        let once = self.smallest_once.map_or_else(String::new, |once| {
            format!(", or one by {} in two samples in a row", size(once))
        });
        format!(
            "a change by {} that lasted {} would have been seen{once}",
            size(self.smallest),
            show_seconds(self.lasting_s)
        )
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.fell { "fell" } else { "rose" };
        let depth = match self.depth_share {
            Some(share) => show_share(share),
            None => show_count(self.depth),
        };
        write!(
            text,
            "{verb} by {depth}, first seen after {} (± {}); ",
            show_seconds(self.detected_s),
            show_seconds(self.detected_resolution_s)
        )?;
        match self.returned {
            Return::After {
                from_begin_s,
                from_end_s,
                resolution_s,
            } => {
                write!(
                    text,
                    "recovered {} (± {}) after the fault began, ",
                    show_seconds(from_begin_s),
                    show_seconds(resolution_s)
                )?;
                if from_end_s < 0.0 {
                    write!(text, "before it ended")?;
                } else {
                    write!(text, "{} after it ended", show_seconds(from_end_s))?;
                }
            }
            Return::NotBefore { from_begin_s, .. } => {
                write!(text, "not recovered: ≥ {}", show_seconds(from_begin_s))?;
            }
        }
        let lost = if self.fell { "lost" } else { "in excess" };
        write!(
            text,
            "; {lost} {} ± {}",
            show_count(self.lost),
            show_count(self.lost_noise)
        )?;
        match self.later_exits {
            0 => Ok(()),
            1 => write!(text, "; it left the band once more later"),
            times => write!(text, "; it left the band {times} times more later"),
        }
    }
}

impl fmt::Display for Repeated {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            faults,
            unseen,
            unfinished,
            recovery,
        } = self;
        let Some(MedianLasted { median, low, high }) = recovery else {
            return write!(text, "no effect seen of {faults} faults");
        };
        match median {
            Lasted::For(median) => write!(text, "median {}", show_seconds(*median))?,
            Lasted::AtLeast(least) => write!(text, "median ≥ {}", show_seconds(*least))?,
        }
        if let (Some(low), Some(high)) = (low, high) {
            let high = match *high {
                f64::INFINITY => "open".to_owned(),
                high => show_seconds(high),
            };
            write!(text, " ({} to {high})", show_seconds(*low))?;
        }
        write!(text, " of {} faults", faults - unseen)?;
        if *unfinished > 0 {
            write!(text, ", {unfinished} of them not over when the wait ended")?;
        }
        if *unseen > 0 {
            write!(text, "; {unseen} had no effect that was seen")?;
        }
        Ok(())
    }
}
