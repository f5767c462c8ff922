//! `headroom graph noise`.

use std::time::Duration;

use anyhow::{Context, Result};
use graph::noise::Noise;
use lab_store::Outcome;
use units::{show_seconds, show_share};

use super::args::NoiseArgs;
use crate::output::{eprint, json, print};

pub(super) fn noise(args: &NoiseArgs) -> Result<Outcome> {
    let noise = Noise::measure(args.length).context("measure the machine's noise")?;
    print(&match args.json {
        true => json(&noise)?,
        false => format!("{noise}\n"),
    })?;
    let mut outcome = Outcome::Pass;
    let lost = noise.all_gaps().lost_share();
    if let Some(most) = args.most_lost.filter(|most| lost > *most) {
        let (lost, most) = (show_share(lost), show_share(most));
        eprint(format_args!(
            "headroom: gaps take {lost} of the time; --most-lost allows {most}"
        ));
        outcome = Outcome::Invalid;
    }
    let late = noise.lateness.iter().map(|late| late.p99_ns).max();
    let late = Duration::from_nanos(late.unwrap_or(0));
    if let Some(most) = args.most_late.filter(|most| late > *most) {
        let shown = |time: Duration| show_seconds(time.as_secs_f64());
        let (late, most) = (shown(late), shown(most));
        eprint(format_args!(
            "headroom: one sleep in a hundred ends {late} late or more; --most-late allows {most}"
        ));
        outcome = Outcome::Invalid;
    }
    Ok(outcome)
}
