//! What agents tell of themselves: readiness, and counters for Prometheus.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use fleet::Silence;
use http::{Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming, Shutdown};
use telemetry::prometheus::{self, Page};
use tokio::task::JoinHandle;

use super::{Error, Round};
use crate::server::{Count, expose};

/// Longest wait for the body of a request.
const BODY_WITHIN: Duration = Duration::from_secs(60);

/// What was done so far.
#[derive(Debug)]
pub(super) struct Counters {
    agents: u64,
    /// How many of them are simulated.
    simulated: u32,
    /// Which of them are to be silent: only simulated ones can be.
    pub(super) silence: Silence,
    /// Agents that have had a policy.
    pub(super) ready: Count,
    runs: Count,
    calls: Count,
    /// Run logs that the server has taken, or whose reports were sent over syslog.
    pub(super) sent: Count,
    /// Those that had to make room, that the server refuses, or that nobody could be told.
    pub(super) dropped: Count,
    pub(super) problems: Count,
    /// Policies that were not the server's, or older than what the agent had.
    pub(super) refused: Count,
    /// Reports of simulated agents: all, and what became of them.
    reports: Count,
    pub(super) reports_sent: Count,
    pub(super) reports_dropped: Count,
    /// Simulated agents are to begin no further run.
    rest: AtomicBool,
    /// Simulated agents that have made their last run, with nothing that waits.
    pub(super) resting: Count,
    /// For one agent: has it had a policy?
    had_policy: AtomicBool,
}

impl Counters {
    /// Of one real agent.
    pub(super) fn of_one() -> Self {
        Self::new(1, 0)
    }

    /// Of so many simulated agents.
    pub(super) fn of_fleet(agents: u32) -> Self {
        Self::new(agents, agents)
    }

    fn new(agents: u32, simulated: u32) -> Self {
        Self {
            agents: agents.into(),
            simulated,
            silence: Silence::of(simulated),
            ready: Count::default(),
            runs: Count::default(),
            calls: Count::default(),
            sent: Count::default(),
            dropped: Count::default(),
            problems: Count::default(),
            refused: Count::default(),
            reports: Count::default(),
            reports_sent: Count::default(),
            reports_dropped: Count::default(),
            rest: AtomicBool::default(),
            resting: Count::default(),
            had_policy: AtomicBool::default(),
        }
    }

    /// Takes a round of the one agent there is.
    pub(super) fn take(&self, round: &Round) {
        if round.config_id.is_some() && !self.had_policy.swap(true, Relaxed) {
            self.ready.add(1);
        }
        if round.ran {
            self.ran(round.calls, 0);
        }
        for (counter, count) in [
            (&self.sent, round.sent),
            (&self.dropped, round.dropped),
            (&self.problems, round.problems.len()),
            (&self.refused, round.refused),
        ] {
            counter.add(u64::try_from(count).unwrap_or(u64::MAX));
        }
    }

    /// May a simulated agent begin another run?
    pub(super) fn may_run(&self) -> bool {
        !self.rest.load(Relaxed)
    }

    /// A policy was run, and so much is in its log.
    pub(super) fn ran(&self, calls: u64, reports: u64) {
        self.runs.add(1);
        self.calls.add(calls);
        self.reports.add(reports);
    }

    fn text(&self) -> String {
        let mut page = Page::new();
        expose! { page;
            gauge "compliance_agents" self.agents, "Agents of this process.";
            gauge "compliance_agents_ready" &self.ready, "Agents with a policy.";
            gauge "compliance_agents_silent" self.silence.silent(),
                "Simulated agents that were told to be silent.";
            counter "compliance_agent_runs_total" &self.runs, "Runs of policies.";
            counter "compliance_agent_runs_sent_total" &self.sent,
                "Run logs that the server has taken.";
            counter "compliance_agent_calls_total" &self.calls, "Calls of methods.";
            counter "compliance_agent_runs_dropped_total" &self.dropped,
                "Run logs that were dropped.";
            counter "compliance_agent_policies_refused_total" &self.refused,
                "Policies that were not the server's, or older than the one held.";
            counter "compliance_agent_problems_total" &self.problems, "Things that did not work.";
        }
        if self.simulated > 0 {
            self.write_simulated(&mut page);
        }
        page.into_text()
    }
}

impl Counters {
    fn write_simulated(&self, page: &mut Page) {
        // In this order: what ends meanwhile must not be taken for what waits.
        let ended = self.sent.get() + self.dropped.get();
        let made = self.runs.get();
        expose! { page;
            gauge "compliance_agents_resting" &self.resting,
                "Agents that have made their last run, with nothing that waits.";
            gauge "compliance_agent_runs_waiting" made.saturating_sub(ended),
                "Run logs that are being made or wait for the server.";
            counter "compliance_agent_reports_total" &self.reports,
                "Reports in run logs, markers of start and end among them.";
            counter "compliance_agent_reports_sent_total" &self.reports_sent,
                "Reports in run logs that the server has taken, or sent over syslog.";
            counter "compliance_agent_reports_dropped_total" &self.reports_dropped,
                "Reports that nobody was told: dropped, refused, or of a silent agent over syslog.";
        }
    }
}

impl Handler for Counters {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (status, body) = match (request.method(), request.uri().path()) {
            (&Method::GET, "/ping") if self.ready.get() >= self.agents => {
                (StatusCode::OK, "every agent has a policy\n".to_owned())
            }
            (&Method::GET, "/ping") => {
                let ready = self.ready.get();
                let told = format!("{ready} of {} agents have a policy\n", self.agents);
                (StatusCode::SERVICE_UNAVAILABLE, told)
            }
            (&Method::GET, "/metrics") => (StatusCode::OK, self.text()),
            (&Method::POST, "/rest") if self.simulated > 0 => {
                self.rest.store(true, Relaxed);
                (StatusCode::OK, "no further run begins\n".into())
            }
            (_, path) if path.starts_with(fleet::PATH) => {
                let (head, body) = request.into_parts();
                match net::read_body(body, fleet::LONGEST_BODY, BODY_WITHIN).await {
                    Ok(body) => self.silence.answer(&head.method, head.uri.path(), &body),
                    Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
                }
            }
            _ => (
                StatusCode::NOT_FOUND,
                "expected /ping, /metrics or, of simulated agents, POST /rest\n".into(),
            ),
        };
        net::response(status, prometheus::CONTENT_TYPE, body)
    }
}

/// The server of it, if there is one.
pub(super) struct Admin(Option<JoinHandle<()>>);

impl Admin {
    pub(super) async fn start(
        listen: Option<SocketAddr>,
        counters: Arc<Counters>,
        shutdown: &Shutdown,
    ) -> Result<Self, Error> {
        let Some(listen) = listen else {
            return Ok(Self(None));
        };
        let listener = net::bind(listen).await.map_err(Error::Listen)?;
        let limits = net::Limits {
            connections: 64,
            ..net::Limits::default()
        };
        let serving = net::serve(listener, None, limits, counters, shutdown.clone());
        Ok(Self(Some(tokio::spawn(serving))))
    }

    pub(super) async fn stop(self) {
        if let Some(serving) = self.0 {
            let _ = serving.await;
        }
    }
}
