//! Why a service is named.

use units::show_share;

use super::changes::{Changes, Failing, Reshaped, Slower, ways_grown};
use super::places::{Endpoint, Place};
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
    match (&one.shape.last, one.left_out.is_empty()) {
        (_, true) => format!(
            "{visits} do what none did before: {}",
            list(&one.shape.below)
        ),
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
    let place = match &first.place {
        Place::Within(at) => format!("`{}` in `{service}`", at.name),
        Place::Between(from, to) => {
            format!(
                "the way of calls from `{from}` to `{}` of `{}`",
                to.name, to.service
            )
        }
    };
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
