//! Who is behind what the figures show, if anybody is.
//!
//! A suspect is an accusation, so three things are asked of it: it would be named whichever
//! stretches of the run had been seen (an interval over resamples), its effect is above what
//! the machine does to everybody (the floors of hops, and how late the other places of the
//! same run are), and its share is worth saying. Otherwise no single place is to blame.
//! Attempts that failed are no inference: they are counted, and told with what they cost from
//! a number and a share of the calls on.

mod locks;

use serde::Serialize;

use super::Analysis;
use super::cause::Cause;
use super::concurrency::Concurrency;
use super::evidence::{Evidence, runs_at};
use super::ledger::Part;
use super::phrases;
use super::resample::Estimate;

/// A place that the machine may have slowed holds at least this share of the surplus or of
/// the tail.
const HOLDS: f64 = 0.25;

/// What was measured exactly, as processor time, is worth saying from this share on.
const HOLDS_EXACTLY: f64 = 0.1;

/// One place stands out if it is later than this many times the others.
const TIMES_OTHERS: f64 = 2.0;

/// Two ways of an edge are both slow if the faster one holds this share of both.
const BOTH_WAYS: f64 = 0.25;

/// Work that was ready and did not run for this share of its time was contended.
const CONTENDED: f64 = 0.1;

/// One service alone lacks a processor if it lost so much more, for its processor time, than
/// twice what others lost,
const MORE_STOLEN: f64 = 0.05;

/// and if so much of all that came late came late there: others may have no work to lose
/// time of, and wait all the same.
const LATE: f64 = 0.7;

/// A limit that is used for so much of it in the mean is reached again and again within the
/// short periods that it holds for.
const NEARLY_USED: f64 = 0.5;

/// Work can be compared with work that is at least this much as long: a scheduler lets short
/// work pass.
const COMPARABLE: f64 = 1.0 / 3.0;

/// Of what was stolen, one service that alone lacks a processor has this share.
const ALONE: f64 = 0.8;

/// Work takes longer than asked from this share of it on, and from this time on.
const BEYOND: (f64, f64) = (0.05, 20_000.0);

/// The same of work whose speed is the machine's: caches and neighbours change it.
const BEYOND_SPEED: f64 = 0.25;

/// Below this share of a request, nobody is accused.
const WORTH_SAYING: f64 = 0.01;

/// Work grew where it is waited for if so much of it was waited for.
const HALF: f64 = 0.5;

/// Work that moved, at most.
const MOST_MOVED: usize = 3;

/// Waiting for workers is their number's fault if so many were busy for this share of it.
const FULL: f64 = 0.5;

/// Attempts that fail are told from so many on, and from this share of the calls on.
const FAILED: (u64, f64) = (3, 0.005);

/// What somebody is suspected of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuspectKind {
    /// Work took more than asked for.
    Work,
    /// A sleep took longer than asked for.
    Sleep,
    /// A lock, disk or program was waited for.
    Wait,
    /// There are too few workers.
    Workers,
    /// There are too few connections.
    Connections,
    /// One service alone lacked a processor.
    Processor,
    /// A service did not run when it should.
    Stall,
    /// Both ways between two services are slow.
    Network,
    /// A service's own time.
    Handling,
    /// All lacked processors: no single place, but the machine.
    Machine,
    /// Calls failed and were made again.
    Retries,
    /// Calls ran out of time and were made again.
    Timeouts,
    /// Calls lost their connection and were made again.
    Drops,
    /// Another profile asks for it.
    Profile,
}

/// Somebody who is behind what the figures show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suspect {
    /// Of what.
    pub kind: SuspectKind,
    /// A service, a service and its work, an edge; empty: the machine.
    pub place: String,
    /// What it adds to a request, in the mean, in nanoseconds.
    pub effect_ns: f64,
    /// Where that lies, with 98 % confidence.
    pub interval_ns: (f64, f64),
    /// Its share of what is above the median in the tail; `None`: there is no tail.
    pub tail_share: Option<f64>,
    /// In plain words; empty: the sentences of the surplus and of the tail say it.
    pub sentence: String,
    #[serde(skip)]
    pub(super) parts: Vec<Part>,
}

impl Suspect {
    /// Whether a part of requests is this one's.
    pub(super) fn has(&self, service: &str, peer: &str, work: &str, cause: Cause) -> bool {
        self.parts.iter().any(|part| {
            *part.service == *service
                && *part.peer == *peer
                && *part.work == *work
                && part.cause == cause
        })
    }
}

/// Names all suspects of a run; and work that moved onto the critical path or grew off it,
/// which accuses nobody.
pub(super) fn of(evidence: &Evidence<'_>, analysis: &Analysis) -> (Vec<Suspect>, Vec<String>) {
    let judge = Judge { evidence, analysis };
    let mut found = judge.failing();
    found.extend(locks::behind_workers(&judge, judge.demanded()));
    let network = judge.network();
    let services = judge.services(&network);
    let machine = judge.machine(&services);
    found.extend(network);
    found.extend(services);
    found.extend(machine);
    (found, judge.moved())
}

/// Whether workers of a service were all busy while work waited.
pub(super) fn is_full(concurrency: &[Concurrency], service: &str) -> bool {
    let mut levels = concurrency.iter().filter(|one| one.service == service);
    let full = levels.find_map(|one| one.waited_while_full);
    full.is_none_or(|share| share >= FULL)
}

struct Judge<'a> {
    evidence: &'a Evidence<'a>,
    analysis: &'a Analysis,
}

/// What a group of parts holds.
struct Held {
    effect: Estimate,
    tail: Option<Estimate>,
}

/// Of those with the same effect, the first by name: what is said is the same each time.
fn largest_first(found: &mut [Suspect]) {
    found.sort_by(|one, other| {
        let by_effect = other.effect_ns.total_cmp(&one.effect_ns);
        by_effect.then_with(|| one.place.cmp(&other.place))
    });
}

impl Judge<'_> {
    fn part(&self, at: usize) -> &Part {
        &self.evidence.ledger.parts[at]
    }

    fn mean(&self) -> f64 {
        self.analysis.latency.mean_ns
    }

    fn held(&self, parts: &[usize], effect: Estimate) -> Held {
        let tail = match self.is_tail_resolved() {
            true => self.evidence.tail_shares(&[parts.to_vec()]).pop(),
            false => None,
        };
        Held { effect, tail }
    }

    /// Whether the tail is above what the machine does to every request.
    fn is_tail_resolved(&self) -> bool {
        let tail = self.analysis.tail.as_ref();
        tail.is_some_and(|tail| tail.difference_ns > self.evidence.unresolved)
    }

    /// What shares are of: the surplus, if it is one; without a budget, the whole.
    fn whole(&self) -> Option<f64> {
        let surplus = self.evidence.surplus.value;
        match self.evidence.expected() {
            Some(expected) => {
                let least = self.evidence.unresolved.max(expected * BEYOND.0);
                (surplus > least).then_some(surplus)
            }
            None => Some(self.mean()),
        }
    }

    /// Whether something holds a share, whatever of the run was seen.
    fn is_worth_saying(&self, held: &Held, share: f64) -> bool {
        let of_mean = self
            .whole()
            .is_some_and(|whole| held.effect.low >= whole * share);
        let of_tail = held.tail.is_some_and(|tail| tail.low >= share);
        (of_mean || of_tail) && held.effect.low >= self.mean() * WORTH_SAYING
    }

    fn suspect(&self, kind: SuspectKind, place: String, parts: &[usize], held: &Held) -> Suspect {
        Suspect {
            kind,
            place,
            effect_ns: held.effect.value,
            interval_ns: (held.effect.low, held.effect.high),
            tail_share: held.tail.map(|tail| tail.value),
            sentence: String::new(),
            parts: parts.iter().map(|at| self.part(*at).clone()).collect(),
        }
    }

    /// Parts that are asked for by the profile, or queued for by it.
    fn demanded(&self) -> Vec<Suspect> {
        let ledger = self.evidence.ledger;
        let mut found = Vec::new();
        for at in 0..ledger.parts.len() {
            let part = self.part(at);
            let Some((kind, place)) = self.kind_of(part) else {
                continue;
            };
            let more = self.evidence.mean_of(at) - self.evidence.budgeted(part);
            if more < self.mean() * WORTH_SAYING {
                continue;
            }
            let beyond = self.evidence.beyond_budget(&[at]);
            let held = self.held(&[at], beyond);
            let share = match part.cause {
                Cause::Cpu | Cause::Sleep => HOLDS_EXACTLY,
                _ => HOLDS,
            };
            // Without a budget, a tail says where latency varies, and the whole is what a
            // request takes anyway.
            let known = self.evidence.budget.is_some();
            let worth = match known {
                true => {
                    self.grew(at, &beyond)
                        && self.is_above_noise(at, &beyond)
                        && self.is_worth_saying(&held, share)
                }
                false => held.tail.is_some_and(|tail| tail.low >= HOLDS),
            };
            let varies = matches!(part.cause, Cause::Cpu | Cause::Sleep) && !known;
            if worth && (!varies || self.is_tail_resolved()) {
                found.push(self.suspect(kind, place, &[at], &held));
            }
        }
        largest_first(&mut found);
        found
    }

    fn kind_of(&self, part: &Part) -> Option<(SuspectKind, String)> {
        let work = || format!("{} {}", part.service, part.work);
        Some(match part.cause {
            Cause::Cpu => (SuspectKind::Work, work()),
            Cause::Sleep => (SuspectKind::Sleep, work()),
            Cause::Wait => (SuspectKind::Wait, work()),
            Cause::Queue if !part.peer.is_empty() => (
                SuspectKind::Connections,
                format!("{}>{}", part.service, part.peer),
            ),
            Cause::Queue if !part.work.is_empty() && self.is_full(&part.service) => {
                (SuspectKind::Workers, part.service.to_string())
            }
            Cause::Own if !self.evidence.handles_only(&part.service) => {
                let place = match part.work.is_empty() {
                    true => part.service.to_string(),
                    false => work(),
                };
                (SuspectKind::Handling, place)
            }
            Cause::Unseen => (
                SuspectKind::Handling,
                format!("{}>{}", part.service, part.peer),
            ),
            _ => return None,
        })
    }

    /// Whether work takes longer than it was asked to, rather than only having moved onto
    /// the critical path.
    fn grew(&self, at: usize, beyond: &Estimate) -> bool {
        let part = self.part(at);
        let speed_is_known = matches!(&*part.work, "cpu" | "lock" | "sleep");
        let share = match (part.cause, speed_is_known) {
            (Cause::Cpu | Cause::Sleep, true) => BEYOND.0,
            (Cause::Cpu, false) => BEYOND_SPEED,
            _ => return true,
        };
        let least = (self.evidence.budgeted(part) * share).max(BEYOND.1);
        let done = self.evidence.done_beyond_budget(part);
        let wakes = match part.cause {
            Cause::Sleep => self.noise(at),
            _ => 0.0,
        };
        beyond.low > least && done.low > (least + wakes).max(beyond.value * HALF)
    }

    /// Whether what waits waits for longer than the machine keeps others waiting.
    fn is_above_noise(&self, at: usize, beyond: &Estimate) -> bool {
        self.part(at).cause == Cause::Cpu || beyond.low > self.noise(at)
    }

    /// What a part would be beyond its budget, in the mean, if each time it were twice as
    /// late as other services are.
    fn noise(&self, at: usize) -> f64 {
        let others = self.lateness(|part| part.service != self.part(at).service);
        let late = self.evidence.late(others);
        let events: f64 = late.events.iter().sum();
        let each = late.excess.iter().sum::<f64>() / events.max(1.0);
        let ledger = self.evidence.ledger;
        let often = ledger.often(at) / ledger.totals.len().max(1) as f64;
        TIMES_OTHERS * each.max(0.0) * often
    }

    /// Work that ran on the critical path for longer and took no longer, and work that took
    /// longer where nobody waited for it.
    pub(super) fn moved(&self) -> Vec<String> {
        let evidence = self.evidence;
        let Some(expected) = evidence.expected() else {
            return Vec::new();
        };
        let mut said = Vec::new();
        for part in &evidence.ledger.done_parts {
            let place = evidence.parts(|one| one == part);
            let on_path = evidence.beyond_budget(&place);
            let done = evidence.done_beyond_budget(part);
            let least = (evidence.budgeted_done(part) * BEYOND.0).max(expected * BEYOND.0);
            let cause = part.cause;
            if cause != Cause::Cpu && cause != Cause::Sleep {
                continue;
            }
            let name = phrases::work(part);
            if on_path.low > least && done.high < on_path.low * HALF {
                said.push(phrases::moved_onto_path(&name, on_path.value));
            } else if cause == Cause::Cpu && done.low > least && on_path.high < done.low * HALF {
                said.push(phrases::grew_off_path(&name, done.value));
            }
        }
        said.truncate(MOST_MOVED);
        said
    }

    fn is_full(&self, service: &str) -> bool {
        is_full(&self.analysis.concurrency, service)
    }

    /// Calls that failed and were made again: what happened is a fact, and its cost is what
    /// passed on the critical path.
    fn failing(&self) -> Vec<Suspect> {
        let mut found = Vec::new();
        for ((from, to), visits) in self.evidence.ledger.edges() {
            let failed = [
                (
                    SuspectKind::Timeouts,
                    Cause::Timeout,
                    visits.failed.timeouts,
                ),
                (SuspectKind::Drops, Cause::Drop, visits.failed.drops),
                (SuspectKind::Retries, Cause::Retry, visits.failed.others),
            ];
            let all: u64 = failed.iter().map(|(.., count)| count).sum();
            for (kind, cause, count) in failed {
                let share = count as f64 / visits.count.max(1) as f64;
                if count < FAILED.0 || share < FAILED.1 {
                    continue;
                }
                let most = failed.iter().all(|(.., other)| *other <= count);
                let parts = self.evidence.parts(|part| {
                    let same = part.service == from && part.peer == to;
                    // Pauses are those of what failed most.
                    same && (part.cause == cause || part.cause == Cause::Backoff && most)
                });
                let effect = self.evidence.beyond_budget(&parts);
                let cost = self.evidence.mean_length(&parts);
                let held = self.held(&parts, effect);
                let again = visits.again.min(all) as f64 / all.max(1) as f64;
                let sentence = phrases::failing(&phrases::Failing {
                    kind,
                    edge: (&from, &to),
                    share,
                    count,
                    again,
                    cost,
                    of_mean: cost / self.mean().max(1.0),
                    tail: held.tail.map(|tail| tail.value),
                });
                let mut suspect = self.suspect(kind, format!("{from}>{to}"), &parts, &held);
                suspect.effect_ns = cost;
                suspect.sentence = sentence;
                found.push(suspect);
            }
        }
        largest_first(&mut found);
        found
    }

    fn lateness(&self, of: impl Fn(&Part) -> bool) -> Vec<usize> {
        let full = |service: &str| self.is_full(service);
        self.evidence
            .parts(|part| of(part) && self.evidence.is_lateness(part, &full))
    }

    /// Lateness, and what it leads to: stolen time, and waiting for workers that are all
    /// held up.
    fn wanted_to_run(&self, of: impl Fn(&Part) -> bool) -> Vec<usize> {
        let late = |part: &Part| self.evidence.is_lateness(part, &|_| false);
        self.evidence
            .parts(|part| of(part) && (part.cause == Cause::Stolen || late(part)))
    }

    /// How much later these parts are, each time, than twice the others; more than the
    /// machine's own scatter. `None`: there are no others.
    fn beside_others(&self, own: &[usize], others: &[usize]) -> Option<Estimate> {
        let spread = self.evidence.spread_of(own);
        let (own, others) = (
            self.evidence.late(own.iter().copied()),
            self.evidence.late(others.iter().copied()),
        );
        let each = |sum: f64, events: f64| sum / events.max(1.0);
        let there: f64 = others.events.iter().sum();
        (there > 0.0).then(|| {
            let sums = [&own.excess, &own.events, &others.excess, &others.events];
            let estimate = self.evidence.resamples.estimate(
                sums.map(Vec::as_slice),
                |[late, events, other, of]| {
                    each(late, events) - TIMES_OTHERS * each(other, of).max(0.0)
                },
            );
            estimate.less(spread)
        })
    }

    /// Edges both ways of which are slow: one end alone cannot do that.
    fn network(&self) -> Vec<Suspect> {
        let mut found = Vec::new();
        for edge in &self.analysis.edges {
            let is_edge = |part: &Part| *part.service == *edge.from && *part.peer == *edge.to;
            let own = self.lateness(is_edge);
            let ways = [Cause::WireOut, Cause::WireBack].map(|way| {
                let parts = self.lateness(|part| is_edge(part) && part.cause == way);
                self.evidence.beyond_floor(&parts).value
            });
            let effect = self.evidence.beyond_floor(&own);
            let both = ways.iter().sum::<f64>() * BOTH_WAYS;
            if effect.value < self.mean() * WORTH_SAYING || ways.iter().any(|way| *way < both) {
                continue;
            }
            let others = self.lateness(|part| !is_edge(part));
            let stands_out = self.beside_others(&own, &others);
            let held = self.held(&own, effect);
            if stands_out.is_none_or(|late| late.low > 0.0) && self.is_worth_saying(&held, HOLDS) {
                let mut suspect = self.suspect(SuspectKind::Network, edge.id.clone(), &own, &held);
                let told_apart = self.are_ways_told_apart(&edge.from, &edge.to);
                suspect.sentence = phrases::network(edge, &held.effect, held.tail, told_apart);
                found.push(suspect);
            }
        }
        found
    }

    /// Whether it is known of most calls how long each way took.
    fn are_ways_told_apart(&self, from: &str, to: &str) -> bool {
        let mut edges = self.evidence.ledger.edges();
        let edge = edges.find(|(edge, _)| *edge.0 == *from && *edge.1 == *to);
        edge.is_none_or(|(_, visits)| visits.moved * 2 <= visits.hops)
    }

    /// Services that do not run when they should: their own time, and what waits to arrive.
    fn services(&self, network: &[Suspect]) -> Vec<Suspect> {
        let is_free = |part: &Part| {
            let (service, peer, work) = (&*part.service, &*part.peer, &*part.work);
            !network
                .iter()
                .any(|one| one.has(service, peer, work, part.cause))
        };
        let all = self.wanted_to_run(is_free);
        let everywhere = self.evidence.beyond_floor(&all).value;
        let mut found = Vec::new();
        for service in &self.analysis.services {
            let name = service.name.as_str();
            // Not how late workers begin: a scheduler lets those wait longer that have
            // worked more. A service that stands still is late to read, too.
            let reads = |part: &Part| is_free(part) && part.work.is_empty();
            let own = self.lateness(|part| reads(part) && runs_at(part) == name);
            let stolen = self
                .evidence
                .parts(|part| part.cause == Cause::Stolen && *part.service == *name);
            let all = self.wanted_to_run(|part| is_free(part) && runs_at(part) == name);
            let effect = self.evidence.beyond_floor(&all);
            if effect.value < self.mean() * WORTH_SAYING {
                continue;
            }
            // What it sends is late too if it is stopped between looking at the clock and
            // sending; without its edges there may be little left to compare with.
            let touches = |part: &Part| *part.service == *name || *part.peer == *name;
            let late = [true, false].into_iter().any(|with_edges| {
                let others = self.lateness(|part| {
                    reads(part) && runs_at(part) != name && (with_edges || !touches(part))
                });
                let late = self.beside_others(&own, &others);
                late.is_some_and(|late| late.low > 0.0)
            });
            // That a limit is to blame needs less than that nobody knows who is.
            let (share, times) = match self.nearly_uses_limit(name) {
                true => (HALF, 1.0),
                false => (LATE, TIMES_OTHERS),
            };
            let robbed = effect.value >= everywhere * share && self.is_robbed(name, times);
            if !late && !robbed {
                continue;
            }
            let held = self.held(&all, effect);
            if !self.is_worth_saying(&held, HOLDS) {
                continue;
            }
            let of = |parts: &[usize]| self.evidence.beyond_floor(parts).value;
            let handling = self.lateness(|part| part.cause == Cause::Own && *part.service == *name);
            let limit = phrases::limit(name, self.evidence.known);
            let kind = if of(&handling) >= effect.value * ALONE && limit.is_none() {
                SuspectKind::Handling
            } else if of(&stolen) >= effect.value / 2.0 || limit.is_some() {
                SuspectKind::Processor
            } else {
                SuspectKind::Stall
            };
            let mut suspect = self.suspect(kind, name.to_owned(), &all, &held);
            suspect.sentence = match kind {
                SuspectKind::Processor => {
                    let lost = self.share_stolen(name);
                    phrases::processor(name, lost, limit)
                }
                SuspectKind::Stall => {
                    phrases::stall(name, &held.effect, held.tail, self.left(name))
                }
                _ => String::new(),
            };
            found.push(suspect);
        }
        largest_first(&mut found);
        found
    }

    /// What left a service, as a share of what arrived there, both beyond the floor.
    fn left(&self, name: &str) -> f64 {
        let arrived = self.lateness(|part| !part.peer.is_empty() && runs_at(part) == name);
        let left = self.lateness(|part| match part.cause {
            Cause::WireOut => *part.service == *name,
            Cause::WireBack => *part.peer == *name,
            _ => false,
        });
        let of = |parts: &[usize]| self.evidence.beyond_floor(parts).value;
        of(&left) / of(&arrived).max(1.0)
    }

    fn share_stolen(&self, name: &str) -> f64 {
        let mean = |cause| {
            let parts = self
                .evidence
                .parts(|part| part.cause == cause && *part.service == *name);
            self.evidence.mean_length(&parts)
        };
        let (cpu, stolen) = (mean(Cause::Cpu), mean(Cause::Stolen));
        stolen / (cpu + stolen).max(1.0)
    }

    /// Whether a service has a limit, and needs much of it.
    fn nearly_uses_limit(&self, name: &str) -> bool {
        let service = self.evidence.known.and_then(|known| known.service(name));
        let limit = service.and_then(|service| {
            let each = service.cpu_limit?;
            Some(each * f64::from(service.instances))
        });
        limit.is_some_and(|limit| self.evidence.processors_used(name) >= limit * NEARLY_USED)
    }

    /// Whether a service's work lost more of its time than so many times what work of like
    /// length lost elsewhere.
    fn is_robbed(&self, name: &str, times: f64) -> bool {
        let evidence = self.evidence;
        let each = |at: usize| {
            let sum: f64 = evidence.length(&[at]).iter().sum();
            sum / evidence.ledger.often(at).max(1.0)
        };
        let cpu = |is: &dyn Fn(&Part) -> bool| {
            evidence.parts(|part| part.cause == Cause::Cpu && is(part))
        };
        let own = cpu(&|part| *part.service == *name);
        let longest = own.iter().map(|at| each(*at)).fold(0.0, f64::max);
        let others = cpu(&|part| *part.service != *name);
        let others: Vec<usize> = others
            .into_iter()
            .filter(|at| each(*at) >= longest * COMPARABLE)
            .collect();
        if own.is_empty() || others.is_empty() {
            return false;
        }
        let stolen = |of: &[usize]| {
            evidence.parts(|part| {
                let same = |at: &usize| {
                    let with = self.part(*at);
                    with.service == part.service && with.work == part.work
                };
                part.cause == Cause::Stolen && of.iter().any(same)
            })
        };
        let sums = [
            evidence.length(&stolen(&own)),
            evidence.length(&own),
            evidence.length(&stolen(&others)),
            evidence.length(&others),
        ];
        let lost = |stolen: f64, cpu: f64| stolen / cpu.max(1.0);
        let more = evidence.resamples.estimate(
            sums.each_ref().map(Vec::as_slice),
            |[stolen, cpu, other, of]| lost(stolen, cpu) - times * lost(other, of),
        );
        more.low > MORE_STOLEN
    }

    /// Processor time that was wanted and not had, by no single service alone.
    fn machine(&self, services: &[Suspect]) -> Option<Suspect> {
        let cpu = self.evidence.parts(|part| part.cause == Cause::Cpu);
        let stolen = self.evidence.parts(|part| part.cause == Cause::Stolen);
        let sums = [self.evidence.length(&cpu), self.evidence.length(&stolen)];
        let share = self
            .evidence
            .resamples
            .estimate(sums.each_ref().map(Vec::as_slice), |[cpu, stolen]| {
                stolen / (cpu + stolen).max(1.0)
            });
        let effect = self.evidence.beyond_floor(&stolen);
        let of_suspects = self.evidence.parts(|part| {
            part.cause == Cause::Stolen && services.iter().any(|one| one.place == *part.service)
        });
        let theirs = self.evidence.beyond_floor(&of_suspects).value;
        if share.low < CONTENDED
            || effect.low < self.mean() * WORTH_SAYING
            || theirs >= effect.value * ALONE
        {
            return None;
        }
        let held = self.held(&stolen, effect);
        let mut suspect = self.suspect(SuspectKind::Machine, String::new(), &[], &held);
        suspect.sentence = phrases::machine(share.value, effect.value);
        Some(suspect)
    }
}
