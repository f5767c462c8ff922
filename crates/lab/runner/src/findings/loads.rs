//! What loads tell of their targets, and of their generators.

use lab_experiment::plan::{Load, Reference, Segment};
use lab_findings::Finding;
use lab_findings::detect::{
    AttemptCounts, ConnectionCounts, GeneratorUse, QueueLevels, SlotLatencies, connections,
    generator, handshakes, queue, retries, stalls,
};
use lab_load::recording::{Tenth, Tenths};
use lab_load::summary::Slot;
use lab_load::{Protocol, Summary};
use lab_store::StoreError;

use super::{Marked, Recorded, machine};
use crate::loads::Outcome;
use crate::processes::copy_names;

/// Faults during a load from which stalls in a rhythm may be theirs.
const RECURRING: usize = 6;

/// A load waits for its own limit, and not for its target, while answers take at most so
/// many times as long as the fastest.
const UNLOADED: f64 = 2.0;

pub(super) fn findings(of: &Recorded<'_>) -> Result<Vec<Marked>, StoreError> {
    // A search goes beyond the limit on purpose, and says itself where that is.
    let loads = of.loads.iter();
    let loads = loads.filter(|load| load.summary.capacity.is_none());
    let loads = loads.filter(|load| load.step.is_some() || load.summary.model == "open");
    let each: Vec<Vec<Marked>> = loads
        .map(|load| of_load(of, load))
        .collect::<Result<_, _>>()?;
    Ok(each.into_iter().flatten().collect())
}

fn of_load(of: &Recorded<'_>, outcome: &Outcome) -> Result<Vec<Marked>, StoreError> {
    let plan = of.plan.loads.iter().find(|load| load.name == outcome.load);
    let system = plan.and_then(|load| target(of, load));
    let origin_ns = of.folder.environment()?.started_at_unix_ns;
    let began_ns = outcome.summary.began_unix_ns.saturating_sub(origin_ns);
    let start_s = began_ns as f64 * 1e-9;
    let load = SeenLoad {
        name: &outcome.load,
        system: system.as_deref().unwrap_or(&outcome.load),
        connects: plan.is_none_or(|load| connects(load.protocol)),
        start_s,
        outside: machine::outside(of, (start_s, start_s + outcome.summary.duration_s))?,
        summary: &outcome.summary,
        slots: own_slots(&outcome.summary),
        tenths: tenths(&outcome.summary.tenths),
    };
    let faults = of.faults.iter();
    let faults = faults.filter(|fault| load.spans(fault.begin_s)).count();
    let found = [
        load.queue(),
        load.stalls().filter(|_| faults < RECURRING),
        load.connections(connections),
        load.connections(handshakes),
        load.generator(),
        load.retries(),
    ];
    let found = found.into_iter().flatten();
    Ok(found
        .map(|finding| Marked::on(&outcome.load, finding))
        .collect())
}

/// The copy of a system that a load asks; `None`: a target outside of the run.
fn target(of: &Recorded<'_>, load: &Load) -> Option<String> {
    let name = load.place().0.iter().find_map(|segment| match segment {
        Segment::Reference(
            Reference::Port(name) | Reference::Addr(name) | Reference::Further(_, name, _),
        ) => Some(name),
        _ => None,
    })?;
    let mut systems = of.plan.systems.iter();
    let system = systems.find(|system| system.name == *name)?;
    copy_names(system).into_iter().next()
}

/// Whether requests of a protocol may share connections.
fn connects(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Http1 | Protocol::Http2 | Protocol::Grpc)
}

/// Slots of the load's own time that are whole: the last one may be a piece.
fn own_slots(summary: &Summary) -> Vec<&Slot> {
    let longest = summary.timeline.iter().map(|slot| slot.length_s);
    let longest = longest.fold(0.0, f64::max);
    let own = summary.timeline.iter().filter(|slot| !slot.after_end);
    own.filter(|slot| slot.length_s > 0.9 * longest).collect()
}

/// Every tenth from the first to the last.
fn tenths(told: &Tenths) -> Vec<Tenth> {
    let mut all = Vec::new();
    for tenth in told.iter() {
        while all.len() < tenth.number as usize && all.len() < Tenths::MOST {
            all.push(Tenth {
                number: all.len() as u32,
                // What was in flight stayed so while nothing was sent or ended.
                in_flight: all.last().map_or(0, |last: &Tenth| last.in_flight),
                ..Tenth::default()
            });
        }
        all.push(*tenth);
    }
    all
}

/// A load as it is stored, on the time of the run.
struct SeenLoad<'a> {
    name: &'a str,
    system: &'a str,
    connects: bool,
    start_s: f64,
    /// Cores that processes outside of the run had in each of its seconds.
    outside: Vec<f64>,
    summary: &'a Summary,
    slots: Vec<&'a Slot>,
    tenths: Vec<Tenth>,
}

impl SeenLoad<'_> {
    fn each(&self, of: impl Fn(&Slot) -> f64) -> Vec<f64> {
        self.slots.iter().map(|slot| of(slot)).collect()
    }

    fn of_tenths(&self, of: impl Fn(&Tenth) -> f64) -> Vec<f64> {
        self.tenths.iter().map(of).collect()
    }

    fn slot_s(&self) -> f64 {
        self.slots.first().map_or(1.0, |slot| slot.length_s)
    }

    fn spans(&self, at_s: f64) -> bool {
        (self.start_s..self.start_s + self.summary.duration_s).contains(&at_s)
    }

    /// The requests that were sent and not answered. In a closed loop, they are the users.
    fn queue(&self) -> Option<Finding> {
        if self.summary.model != "open" {
            return None;
        }
        let name = format!("the number of {}'s requests in flight", self.name);
        queue(&QueueLevels {
            system: self.system,
            name: &name,
            start_s: self.start_s,
            period_s: Tenths::LENGTH.as_secs_f64(),
            levels: &self.of_tenths(|tenth| f64::from(tenth.in_flight)),
            load: &self.of_tenths(|tenth| f64::from(tenth.sent)),
        })
    }

    fn stalls(&self) -> Option<Finding> {
        stalls(&SlotLatencies {
            system: self.system,
            name: self.name,
            start_s: self.start_s,
            slot_s: Tenths::LENGTH.as_secs_f64(),
            latency_s: &self.of_tenths(|tenth| f64::from(tenth.worst_us) * 1e-6),
            arrivals: &self.of_tenths(|tenth| f64::from(tenth.sent)),
        })
    }

    fn connections(&self, detect: fn(&ConnectionCounts<'_>) -> Option<Finding>) -> Option<Finding> {
        if !self.connects {
            return None;
        }
        detect(&ConnectionCounts {
            system: self.system,
            client: self.name,
            start_s: self.start_s,
            period_s: self.slot_s(),
            requests: &self.each(|slot| slot.sent as f64),
            opened: &self.each(|slot| slot.opened as f64),
            full: &self.each(|slot| slot.handshakes as f64),
            resumed: &self.each(|slot| slot.resumed as f64),
        })
    }

    fn generator(&self) -> Option<Finding> {
        let limited = self.is_limited();
        let most = self.summary.generator.in_flight_most;
        let most = most.filter(|_| limited).unwrap_or(u64::MAX);
        // A second in which the limit was reached once is no second at the limit.
        let at_limit = |slot: &Slot| {
            let own = self.tenths.iter().filter(|tenth| {
                let begins_s = Tenths::LENGTH.as_secs_f64() * f64::from(tenth.number);
                (slot.t_s..slot.t_s + slot.length_s).contains(&begins_s)
            });
            let reached = own.map(|tenth| f64::from(u8::from(u64::from(tenth.in_flight) >= most)));
            stats::mean(&reached.collect::<Vec<_>>()).unwrap_or(0.0)
        };
        // Numbers that are VALID were not limited by what others on the machine did.
        let spoiled = !self.summary.validity.valid;
        generator(&GeneratorUse {
            load: self.name,
            start_s: self.start_s,
            period_s: self.slot_s(),
            sent: &self.each(|slot| slot.sent as f64),
            // A wait for the target's sake is no lateness of the generator.
            late: &self.each(|slot| (slot.late + if limited { slot.waited } else { 0 }) as f64),
            busiest: &self.each(|slot| slot.busiest),
            waiting_for_processor: &self.each(|slot| if spoiled { slot.waited_share } else { 0.0 }),
            at_in_flight_limit: &self.each(at_limit),
            outside: &self.outside,
        })
    }

    /// Whether the load's limit of requests in flight is below what its target could take.
    fn is_limited(&self) -> bool {
        let actual = &self.summary.latency.actual;
        // Without what the generator may have added, and also where that is too much to tell.
        let least = actual.bounds.get("p50").map(|[low, _]| *low);
        // Where half had no answer, those that had one tell.
        let usual = least.or(actual.p50).or(actual.mean);
        let pair = usual.zip(actual.min);
        pair.is_some_and(|(usual, fastest)| usual <= UNLOADED * fastest)
    }

    fn retries(&self) -> Option<Finding> {
        retries(&AttemptCounts {
            system: self.system,
            client: self.name,
            start_s: self.start_s,
            period_s: self.slot_s(),
            requests: &self.each(|slot| slot.sent as f64),
            attempts: &self.each(|slot| (slot.sent + slot.retried) as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_in_which_nothing_happened_are_there_and_keep_what_was_in_flight() {
        let mut told = Tenths::default();
        told.at(Tenths::LENGTH).in_flight = 4;
        told.at(Tenths::LENGTH * 4).in_flight = 1;
        let all = tenths(&told);
        let in_flight: Vec<u32> = all.iter().map(|tenth| tenth.in_flight).collect();
        assert_eq!(in_flight, [0, 4, 4, 4, 1]);
        assert!(
            all.iter()
                .enumerate()
                .all(|(place, t)| t.number as usize == place)
        );
    }
}
