//! One try of a probe: what is asked, and what the answer must be.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use lab_experiment::plan::{Aggregation, ProbeKind, Template};
use net::Client;
use rustls::ClientConfig;
use tokio::time::Instant;

use super::command::Command;
use super::health;
use super::log::LogCount;
use super::postgres::Statement;
use super::prom;
use super::request::{HttpProbe, uri};
use super::value::{Part, Value};
use crate::processes::reach;

/// Most bytes of an answer: a page of metrics has megabytes.
const ANSWER_BYTES: usize = 32 << 20;
/// Longest wait of the client; the time limit of a try is shorter.
const LONGEST: Duration = Duration::from_secs(2 * 3600);

/// A client for the probes of a run; with TLS, for one of them.
pub(super) fn client(tls: Option<Arc<ClientConfig>>) -> Client {
    Client::new(net::ClientOptions {
        // Each probe asks one copy once at a time.
        connections_per_host: 1_000,
        connect_within: LONGEST,
        answer_within: LONGEST,
        answer_bytes: ANSWER_BYTES,
        tls,
    })
}

/// Asks one question, again and again.
pub(super) enum Prober {
    Http {
        client: Client,
        request: Box<HttpProbe>,
        value: Option<Part>,
    },
    Tcp(String),
    Grpc {
        host: String,
        service: String,
    },
    Command(Box<Command>),
    Prom {
        client: Client,
        uri: Uri,
        metric: String,
        labels: BTreeMap<String, String>,
        series: Aggregation,
        /// The value before, of a probe that tells a rate.
        rate: Option<Cell<Option<(Instant, f64)>>>,
    },
    Postgres(Box<Statement>),
    Log(Arc<LogCount>),
}

impl Prober {
    /// Prepares what a probe asks. `render` fills in names; `command`, `password` and
    /// `log` make what needs the folders of the run and of its file.
    ///
    /// # Errors
    /// When what was filled in cannot be asked.
    pub(super) fn new(
        kind: &ProbeKind,
        client: &Client,
        render: impl Fn(&Template) -> String,
        command: impl FnOnce(&ProbeKind) -> Result<Command, String>,
        password: impl FnOnce(&ProbeKind) -> Result<String, String>,
        log: impl FnOnce(&str) -> Result<LogCount, String>,
    ) -> Result<Self, String> {
        Ok(match kind {
            ProbeKind::Http {
                method,
                url,
                headers,
                body,
                asserts,
                value,
                tls: _,
            } => {
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| (name.clone(), render(value)));
                let target = (method.as_str(), &*render(url));
                let request = HttpProbe::new(target, headers.collect(), render(body), asserts)?;
                Self::Http {
                    client: client.clone(),
                    request: Box::new(request),
                    value: value.as_ref().map(Part::of),
                }
            }
            ProbeKind::Tcp { address } => Self::Tcp(render(address)),
            ProbeKind::Grpc { address, service } => Self::Grpc {
                host: render(address),
                service: render(service),
            },
            ProbeKind::Command { .. } => Self::Command(Box::new(command(kind)?)),
            ProbeKind::Prom {
                url,
                metric,
                labels,
                series,
                is_rate,
                tls: _,
            } => Self::Prom {
                client: client.clone(),
                uri: uri(&render(url))?,
                metric: metric.clone(),
                labels: labels.clone(),
                series: *series,
                rate: is_rate.then(Cell::default),
            },
            ProbeKind::Postgres { url, sql, .. } => {
                let statement = Statement::new(&render(url), render(sql), &password(kind)?)?;
                Self::Postgres(Box::new(statement))
            }
            ProbeKind::Log { pattern, .. } => Self::Log(Arc::new(log(pattern)?)),
        })
    }

    /// Asks once: the value of the answer, if it has one, or why the try has failed.
    pub(super) async fn probe(&self) -> Result<Option<Value>, String> {
        match self {
            Self::Http {
                client,
                request,
                value,
            } => {
                let answer = client.request(request.request()).await;
                let answer = answer.map_err(|error| error.to_string())?;
                request.check(&answer)?;
                let find = |part: &Part| part.find(&answer.body, &answer.headers);
                value.as_ref().map(find).transpose()
            }
            Self::Tcp(address) => match reach(address).await {
                Ok(()) => Ok(None),
                Err(error) => Err(format!("connect to {address}: {error}")),
            },
            Self::Grpc { host, service } => health::check(host, service).await.map(Some),
            Self::Command(command) => command.run().await,
            Self::Prom {
                client,
                uri,
                metric,
                labels,
                series,
                rate,
            } => {
                let answer = client.get(uri).await.map_err(|error| error.to_string())?;
                let status = answer.status.as_u16();
                if status >= 400 {
                    return Err(format!("status {status}"));
                }
                let page = String::from_utf8_lossy(&answer.body);
                let now = prom::value(&page, metric, labels, *series)?;
                Ok(match rate {
                    None => Some(Value::Number(now)),
                    Some(before) => {
                        let now = (Instant::now(), now);
                        let before = before.replace(Some(now));
                        before.and_then(|before| rate_since(before, now))
                    }
                })
            }
            Self::Postgres(statement) => statement.query().await,
            Self::Log(count) => LogCount::look(count).await.map(Some),
        }
    }
}

/// Change a second. A counter that became smaller was reset to 0 in between.
fn rate_since(before: (Instant, f64), now: (Instant, f64)) -> Option<Value> {
    let seconds = (now.0 - before.0).as_secs_f64();
    let grown = match now.1 < before.1 {
        true => now.1,
        false => now.1 - before.1,
    };
    (seconds > 0.0).then(|| Value::Number(grown / seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_the_change_a_second_and_knows_a_reset() {
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let number = |value| Some(Value::Number(value));
        assert_eq!(rate_since((at(0), 10.0), (at(2), 16.0)), number(3.0));
        assert_eq!(rate_since((at(0), 10.0), (at(2), 4.0)), number(2.0));
        assert_eq!(rate_since((at(0), 10.0), (at(0), 4.0)), None);
    }
}
