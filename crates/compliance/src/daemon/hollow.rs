//! A fleet: agents without machines, which draw what they report. All else is as with one: keys,
//! inventories, policies, signatures, TLS.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::Agent;
use jiff::Timestamp;
use net::Shutdown;
use stats::SplitMix;
use telemetry::{Fields, Logger};
use tokio::sync::{Barrier, Semaphore};
use tokio::task::JoinSet;

use super::admin::Counters;
use super::node::{Here, folder_of, policy_of, signed, start_of_run};
use super::{Error, FleetConfig, NO_POLICY};
use crate::agent::{self, Hollow, Rates, RunSettings};
use crate::inventory::hollow::node as hollow_node;
use crate::upstream::{Asked, NodeIdentity, Wire, WireError, server_pin};

/// Runs of one agent that wait for the server; the oldest make room.
const WAITING: usize = 8;
/// Agents that compute at once: they share this machine with the server.
const COMPUTING: usize = 4;

/// One hollow agent.
struct One {
    identity: NodeIdentity,
    wire: Wire,
    seed: u64,
    rates: Rates,
    interval: Option<Duration>,
    /// The configuration and the packed policy.
    policy: Option<(String, bytes::Bytes)>,
    waiting: VecDeque<(String, bytes::Bytes)>,
    runs: u64,
    /// Runs after which it rests.
    most_runs: Option<u64>,
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
    let mut agents = JoinSet::new();
    let computing = Arc::new(Semaphore::new(COMPUTING));
    let together = Arc::new(Barrier::new(usize::try_from(config.count).unwrap_or(1)));
    let pin = Arc::new(server_pin(
        &config.agent.data,
        config.agent.server_certificate.as_deref(),
    )?);
    for number in 0..config.count {
        let mut random = SplitMix::new(config.seed ^ (u64::from(number) << 20));
        let folder = folder_of(&config.agent.data, number);
        let identity = NodeIdentity::open(Path::new(&folder), &[], || drawn_id(&mut random))?;
        let seed = SplitMix::new(config.seed.wrapping_add(number.into())).bits();
        let one = One {
            wire: Wire::new(&config.agent.server, Arc::clone(&pin), &identity, 1)?,
            identity,
            seed,
            rates: config.rates,
            interval: config.agent.interval,
            policy: None,
            waiting: VecDeque::new(),
            runs: 0,
            most_runs: config.runs,
            counters: Arc::clone(&counters),
            agent: counters.silence.agent(number),
            computing: Arc::clone(&computing),
            together: Arc::clone(&together),
            logger: logger.clone(),
        };
        agents.spawn(one.live(number));
        if number % 64 == 0 {
            // Making keys must not keep the first agents from starting.
            tokio::task::yield_now().await;
        }
    }
    shutdown.asked().await;
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
    async fn live(mut self, number: u32) {
        // Started at once, agents would stay in step.
        let mut random = SplitMix::new(self.seed);
        let spread = self
            .interval
            .unwrap_or(Duration::from_secs(1))
            .min(Duration::from_secs(60));
        tokio::time::sleep(spread.mul_f64(random.uniform())).await;
        while let Err(error) = self.enrol(number).await {
            self.problem("enrol", &error);
            tokio::time::sleep(NO_POLICY).await;
        }
        while self.policy.is_none() {
            self.fetch().await;
            if self.policy.is_none() {
                tokio::time::sleep(NO_POLICY).await;
            }
        }
        self.counters.enrolled();
        // Whoever measures a fleet begins when all of it is there.
        self.together.wait().await;
        let first = self.interval.unwrap_or(NO_POLICY);
        let mut wait = first.mul_f64(1.0 + random.uniform());
        while self.most_runs.is_none_or(|most| self.runs < most) || !self.waiting.is_empty() {
            let turn = tokio::time::Instant::now() + wait;
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
            wait = self.interval.unwrap_or(next);
            if !self.agent.is_silent() {
                self.send().await;
            }
        }
    }

    fn problem(&self, doing: &str, error: &dyn std::fmt::Display) {
        let fields = Fields::new()
            .and("node", &self.identity.id)
            .and("doing", doing);
        self.logger.error("problem", error, fields);
        self.counters.add(0, 0, 1);
    }

    async fn enrol(&self, number: u32) -> Result<(), WireError> {
        let now = Timestamp::now();
        let hostname = format!("hollow-{number}.example.org");
        let certificate = &self.identity.pems.certificate;
        let id = &self.identity.id;
        let server = self.wire.server_id().await?;
        let facts = hollow_node(self.seed, id, &hostname, &server, certificate, now);
        let _turn = self.computing.acquire().await;
        let about = || Fields::new().and("node", id);
        self.logger.debug("inventory-sent", about());
        self.wire.inventory(&self.identity, &facts, now).await?;
        self.logger.debug("inventory-acknowledged", about());
        Ok(())
    }

    async fn fetch(&mut self) {
        let known = self.policy.as_ref();
        let known = known.map(|(config_id, _)| config_id.as_str());
        match self.wire.policy(&self.identity.id, known).await {
            Ok(Asked::New(id, packed)) => {
                let fields = Fields::new().and("node", &self.identity.id);
                self.logger.debug("policy-taken", fields.and("config", &id));
                self.policy = Some((id, packed));
            }
            Ok(Asked::Same | Asked::None { .. }) => {}
            Err(error) => self.problem("ask for the policy", &error),
        }
    }

    /// Runs the policy; gives the time to the next run.
    async fn run(&mut self) -> Option<Duration> {
        let (_, packed) = self.policy.as_ref()?;
        if self.most_runs.is_some_and(|most| self.runs >= most) {
            return Some(NO_POLICY);
        }
        let turn = Arc::clone(&self.computing).acquire_owned().await;
        let policy = match policy_of(packed, &self.identity.id) {
            Ok(policy) => policy,
            Err(why) => {
                self.problem("take the policy", &why);
                return None;
            }
        };
        self.runs += 1;
        let hollow = Hollow::new(self.rates, self.seed, self.runs).ok()?;
        let (mut methods, begin) = (Here(hollow), Instant::now());
        let settings = RunSettings::default();
        let outcome = agent::run(&policy, &mut methods, &settings, start_of_run(), || {
            begin.elapsed()
        });
        let made = signed(&outcome, &self.identity);
        drop(turn);
        let calls = outcome.counts.iter().sum();
        let mut dropped = 0;
        match made {
            Err(why) => self.problem("sign the run", &why),
            Ok((name, message)) => {
                if self.waiting.len() >= WAITING {
                    self.waiting.pop_front();
                    dropped = 1;
                }
                self.logger.debug("run-signed", about(&name));
                self.waiting.push_back((name, message.into()));
            }
        }
        self.counters.ran(calls);
        self.counters.add(0, dropped, 0);
        let now = Timestamp::now().as_second();
        Some(Duration::from_secs(policy.schedule.until_next(now)))
    }

    async fn send(&mut self) {
        while let Some((name, message)) = self.waiting.front() {
            let path = format!("/reports/{name}");
            match self.wire.put(&path, message.clone()).await {
                Ok(_) => {
                    self.logger.debug("run-acknowledged", about(name));
                    self.counters.add(1, 0, 0);
                }
                Err(error @ WireError::Refused { .. }) => {
                    self.problem("send a run", &error);
                    self.counters.add(0, 1, 0);
                }
                Err(error) => return self.problem("send a run", &error),
            }
            self.waiting.pop_front();
        }
    }
}

/// The run of a file, for the log.
fn about(name: &str) -> Fields {
    Fields::new().and("run", name.trim_end_matches(".log.gz"))
}
