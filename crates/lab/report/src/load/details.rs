//! Answers, errors, bytes, connections, and the generator itself.

use lab_load::Summary;
use lab_load::recording::NONE_FREE;
use lab_load::summary::{Floor, KindSummary, PartNumbers};
use units::{show_bytes, show_count, show_share};

use super::latency::number;
use super::words::{grouped, rate, seconds};
use super::{LABEL, Page, advice};

/// Errors and kinds that are listed; the rest is counted.
const LISTED: usize = 12;
/// The shortest time in which the generator did not run that is said.
const SAID_S: f64 = 0.01;

pub(super) fn lines(page: &Page, summary: &Summary) -> Vec<String> {
    let mut lines = answers(page, summary);
    lines.extend(errors(page, summary));
    lines.extend(kinds(page, &summary.kinds));
    lines.extend(page.labelled("bytes", &bytes(summary)));
    lines.extend(page.labelled("connections", &connections(summary)));
    lines.extend(page.labelled("generator", &generator(summary)));
    lines.extend(page.labelled("in flight", &in_flight(summary)));
    lines.extend(page.labelled("steady part", &steady(summary)));
    if let Some(floor) = &summary.floor {
        lines.extend(page.labelled("floor", &floor_text(floor)));
    }
    lines
}

fn answers(page: &Page, summary: &Summary) -> Vec<String> {
    let statuses = summary.statuses.iter();
    let parts: Vec<String> = statuses
        .map(|(status, count)| match summary.status_names.get(status) {
            Some(name) => format!("{status} {name}: {}", grouped(*count)),
            None => format!("{status}: {}", grouped(*count)),
        })
        .collect();
    let mut lines = match parts.is_empty() {
        true => page.labelled("answers", &grouped(summary.requests.answered)),
        false => page.labelled("answers", &parts.join(", ")),
    };
    for (assertion, count) in summary.refusals.iter().take(LISTED) {
        let text = format!("{} × refused: {assertion}", grouped(*count));
        lines.extend(page.labelled("", &text));
    }
    lines
}

fn errors(page: &Page, summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, error) in summary.errors.iter().take(LISTED).enumerate() {
        let label = if at == 0 { "errors" } else { "" };
        let starved = summary.requests.starved;
        let advice = match (error.cause.as_str(), advice::of(error.phase, &error.cause)) {
            (NONE_FREE, _) if starved > 0 => format!(
                ": the generator read answers late, and may so have kept {} of them busy itself",
                grouped(starved)
            ),
            (_, Some(advice)) => format!(": {advice}"),
            (_, None) => String::new(),
        };
        let name = match error.phase.name() == error.cause {
            true => error.cause.clone(),
            false => format!("{} {}", error.phase.name(), error.cause),
        };
        let text = format!("{} × {name}{advice}", grouped(error.count));
        lines.extend(page.labelled(label, &text));
    }
    if let Some(more) = summary
        .errors
        .len()
        .checked_sub(LISTED)
        .filter(|more| *more > 0)
    {
        lines.extend(page.labelled("", &format!("and {more} other kinds of errors")));
    }
    lines
}

fn kinds(page: &Page, kinds: &[KindSummary]) -> Vec<String> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let head = format!(
        "{:LABEL$}{:>12}{:>10}{:>12}{:>12}{:>12}",
        "kinds", "requests", "failed", "p50", "p90", "p99"
    );
    let mut lines = vec![page.paint.dim(&head)];
    for kind in kinds.iter().take(LISTED) {
        let latency = &kind.latency.intended;
        let numbers = format!(
            "{:>12}{:>10}{:>12}{:>12}{:>12}",
            grouped(kind.requests.sent),
            grouped(kind.requests.failed),
            number(latency, "p50", |d| d.p50),
            number(latency, "p90", |d| d.p90),
            number(latency, "p99", |d| d.p99)
        );
        let name = super::printable(&kind.name);
        match console::measure_text_width(&name) > LABEL - 3 {
            // A long name has a line of its own.
            true => lines.extend([format!("  {name}"), format!("{:LABEL$}{numbers}", "")]),
            false => lines.push(format!("  {name:<width$}{numbers}", width = LABEL - 2)),
        }
    }
    if let Some(more) = kinds.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines.extend(page.labelled("", &format!("and {more} more kinds; --json has them all")));
    }
    lines
}

fn bytes(summary: &Summary) -> String {
    let (sent, received) = (summary.bytes.sent as f64, summary.bytes.received as f64);
    let length = summary.sending_s.max(f64::MIN_POSITIVE);
    format!(
        "sent {}, received {} ({}/s)",
        show_bytes(sent),
        show_bytes(received),
        show_bytes(received / length)
    )
}

fn connections(summary: &Summary) -> String {
    let counts = &summary.connections;
    let mut text = format!("{} opened", grouped(counts.opened));
    if counts.handshakes + counts.resumed > 0 {
        let (all, resumed) = (counts.handshakes + counts.resumed, counts.resumed);
        let (all, resumed) = (grouped(all), grouped(resumed));
        text += &format!(" ({all} with TLS, of which {resumed} resumed a session)");
    }
    for (count, what) in [
        (counts.failed, "failed"),
        (counts.closed, "closed by the target"),
        (
            counts.surplus,
            "closed because more came than an answer has",
        ),
    ] {
        if count > 0 {
            text += &format!(", {} {what}", grouped(count));
        }
    }
    match summary.requests.retried {
        0 => {}
        1 => text += ", 1 request sent once more because the target let it go",
        retried => {
            let retried = grouped(retried);
            text += &format!(", {retried} requests sent once more because the target let them go");
        }
    }
    let sent = summary.requests.sent;
    if sent > 0 {
        let share = (counts.reused as f64 / sent as f64).min(1.0);
        text += &format!("; {} of requests on one used before", show_share(share));
    }
    text
}

fn generator(summary: &Summary) -> String {
    let used = &summary.generator;
    let threads = if used.threads == 1 {
        "thread"
    } else {
        "threads"
    };
    let mut text = format!("{} {threads}", used.threads);
    if used.workers > 1 {
        text += &format!(" on {} workers", used.workers);
    }
    text += &format!(
        ", pace {}, busiest thread {}",
        used.pace,
        show_share(round(used.busiest_thread))
    );
    if let Some(each) = used.cpu_per_request_s {
        text += &format!(", CPU {} a request", seconds(each));
    }
    let lateness = &summary.lateness;
    if let Some(late) = lateness
        .p99
        .or(lateness.max)
        .filter(|_| summary.model == "open")
    {
        let name = if lateness.p99.is_some() {
            "99 % of sends"
        } else {
            "sends"
        };
        text += &format!(", {name} at most {} late", seconds(late));
    }
    for (time, what) in [
        (used.waited_s, "waited for a processor"),
        (used.stopped_s, "stopped"),
    ] {
        if time >= SAID_S {
            text += &format!(", {what} {}", seconds(time));
        }
    }
    if used.steal > 0.0 {
        // The limit is one for the whole load, of which this is the worst part.
        let slots = summary.timeline.iter().map(|slot| slot.length_s);
        let length = slots.reduce(f64::max).unwrap_or(summary.duration_s);
        let (share, length) = (show_share(round(used.steal)), seconds(length));
        text += &format!(", steal up to {share} in the worst {length}");
    }
    text
}

fn in_flight(summary: &Summary) -> String {
    let used = &summary.generator;
    format!(
        "{} on average; rate times latency gives {} (Little's law)",
        show_count(used.in_flight),
        show_count(used.in_flight_little)
    )
}

fn steady(summary: &Summary) -> String {
    let steady = &summary.steady;
    let part = match (steady.state.as_str(), steady.from_s > 0.0) {
        ("asked", true) => format!(
            "from {} on, as asked: the latency above leaves out what came before; failures and \
             rates above are of all of it",
            seconds(steady.from_s)
        ),
        (_, true) => format!(
            "from {} on; the numbers above are of all of it",
            seconds(steady.from_s)
        ),
        ("short", _) => "too short to tell a warm-up from the rest".to_owned(),
        ("not-steady", _) => "none was found: latency or rate went on changing".to_owned(),
        ("growing", _) => "none: latency grows all the time".to_owned(),
        ("ramp", _) => "none: the rate changes by plan".to_owned(),
        ("whole", _) => "nobody looked for a warm-up".to_owned(),
        _ => "all of it: no warm-up was found".to_owned(),
    };
    let Some(PartNumbers {
        rate: rates,
        requests,
        latency,
    }) = &steady.numbers
    else {
        return part;
    };
    let intended = &latency.intended;
    format!(
        "{part}. It has p50 {}, p99 {}, good {}, {} of {} failed",
        number(intended, "p50", |d| d.p50),
        number(intended, "p99", |d| d.p99),
        rate(rates.good),
        grouped(requests.failed),
        grouped(requests.tried)
    )
}

fn floor_text(floor: &Floor) -> String {
    format!(
        "this machine alone: loopback {} (99 % below {}), timer {} late, longest gap {}",
        seconds(floor.ping_pong_p50),
        seconds(floor.ping_pong_p99),
        seconds(floor.timer_p50),
        seconds(floor.longest_gap)
    )
}

/// A share to a tenth of a percent.
fn round(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}
