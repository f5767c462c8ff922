//! Reports over syslog, as agents up to Rudder 6 send them: each a datagram that nobody answers. One that is handed to
//! the kernel of this machine, for a socket of this machine, is taken by that socket or counted among those it dropped.

use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

use crate::agent::RunOutcome;
use crate::reports::runlog::{Limits, RunLog};
use crate::reports::syslog;

/// The way to whoever hears syslog.
pub(super) struct Datagrams(UdpSocket);

/// What was sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SendResult {
    /// Reports that were handed to the kernel.
    pub(super) sent: u64,
    /// Why others were not: the first reason.
    pub(super) problem: Option<String>,
}

impl Datagrams {
    pub(super) async fn to(address: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(address).await?;
        Ok(Self(socket))
    }

    /// Sends each report of a run by itself, in the name of a host.
    pub(super) async fn send(&self, outcome: &RunOutcome, host: &str) -> SendResult {
        let mut spoken = SendResult::default();
        let log = match RunLog::parse(outcome.info.clone(), &outcome.log, &Limits::default()) {
            Ok(log) => log,
            Err(error) => {
                spoken.failed(error);
                return spoken;
            }
        };
        for report in &log.reports {
            let message = match syslog::write(report, host) {
                Ok(message) => message,
                Err(error) => {
                    spoken.failed(error);
                    continue;
                }
            };
            match self.0.send(message.as_bytes()).await {
                Ok(_) => spoken.sent += 1,
                Err(error) => spoken.failed(error),
            }
        }
        spoken
    }
}

impl SendResult {
    fn failed(&mut self, why: impl Display) {
        self.problem.get_or_insert_with(|| why.to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket as Plain};
    use std::time::Duration;

    use super::{Datagrams, SendResult};
    use crate::agent::RunOutcome;
    use crate::reports::moment::Moment;
    use crate::reports::run_info::RunInfo;
    use crate::reports::runlog::{Limits, Report, RunLog, write_report};
    use crate::reports::syslog::parse;

    fn outcome(components: &[&str]) -> RunOutcome {
        let at = Moment::from_rfc3339("2026-03-01T12:00:00+00:00").unwrap();
        let mut log = String::new();
        for component in components {
            let report = Report {
                start_datetime: at,
                execution_datetime: at,
                rule_id: "r",
                directive_id: "d",
                component: (*component).into(),
                key_value: "/etc/motd".into(),
                event_type: "result_success",
                msg: "it was as it should be".into(),
                policy: "T",
                node_id: "n",
                report_id: "0",
            };
            write_report(&mut log, &report).unwrap();
        }
        RunOutcome {
            info: RunInfo {
                node_id: "n".into(),
                timestamp: at,
            },
            log,
            counts: [0; 5],
            skipped: 0,
            reports: u64::try_from(components.len()).unwrap(),
        }
    }

    #[tokio::test]
    async fn each_report_is_a_message_in_the_order_of_the_run() {
        let hears = Plain::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        hears
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let datagrams = Datagrams::to(hears.local_addr().unwrap()).await.unwrap();
        let outcome = outcome(&["first", "second", "third"]);
        let all = SendResult {
            sent: 3,
            problem: None,
        };
        assert_eq!(datagrams.send(&outcome, "web-1").await, all);
        let limits = Limits::default();
        let log = RunLog::parse(outcome.info.clone(), &outcome.log, &limits).unwrap();
        for report in &log.reports {
            let mut buffer = [0; 2_048];
            let length = hears.recv(&mut buffer).unwrap();
            let text = str::from_utf8(&buffer[..length]).unwrap();
            let heard = parse(text, report.execution_datetime, &limits).unwrap();
            assert_eq!((heard.host, &heard.report), ("web-1", report));
        }
    }

    #[tokio::test]
    async fn what_cannot_be_said_is_not_counted_as_sent() {
        let hears = Plain::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let datagrams = Datagrams::to(hears.local_addr().unwrap()).await.unwrap();
        let spoken = datagrams.send(&outcome(&["first"]), "not a host").await;
        assert_eq!(spoken.sent, 0);
        assert!(spoken.problem.is_some());
    }
}
