//! An executor that runs nothing: delays pass and failures happen as told.

use std::sync::Arc;
use std::time::Duration;

use net::Shutdown;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use super::super::config::Simulation;
use super::super::container::Completion;
use super::super::distribution::Distribution;
use super::super::steps::{Health, Plan, Sign, go_duration};
use super::{Definition, End, Executor, Job};

/// Draws every delay and failure from the seed and the container's key, so that
/// they do not depend on the order in which containers start.
pub(in crate::rep) struct Simulated {
    settings: Simulation,
    seed: u64,
}

/// What is drawn; each has its own stream of random numbers.
#[derive(Clone, Copy)]
enum Draw {
    Create = 1,
    Start,
    Run,
    Stop,
    FailCreate,
    FailRun,
    Check,
    Ready,
    FailCheck,
}

impl Simulated {
    pub(in crate::rep) fn new(settings: Simulation, seed: u64) -> Self {
        Self { settings, seed }
    }

    fn rng(&self, job: &Job, draw: Draw) -> StdRng {
        // FNV-1a: any fixed hash will do, and this one is the same in every build.
        let start = 0xcbf2_9ce4_8422_2325_u64 ^ self.seed;
        let bytes = job.key.bytes().chain([draw as u8]);
        let hash = bytes.fold(start, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        StdRng::seed_from_u64(hash)
    }

    fn delay(&self, law: Distribution, job: &Job, draw: Draw) -> Duration {
        match law {
            Distribution::Fixed(delay) => delay,
            law => law.draw(&mut self.rng(job, draw)),
        }
    }

    /// An instance whose process has started. It ends, with the reason, when its checks never
    /// pass.
    async fn instance(&self, job: &Job, plan: &Plan<'_>, signs: &impl Fn(Sign)) -> String {
        if plan.readiness.is_some() {
            signs(Sign::Routable(false));
        }
        if plan.health != Health::Unchecked {
            if self.fails(self.settings.fail_check, job, Draw::FailCheck) {
                if plan.start_within.is_zero() {
                    return std::future::pending().await;
                }
                pass(plan.start_within).await;
                let after = go_duration(plan.start_within);
                return format!("Instance never healthy after {after}: simulated failure");
            }
            pass(self.delay(self.settings.check, job, Draw::Check)).await;
        }
        signs(Sign::Running);
        if plan.readiness.is_some() {
            pass(self.delay(self.settings.check, job, Draw::Ready)).await;
            signs(Sign::Routable(true));
        }
        std::future::pending().await
    }

    fn fails(&self, rate: f64, job: &Job, draw: Draw) -> bool {
        rate > 0.0 && self.rng(job, draw).random::<f64>() < rate
    }
}

/// Sleeps; no time at all does not even yield.
async fn pass(delay: Duration) {
    if !delay.is_zero() {
        sleep(delay).await;
    }
}

impl Executor for Simulated {
    async fn create(&self, job: Arc<Job>) -> Result<(), String> {
        pass(self.delay(self.settings.create, &job, Draw::Create)).await;
        if self.fails(self.settings.fail_create, &job, Draw::FailCreate) {
            return Err("failed to create container: simulated failure".into());
        }
        Ok(())
    }

    async fn run(
        &self,
        job: Arc<Job>,
        signs: impl Fn(Sign) + Send + Sync,
        mut stop: Shutdown,
    ) -> End {
        let process = async {
            pass(self.delay(self.settings.start, &job, Draw::Start)).await;
            match &job.definition {
                Definition::Task(_) => {
                    signs(Sign::Running);
                    pass(self.delay(self.settings.run, &job, Draw::Run)).await;
                    String::new()
                }
                Definition::Lrp(desired, _) => {
                    self.instance(&job, &Plan::of(desired), &signs).await
                }
            }
        };
        let unhealthy = tokio::select! {
            reason = process => reason,
            () = stop.requested() => {
                pass(self.delay(self.settings.stop, &job, Draw::Stop)).await;
                return End { exit_status: Some(143), ..End::default() };
            }
        };
        if !unhealthy.is_empty() {
            pass(self.delay(self.settings.stop, &job, Draw::Stop)).await;
            return End {
                completion: Completion::failed(unhealthy),
                exit_status: Some(143),
            };
        }
        if self.fails(self.settings.fail_run, &job, Draw::FailRun) {
            let reason = format!("{}: Exited with status 1", job.log_source());
            return End {
                completion: Completion::failed(reason),
                exit_status: Some(1),
            };
        }
        End {
            exit_status: Some(0),
            ..End::default()
        }
    }

    fn forget(&self, _: &Job) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use diego::models::{Check, CheckDefinition, DesiredLrp, TcpCheck};
    use tokio::time::Instant;

    use super::super::Definition;
    use super::*;

    fn task(key: &str) -> Arc<Job> {
        Arc::new(Job {
            cell: 0,
            guid: key.into(),
            key: key.into(),
            address: String::new(),
            ports: Vec::new(),
            network: None,
            definition: Definition::Task(Box::default()),
        })
    }

    fn settings() -> Simulation {
        Simulation {
            create: Distribution::Fixed(Duration::from_secs(2)),
            start: Distribution::Fixed(Duration::from_secs(3)),
            run: "uniform 10s 20s".parse().unwrap(),
            stop: Distribution::Fixed(Duration::from_secs(1)),
            fail_create: 0.3,
            fail_run: 0.0,
            ..Simulation::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn delays_pass_on_the_clock() {
        let executor = Simulated::new(
            Simulation {
                fail_create: 0.0,
                ..settings()
            },
            1,
        );
        let began = Instant::now();
        executor.create(task("a")).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 2);
        let (_ask, stop) = net::shutdown();
        let started = Mutex::new(None);
        let end = executor
            .run(
                task("a"),
                |_| *started.lock().unwrap() = Some(began.elapsed()),
                stop,
            )
            .await;
        assert_eq!(
            started.into_inner().unwrap().map(|at| at.as_secs()),
            Some(5)
        );
        assert!(
            (15..=25).contains(&began.elapsed().as_secs()),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(
            end,
            End {
                exit_status: Some(0),
                ..End::default()
            }
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_the_process_after_its_delay() {
        let executor = Simulated::new(settings(), 1);
        let (ask, stop) = net::shutdown();
        let began = Instant::now();
        let (end, ()) = tokio::join!(executor.run(task("a"), |_| (), stop), async {
            sleep(Duration::from_secs(4)).await;
            ask.send(true).unwrap();
        });
        assert_eq!(began.elapsed().as_secs(), 5);
        assert_eq!(end.exit_status, Some(143));
    }

    #[tokio::test(start_paused = true)]
    async fn the_seed_decides_who_fails() {
        let failures = async |seed| {
            let executor = Simulated::new(settings(), seed);
            let mut failed = Vec::new();
            for n in 0..200 {
                failed.push(executor.create(task(&format!("t-{n}"))).await.is_err());
            }
            failed
        };
        let first = failures(1).await;
        assert_eq!(first, failures(1).await);
        assert_ne!(first, failures(2).await);
        let count = first.iter().filter(|failed| **failed).count();
        assert!((40..80).contains(&count), "{count} of 200 at a rate of 0.3");
    }

    fn checked(start_timeout_ms: i64) -> Arc<Job> {
        let check = || Check {
            tcp_check: Some(TcpCheck {
                port: 1,
                ..TcpCheck::default()
            }),
            http_check: None,
        };
        let desired = DesiredLrp {
            check_definition: Some(CheckDefinition {
                checks: vec![check()],
                readiness_checks: vec![check()],
                ..CheckDefinition::default()
            }),
            start_timeout_ms,
            ..DesiredLrp::default()
        };
        let mut job = Arc::unwrap_or_clone(task("a"));
        job.definition = Definition::Lrp(Arc::new(desired), 0);
        Arc::new(job)
    }

    #[tokio::test(start_paused = true)]
    async fn checks_pass_after_their_delay_or_never() {
        let mut settings = Simulation {
            check: Distribution::Fixed(Duration::from_secs(7)),
            ..settings()
        };
        let began = Instant::now();
        let signs = Mutex::new(Vec::new());
        let tell = |sign| {
            signs
                .lock()
                .unwrap()
                .push((began.elapsed().as_secs(), sign))
        };
        let (ask, stop) = net::shutdown();
        let executor = Simulated::new(settings, 1);
        tokio::join!(executor.run(checked(0), tell, stop), async {
            sleep(Duration::from_secs(30)).await;
            ask.send(true).unwrap();
        });
        let expected = [
            (3, Sign::Routable(false)),
            (10, Sign::Running),
            (17, Sign::Routable(true)),
        ];
        assert_eq!(*signs.lock().unwrap(), expected);

        settings.fail_check = 1.0;
        let (_never, stop) = net::shutdown();
        let executor = Simulated::new(settings, 1);
        let end = executor.run(checked(60_000), |_| (), stop).await;
        let reason = "Instance never healthy after 1m0s: simulated failure";
        assert_eq!(
            (end.completion.failed, &*end.completion.reason),
            (true, reason)
        );
    }
}
