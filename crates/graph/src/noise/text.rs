//! The floor as people read it.

use std::fmt::{Display, Formatter, Result, Write as _};

use units::{show_bytes, show_cores, show_seconds, show_share};

use super::{BOUNDS_NS, GAP_NS, Gaps, Noise};
use crate::Nanos;

/// The work that is given as an example: the busy endpoint of the published chain.
const WORK: Nanos = 10_000_000;
/// A gap that shows in its latency.
const LONG: Nanos = 1_000_000;

fn time(nanos: Nanos) -> String {
    show_seconds(nanos as f64 / 1e9)
}

impl Display for Noise {
    fn fmt(&self, text: &mut Formatter<'_>) -> Result {
        writeln!(
            text,
            "Work of {} loses {} to gaps in the mean, and meets one of {} or more in {} of all cases.\n",
            time(WORK),
            time(self.lost_in(WORK)),
            time(LONG),
            show_share(self.chance_of_gap(WORK, LONG)),
        )?;
        for gaps in &self.gaps {
            write_gaps(text, gaps)?;
        }
        for late in &self.lateness {
            let name = format!("sleeps of {}", time(late.length_ns));
            writeln!(
                text,
                "  {name:<18} end {} late, p99 {}, longest {}",
                time(late.p50_ns),
                time(late.p99_ns),
                time(late.max_ns),
            )?;
        }
        let steal = show_share(self.steal);
        writeln!(
            text,
            "  steal              {steal} of the time was taken by the hypervisor"
        )?;
        writeln!(text, "  machine            {}", self.facts.in_a_line())?;
        let warnings = self.warnings();
        if !warnings.is_empty() {
            text.write_char('\n')?;
        }
        for warning in warnings {
            writeln!(text, "{warning}")?;
        }
        Ok(())
    }
}

fn write_gaps(text: &mut Formatter<'_>, gaps: &Gaps) -> Result {
    let name = gaps
        .cpu
        .map_or_else(|| "gaps".to_owned(), |cpu| format!("gaps on CPU {cpu}"));
    writeln!(
        text,
        "  {name:<18} longest {}; {} of the time in {:.0} gaps a second above {}",
        time(gaps.longest_ns),
        show_share(gaps.lost_share()),
        gaps.per_second(),
        time(GAP_NS),
    )?;
    let below = BOUNDS_NS.iter().map(|bound| format!("< {}", time(*bound)));
    let beyond = BOUNDS_NS.last().map(|bound| format!("≥ {}", time(*bound)));
    let sizes: Vec<String> = below
        .chain(beyond)
        .zip(gaps.sizes)
        .filter(|(_, count)| *count > 0)
        .map(|(size, count)| format!("{size}: {count}"))
        .collect();
    match sizes.is_empty() {
        true => Ok(()),
        false => writeln!(text, "  {:<18} {}", "", sizes.join(", ")),
    }
}

impl super::Facts {
    /// What there is to say, in one line.
    fn in_a_line(&self) -> String {
        let mut parts = vec![
            self.kernel.clone(),
            self.cpu_model.clone(),
            match &self.affinity {
                Some(list) => format!("{} usable CPUs ({list})", self.cpus),
                None => format!("{} usable CPUs", self.cpus),
            },
        ];
        let mut add = |name: &str, value: Option<String>| {
            parts.extend(value.map(|value| format!("{name} {value}")));
        };
        add("clock", self.clocksource.clone());
        add("governor", self.governor.clone());
        let scheduling = self.scheduling.clone().filter(|one| one != "other");
        add("scheduling", scheduling);
        add("huge pages", self.huge_pages.clone());
        let isolated = self.isolated.clone().filter(|list| !list.is_empty());
        add("isolated", isolated);
        add(
            "SMT",
            self.smt.map(|on| if on { "on" } else { "off" }.to_owned()),
        );
        add("load", self.load.map(|load| load.m1.to_string()));
        add("limited to", self.limits.cpus.map(show_cores));
        let memory = self.limits.memory.map(|bytes| show_bytes(bytes as f64));
        add("memory limited to", memory);
        parts.join(", ")
    }
}
