//! A fleet: agents without machines, which draw what they report. All else is as with one: keys,
//! inventories, policies, signatures, TLS. Older agents, which report over syslog, are made too.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::Agent;
use jiff::Timestamp;
use net::Shutdown;
use stats::SplitMix;
use telemetry::{Fields, Logger};
use tokio::sync::{Barrier, OnceCell, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant as Turn;

use super::admin::Counters;
use super::datagrams::Datagrams;
use super::node::{LocalMethods, policy_of, signed, start_of_run};
use super::{Error, FleetConfig, NO_POLICY, policies};
use crate::agent::{self, AgentPolicy, Hollow, RunOutcome, RunSettings};
use crate::inventory::hollow::node as hollow_node;
use crate::policy::signature::{IssueNumber, PolicyKey};
use crate::reports::moment::Moment;
use crate::upstream::{ConditionalAnswer, NodeIdentity, Wire, WireError, policy_key, server_pin};

/// Until it is looked again whether another second has begun.
const SAME_SECOND: Duration = Duration::from_millis(20);
/// Agents that compute at once: they share this machine with the server.
const COMPUTING: usize = 4;

/// A run that waits for the server.
struct Waiting {
    name: String,
    message: bytes::Bytes,
    reports: u64,
}

/// One hollow agent.
struct One {
    identity: NodeIdentity,
    wire: Wire,
    seed: u64,
    config: Arc<FleetConfig>,
    /// The server's key for policies, once one of the fleet knows it.
    key: Arc<OnceCell<PolicyKey>>,
    /// The configuration, the packed policy and its number.
    policy: Option<(String, bytes::Bytes, IssueNumber)>,
    waiting: VecDeque<Waiting>,
    /// Where its reports go over syslog, if they do.
    datagrams: Option<Datagrams>,
    hostname: String,
    runs: u64,
    last_start: Option<Moment>,
    counters: Arc<Counters>,
    /// May be told to be silent.
    agent: Agent,
    computing: Arc<Semaphore>,
    together: Arc<Barrier>,
    logger: Logger,
}

/// Runs all agents until `shutdown`.
pub(super) async fn run(
    config: FleetConfig,
    counters: Arc<Counters>,
    logger: &Logger,
    mut shutdown: Shutdown,
) -> Result<(), Error> {
    Hollow::new(config.rates, 0, 0)?;
    let config = Arc::new(config);
    let mut agents = JoinSet::new();
    let computing = Arc::new(Semaphore::new(COMPUTING));
    let together = Arc::new(Barrier::new(usize::try_from(config.count).unwrap_or(1)));
    let pin = Arc::new(server_pin(
        &config.agent.data,
        config.agent.server_certificate.as_deref(),
    )?);
    let key = policy_key(&config.agent.data, config.agent.policy_key.as_deref())?;
    let key = Arc::new(OnceCell::new_with(key));
    for number in 0..config.count {
        let mut random = SplitMix::new(config.seed ^ (u64::from(number) << 20));
        let folder = config.agent.data.join(format!("agent-{number}"));
        let identity = NodeIdentity::open(&folder, &[], || drawn_id(&mut random))?;
        let seed = SplitMix::new(config.seed.wrapping_add(number.into())).bits();
        let datagrams = match config.syslog {
            Some(address) => Some(Datagrams::to(address).await.map_err(Error::Syslog)?),
            None => None,
        };
        let one = One {
            wire: Wire::new(&config.agent.server, Arc::clone(&pin), &identity, 1)?,
            identity,
            seed,
            config: Arc::clone(&config),
            key: Arc::clone(&key),
            policy: None,
            waiting: VecDeque::new(),
            datagrams,
            hostname: format!("hollow-{number}.example.org"),
            runs: 0,
            last_start: None,
            counters: Arc::clone(&counters),
            agent: counters.silence.agent(number),
            computing: Arc::clone(&computing),
            together: Arc::clone(&together),
            logger: logger.clone(),
        };
        agents.spawn(one.live());
        if number % 64 == 0 {
            // Making keys must not keep the first agents from starting.
            tokio::task::yield_now().await;
        }
    }
    shutdown.requested().await;
    agents.shutdown().await;
    Ok(())
}

/// An identity by the seed.
fn drawn_id(random: &mut SplitMix) -> String {
    let mut bytes = [0; 16];
    for (to, from) in bytes.chunks_mut(8).zip([random.bits(), random.bits()]) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

impl One {
    async fn live(mut self) {
        // Started at once, agents would stay in step.
        let mut random = SplitMix::new(self.seed);
        let interval = self.config.agent.interval;
        let spread = interval
            .unwrap_or(Duration::from_secs(1))
            .min(Duration::from_secs(60));
        tokio::time::sleep(spread.mul_f64(random.uniform())).await;
        while let Err(error) = self.enrol().await {
            self.problem("enrol", &error);
            tokio::time::sleep(NO_POLICY).await;
        }
        while self.policy.is_none() {
            self.fetch().await;
            if self.policy.is_none() {
                tokio::time::sleep(NO_POLICY).await;
            }
        }
        self.counters.ready.add(1);
        // Whoever measures a fleet begins when all of it is there.
        self.together.wait().await;
        let first = interval.unwrap_or(NO_POLICY);
        let begin = Turn::now();
        let mut turn = begin + first.mul_f64(1.0 + random.uniform());
        while self.may_run() || !self.waiting.is_empty() {
            while tokio::time::timeout_at(turn, self.agent.recalled())
                .await
                .is_ok()
            {
                // It speaks again: what was made meanwhile goes out before its turn.
                self.fetch().await;
                self.send().await;
            }
            if !self.agent.is_silent() {
                self.fetch().await;
            }
            let next = self.run().await.unwrap_or(NO_POLICY);
            // A server that is slow does not slow the schedule down.
            turn = match interval {
                Some(interval) => after(turn, interval, Turn::now()),
                None => Turn::now() + next,
            };
            if !self.agent.is_silent() {
                self.send().await;
            }
        }
        self.counters.resting.add(1);
    }

    fn may_run(&self) -> bool {
        self.counters.may_run() && self.config.runs.is_none_or(|most| self.runs < most)
    }

    fn problem(&self, doing: &str, error: &dyn std::fmt::Display) {
        let fields = Fields::new()
            .and("node", &self.identity.id)
            .and("doing", doing);
        self.logger.error("problem", error, fields);
        self.counters.problems.add(1);
    }

    async fn enrol(&self) -> Result<(), WireError> {
        let now = Timestamp::now();
        let certificate = &self.identity.pems.certificate;
        let (id, hostname) = (&self.identity.id, &self.hostname);
        let server = self.wire.server_id().await?;
        let facts = hollow_node(self.seed, id, hostname, &server, certificate, now);
        let _turn = self.computing.acquire().await;
        let about = || Fields::new().and("node", id);
        self.logger.debug("inventory-sent", about());
        self.wire.inventory(&self.identity, &facts, now).await?;
        self.logger.debug("inventory-acknowledged", about());
        Ok(())
    }

    async fn fetch(&mut self) {
        let key = match self.key.get_or_try_init(|| self.wire.policy_key()).await {
            Ok(key) => key.clone(),
            Err(error) => return self.problem("ask for the server's key for policies", &error),
        };
        let known = self.policy.as_ref();
        let held = known.map(|(_, _, number)| *number);
        let known = known.map(|(config_id, ..)| config_id.as_str());
        let node = &self.identity.id;
        match self.wire.policy(node, known).await {
            Ok(ConditionalAnswer::New(id, packed)) => {
                match policies::verify(&key, node, &packed, held) {
                    Ok(number) => {
                        let fields = Fields::new().and("node", node);
                        self.logger.debug("policy-taken", fields.and("config", &id));
                        self.policy = Some((id, packed, number));
                    }
                    Err(refused) => {
                        self.counters.refused.add(1);
                        self.problem("take the policy", &refused);
                    }
                }
            }
            Ok(ConditionalAnswer::Same | ConditionalAnswer::None { .. }) => {}
            Err(error) => self.problem("ask for the policy", &error),
        }
    }

    /// Runs the policy; gives the time to the next run.
    async fn run(&mut self) -> Option<Duration> {
        if !self.may_run() {
            return Some(NO_POLICY);
        }
        let (_, packed, _) = self.policy.clone()?;
        let start = self.next_start().await;
        let turn = Arc::clone(&self.computing).acquire_owned().await;
        let policy = match policy_of(&packed, &self.identity.id) {
            Ok(policy) => policy,
            Err(why) => {
                self.problem("take the policy", &why);
                return None;
            }
        };
        self.runs += 1;
        let outcome = self.drawn(&policy, start)?;
        self.counters
            .ran(outcome.counts.iter().sum(), outcome.reports);
        if self.datagrams.is_some() {
            drop(turn);
            self.send_datagrams(&outcome).await;
        } else {
            let made = signed(&outcome, &self.identity);
            drop(turn);
            match made {
                Err(why) => {
                    self.problem("sign the run", &why);
                    self.counters.dropped.add(1);
                    self.counters.reports_dropped.add(outcome.reports);
                }
                Ok((name, message)) => self.put_by(Waiting {
                    name,
                    message: message.into(),
                    reports: outcome.reports,
                }),
            }
        }
        let now = Timestamp::now().as_second();
        Some(Duration::from_secs(policy.schedule.until_next(now)))
    }

    /// A start that no earlier run has: runs of one second would be taken for one.
    async fn next_start(&mut self) -> Moment {
        while self.last_start == Some(start_of_run()) {
            tokio::time::sleep(SAME_SECOND).await;
        }
        let start = start_of_run();
        self.last_start = Some(start);
        start
    }

    /// Runs the policy as if there were a machine.
    fn drawn(&self, policy: &AgentPolicy, start: Moment) -> Option<RunOutcome> {
        let hollow = Hollow::new(self.config.rates, self.seed, self.runs).ok()?;
        let (mut methods, begin) = (LocalMethods(hollow), Instant::now());
        let settings = RunSettings::default();
        let elapsed = || begin.elapsed();
        Some(agent::run(policy, &mut methods, &settings, start, elapsed))
    }

    /// Puts a run to those that wait; the oldest may have to make room.
    fn put_by(&mut self, run: Waiting) {
        if self.waiting.len() >= self.config.spool
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.counters.dropped.add(1);
            self.counters.reports_dropped.add(oldest.reports);
        }
        self.logger.debug("run-signed", about(&run.name));
        self.waiting.push_back(run);
    }

    /// Sends the reports of a run over syslog, unless it is silent: nothing waits there.
    async fn send_datagrams(&self, outcome: &RunOutcome) {
        let mut sent = 0;
        if let Some(datagrams) = &self.datagrams
            && !self.agent.is_silent()
        {
            let spoken = datagrams.send(outcome, &self.hostname).await;
            sent = spoken.sent;
            if let Some(why) = spoken.problem {
                self.problem("send reports over syslog", &why);
            }
        }
        let lost = outcome.reports.saturating_sub(sent);
        self.counters.reports_sent.add(sent);
        self.counters.reports_dropped.add(lost);
        match lost {
            0 => self.counters.sent.add(1),
            _ => self.counters.dropped.add(1),
        }
    }

    async fn send(&mut self) {
        while let Some(run) = self.waiting.front() {
            let path = format!("/reports/{}", run.name);
            match self.wire.put(&path, run.message.clone()).await {
                Ok(_) => {
                    self.logger.debug("run-acknowledged", about(&run.name));
                    self.counters.sent.add(1);
                    self.counters.reports_sent.add(run.reports);
                }
                Err(error @ WireError::Refused { .. }) => {
                    self.problem("send a run", &error);
                    self.counters.dropped.add(1);
                    self.counters.reports_dropped.add(run.reports);
                }
                Err(error) => return self.problem("send a run", &error),
            }
            self.waiting.pop_front();
        }
    }
}

/// The next turn of a schedule, after `turn`. Turns that were missed are left out.
fn after(turn: Turn, interval: Duration, now: Turn) -> Turn {
    let next = turn + interval;
    let late = now.saturating_duration_since(next);
    if late.is_zero() || interval.is_zero() {
        return next;
    }
    let missed = late.as_nanos() / interval.as_nanos() + 1;
    next + interval.saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX))
}

/// The run of a file, for the log.
fn about(name: &str) -> Fields {
    Fields::new().and("run", name.trim_end_matches(".log.gz"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Turn, after};

    #[test]
    fn a_schedule_keeps_its_phase_and_leaves_out_what_it_missed() {
        let (begin, second) = (Turn::now(), Duration::from_secs(1));
        for (interval, now, next) in [
            (5, 0, 5),
            (5, 5, 5),
            (5, 6, 10),
            (5, 10, 15),
            (5, 63, 65),
            (0, 9, 0),
        ] {
            let found = after(begin, interval * second, begin + now * second);
            assert_eq!(found - begin, next * second, "{interval} {now}");
        }
    }
}
