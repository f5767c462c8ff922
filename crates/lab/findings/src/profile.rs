//! What processors did in the worst seconds of a run: which seconds these were, and stacks as one
//! counts them.

use std::collections::BTreeMap;

/// Length of what is looked at, in seconds.
pub const WINDOW_S: f64 = 10.0;

/// How a load fared in a part of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// Start, in seconds of the run.
    pub from_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Requests that failed.
    pub failed: u64,
    /// 99th percentile of latency in seconds; `None`: too little was answered.
    pub p99_s: Option<f64>,
}

/// The seconds that are looked at, and why these.
#[derive(Debug, Clone, PartialEq)]
pub struct Worst {
    /// Start, in seconds of the run.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// In words: `in which most requests of front failed`.
    pub why: String,
}

/// The worst [`WINDOW_S`] of loads, by name: those in which most requests failed; where hardly any did,
/// those in which latency was highest. `None`: no load tells.
pub fn worst_of_loads(loads: &[(String, Vec<Slot>)]) -> Option<Worst> {
    let failed = |slots: &[&Slot]| -> f64 { slots.iter().map(|slot| slot.failed as f64).sum() };
    // Of windows with as few slots one slow slot would make the mean; the sum grows with each.
    let slow = |slots: &[&Slot]| -> f64 {
        slots
            .iter()
            .filter_map(|slot| Some(slot.p99_s? * slot.length_s))
            .sum()
    };
    let of = |why: &str, how: &dyn Fn(&[&Slot]) -> f64| {
        let windows = loads.iter().flat_map(|(name, slots)| {
            slots
                .iter()
                .map(move |first| (name, first.from_s, within(slots, first.from_s)))
        });
        let scored = windows.map(|(name, from_s, slots)| (how(&slots), name, from_s, slots));
        let (score, name, from_s, slots) = scored
            .max_by(|one, other| one.0.total_cmp(&other.0).then(other.2.total_cmp(&one.2)))?;
        let to_s = slots
            .iter()
            .map(|slot| slot.from_s + slot.length_s)
            .fold(from_s, f64::max);
        (score > 0.0).then(|| Worst {
            from_s,
            to_s: to_s.min(from_s + WINDOW_S),
            why: why.replace("LOAD", name),
        })
    };
    of("in which most requests of LOAD failed", &failed)
        .or_else(|| of("in which the latency of LOAD was highest", &slow))
}

fn within(slots: &[Slot], from_s: f64) -> Vec<&Slot> {
    let lies = |slot: &&Slot| slot.from_s >= from_s && slot.from_s < from_s + WINDOW_S;
    slots.iter().filter(lies).collect()
}

/// The [`WINDOW_S`] in which most was sampled, of samples by second of the run; `None`: nothing was.
pub fn busiest(samples: &BTreeMap<u32, u64>) -> Option<Worst> {
    let most = samples.keys().map(|from| {
        let to = from.saturating_add(WINDOW_S as u32);
        let sum: u64 = samples.range(from..&to).map(|(_, count)| count).sum();
        (sum, std::cmp::Reverse(*from))
    });
    let (_, std::cmp::Reverse(from)) = most.max()?;
    let last = samples
        .range(from..from.saturating_add(WINDOW_S as u32))
        .next_back();
    Some(Worst {
        from_s: f64::from(from),
        to_s: f64::from(*last?.0) + 1.0,
        why: "in which most processor time was used".into(),
    })
}

/// Stacks with how often each was seen, as `flamegraph.pl` reads them: `root;caller;callee 12`.
pub fn folded<'a>(stacks: impl IntoIterator<Item = (&'a [String], u64)>) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (frames, count) in stacks {
        *counts.entry(frames.join(";")).or_default() += count;
    }
    let lines = counts
        .iter()
        .map(|(stack, count)| format!("{stack} {count}\n"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(of: &[(u64, f64)]) -> Vec<Slot> {
        let slots = of.iter().enumerate();
        let slot = |(at, (failed, p99_s)): (usize, &(u64, f64))| Slot {
            from_s: at as f64,
            length_s: 1.0,
            failed: *failed,
            p99_s: (*p99_s > 0.0).then_some(*p99_s),
        };
        slots.map(slot).collect()
    }

    #[test]
    fn failures_come_before_latency_and_latency_before_nothing() {
        let mut seconds = vec![(0, 0.01); 40];
        let calm = ("calm".to_owned(), slots(&seconds));
        seconds[25..30].fill((0, 0.9));
        let slow = ("slow".to_owned(), slots(&seconds));
        let worst = worst_of_loads(&[calm.clone(), slow.clone()]).unwrap();
        assert!((16.0..=25.0).contains(&worst.from_s), "{worst:?}");
        assert_eq!(worst.why, "in which the latency of slow was highest");
        seconds[3..5].fill((7, 0.01));
        let failing = ("failing".to_owned(), slots(&seconds));
        let worst = worst_of_loads(&[slow, failing]).unwrap();
        assert_eq!((worst.from_s, worst.to_s), (0.0, 10.0));
        assert_eq!(worst.why, "in which most requests of failing failed");
        assert_eq!(worst_of_loads(&[]), None);
        assert_eq!(
            worst_of_loads(&[("none".into(), slots(&[(0, 0.0); 3]))]),
            None
        );
    }

    #[test]
    fn a_short_load_has_a_short_window() {
        let short = slots(&[(0, 0.1), (0, 0.2)]);
        let worst = worst_of_loads(&[("short".into(), short)]).unwrap();
        assert_eq!((worst.from_s, worst.to_s), (0.0, 2.0));
    }

    #[test]
    fn without_loads_the_busiest_seconds_are_the_worst() {
        let mut samples: BTreeMap<u32, u64> = (0..30).map(|second| (second, 10)).collect();
        samples.insert(17, 500);
        samples.insert(22, 500);
        let worst = busiest(&samples).unwrap();
        assert_eq!((worst.from_s, worst.to_s), (13.0, 23.0));
        assert_eq!(busiest(&BTreeMap::new()), None);
        let one = busiest(&BTreeMap::from([(5, 1)])).unwrap();
        assert_eq!((one.from_s, one.to_s), (5.0, 6.0));
    }

    #[test]
    fn equal_stacks_are_counted_once() {
        let stack = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let (one, other) = (stack(&["web", "main", "work"]), stack(&["web", "main"]));
        let text = folded([(&*one, 2), (&*other, 1), (&*one, 3)]);
        assert_eq!(text, "web;main 1\nweb;main;work 5\n");
    }
}
