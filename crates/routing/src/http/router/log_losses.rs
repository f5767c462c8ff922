//! Lines of the access log and envelopes that are lost, told once in a while: a full disk, a
//! closed pipe, a syslog or an agent that is away must not fill the log that says so.

use std::time::Duration;

use telemetry::{Fields, Logger};

use crate::http::counters::Totals;

/// Losses are told at most so often.
pub(super) const EVERY: Duration = Duration::from_secs(30);

/// What has been told so far.
#[derive(Debug, Default)]
pub(super) struct LogLosses {
    told: [u64; 4],
}

impl LogLosses {
    /// Reports what was lost since the last time, if anything was.
    pub(super) fn report(&mut self, totals: &Totals, logger: &Logger) {
        let lost = [
            totals.log_drops,
            totals.log_failures,
            totals.syslog_drops,
            totals.envelope_drops,
        ];
        let since = [0, 1, 2, 3].map(|kind: usize| lost[kind].saturating_sub(self.told[kind]));
        self.told = lost;
        let [behind, unwritten, syslog, agent] = since;
        if since == [0; 4] {
            return;
        }
        let cause = "lines were lost: look at the disk of the log, at who reads standard \
                     output, at syslog and at loggregator's agent";
        let fields = Fields::new()
            .and("writer-behind", behind)
            .and("not-written", unwritten)
            .and("not-taken-by-syslog", syslog)
            .and("not-taken-by-agent", agent);
        logger.error("access-log-incomplete", &cause, fields);
    }
}

#[cfg(test)]
mod tests {
    use telemetry::{Level, Sink};

    use super::*;

    #[test]
    fn each_loss_is_told_once() {
        let sink = Sink::memory();
        let logger = Logger::new("router", sink.clone(), Level::Info);
        let (mut losses, mut totals) = (LogLosses::default(), Totals::default());
        totals.logged = 7;
        losses.report(&totals, &logger);
        assert_eq!(sink.kept(), "");
        totals.log_failures = 2;
        totals.syslog_drops = 3;
        losses.report(&totals, &logger);
        losses.report(&totals, &logger);
        totals.syslog_drops = 8;
        totals.envelope_drops = 1;
        losses.report(&totals, &logger);
        let kept = sink.kept();
        let lines: Vec<_> = kept.lines().collect();
        assert_eq!(lines.len(), 2, "{kept}");
        assert!(lines[0].contains(r#""writer-behind":0,"not-written":2,"not-taken-by-syslog":3"#));
        assert!(lines[1].contains(r#""not-taken-by-syslog":5,"not-taken-by-agent":1"#));
        assert!(lines[1].contains("access-log-incomplete"));
    }
}
