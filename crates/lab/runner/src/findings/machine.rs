//! Processors, limits of processes and of the machine, and datagrams.

use std::collections::BTreeMap;

use lab_findings::detect::{
    DatagramCounts, ProcessUse, ResourceUse, ThreadUse, drops, exhaustion, processor,
};
use lab_store::{DatagramSample, LimitSample, MachineSample, StoreError, ThreadSample};

use super::grid::even;
use super::{Marked, Recorded};

/// Slots of processor time: shorter ones show when threads were looked at.
const SLOT_S: f64 = 1.0;

pub(super) fn findings(of: &Recorded<'_>) -> Result<Vec<Marked>, StoreError> {
    let machine = of.folder.records::<MachineSample>()?;
    let mut found = processors(of, &machine)?;
    found.extend(limits(of)?);
    found.extend(datagrams(of, &machine)?);
    Ok(found)
}

fn processors(of: &Recorded<'_>, machine: &[MachineSample]) -> Result<Vec<Marked>, StoreError> {
    let span = (of.judged.from_s, of.judged.to_s);
    let samples = of.folder.records::<ThreadSample>()?;
    let used = used(of, span);
    let Rest { idle, outside } = rest(of, machine, &used, span)?;
    let mut found = Vec::new();
    for (system, cores) in &used {
        let threads = threads(&samples, system, span);
        let threads: Vec<ThreadUse<'_>> = threads
            .iter()
            .map(|thread| ThreadUse {
                name: &thread.name,
                cores: &thread.cores,
                waited: &thread.waited,
            })
            .collect();
        let usage = ProcessUse {
            system,
            process: system,
            start_s: span.0,
            period_s: SLOT_S,
            cores,
            threads: &threads,
            idle: &idle,
            outside: &outside,
        };
        found.extend(processor(&usage).map(|finding| Marked::on(system, finding)));
    }
    Ok(found)
}

/// Cores that each system used, in slots.
type Used<'a> = BTreeMap<&'a str, Vec<f64>>;

fn used<'a>(of: &Recorded<'a>, span: (f64, f64)) -> Used<'a> {
    let mut used: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in of.samples {
        let points = used.entry(&*sample.system).or_default();
        points.push((sample.t_s, sample.cpu_cores));
    }
    let slots = used.into_iter();
    slots
        .map(|(system, points)| (system, even(&points, span, SLOT_S)))
        .collect()
}

/// Cores that the run did not have, in slots.
struct Rest {
    idle: Vec<f64>,
    /// What processes outside of the run had, or the hypervisor gave to others.
    outside: Vec<f64>,
}

fn rest(
    of: &Recorded<'_>,
    machine: &[MachineSample],
    used: &Used<'_>,
    span: (f64, f64),
) -> Result<Rest, StoreError> {
    let cores = f64::from(of.folder.environment()?.cores);
    let of_machine = |value: fn(&MachineSample) -> f64| {
        let points: Vec<(f64, f64)> = machine.iter().map(|one| (one.t_s, value(one))).collect();
        even(&points, span, SLOT_S)
    };
    let (idle, own) = (
        of_machine(|one| one.idle_cores),
        of_machine(|one| one.own_cores),
    );
    let outside = idle.iter().zip(&own).enumerate();
    let outside = outside
        .map(|(slot, (idle, own))| {
            let systems = used.values().filter_map(|values| values.get(slot));
            (cores - idle - own - systems.sum::<f64>()).max(0.0)
        })
        .collect();
    Ok(Rest { idle, outside })
}

/// Cores that processes outside of the run had in each second of a span.
///
/// # Errors
/// When a series of the run cannot be read.
pub(super) fn outside(of: &Recorded<'_>, span: (f64, f64)) -> Result<Vec<f64>, StoreError> {
    let machine = of.folder.records::<MachineSample>()?;
    Ok(rest(of, &machine, &used(of, span), span)?.outside)
}

/// A thread: its last name, as it may get one only after its start, and its processor time
/// and its waits by the number of the look.
#[derive(Default)]
struct Busy<'a> {
    name: &'a str,
    times: BTreeMap<usize, (f64, f64)>,
}

/// A thread over the run.
#[derive(Debug, PartialEq)]
struct Thread {
    name: String,
    /// In each slot.
    cores: Vec<f64>,
    /// Time in which it could have run and had no processor, in each slot.
    waited: Vec<f64>,
}

/// The threads of a system that were busy at any time: name, and processor time in each slot.
fn threads(samples: &[ThreadSample], system: &str, span: (f64, f64)) -> Vec<Thread> {
    let own = samples.iter().filter(|sample| sample.system == system);
    let mut looks: Vec<f64> = Vec::new();
    let mut busy: BTreeMap<(u32, u32), Busy<'_>> = BTreeMap::new();
    for sample in own {
        if looks.last() != Some(&sample.t_s) {
            looks.push(sample.t_s);
        }
        if sample.pid > 0 {
            let thread = busy.entry((sample.pid, sample.thread)).or_default();
            thread.name = &sample.name;
            let times = (sample.cpu_cores, sample.waited_cores);
            thread.times.insert(looks.len() - 1, times);
        }
    }
    busy.into_values()
        .map(|Busy { name, times }| {
            let slots = |of: fn((f64, f64)) -> f64| {
                let points = looks.iter().enumerate().map(|(look, t_s)| {
                    let times = times.get(&look).copied().unwrap_or_default();
                    (*t_s, of(times))
                });
                even(&points.collect::<Vec<_>>(), span, SLOT_S)
            };
            Thread {
                name: name.to_owned(),
                cores: slots(|times| times.0),
                waited: slots(|times| times.1),
            }
        })
        .collect()
}

fn limits(of: &Recorded<'_>) -> Result<Vec<Marked>, StoreError> {
    let samples = of.folder.records::<LimitSample>()?;
    let mut series: BTreeMap<(&str, &str), Vec<&LimitSample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| of.judged.holds(sample.t_s)) {
        // Ports are used towards one address and then another, and are one matter.
        let kind = sample.what.split(' ').next().unwrap_or_default();
        let one = series.entry((&sample.of, kind)).or_default();
        one.push(sample);
    }
    let mut found = Vec::new();
    for ((system, _), samples) in series {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            continue;
        };
        let share = |sample: &LimitSample| sample.used as f64 / sample.most.max(1) as f64;
        // Of several processes each may have its own limit: what counts is the share.
        let limit = last.most as f64;
        let used: Vec<f64> = samples.iter().map(|sample| share(sample) * limit).collect();
        let gaps = (samples.len() - 1).max(1) as f64;
        let each = samples.iter();
        let fullest = each.max_by(|a, b| share(a).total_cmp(&share(b)));
        let usage = ResourceUse {
            system,
            what: fullest.map_or("", |sample| &sample.what),
            start_s: first.t_s,
            period_s: (last.t_s - first.t_s) / gaps,
            used: &used,
            limit,
        };
        found.extend(exhaustion(&usage).map(|finding| Marked::on(system, finding)));
    }
    Ok(found)
}

fn datagrams(of: &Recorded<'_>, machine: &[MachineSample]) -> Result<Vec<Marked>, StoreError> {
    let samples = of.folder.records::<DatagramSample>()?;
    let machine: Vec<&MachineSample> = machine
        .iter()
        .filter(|sample| of.judged.holds(sample.t_s))
        .collect();
    let mut sockets: Vec<(&str, u16)> = samples
        .iter()
        .map(|sample| (&*sample.system, sample.port))
        .collect();
    sockets.sort_unstable();
    sockets.dedup();
    let (Some(first), Some(last)) = (machine.first(), machine.last()) else {
        return Ok(Vec::new());
    };
    let gaps = (machine.len() - 1).max(1) as f64;
    let period_s = (last.t_s - first.t_s) / gaps;
    // The kernel counts what was taken for all sockets together: no share is told too high.
    let received: Vec<f64> = machine.iter().map(|one| one.received as f64).collect();
    let found = sockets.into_iter().filter_map(|(system, port)| {
        let dropped: Vec<f64> = machine
            .iter()
            .map(|look| {
                let own = samples.iter().filter(|sample| {
                    sample.system == system && sample.port == port && sample.t_s == look.t_s
                });
                own.map(|sample| sample.dropped as f64).sum()
            })
            .collect();
        let socket = format!("port {port}");
        let counts = DatagramCounts {
            system,
            socket: &socket,
            start_s: first.t_s - period_s,
            period_s,
            received: &received,
            dropped: &dropped,
        };
        drops(&counts).map(|finding| Marked::on(system, finding))
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_not_among_the_busiest_used_nothing() {
        let sample = |t_s: f64, pid, thread, name: &str, cpu_cores| ThreadSample {
            t_s,
            system: "web".to_owned(),
            pid,
            thread,
            name: name.to_owned(),
            cpu_cores,
            waited_cores: 1.0 - 0.75,
        };
        let mut samples = Vec::new();
        for look in 0..=8 {
            let t_s = f64::from(look) * 0.5;
            if look > 4 {
                samples.push(sample(t_s, 7, 9, "worker", 0.75));
            }
            samples.push(sample(t_s, 0, 3, "others", 0.01));
        }
        let found = threads(&samples, "web", (0.0, 4.0));
        let expected = Thread {
            name: "worker".to_owned(),
            cores: vec![0.0, 0.0, 0.75, 0.75],
            waited: vec![0.0, 0.0, 0.25, 0.25],
        };
        assert_eq!(found, [expected]);
        assert_eq!(threads(&samples, "db", (0.0, 4.0)), []);
    }
}
