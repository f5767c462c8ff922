//! Workers on other machines as one generator.

use std::fmt;
use std::time::{Duration, Instant};

use lab_load::{Flow, GenerateError, Segment, Workload};
use serde::{Deserialize, Serialize};

use super::connection::unix_ns;
use super::coordinator::{Coordinator, SessionConfig};
use super::driver::{Driver, LEAVE_WITHIN, LOOK_EVERY};
use super::message::{Order, WorkerReport};
use super::nats::Nats;
use super::offset::Offset;
use super::share::shares;
use super::{VERSION, check_session};

/// Time between an order to run and the start of the run: enough for the order to
/// arrive, and to be sent again if it is lost.
pub(super) const LEAD: Duration = Duration::from_millis(700);
/// Beyond the longest that a load may be quiet: for merging, sending and a busy machine.
const REPORT_WITHIN: Duration = Duration::from_secs(10);

/// Where workers are found, and how long they are waited for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where everybody meets.
    pub nats: Nats,
    /// Name of the session: 1 to 64 letters, digits, `-` or `_`. One run at a time
    /// uses it.
    pub session: String,
    /// Workers that take part; 1 to 1,000. Nothing starts before all are there.
    pub workers: u32,
    /// Longest wait for them.
    pub within: Duration,
    /// Silence after which a worker counts as lost, and a worker takes the coordinator
    /// for lost and stops its load; at least a second.
    pub silence: Duration,
}

impl Settings {
    /// With a minute's patience for workers to come, and three seconds' for silence.
    pub fn new(nats: Nats, session: String, workers: u32) -> Self {
        Self {
            nats,
            session,
            workers,
            within: Duration::from_secs(60),
            silence: Duration::from_secs(3),
        }
    }

    fn check(&self) -> Result<(), GenerateError> {
        check_session(&self.session)?;
        let doing = "check the workers' settings";
        if !(1..=1000).contains(&self.workers) {
            let found = format!("{} workers", self.workers);
            return Err(GenerateError::new(doing, found).help("ask for 1 to 1,000"));
        }
        if self.silence < Duration::from_secs(1) {
            let silence = self.silence.as_millis();
            let found = format!("silence of {silence} ms is taken for a loss");
            let help = "allow at least a second: heartbeats come every quarter";
            return Err(GenerateError::new(doing, found).help(help));
        }
        Ok(())
    }
}

/// What is known about a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// Its name, unique among the workers.
    pub name: String,
    /// Processors that it may use.
    pub cores: u32,
    /// Its clock as seen from here.
    pub clock: Option<Offset>,
    /// How much later than told it began its last run; together with the clock's
    /// uncertainty, how well workers are aligned.
    pub began_late: Option<Duration>,
    /// Why it takes part no more.
    pub lost: Option<String>,
}

impl fmt::Display for WorkerFacts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lost {
            Some(why) => write!(formatter, "{} ({why})", self.name),
            None => write!(formatter, "{}", self.name),
        }
    }
}

/// Workers that wait for segments. Dropped, it sends them home.
#[derive(Debug)]
pub struct Remote {
    pub(super) driver: Driver<Coordinator>,
    /// Longest time in which a worker must have said something while it runs.
    pub(super) report_within: Duration,
    /// Threads of each worker.
    pub(super) threads: usize,
    /// Number of the last run.
    pub(super) run: u64,
    /// Of each worker, in its last run.
    pub(super) began_late: Vec<Option<Duration>>,
}

impl Remote {
    /// Waits until all workers are there, gives each its share of the workload, and
    /// waits until all have opened their connections. Like everything else here, it must
    /// not be called within an asynchronous runtime.
    ///
    /// Thread numbers are given in the order in which workers came: worker `i` of `n`
    /// with `t` threads each gets `i*t` to `i*t + t - 1` of `n*t`. Connections are
    /// divided among them, at least one each. `watch` is called ten times a second with the
    /// workers that are there, and can end the wait.
    ///
    /// # Errors
    /// When NATS cannot be reached, workers are missing or of another version, one cannot
    /// get ready, or `watch` ended the wait; it says which and why.
    pub fn start(
        workload: &Workload,
        settings: &Settings,
        watch: &mut dyn FnMut(&[WorkerFacts]) -> Flow,
    ) -> Result<Self, GenerateError> {
        settings.check()?;
        let shares = shares(workload, settings.workers)?;
        let config = SessionConfig {
            session: settings.session.clone(),
            token: rand::random(),
            version: VERSION.to_owned(),
            wanted: shares.len(),
            silence: settings.silence,
        };
        let driver = Driver::start(&settings.nats, |max_payload| {
            Coordinator::new(config, max_payload)
        })?;
        let margin = settings.silence + REPORT_WITHIN;
        let remote = Self {
            driver,
            report_within: longest_quiet(workload).saturating_add(margin),
            threads: workload.threads as usize,
            run: 0,
            began_late: vec![None; shares.len()],
        };
        remote.gather(settings, watch)?;
        remote.driver.with(|core| {
            for (peer, share) in core.workers.iter_mut().zip(shares) {
                peer.connection.send(&Order::Prepare(Box::new(share)));
            }
        });
        let within = workload.connections.connect_within * 2 + settings.silence + REPORT_WITHIN;
        remote.prepare(within, watch)?;
        Ok(remote)
    }

    /// What is known about the workers, in the order of their threads.
    pub fn workers(&self) -> Vec<WorkerFacts> {
        self.driver.with(|core| {
            let workers = core.workers.iter().zip(&self.began_late);
            let facts = workers.map(|(peer, began_late)| WorkerFacts {
                name: peer.name.clone(),
                cores: peer.cores,
                clock: peer.connection.offset(),
                began_late: *began_late,
                lost: peer.connection.lost().map(str::to_owned),
            });
            facts.collect()
        })
    }

    fn gather(
        &self,
        settings: &Settings,
        watch: &mut dyn FnMut(&[WorkerFacts]) -> Flow,
    ) -> Result<(), GenerateError> {
        let doing = format!("wait for {} workers", settings.workers);
        let there = self.wait_for(&doing, settings.within, watch, |core| {
            let connections = core.workers.iter().map(|peer| &peer.connection);
            let mut known = connections.map(|each| each.is_aligned() || each.lost().is_some());
            Ok(core.is_complete() && known.all(|known| known))
        })?;
        if there {
            return Ok(());
        }
        let found = self.driver.with(|core| {
            let mut found = format!("{} came", core.workers.len());
            if !core.refusals.is_empty() {
                let refusals = core.refusals.make_contiguous().join("; ");
                found.push_str(&format!("; refused: {refusals}"));
            }
            found
        });
        let (nats, session) = (&settings.nats, &settings.session);
        let help = format!(
            "run on each machine: headroom load --worker --nats {nats} --session {session}"
        );
        Err(GenerateError::new(doing, found).help(help))
    }

    fn prepare(
        &self,
        within: Duration,
        watch: &mut dyn FnMut(&[WorkerFacts]) -> Flow,
    ) -> Result<(), GenerateError> {
        let doing = "prepare the workers";
        let mut ready = vec![false; self.began_late.len()];
        let all = self.wait_for(doing, within, watch, |core| {
            for (worker, report) in core.reports() {
                match report {
                    WorkerReport::Ready => ready[worker] = true,
                    WorkerReport::NotReady(error) => return Err(core.of_worker(worker, error)),
                    WorkerReport::Bye | WorkerReport::Span { .. } | WorkerReport::Done { .. } => {}
                }
            }
            Ok(ready.iter().all(|ready| *ready))
        })?;
        if all {
            return Ok(());
        }
        let facts = self.workers();
        let not = facts.iter().zip(&ready).filter(|(_, ready)| !**ready);
        let names: Vec<&str> = not.map(|(facts, _)| facts.name.as_str()).collect();
        let found = format!("not ready: {}", names.join(", "));
        Err(GenerateError::new(doing, found).help("look at what they print"))
    }

    /// Waits until `ready` says so, while no worker is lost. `false`: it took too long,
    /// or `watch` ended the wait.
    fn wait_for(
        &self,
        doing: &str,
        within: Duration,
        watch: &mut dyn FnMut(&[WorkerFacts]) -> Flow,
        mut ready: impl FnMut(&mut Coordinator) -> Result<bool, GenerateError>,
    ) -> Result<bool, GenerateError> {
        let until = Instant::now() + within;
        loop {
            let is_ready = self.driver.wait(LOOK_EVERY, |core| match ready(core) {
                Ok(false) => None,
                outcome => Some(outcome),
            });
            let is_ready = is_ready.unwrap_or(Ok(false))?;
            let facts = self.workers();
            let flow = watch(&facts);
            if let Some(lost) = facts.iter().find(|facts| facts.lost.is_some()) {
                let help = "start it again, then this";
                return Err(GenerateError::new(doing, format!("lost {lost}")).help(help));
            }
            if is_ready || flow == Flow::Stop || Instant::now() >= until {
                return Ok(is_ready);
            }
        }
    }

    /// What workers have said; waits a moment for it.
    pub(super) fn reports(&self) -> Vec<(usize, WorkerReport)> {
        let reports = self.driver.wait(LOOK_EVERY, |core| {
            let reports = core.reports();
            (!reports.is_empty()).then_some(reports)
        });
        reports.unwrap_or_default()
    }

    /// Ends the current run.
    pub(super) fn stop(&self) {
        let order = Order::Stop { run: self.run };
        self.driver.with(|core| core.broadcast(&order));
    }

    /// Gives the order to run; the common start in own Unix time.
    pub(super) fn begin(&self, segment: &Segment) -> i64 {
        let at = unix_ns(self.driver.now() + LEAD);
        self.driver.with(|core| {
            for peer in &mut core.workers {
                let offset = peer.connection.offset().map_or(0, |offset| offset.ns);
                peer.connection.send(&Order::Run {
                    run: self.run,
                    segment: segment.clone(),
                    at_unix_ns: at.saturating_add(offset),
                });
            }
        });
        at
    }
}

/// The longest in which a load goes on and has nothing to tell: its own time is over, and the last
/// journey that fell due waits for a connection, and then for each of its answers.
pub(super) fn longest_quiet(workload: &Workload) -> Duration {
    let journeys = workload.mix.journeys.iter();
    let lengths = journeys.map(|journey| {
        let steps = journey.steps.iter();
        steps.fold(workload.timeout, |length, step| {
            length.saturating_add(step.think.saturating_add(workload.timeout))
        })
    });
    lengths.max().unwrap_or(workload.timeout)
}

impl Drop for Remote {
    fn drop(&mut self) {
        // It ends their run as well.
        self.driver.with(|core| core.broadcast(&Order::Leave));
        let idle = |core: &mut Coordinator| core.is_idle().then_some(());
        let _ = self.driver.wait(LEAVE_WITHIN, idle);
    }
}
