//! Why a service is named.

use units::{grouped, show_share};

use super::changes::{Changes, Failing, Reshaped, Slower, ways_grown};
use super::few::Few;
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
    match (&one.last, one.left_out.is_empty()) {
        (_, true) if one.added.is_empty() => {
            format!("{visits} leave out what others did, or do together what none did before")
        }
        (_, true) => format!("{visits} do what none did before: {}", list(&one.added)),
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

/// Why a service is named though only a few requests are slow.
pub(super) fn few(few: &Few) -> String {
    let Endpoint { service, name } = &few.entry;
    let place = named(&few.place);
    format!(
        "{} ({} before) of the requests to `{name}` of `{service}` take longer than {}, and {place} has {} of the {} that such a request takes more",
        share(few.shares.1),
        share(few.shares.0),
        time(few.beyond),
        time(few.held),
        time(few.excess),
    )
}

/// Why a service is named though no place is much slower by itself.
pub(super) fn shift(shift: &Shift) -> String {
    let mean = |sum: f64| time(sum / shift.requests.max(1) as f64);
    format!(
        "{} has {} of the {} that requests take longer in the mean, {} of them",
        named(&shift.place),
        mean(shift.held),
        mean(shift.all),
        grouped(shift.requests as u64)
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
    let mut names: Vec<String> = Vec::new();
    for endpoint in endpoints {
        let name = format!("`{}`", endpoint.name);
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
