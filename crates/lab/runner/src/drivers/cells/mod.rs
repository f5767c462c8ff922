//! Tasks and long-running processes, made and counted over the BBS's protocol.

mod callback;
mod desire;
mod follow;
mod lrps;
mod tasks;
mod wire;

use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use diego::models::{
    DesiredLrpLifecycleResponse, TaskLifecycleResponse, UpsertDomainRequest, UpsertDomainResponse,
};
use diego::{Bbs, path};
use lab_experiment::plan::{self, Make};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::pace::paced;
use super::{Counts, Driver, DriverError, Later, Made};
use crate::alarm::Alarm;
use follow::Stream;
use lrps::{LrpBook, Operation, Shape};
use tasks::TaskBook;

/// The domain of everything that this driver makes.
const DOMAIN: &str = "headroom";
/// Kinds of entity.
const TASK: &str = "task";
const LRP: &str = "lrp";
/// Longest wait for the BBS to be of use after it is ready.
const OPEN_WITHIN: Duration = Duration::from_secs(30);
/// Connections beyond those of a make: event streams, lists.
const SPARE_CONNECTIONS: usize = 8;

/// A driver of a BBS.
pub(crate) struct Cells {
    name: String,
    bbs: Bbs,
    names: Names,
    callbacks: String,
    tasks: Arc<Mutex<TaskBook>>,
    lrps: Arc<Mutex<LrpBook>>,
    stop: watch::Sender<bool>,
    work: Vec<JoinHandle<()>>,
}

/// Names of what is made: the same seed gives the same names.
#[derive(Debug, Clone, Copy)]
struct Names {
    seed: u64,
}

impl Names {
    fn task(self, n: u64) -> String {
        format!("task-{}-{n}", self.seed)
    }

    fn lrp(self, n: u64) -> String {
        format!("lrp-{}-{n}", self.seed)
    }

    fn task_number(self, guid: &str) -> Option<u64> {
        self.number(guid.strip_prefix("task-")?)
    }

    fn lrp_number(self, guid: &str) -> Option<u64> {
        self.number(guid.strip_prefix("lrp-")?)
    }

    fn number(self, rest: &str) -> Option<u64> {
        let (seed, n) = rest.split_once('-')?;
        (seed.parse() == Ok(self.seed)).then(|| n.parse().ok())?
    }
}

fn lock<T>(book: &Mutex<T>) -> MutexGuard<'_, T> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the BBS is reached, and how it reaches us.
pub(super) struct Connection {
    /// Its address, for instance `http://127.0.0.1:8889`.
    pub(super) bbs: String,
    /// For an `https` address.
    pub(super) tls: Option<net::tls::Files>,
    /// Our address for the results of tasks.
    pub(super) reach_at: IpAddr,
    /// Most requests under way at once.
    pub(super) in_flight: u32,
}

impl Cells {
    /// Announces the domain, listens for callbacks, and subscribes to the event
    /// streams that the plan's entities need, before anything is made.
    pub(super) async fn connect(
        driver: &plan::Driver,
        connection: Connection,
        seed: u64,
        alarm: &Alarm,
    ) -> Result<Self, DriverError> {
        let fail = |cause: &dyn std::fmt::Display| DriverError::new(&driver.name, cause);
        let tls = connection.tls.as_ref().map(net::tls::client);
        let client = net::Client::new(net::ClientOptions {
            connections_per_host: connection.in_flight as usize + SPARE_CONNECTIONS,
            tls: tls.transpose().map_err(|error| fail(&error))?,
            ..net::ClientOptions::default()
        });
        let bbs = Bbs::new(client, connection.bbs);
        let names = Names { seed };
        // Lists of a fresh domain may be trusted: extra instances are removed.
        let domain = UpsertDomainRequest {
            domain: DOMAIN.to_owned(),
            ttl: 0,
        };
        until_served(|| bbs.call::<UpsertDomainResponse>(path::UPSERT_DOMAIN, &domain))
            .await
            .map_err(|error| fail(&error))?;

        let (stop, stopped) = watch::channel(false);
        let tasks = Arc::new(Mutex::new(TaskBook::default()));
        let lrps = Arc::new(Mutex::new(LrpBook::default()));
        let (callbacks, listening) =
            callback::listen(connection.reach_at, names, Arc::clone(&tasks), stopped)
                .await
                .map_err(|error| fail(&error))?;
        let mut work = vec![listening];
        if driver.entities.contains_key(TASK) {
            let stream = follow::Tasks::new(bbs.clone(), names, Arc::clone(&tasks));
            work.push(follow(driver, stream, alarm).await?);
        }
        if driver.entities.contains_key(LRP) {
            let stream = follow::Lrps::new(bbs.clone(), names, Arc::clone(&lrps));
            work.push(follow(driver, stream, alarm).await?);
        }
        Ok(Self {
            name: driver.name.clone(),
            bbs,
            names,
            callbacks,
            tasks,
            lrps,
            stop,
            work,
        })
    }

    async fn make_tasks(&self, make: &Make) -> Result<Made, String> {
        let template = Arc::new(desire::task(make, &self.callbacks)?);
        let first = lock(&self.tasks).reserve(make.count);
        let made = paced(make.count, make.rate, make.in_flight, |n| {
            let (bbs, tasks, names) = (self.bbs.clone(), Arc::clone(&self.tasks), self.names);
            let template = Arc::clone(&template);
            async move {
                let n = first + n;
                let request = template.request(names.task(n));
                bbs.call::<TaskLifecycleResponse>(path::DESIRE_TASK, &request)
                    .await
                    .map_err(|error| error.to_string())?;
                lock(&tasks).accepted(n);
                Ok(())
            }
        });
        Ok(made.await)
    }

    async fn make_lrps(&self, make: &Make) -> Result<Made, String> {
        let shape = make.shape.as_deref().map(Shape::parse).transpose()?;
        let template = Arc::new(desire::lrp(make)?);
        let operations = Arc::new(lock(&self.lrps).operations(make.count, shape)?);
        let count = operations.len() as u64;
        let made = paced(count, make.rate, make.in_flight, |n| {
            let (bbs, lrps, names) = (self.bbs.clone(), Arc::clone(&self.lrps), self.names);
            let (template, operations) = (Arc::clone(&template), Arc::clone(&operations));
            async move {
                let Some(operation) = operations.get(n as usize).copied() else {
                    return Ok(());
                };
                let guid = names.lrp(operation.lrp());
                let answer: Result<DesiredLrpLifecycleResponse, _> = match operation {
                    Operation::Desire { instances, .. } => {
                        bbs.call(path::DESIRE_LRP, &template.desire(guid, instances))
                            .await
                    }
                    Operation::Update { instances, .. } => {
                        bbs.call(path::UPDATE_DESIRED_LRP, &desire::update(guid, instances))
                            .await
                    }
                    Operation::Remove { .. } => {
                        bbs.call(path::REMOVE_DESIRED_LRP, &desire::remove(guid))
                            .await
                    }
                };
                answer.map_err(|error| error.to_string())?;
                lock(&lrps).accepted(operation);
                Ok(())
            }
        });
        Ok(made.await)
    }
}

impl Driver for Cells {
    fn make<'a>(&'a self, make: &'a Make) -> Later<'a, Result<Made, DriverError>> {
        Box::pin(async move {
            let made = match make.what.as_str() {
                TASK => self.make_tasks(make).await,
                LRP => self.make_lrps(make).await,
                other => Err(format!("it makes task and lrp, not {other:?}")),
            };
            made.map_err(|cause| DriverError::new(&self.name, cause))
        })
    }

    fn counts(&self, into: &mut Counts) {
        let mut add = |what: &str, counts: Vec<(&'static str, u64)>| {
            into.extend(
                counts
                    .into_iter()
                    .map(|(state, count)| ((what.to_owned(), state.to_owned()), count)),
            );
        };
        add(TASK, lock(&self.tasks).counts());
        add(LRP, lock(&self.lrps).counts());
    }

    fn close(self: Box<Self>) -> Later<'static, ()> {
        Box::pin(async move {
            let _ = self.stop.send(true);
            for work in self.work {
                work.abort();
                let _ = work.await;
            }
        })
    }
}

async fn follow<S: Stream>(
    driver: &plan::Driver,
    stream: S,
    alarm: &Alarm,
) -> Result<JoinHandle<()>, DriverError> {
    let subscription = until_served(|| stream.subscribe())
        .await
        .map_err(|error| DriverError::new(&driver.name, error))?;
    let (name, alarm) = (driver.name.clone(), alarm.clone());
    Ok(tokio::spawn(net::boxed(async move {
        let lost = follow::follow(&stream, subscription).await;
        alarm.broken(DriverError::new(&name, lost));
    })))
}

/// Calls until an answer comes: a BBS may accept connections before it serves.
async fn until_served<T, R>(call: impl Fn() -> R) -> Result<T, diego::CallError>
where
    R: Future<Output = Result<T, diego::CallError>>,
{
    let deadline = tokio::time::Instant::now() + OPEN_WITHIN;
    loop {
        match call().await {
            Err(diego::CallError::Refused { path, error }) => {
                return Err(diego::CallError::Refused { path, error });
            }
            Err(error) if tokio::time::Instant::now() >= deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            Ok(answer) => return Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests;
