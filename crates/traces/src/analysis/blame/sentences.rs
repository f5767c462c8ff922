//! Why a service is named.

use units::{grouped, show_count, show_share};

use super::Culprit;
use super::changes::{Changes, Failing, NeutralChange, Reshaped, Slower, ways_grown};
use super::few::{Groups, Held, SlowMinority};
use super::often::MoreVisits;
use super::places::{Endpoint, Place};
use super::shift::Shift;
use crate::Name;
use crate::analysis::sentences::time;

/// Most endpoints that are listed.
const LISTED: usize = 4;

fn share(share: f64) -> String {
    show_share((share * 1000.0).round() / 1000.0)
}

pub(super) fn failing(one: &Failing) -> String {
    let (before, now) = (share(one.shares.0), share(one.shares.1));
    match &one.place {
        Place::Within(at) => format!(
            "`{}` in `{}` fails in {now} of its visits ({before} before), and nothing below it does",
            at.name, at.service
        ),
        Place::Between(from, to) if one.is_given_up => format!(
            "calls from `{from}` to `{}` are given up in {now} of all cases ({before} before), while `{}` goes well and takes no longer",
            to.name, to.service
        ),
        Place::Between(from, to) => format!(
            "calls from `{from}` to `{}` fail in {now} of all cases ({before} before), and `{}` does not say why",
            to.name, to.service
        ),
    }
}

pub(super) fn reshaped(one: &Reshaped) -> String {
    let Endpoint { service, name } = &one.endpoint;
    let shares = format!("{} ({} before)", share(one.shares.1), share(one.shares.0));
    let visits = format!("of the visits of `{name}` in `{service}` {shares}");
    let left_out = list(&one.left_out);
    let few = if one.shares.0 > 0.0 { "few" } else { "none" };
    match (&one.last, one.left_out.is_empty()) {
        (_, true) if one.added.is_empty() => {
            format!("{visits} leave out what others did, or do together what {few} did before")
        }
        (_, true) => format!("{visits} do what {few} did before: {}", list(&one.added)),
        (None, false) => format!("{visits} do nothing below them: they leave out {left_out}"),
        (Some(last), false) if last.service == *service => {
            format!(
                "{visits} end after `{}` and leave out {left_out}",
                last.name
            )
        }
        (Some(last), false) => format!(
            "{visits} end after their call to `{}` of `{}` and leave out {left_out}",
            last.name, last.service
        ),
    }
}

/// Who would be named, did runs of one side not differ in it, too.
pub(super) fn varying(one: &Culprit) -> String {
    format!(
        "`{}` is not behind it: runs of the same side differ there as much.",
        one.service
    )
}

/// What visits do otherwise, which accuses nobody.
pub(super) fn otherwise(one: &NeutralChange) -> String {
    let reshaped = one.reshaped();
    let Endpoint { service, name } = &reshaped.endpoint;
    let (before, now) = (share(reshaped.shares.0), share(reshaped.shares.1));
    let begin = format!("Of the visits of `{name}` in `{service}`, {now} in B and {before} in A");
    match one {
        NeutralChange::Skips(one) => format!(
            "{begin} leave out {} and go on to the same end: spans do not say whether that is meant.",
            list_of(&one.left_out, service)
        ),
        NeutralChange::Replaces(one) => format!(
            "{begin} call {} in place of {}: that is compared with nothing.",
            list_of(&one.added, service),
            list_of(&one.replaced, service)
        ),
    }
}

/// That all services take longer, which accuses nobody.
pub(super) fn alike(growth: f64) -> String {
    format!(
        "Nearly all services take {} times as long as before, or longer: what they share is behind that (a machine, the load, the time of day), and no service that grew as the others did.",
        show_count((growth * 10.0).round() / 10.0)
    )
}

/// Why a service is named that calls others more often.
pub(super) fn often(places: &[Slower]) -> String {
    let Some((first, often)) = places
        .iter()
        .find_map(|one| Some((one, one.often.as_ref()?)))
    else {
        return String::new();
    };
    let (before, now) = (time(first.means.0), time(first.means.1));
    format!(
        "{}, so {} takes {now} a request that passes ({before} before), though no visit takes longer",
        visits(often),
        named(&first.place)
    )
}

/// Who makes how many visits of what.
fn visits(often: &MoreVisits) -> String {
    let count = |visits: f64| show_count((visits * 10.0).round() / 10.0);
    let (before, now) = (count(often.visits.0), count(often.visits.1));
    let Endpoint { service, name } = &often.by;
    format!(
        "`{name}` in `{service}` leads to more visits of `{}` in `{}`: {now} a request ({before} before)",
        often.of.name, often.of.service
    )
}

/// Who makes more visits of a place, behind what else is said of it.
fn more_visits(held: &Held) -> String {
    let often = held.often.as_ref();
    often.map_or_else(String::new, |often| format!(": {}", visits(often)))
}

/// Why a service is named though only a few requests are slow.
pub(super) fn few(few: &SlowMinority) -> String {
    let (entry, held) = (few.entry.named(), &few.held);
    format!(
        "{} ({} before) of the requests to {entry} take longer than {}, and {} has {} of the {} that such a request takes more{}",
        share(few.shares.1),
        share(few.shares.0),
        time(few.beyond),
        named(&held.place),
        time(held.of_service),
        time(held.excess),
        more_visits(held),
    )
}

/// Slow requests that chance may have brought together.
pub(super) fn groups(one: &Groups) -> String {
    let entry = one.entry.named();
    let (slow, all) = one.requests;
    let groups = match one.groups {
        1 => "one group".to_owned(),
        groups => format!("{} groups", grouped(groups)),
    };
    let held = one.held.as_ref().map_or_else(String::new, |(who, held)| {
        let (held, excess) = (time(*held), time(one.excess));
        format!(" `{who}` has {held} of the {excess} that such a request takes more.")
    });
    format!(
        "B may be slower: {} of the {} requests to {entry} ({}) take longer than any did before, {} in the mean ({} before). They came in {groups}, and what comes in a row counts once, so chance may be why: a longer run tells.{held}",
        grouped(slow as u64),
        grouped(all as u64),
        share(slow as f64 / all.max(1) as f64),
        time(one.means.1),
        time(one.means.0),
    )
}

/// Why a service is named though no place is much slower by itself.
pub(super) fn shift(shift: &Shift) -> String {
    let mean = |sum: f64| time(sum / shift.requests.max(1) as f64);
    let held = &shift.held;
    format!(
        "{} has {} of the {} that requests take longer in the mean, {} of them{}",
        named(&held.place),
        mean(held.of_service),
        mean(held.excess),
        grouped(shift.requests as u64),
        more_visits(held),
    )
}

fn named(place: &Place) -> String {
    match place {
        Place::Within(at) => format!("`{}` in `{}`", at.name, at.service),
        Place::Between(from, to) => format!(
            "the way of calls from `{from}` to `{}` of `{}`",
            to.name, to.service
        ),
    }
}

fn list(endpoints: &[Endpoint]) -> String {
    listed(endpoints, |_| false)
}

/// Likewise, with the services of those that are not of one.
fn list_of(endpoints: &[Endpoint], own: &Name) -> String {
    listed(endpoints, |one| one.service != *own)
}

fn listed(endpoints: &[Endpoint], with_service: impl Fn(&Endpoint) -> bool) -> String {
    let mut names: Vec<String> = Vec::new();
    for endpoint in endpoints {
        let name = match with_service(endpoint) {
            true => format!("`{}` of `{}`", endpoint.name, endpoint.service),
            false => format!("`{}`", endpoint.name),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    match (names.is_empty(), more) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

/// Why a service is slow: where the most of it is, and whether all of its calls are.
pub(super) fn slower(service: &Name, slower: &[Slower], changes: &Changes) -> String {
    let all: f64 = slower.iter().map(|one| one.effect).sum();
    let within: f64 = slower
        .iter()
        .filter(|one| matches!(one.place, Place::Within(_)))
        .map(|one| one.effect)
        .sum();
    let Some(first) = slower.first() else {
        return String::new();
    };
    let (before, now) = (time(first.means.0), time(first.means.1));
    let place = named(&first.place);
    let took = format!("{place} takes {now} a request that passes ({before} before)");
    let (grown, ways) = ways_grown(service, slower, &changes.edges);
    match (within >= all / 2.0, grown) {
        (true, _) => took,
        (false, 0 | 1) => {
            format!("{took}: the network there, or `{service}` is slow to run")
        }
        (false, grown) => format!(
            "{took}, and so do {grown} of its {ways} ways to others: it is badly connected, or slow to run"
        ),
    }
}
