//! Drives a BBS for the laboratory: makes tasks and long-running processes, and counts them
//! over the BBS's own protocol.
//!
//! A program of its own that speaks the protocol of `docs/drivers.md`, as everybody's driver
//! does, so that the laboratory knows of no system.

mod callback;
mod desire;
mod follow;
mod lrps;
mod pace;
mod protocol;
mod tasks;
mod wire;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diego::models::{
    DesiredLrpLifecycleResponse, TaskLifecycleResponse, UpsertDomainRequest, UpsertDomainResponse,
};
use diego::{Bbs, path};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::mutex::lock;
use follow::Stream;
use lrps::{LrpBook, Operation, Shape};
use pace::paced;
use protocol::{Counts, Hello, Line, Make, MakeOutcome, PROTOCOL, Request};
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
/// Time between two looks at the counts. Those that changed are told.
const COUNTED_EVERY: Duration = Duration::from_millis(20);
/// They are told as a sign of life, too.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// What is made, with the states that are counted, in order of a life.
pub const ENTITIES: [(&str, &[&str]); 2] = [(TASK, &tasks::STATES), (LRP, &lrps::STATES)];

/// Does what `input` asks for, and tells it to `output`, until it is told to close.
///
/// # Errors
/// When either cannot be read or written, or a line is none of the protocol's.
pub async fn run(input: impl AsyncBufRead, output: impl AsyncWrite) -> io::Result<()> {
    let (input, mut output) = (pin!(input), pin!(output));
    let mut lines = input.lines();
    let hello = match request(&mut lines).await? {
        Some(Request::Hello(hello)) => hello,
        Some(_) => return Err(io::Error::other("the first line is no greeting")),
        None => return Ok(()),
    };
    let (lost, mut losses) = mpsc::channel(1);
    let driver = match Driver::open(hello, lost).await {
        Ok(driver) => driver,
        Err(error) => {
            return write_line(
                &mut output,
                &Line::Refused {
                    ok: false,
                    error: &error,
                },
            )
            .await;
        }
    };
    let entities = ENTITIES.into_iter().collect();
    write_line(&mut output, &Line::Greeted { ok: true, entities }).await?;
    let told = CountsReporter {
        counts: Counts::new(),
        at: Instant::now(),
    };
    let ended = serve(&driver, &mut lines, &mut output, &mut losses, told).await;
    driver.close().await;
    ended
}

/// Reports counts: what was reported last, and when.
struct CountsReporter {
    counts: Counts,
    at: Instant,
}

async fn serve<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
    driver: &Driver,
    lines: &mut tokio::io::Lines<R>,
    output: &mut W,
    losses: &mut mpsc::Receiver<String>,
    mut told: CountsReporter,
) -> io::Result<()> {
    let mut ticks = tokio::time::interval(COUNTED_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // One make at a time, as the protocol says.
    let mut making = pin!(None);
    loop {
        tokio::select! {
            asked = request(lines) => match asked? {
                Some(Request::Make(make)) => making.set(Some(async move {
                    (make.id, driver.make(&make).await)
                })),
                Some(Request::Hello(_)) => return Err(io::Error::other("a second greeting")),
                Some(Request::Close) | None => return Ok(()),
            },
            (id, made) = made(making.as_mut()) => {
                making.set(None);
                // Whoever hears of the answer knows what it has led to so far.
                told.report(driver.counts(), output).await?;
                let line = match &made {
                    Ok(made) => Line::Made {
                        id,
                        done: true,
                        made: made.accepted,
                        failed: made.refused,
                        errors: &made.errors,
                    },
                    Err(error) => Line::CannotMake { id, error },
                };
                write_line(output, &line).await?;
            }
            Some(error) = losses.recv() => {
                return write_line(output, &Line::Lost { error: &error }).await;
            }
            _ = ticks.tick() => {
                let counts = driver.counts();
                if counts != told.counts || told.at.elapsed() >= TOLD_EVERY {
                    told.report(counts, output).await?;
                }
            }
        }
    }
}

impl CountsReporter {
    async fn report(
        &mut self,
        counts: Counts,
        output: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        (self.counts, self.at) = (counts, Instant::now());
        write_line(
            output,
            &Line::Counts {
                counts: &self.counts,
            },
        )
        .await
    }
}

/// The end of the make that is under way; without one, nothing.
async fn made<F: Future>(making: std::pin::Pin<&mut Option<F>>) -> F::Output {
    match making.as_pin_mut() {
        Some(making) => making.await,
        None => std::future::pending().await,
    }
}

async fn request<R: AsyncBufRead + Unpin>(
    lines: &mut tokio::io::Lines<R>,
) -> io::Result<Option<Request>> {
    let Some(line) = lines.next_line().await? else {
        return Ok(None);
    };
    let wrong = |error| io::Error::other(format!("{line:?} is no request: {error}"));
    serde_json::from_str(&line).map(Some).map_err(wrong)
}

async fn write_line(output: &mut (impl AsyncWrite + Unpin), line: &Line<'_>) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    output.write_all(&bytes).await?;
    output.flush().await
}

/// A driver of a BBS.
struct Driver {
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

impl Driver {
    /// Announces the domain, listens for callbacks, and subscribes to the event streams,
    /// before anything is made. What cannot be counted any more is told to `lost`.
    async fn open(hello: Hello, lost: mpsc::Sender<String>) -> Result<Self, String> {
        if hello.protocol != PROTOCOL {
            let asked = hello.protocol;
            return Err(format!(
                "it speaks version {PROTOCOL} of the protocol, not {asked}"
            ));
        }
        let address = hello
            .talk_to
            .ok_or("it needs `talk_to`, the name of the system that is a BBS")?;
        let files = hello.tls.map(|files| net::tls::Files {
            certificate: files.certificate,
            key: files.key,
            authority: files.authority,
        });
        let tls = files.as_ref().map(net::tls::client).transpose();
        let client = net::Client::new(net::ClientOptions {
            connections_per_host: hello.in_flight as usize + SPARE_CONNECTIONS,
            tls: tls.map_err(|error| error.to_string())?,
            ..net::ClientOptions::default()
        });
        let reach_at = hello.reach_at.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let bbs = Bbs::new(client, address);
        let names = Names { seed: hello.seed };
        // Lists of a fresh domain may be trusted: extra instances are removed.
        let domain = UpsertDomainRequest {
            domain: DOMAIN.to_owned(),
            ttl: 0,
        };
        until_served(|| bbs.call::<UpsertDomainResponse>(path::UPSERT_DOMAIN, &domain)).await?;

        let (stop, stopped) = watch::channel(false);
        let tasks = Arc::new(Mutex::new(TaskBook::default()));
        let lrps = Arc::new(Mutex::new(LrpBook::default()));
        let (callbacks, listening) = callback::listen(reach_at, names, Arc::clone(&tasks), stopped)
            .await
            .map_err(|error| format!("listen for results of tasks at {reach_at}: {error}"))?;
        let of_tasks = follow::Tasks::new(bbs.clone(), names, Arc::clone(&tasks));
        let of_lrps = follow::Lrps::new(bbs.clone(), names, Arc::clone(&lrps));
        let work = vec![
            listening,
            follow(of_tasks, lost.clone()).await?,
            follow(of_lrps, lost).await?,
        ];
        Ok(Self {
            bbs,
            names,
            callbacks,
            tasks,
            lrps,
            stop,
            work,
        })
    }

    /// Brings entities about; returns when every request was answered.
    async fn make(&self, make: &Make) -> Result<MakeOutcome, String> {
        match make.what.as_str() {
            TASK => self.make_tasks(make).await,
            LRP => self.make_lrps(make).await,
            other => Err(format!("it makes task and lrp, not {other:?}")),
        }
    }

    /// What is counted now.
    fn counts(&self) -> Counts {
        let counted = [lock(&self.tasks).counts(), lock(&self.lrps).counts()];
        let kinds = ENTITIES.into_iter().zip(counted);
        kinds
            .map(|((what, states), counts)| {
                let count = |state: &&'static str| {
                    let found = counts.iter().find(|(known, _)| known == state);
                    (*state, found.map(|(_, count)| *count))
                };
                (what, states.iter().map(count).collect())
            })
            .collect()
    }

    async fn close(self) {
        // Nobody listens only when the work has ended.
        let _ = self.stop.send(true);
        for work in self.work {
            work.abort();
            let _ = work.await;
        }
    }

    async fn make_tasks(&self, make: &Make) -> Result<MakeOutcome, String> {
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

    async fn make_lrps(&self, make: &Make) -> Result<MakeOutcome, String> {
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

async fn follow<S: Stream>(
    stream: S,
    lost: mpsc::Sender<String>,
) -> Result<JoinHandle<()>, String> {
    let subscription = until_served(|| stream.subscribe()).await?;
    Ok(tokio::spawn(net::boxed(async move {
        let why = follow::follow(&stream, subscription).await;
        // Another stream was lost before it.
        let _ = lost.try_send(why);
    })))
}

/// Calls until an answer comes: a BBS may accept connections before it serves.
async fn until_served<T, R>(call: impl Fn() -> R) -> Result<T, String>
where
    R: Future<Output = Result<T, diego::CallError>>,
{
    let deadline = Instant::now() + OPEN_WITHIN;
    loop {
        match call().await {
            Err(error @ diego::CallError::Refused { .. }) => return Err(error.to_string()),
            Err(error) if Instant::now() >= deadline => return Err(error.to_string()),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            Ok(answer) => return Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests;
