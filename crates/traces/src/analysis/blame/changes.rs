//! What differs between two runs, place by place: each change is beyond chance, and worth
//! saying to those whose requests pass there.

use std::collections::{BTreeMap, BTreeSet};

use stats::{larger_by_chance, normal_quantile};

use super::alike::Growth;
use super::few::{self, SlowMinority};
use super::links::{Links, Losses};
use super::often::{self, MoreVisits};
use super::places::{
    Counts, Endpoint, Gateways, Kind, Place, PlaceActivity, Places, RequestAtPlace, Visits,
};
use super::shapes::Difference;
use super::strata::{Strata, apart, rank_sums};
use crate::Name;

/// A place that takes longer takes so much of a request's usual latency more, at least.
const WORTH: f64 = 0.1;

/// Requests wait for so much of what a place takes longer, at least: else it is beside them.
const WAITED_FOR: f64 = 0.25;

/// Shares that grow by less are not told.
const WORTH_SHARE: f64 = 0.02;

/// A shape is new if it was so many times rarer before.
const RARER: f64 = 4.0;

/// How likely one change or more is told where nothing differs.
pub(super) const FALSE: f64 = 0.003;

/// Likewise, where that more fail is proven already.
const UNLIKELY: f64 = 0.01;

/// Families of tests that share that: of times, of counts, and of the few that are slow.
pub(super) const FAMILIES: f64 = 3.0;

/// Of what a place takes longer, so much must not have moved there from elsewhere in its service.
const GREW: f64 = 0.5;

/// Up to so many times the share of spans that are known to be missing, others may be missing.
const LOSS: f64 = 2.0;

/// A place takes longer beyond doubt if so many of its requests take longer than any did before.
const BEYOND_ALL: f64 = 0.2;

/// Requests of which that is asked: of fewer, a burst may be as many.
const MANY: usize = 40;

/// Requests at a place of which it could be told that they take longer.
pub(super) const ENOUGH: usize = 8;

/// Requests that take longer at a place.
#[derive(Debug, Clone)]
pub(super) struct Slower {
    pub(super) place: Place,
    /// Nanoseconds of all requests together.
    pub(super) effect: f64,
    /// Whether that is on the critical path of requests.
    pub(super) is_waited_for: bool,
    /// Nanoseconds of a request that passes, before and after, in the mean.
    pub(super) means: (f64, f64),
    /// Requests that passed.
    pub(super) requests: usize,
    /// The usual latency of such requests before, in nanoseconds.
    pub(super) latency: f64,
    /// Who makes more visits of it, if those take no longer each.
    pub(super) often: Option<MoreVisits>,
}

/// Visits that fail more often.
#[derive(Debug, Clone)]
pub(super) struct Failing {
    pub(super) place: Place,
    pub(super) shares: (f64, f64),
    pub(super) visits: u64,
    /// Who calls gives up sooner than before: who is called takes no longer, and goes well.
    pub(super) is_given_up: bool,
}

impl Failing {
    /// Who is behind it.
    pub(super) fn service(&self) -> &Name {
        match &self.place {
            Place::Between(from, _) if self.is_given_up => from,
            place => place.service(),
        }
    }
}

/// Visits of an endpoint that now do what they hardly did before.
#[derive(Debug, Clone)]
pub(super) struct Reshaped {
    pub(super) endpoint: Endpoint,
    /// What ends last of what most of them do.
    pub(super) last: Option<Endpoint>,
    /// What they do that those before did not.
    pub(super) added: Vec<Endpoint>,
    /// What they leave out of what most did before; nothing: they do other things.
    pub(super) left_out: Vec<Endpoint>,
    /// Whether their last call is that of those that left nothing out.
    pub(super) has_same_end: bool,
    /// What was there in place of what they added.
    pub(super) replaced: Vec<Endpoint>,
    /// Whether that only has other names in the same services, and takes no longer.
    is_renamed: bool,
    pub(super) shares: (f64, f64),
    pub(super) visits: u64,
}

/// What visits do otherwise that says by itself neither better nor worse.
#[derive(Debug, Clone)]
pub(super) enum NeutralChange {
    /// They leave something out, and go on to the same end.
    Skips(Reshaped),
    /// They ask the same of others.
    Replaces(Reshaped),
}

impl NeutralChange {
    pub(super) fn reshaped(&self) -> &Reshaped {
        match self {
            Self::Skips(one) | Self::Replaces(one) => one,
        }
    }
}

impl Reshaped {
    /// Whether visits end as they did: what they leave out came before. That may be a cache that
    /// answers, or a step that is lost.
    fn is_skip(&self) -> bool {
        !self.left_out.is_empty() && self.has_same_end
    }

    /// Whether all that is new has the names of what is gone, in other services, or is that under
    /// other names.
    fn is_replacement(&self) -> bool {
        let names = |of: &[Endpoint]| -> Vec<Name> {
            let mut names: Vec<Name> = of.iter().map(|one| one.name.clone()).collect();
            names.sort();
            names
        };
        self.is_renamed || !self.added.is_empty() && names(&self.added) == names(&self.replaced)
    }

    fn is_new(&self) -> bool {
        self.shares.1 >= WORTH_SHARE && self.shares.0 * RARER <= self.shares.1
    }

    /// Whether what is left out may only have left no span, as others of the service did.
    fn is_loss(&self, count: (u64, u64), lost: &Losses, chance: f64) -> bool {
        let lost = lost.of(&self.endpoint.service);
        let by_loss = share(lost) * self.left_out.len() as f64 * LOSS;
        lost.0 > 0
            && !self.left_out.is_empty()
            && (self.shares.1 < by_loss || larger_by_chance(lost, count) >= chance)
    }
}

/// All that differs.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) slower: Vec<Slower>,
    pub(super) failing: Vec<Failing>,
    pub(super) reshaped: Vec<Reshaped>,
    /// What is told and accuses nobody.
    pub(super) otherwise: Vec<NeutralChange>,
    /// Kinds of requests of which a few take longer; looked for where nothing else is found.
    pub(super) few: Vec<SlowMinority>,
    /// How many times as long nearly all services take, if they do: what they share is behind it.
    pub(super) alike: Option<f64>,
    /// Who calls whom, as far as both runs have enough requests to tell whether that grew.
    pub(super) edges: BTreeSet<(Name, Name)>,
}

/// The ways from and to a service: how many of them are among those that grew, and how many
/// there are.
pub(super) fn ways_grown(
    service: &Name,
    slower: &[Slower],
    edges: &BTreeSet<(Name, Name)>,
) -> (usize, usize) {
    let its = edges
        .iter()
        .filter(|(from, to)| from == service || to == service);
    let grew = |(from, to): &&(Name, Name)| {
        slower
            .iter()
            .any(|one| matches!(&one.place, Place::Between(a, b) if a == from && b.service == *to))
    };
    (its.clone().filter(grew).count(), its.count())
}

impl Changes {
    /// From `a` to `b`.
    pub(super) fn between(a: &Places, b: &Places) -> Self {
        let whole = a.has_whole() && b.has_whole();
        let visits = (a.visits(whole), b.visits(whole));
        let mut changes = Self::default();
        // What a service of which one side has no calls does, and for how long, is not known there.
        let silenced = a.links.silenced(&b.links);
        let is_known = |service: &Name| !silenced.contains(service);
        changes.find_slower(&visits.0, &visits.1, is_known);
        let growth = Growth::between(&visits.0, &visits.1);
        changes.alike = growth.of_all();
        changes.slower.retain(|one| !growth.explains(one));
        let lost = b.links.losses(&a.links);
        let mut counts = Vec::new();
        failing(&visits.0, &visits.1, (&a.links, &b.links), &mut counts);
        let sides = ((&*visits.0, &a.links), (&*visits.1, &b.links));
        reshaped(sides, is_known, &mut counts);
        let chance = testable(&counts, FALSE / FAMILIES);
        for Count {
            a,
            b,
            strata,
            found,
        } in counts
        {
            if larger_by_chance(a, b) >= chance || !strata.grew(chance) {
                continue;
            }
            match found {
                Found::Failing(one) if one.shares.1 >= one.shares.0 + WORTH_SHARE => {
                    changes.failing.push(one);
                }
                Found::Reshaped(one) if one.is_new() && !one.is_loss(b, &lost, chance) => {
                    if one.is_skip() {
                        changes.otherwise.push(NeutralChange::Skips(one));
                    } else if one.is_replacement() {
                        changes.otherwise.push(NeutralChange::Replaces(one));
                    } else {
                        changes.reshaped.push(one);
                    }
                }
                Found::Failing(_) | Found::Reshaped(_) => {}
            }
        }
        changes.find_often(&visits.0, &visits.1);
        if !changes.is_any() && changes.alike.is_none() {
            changes.few = few::between(&visits.0, &visits.1, FALSE / FAMILIES);
        }
        changes
    }

    /// Where most of what fails more does, beyond chance by itself, however small a share of the
    /// visits it is. For runs that are known to fail more.
    pub(super) fn most_failing(a: &Places, b: &Places) -> Option<Failing> {
        let whole = a.has_whole() && b.has_whole();
        let visits = (a.visits(whole), b.visits(whole));
        let mut counts = Vec::new();
        failing(&visits.0, &visits.1, (&a.links, &b.links), &mut counts);
        let chance = testable(&counts, UNLIKELY);
        let proven = counts.into_iter().filter_map(|one| {
            let more = larger_by_chance(one.a, one.b) < chance && one.strata.grew(chance);
            match one.found {
                Found::Failing(found) if more => Some(found),
                _ => None,
            }
        });
        let more = |one: &Failing| (one.shares.1 - one.shares.0) * one.visits as f64;
        proven.max_by(|one, other| more(one).total_cmp(&more(other)))
    }

    fn is_any(&self) -> bool {
        !self.failing.is_empty()
            || !self.reshaped.is_empty()
            || self.slower.iter().any(|one| one.is_waited_for)
    }

    /// Tells places that take longer apart: those where each visit does, and those that are only
    /// visited more often.
    fn find_often(&mut self, a: &Visits, b: &Visits) {
        let fails = |place: &Place| {
            let mut failing = self.failing.iter();
            failing.any(|one| one.service() == place.service())
        };
        for one in &mut self.slower {
            // Who fails is asked again.
            if one.often.is_some() && !fails(&one.place) {
                let visits = one.often.take().map_or((0.0, 0.0), |often| often.visits);
                one.often = often::who((a, b), &one.place, visits);
            } else {
                one.often = None;
            }
        }
    }

    fn find_slower(&mut self, a: &Visits, b: &Visits, is_known: impl Fn(&Name) -> bool) {
        let both = b.stays.iter().filter_map(|(place, now)| {
            let before = a.stays.get(place)?;
            let fewest = before.passages.len().min(now.passages.len());
            let whose = match place {
                Place::Within(at) => &at.service,
                Place::Between(from, _) => from,
            };
            (fewest > 0 && is_known(whose)).then_some((place, before, now))
        });
        let chance = FALSE / FAMILIES / both.clone().count().max(1) as f64;
        let kinds = (a.kinds(b), b.kinds(a));
        for (place, before, now) in both {
            let (before_by, now_by) = ((&*kinds.0, before), (&*kinds.1, now));
            self.slower.extend(slower(place, before_by, now_by, chance));
            if let Place::Between(from, to) = place
                && before.passages.len().min(now.passages.len()) >= ENOUGH
            {
                self.edges.insert((from.clone(), to.service.clone()));
            }
        }
    }
}

/// How many of how many before, and now; and what that would mean.
struct Count {
    a: (u64, u64),
    b: (u64, u64),
    /// The same, by the origin of visits.
    strata: Strata,
    found: Found,
}

enum Found {
    Failing(Failing),
    Reshaped(Reshaped),
}

/// From which chance on a count is told: by Bonferroni's rule, among those that could be told
/// at all (Tarone, "A modified Bonferroni method for discrete data", Biometrics 1990). Of a
/// thing that happened twice, whoever did it, chance says nothing. `all`: how likely any is told.
fn testable(counts: &[Count], all: f64) -> f64 {
    let least = |one: &Count| {
        let all = one.a.0 + one.b.0;
        let here = all.min(one.b.1);
        larger_by_chance((all - here, one.a.1), (here, one.b.1))
    };
    let mut least: Vec<f64> = counts.iter().map(least).collect();
    least.sort_by(f64::total_cmp);
    let chance = |tests: usize| all / tests as f64;
    let enough = |tests: &usize| least.partition_point(|one| *one < chance(*tests)) <= *tests;
    chance((1..=counts.len()).find(enough).unwrap_or(1))
}

/// Passages of requests of one kind, before and now.
type Both = (Vec<RequestAtPlace>, Vec<RequestAtPlace>);

fn by_kind<'v>(kinds: &[Kind<'v>], stay: &PlaceActivity) -> Vec<(Kind<'v>, RequestAtPlace)> {
    let passages = stay.passages.iter();
    passages.map(|one| (kinds[one.request], *one)).collect()
}

fn slower(
    place: &Place,
    (a, before): (&[Kind<'_>], &PlaceActivity),
    (b, now): (&[Kind<'_>], &PlaceActivity),
    chance: f64,
) -> Option<Slower> {
    let kinds = apart(&by_kind(a, before), &by_kind(b, now));
    let requests: usize = kinds.iter().map(|(_, now)| now.len()).sum();
    // Both of requests as B has them: another mix is no change.
    let mean = |side: fn(&Both) -> &[RequestAtPlace], of: fn(&RequestAtPlace) -> f64| {
        let each = kinds.iter().map(|kind| {
            let passages = side(kind);
            let sum: f64 = passages.iter().map(of).sum();
            sum / passages.len().max(1) as f64 * kind.1.len() as f64
        });
        each.sum::<f64>() / requests.max(1) as f64
    };
    let means =
        |of: fn(&RequestAtPlace) -> f64| (mean(|kind| &kind.0, of), mean(|kind| &kind.1, of));
    let more = |of: fn(&RequestAtPlace) -> f64| {
        let (before, now) = means(of);
        now - before
    };
    let spent = means(|one| one.spent);
    let longer = spent.1 - spent.0;
    let earlier = kinds.iter().flat_map(|(before, _)| before);
    let latency = usual(earlier.map(|one| one.latency));
    // Most places end here, which spares them a rank sum. What spans of the same service
    // had before, and have no more, only moved.
    if kinds.is_empty() || longer < latency * WORTH || more(|one| one.inclusive) < longer * GREW {
        return None;
    }
    let times = |passages: &[RequestAtPlace]| -> Vec<f64> {
        passages.iter().map(|one| one.spent).collect()
    };
    let lengths: Vec<(Vec<f64>, Vec<f64>)> = kinds
        .iter()
        .map(|(before, now)| (times(before), times(now)))
        .collect();
    let ranks = rank_sums(lengths.iter().map(|(a, b)| (&a[..], &b[..])));
    let each = chance / kinds.len() as f64;
    let mut exceeding = lengths.iter();
    let differs = ranks? > -normal_quantile(chance) || exceeding.any(|(a, b)| exceeds(a, b, each));
    let visits = means(|one| one.visits as f64);
    differs.then(|| Slower {
        place: place.clone(),
        effect: longer * requests as f64,
        is_waited_for: more(|one| one.waited) >= longer * WAITED_FOR,
        means: spent,
        requests,
        latency,
        often: often::is_more_often(visits, spent).then(|| MoreVisits::untold(place, visits)),
    })
}

/// Whether many of `b` are above all of `a`: a fault that set in midway is no burst.
/// By chance the largest of both come all from `b` as often as draws without putting back do.
fn exceeds(a: &[f64], b: &[f64], chance: f64) -> bool {
    let most = a.iter().copied().fold(0.0, f64::max);
    let beyond = b.iter().filter(|value| **value > most).count();
    let drawn = (0..beyond).map(|at| (b.len() - at) as f64 / (a.len() + b.len() - at) as f64);
    a.len().min(b.len()) >= MANY
        && beyond as f64 >= b.len() as f64 * BEYOND_ALL
        && drawn.product::<f64>() < chance
}

/// The usual one of some times.
pub(super) fn usual(times: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = times.collect();
    all.sort_by(f64::total_cmp);
    stats::nearest_rank(&all, 0.5).unwrap_or(0.0)
}

fn share((some, all): (u64, u64)) -> f64 {
    some as f64 / all.max(1) as f64
}

/// How often visits fail.
fn failing(before: &Visits, now: &Visits, sides: (&Links, &Links), counts: &mut Vec<Count>) {
    // Of calls that nobody answers any more it is known from before who did.
    let mut visits: BTreeMap<Place, (Counts, u64)> = BTreeMap::new();
    for (place, stay) in &now.stays {
        let place = match place {
            Place::Between(from, to) => {
                let call = (from.clone(), to.clone());
                let answers = sides.1.answers(&call).or_else(|| sides.0.answers(&call));
                Place::Between(call.0, answers.cloned().unwrap_or(call.1))
            }
            Place::Within(_) => place.clone(),
        };
        let (kinds, given_up) = visits.entry(place).or_default();
        *given_up += stay.given_up;
        for (origin, (failed, all)) in &stay.counts {
            let kind = kinds.entry(origin.clone()).or_default();
            (kind.0, kind.1) = (kind.0 + failed, kind.1 + all);
        }
    }
    let gateways = Gateways::of(before, now);
    let nothing = Counts::new();
    for (place, (kinds, given_up)) in visits {
        let b = sum(&kinds);
        let known = before.stays.get(&place).map(|stay| &stay.counts);
        let known = known.filter(|counts| !counts.is_empty());
        // What was never there cannot have failed less: all of it that fails is new.
        let a = known.map_or((0, b.1), sum);
        let earlier = gateways.together(known.unwrap_or(&nothing));
        let strata = Strata::of(&earlier, &gateways.together(&kinds), |now| Some((0, now)));
        let found = Failing {
            is_given_up: given_up * 2 > b.0 && takes_no_longer(&place, before, now),
            place,
            shares: strata.shares().unwrap_or((share(a), share(b))),
            visits: b.1,
        };
        let found = Found::Failing(found);
        counts.push(Count {
            a,
            b,
            strata,
            found,
        });
    }
}

/// Whether visits of who is called take no longer than before.
fn takes_no_longer(place: &Place, before: &Visits, now: &Visits) -> bool {
    let Place::Between(_, callee) = place else {
        return false;
    };
    let mean = |side: &Visits| {
        let (length, visits) = side.lengths.get(callee)?;
        Some(length / *visits as f64)
    };
    let both = mean(before).zip(mean(now));
    both.is_some_and(|(before, now)| now <= before * (1.0 + WORTH))
}

fn sum(kinds: &Counts) -> (u64, u64) {
    let add = |sum: (u64, u64), one: &(u64, u64)| (sum.0 + one.0, sum.1 + one.1);
    kinds.values().fold((0, 0), add)
}

/// What visits do, of services that are known.
fn reshaped(
    ((before, a_links), (now, b_links)): ((&Visits, &Links), (&Visits, &Links)),
    is_known: impl Fn(&Name) -> bool,
    counts: &mut Vec<Count>,
) {
    let gateways = Gateways::of(before, now);
    let sides = (before, now);
    for (endpoint, shapes) in &now.shapes {
        let earlier = before.shapes.get(endpoint);
        let Some(earlier) = earlier.filter(|_| is_known(&endpoint.service)) else {
            continue;
        };
        let known = earlier.inner();
        let service = &endpoint.service;
        let now = shapes.actions(service, |inner| known.contains(inner), a_links);
        let before = earlier.actions(service, |_| true, b_links);
        let (of_a, of_b) = (before.visits(), now.visits());
        for (below, count) in now.iter() {
            let (a, b) = ((before.count(below), of_a), (count, of_b));
            let [earlier, later] =
                [&before, &now].map(|side| gateways.together(&side.counts(below)));
            let strata = Strata::of(&earlier, &later, |_| None);
            let Some(shares) = strata.shares() else {
                continue;
            };
            let whole = before.whole(below);
            let left_out = whole.unwrap_or_default().iter();
            let difference = before.difference(below);
            let found = Reshaped {
                endpoint: endpoint.clone(),
                last: now.last(below).cloned(),
                has_same_end: whole.is_some_and(|whole| {
                    let last = now.last_call(below);
                    last.is_some() && before.last_call(whole) == last
                }),
                left_out: left_out
                    .filter(|one| !below.contains(one))
                    .cloned()
                    .collect(),
                is_renamed: is_renamed(&difference, service, sides),
                added: difference.added,
                replaced: difference.missing,
                shares,
                visits: of_b,
            };
            let found = Found::Reshaped(found);
            counts.push(Count {
                a,
                b,
                strata,
                found,
            });
        }
    }
}

/// Whether what a service calls anew is what it called before: in the same services, where the old
/// names are gone and the new ones were not there, and no slower.
fn is_renamed(difference: &Difference, caller: &Name, (a, b): (&Visits, &Visits)) -> bool {
    let Difference { added, missing } = difference;
    let services = |of: &[Endpoint]| -> Vec<Name> {
        let mut services: Vec<Name> = of.iter().map(|one| one.service.clone()).collect();
        services.sort();
        services
    };
    let is_in = |side: &Visits, one: &Endpoint| side.visited.contains_key(one);
    let took = |side: &Visits, of: &[Endpoint]| -> f64 {
        of.iter().map(|one| took(side, caller, one)).sum()
    };
    !added.is_empty()
        && services(added) == services(missing)
        && !added.iter().any(|one| is_in(a, one))
        && !missing.iter().any(|one| is_in(b, one))
        && took(b, added) <= took(a, missing) * (1.0 + WORTH)
}

/// How long a call of an endpoint takes by itself and on its way, in nanoseconds.
fn took(side: &Visits, caller: &Name, callee: &Endpoint) -> f64 {
    let places = [
        Place::Within(callee.clone()),
        Place::Between(caller.clone(), callee.clone()),
    ];
    let stays = places.iter().filter_map(|place| side.stays.get(place));
    let means = stays.map(|stay| {
        let (mut spent, mut visits) = (0.0, 0);
        for one in &stay.passages {
            (spent, visits) = (spent + one.spent, visits + one.visits);
        }
        spent / visits.max(1) as f64
    });
    means.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_beyond_all_are_no_chance_only_if_chance_seldom_makes_them() {
        let a: Vec<f64> = (0..40).map(f64::from).collect();
        let beyond = |many: usize| -> Vec<f64> {
            let small = a.iter().copied().take(40 - many);
            small.chain((0..many).map(|at| 100.0 + at as f64)).collect()
        };
        // The 8 largest of 80 come all from one half once in 377 times, the 20 largest once in
        // 25 million.
        let (eight, twenty) = (beyond(8), beyond(20));
        assert!(exceeds(&a, &eight, 1.0 / 376.0));
        assert!(!exceeds(&a, &eight, 1.0 / 378.0));
        assert!(exceeds(&a, &twenty, 1e-6));
        assert!(!exceeds(&a, &twenty, 1e-8));
        assert!(!exceeds(&a, &beyond(7), 1.0), "too small a share");
    }
}
