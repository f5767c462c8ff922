//! What a reader of the numbers should know besides.

use units::show_share;

use super::{SCHEMA, Summary};
use crate::recording::{Recorded, Recording};
use crate::request::is_redirect;
use crate::workload::{Protocol, Workload};

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
