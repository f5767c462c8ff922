//! What a reader of the numbers should know besides.

use units::{show_rate, show_share};

use super::{Rates, SCHEMA, Summary};
use crate::recording::{Phase, Recorded, Recording};
use crate::request::is_redirect;
use crate::workload::{Protocol, Workload};

/// How likely chance may be where it is not the reason.
const BY_CHANCE: f64 = 0.001;
/// Share of the time for which a generator may be stopped before that is told.
const STOPPED: f64 = 0.01;
/// Requests of which nothing is told that has other reasons as easily.
const FEW: u64 = 3;

/// A target that only redirects answers fast and well, and says nothing of the page.
pub(super) fn redirects(workload: &Workload, requests: &Recording) -> Option<String> {
    let http = matches!(workload.target.protocol, Protocol::Http1 | Protocol::Http2);
    let statuses = requests.statuses.iter().filter(|_| http);
    let redirects: Vec<_> = statuses
        .filter(|(status, _)| is_redirect(**status))
        .collect();
    let count: u64 = redirects.iter().map(|(_, count)| **count).sum();
    if count * 2 <= requests.answered {
        return None;
    }
    let share = count as f64 / requests.answered as f64;
    let which = match count == requests.answered {
        true => "all answers were redirects".to_owned(),
        false => format!("{} of the answers were redirects", show_share(share)),
    };
    let (status, _) = redirects.iter().max_by_key(|(_, count)| **count)?;
    let to = match requests.redirect.as_deref() {
        Some(to) => format!("{status} to {to}"),
        None => status.to_string(),
    };
    Some(format!(
        "{which} ({to}): they are not followed, so the load measured the redirect"
    ))
}

/// Users of a generator that stands still ask nothing. Who sees their rate should know.
pub(super) fn stopped(recorded: &Recorded, rates: &Rates) -> Option<String> {
    let Recorded { segment, total, .. } = recorded;
    if segment.model.is_open() {
        return None;
    }
    let threads = total.threads_cpu.len().max(1) as f64;
    let length_s = (total.length.as_secs_f64() * threads).max(f64::MIN_POSITIVE);
    let share = total.delays.stopped.as_secs_f64() / length_s;
    let ran = (1.0 - share).max(f64::MIN_POSITIVE);
    let most = (rates.good / ran).min(rates.good_at_best?);
    (share > STOPPED).then(|| {
        format!(
            "the generator was stopped for {} of the time, in which its users asked nothing: good answers may have \
             been up to {}",
            show_share(share),
            show_rate(most)
        )
    })
}

/// A target that sends more than it announces, which no browser and no proxy would take.
pub(super) fn surplus(recorded: &Recorded) -> Option<String> {
    let count = recorded.total.connections.surplus;
    let noun = match count {
        0 => return None,
        1 => "1 connection was",
        _ => "connections were",
    };
    let many = match count {
        1 => String::new(),
        count => format!("{count} "),
    };
    Some(format!(
        "{many}{noun} closed by the generator, because more came on them than one answer has, by its own head \
         (Content-Length) or by how its end is told: the target's frames are broken, or it answers what nobody \
         asked. One answer counts"
    ))
}

/// A target that accepts no more connections than it has threads or processes answers nothing on the
/// others: what has no answer in time is then the first request of its connection, each time.
///
/// Were it a matter of chance which requests have none, this would be seen in `share` to the power
/// of their number, where `share` is that of all requests that are the first of their connection.
pub(super) fn unserved(recorded: &Recorded) -> Option<String> {
    let requests = recorded.total.requests();
    let timeouts = requests.errors.iter();
    let timeouts = timeouts.filter(|(failure, _)| failure.phase == Phase::Timeout);
    let late: u64 = timeouts.map(|(_, count)| *count).sum();
    let counts = &recorded.total.connections;
    if late < FEW || counts.unserved != late || requests.sent == 0 {
        return None;
    }
    let share = requests.sent.saturating_sub(counts.reused) as f64 / requests.sent as f64;
    if share.powf(late as f64) > BY_CHANCE {
        return None;
    }
    Some(format!(
        "all {late} requests without an answer in time were the first of their connection, and only {} of \
         all requests were: the target serves some connections, as many as it has threads or processes \
         perhaps, and leaves the others alone until one of these is closed. --max-connections holds the load to fewer",
        show_share(share)
    ))
}

impl Summary {
    /// Completes what an older version wrote. Percentiles were those of whole answers and, in
    /// version 1, all numbers those of the steady part; notes say so.
    pub fn read_from_older(&mut self) {
        if self.schema < SCHEMA && self.requests.errors > 0 {
            self.notes.push(
                "an older version of this program stored this result: its percentiles leave out \
                 requests without an answer"
                    .to_owned(),
            );
        }
        if self.schema > 1 {
            return;
        }
        self.sending_s = self.steady.to_s - self.steady.from_s;
        let before = self.errors.iter().filter(|error| error.phase.before_send());
        let unsendable: u64 = before.map(|error| error.count).sum();
        self.requests.complete(unsendable);
        for kind in &mut self.kinds {
            kind.requests.complete(0);
        }
        if self.steady.from_s > 0.0 {
            self.notes.push(
                "an older version of this program stored this result: its numbers are those of \
                 the steady part, and what failed before it is missing"
                    .to_owned(),
            );
        }
    }
}
