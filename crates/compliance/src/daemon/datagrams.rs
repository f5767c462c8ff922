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

/// What was said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spoken {
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
    pub(super) async fn send(&self, outcome: &RunOutcome, host: &str) -> Spoken {
        let mut spoken = Spoken::default();
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

impl Spoken {
    fn failed(&mut self, why: impl Display) {
        self.problem.get_or_insert_with(|| why.to_string());
    }
}
