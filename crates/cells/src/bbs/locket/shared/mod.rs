//! Keys that several servers share in one database. None of them remembers anything: who holds
//! what is what the database says, whose rows are changed under conditions that it judges itself.
//!
//! Calls that change something gather while a statement is under way, and go together in the next.
//! Each may be done twice without harm, so one whose answer was lost is done again.

mod connection;
mod tables;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use commit::StoreError;
use commit::postgres::PostgresSettings;
use diego::locket::{FetchAllRequest, LockRequest, ReleaseRequest, Resource};
use futures_util::future::join_all;
use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::bbs::presence::{
    COLLISION, KEYS, NO_RESOURCE, NOT_FOUND, Refusal, TOO_MANY, checked, wanted_type,
};
use connection::Connection;
use tables::KeyRequest;

/// Time between two renewals of the pulse.
const BEAT: Duration = Duration::from_secs(1);
/// Calls that may wait; further callers wait to be let in.
const QUEUE: usize = 4096;
/// Most calls in one flight.
const BATCH: usize = 512;
/// Longest that calls are tried again while the database is away.
const TRIED_FOR: Duration = Duration::from_secs(5);
/// Time between two attempts.
const AGAIN: Duration = Duration::from_millis(100);
/// Longest that a caller waits.
const WITHIN: Duration = Duration::from_secs(15);

/// The call took place, or did not; it may be made again.
const AWAY: Refusal = Refusal {
    code: 14,
    text: "database-unavailable",
};

/// The way to the keys.
#[derive(Clone)]
pub(super) struct Shared {
    asks: mpsc::Sender<Ask>,
    reader: Arc<Connection>,
    logger: Logger,
}

/// A change that somebody waits for.
struct Ask {
    change: Change,
    answer: oneshot::Sender<Result<(), Refusal>>,
}

enum Change {
    Lock(KeyRequest),
    Release(Resource),
}

impl Ask {
    fn key(&self) -> &str {
        match &self.change {
            Change::Lock(wanted) => &wanted.resource.key,
            Change::Release(resource) => &resource.key,
        }
    }

    fn answer(self, answer: Result<(), Refusal>) {
        // Who asked may have gone away.
        let _ = self.answer.send(answer);
    }
}

impl Shared {
    /// Connects to the database; what is returned beside works until nobody is left who could ask.
    pub(super) async fn open(
        settings: PostgresSettings,
        logger: &Logger,
    ) -> Result<(Self, net::BoxFuture<()>), StoreError> {
        let logger = logger.session("database");
        let writer = Connection::open(settings.clone()).await?;
        let reader = Arc::new(Connection::open(settings).await?);
        let (asks, waiting) = mpsc::channel(QUEUE);
        let writer = Writer {
            connection: writer,
            full: false,
            away: false,
            logger: logger.clone(),
        };
        // What had expired while nobody was there has its time anew before anybody is served.
        writer.connection.execute(tables::BEAT).await?;
        let shared = Self {
            asks,
            reader,
            logger,
        };
        Ok((shared, net::boxed(writer.run(waiting))))
    }

    pub(super) async fn lock(&self, request: LockRequest) -> Result<(), Refusal> {
        let (resource, ttl) = checked(request)?;
        self.submit(Change::Lock(KeyRequest { resource, ttl }))
            .await
    }

    pub(super) async fn release(&self, request: ReleaseRequest) -> Result<(), Refusal> {
        let resource = request.resource.ok_or(NO_RESOURCE)?;
        self.submit(Change::Release(resource)).await
    }

    async fn submit(&self, change: Change) -> Result<(), Refusal> {
        let (answer, wait) = oneshot::channel();
        let asked = async {
            self.asks.send(Ask { change, answer }).await.ok()?;
            wait.await.ok()
        };
        let answered = timeout(WITHIN, asked).await.ok().flatten();
        answered.unwrap_or(Err(AWAY))
    }

    pub(super) async fn fetch(&self, key: &str) -> Result<Resource, Refusal> {
        let found = self.read(&tables::fetch(key)).await?;
        found.into_iter().next().ok_or(NOT_FOUND)
    }

    pub(super) async fn fetch_all(
        &self,
        request: &FetchAllRequest,
    ) -> Result<Vec<Resource>, Refusal> {
        let code = wanted_type(request)?;
        self.read(&tables::fetch_all(code)).await
    }

    async fn read(
        &self,
        statement: &commit::postgres::Statement<'_>,
    ) -> Result<Vec<Resource>, Refusal> {
        let until = Instant::now() + TRIED_FOR;
        loop {
            let error = match self.reader.query(statement).await {
                Ok(rows) => return Ok(rows.iter().filter_map(tables::resource).collect()),
                Err(error) => error,
            };
            if Instant::now() >= until {
                self.logger.error("read-failed", &error, Fields::new());
                return Err(AWAY);
            }
            sleep(AGAIN).await;
        }
    }
}

/// What makes changes, and the pulse.
struct Writer {
    connection: Connection,
    /// No more keys fit.
    full: bool,
    /// The last statement failed, and that was told.
    away: bool,
    logger: Logger,
}

impl Writer {
    async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut later = VecDeque::new();
        loop {
            tokio::select! {
                // First, so that no load keeps the pulse from being renewed.
                biased;
                _ = beat.tick() => {
                    self.heartbeat().await;
                    continue;
                }
                () = std::future::ready(()), if !later.is_empty() => {}
                ask = asks.recv() => match ask {
                    Some(ask) => later.push_back(ask),
                    None => return,
                },
            }
            let batch = gather(&mut later, &mut asks);
            self.change(batch).await;
        }
    }

    /// Renews the pulse, and forgets what has expired.
    async fn heartbeat(&mut self) {
        match self.pulse().await {
            Ok(count) => {
                self.there();
                self.full = count >= KEYS as i64;
            }
            Err(error) => self.failed(&error),
        }
    }

    /// How many keys there are, once those that have expired are told of and gone.
    async fn pulse(&self) -> Result<i64, StoreError> {
        self.connection.execute(tables::BEAT).await?;
        for row in self.connection.query(&tables::sweep()).await? {
            let [key, owner] = [0, 1].map(|column| tables::text(&row, column));
            let fields = Fields::new().and("key", key).and("owner", owner);
            self.logger.info("expired", fields);
        }
        let counted = self.connection.query(&tables::count()).await?;
        let count = counted.first().and_then(|row| row.try_get(0).ok());
        Ok(count.unwrap_or(0))
    }

    fn there(&mut self) {
        if std::mem::take(&mut self.away) {
            self.logger.info("database-found-again", Fields::new());
        }
    }

    fn failed(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.away, true) {
            self.logger.error("database-lost", error, Fields::new());
        }
    }

    /// Makes changes of which no two are of one key.
    async fn change(&mut self, batch: Vec<Ask>) {
        let mut locks = Vec::new();
        let mut releases = Vec::new();
        for ask in batch {
            match ask.change {
                Change::Lock(_) => locks.push(ask),
                Change::Release(_) => releases.push(ask),
            }
        }
        locks.sort_unstable_by(|left, right| left.key().cmp(right.key()));
        let until = Instant::now() + TRIED_FOR;
        let taken = self.until(until, &locks).await;
        for (ask, answer) in locks.into_iter().zip(taken) {
            ask.answer(answer);
        }
        let gone = self.until(until, &releases).await;
        for (ask, answer) in releases.into_iter().zip(gone) {
            ask.answer(answer);
        }
    }

    /// Makes changes of one kind, again and again while the database is away.
    async fn until(&mut self, until: Instant, asks: &[Ask]) -> Vec<Result<(), Refusal>> {
        let Some(first) = asks.first() else {
            return Vec::new();
        };
        loop {
            let done = match first.change {
                Change::Lock(_) => self.lock(asks).await,
                Change::Release(_) => self.release(asks).await,
            };
            match done {
                Ok(answers) => {
                    self.there();
                    return answers;
                }
                Err(error) => self.failed(&error),
            }
            if Instant::now() >= until {
                return asks.iter().map(|_| Err(AWAY)).collect();
            }
            sleep(AGAIN).await;
        }
    }

    async fn lock(&self, asks: &[Ask]) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let wanted = asks.iter().filter_map(|ask| match &ask.change {
            Change::Lock(wanted) => Some(wanted),
            Change::Release(_) => None,
        });
        let wanted: Vec<&KeyRequest> = wanted.collect();
        let lock = tables::lock(&wanted, self.full);
        let rows = self.connection.query(&lock).await?;
        let taken = rows.iter().filter_map(|row| tables::text(row, 0));
        let taken: HashSet<String> = taken.collect();
        let mut answers = Vec::new();
        for wanted in wanted {
            let key = &wanted.resource.key;
            answers.push(if taken.contains(key) {
                Ok(())
            } else if self.full && self.connection.query(&tables::fetch(key)).await?.is_empty() {
                Err(TOO_MANY)
            } else {
                Err(COLLISION)
            });
        }
        Ok(answers)
    }

    async fn release(&self, asks: &[Ask]) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let releasing = asks.iter().map(|ask| async move {
            let Change::Release(resource) = &ask.change else {
                return Ok(Ok(()));
            };
            let release = tables::release(&resource.key, &resource.owner);
            let held = self.connection.query(&release).await?;
            Ok::<_, StoreError>(if held.is_empty() {
                Ok(())
            } else {
                Err(COLLISION)
            })
        });
        let releasing: Vec<_> = releasing.collect();
        join_all(releasing).await.into_iter().collect()
    }
}

/// The next changes, of each key one: those that follow on the same key stay for later.
fn gather(later: &mut VecDeque<Ask>, asks: &mut mpsc::Receiver<Ask>) -> Vec<Ask> {
    let (mut now, mut left) = (Vec::new(), VecDeque::new());
    let mut keys = HashSet::new();
    while now.len() < BATCH
        && left.len() < QUEUE
        && let Some(ask) = later.pop_front().or_else(|| asks.try_recv().ok())
    {
        if keys.insert(ask.key().to_owned()) {
            now.push(ask);
        } else {
            left.push_back(ask);
        }
    }
    left.append(later);
    *later = left;
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(key: &str, owner: &str) -> Ask {
        let resource = Resource {
            key: key.into(),
            owner: owner.into(),
            ..Resource::default()
        };
        let change = Change::Release(resource);
        let (answer, _) = oneshot::channel();
        Ask { change, answer }
    }

    fn owners(asks: &[Ask]) -> Vec<&str> {
        let owners = asks.iter().map(|ask| match &ask.change {
            Change::Release(resource) => &*resource.owner,
            Change::Lock(wanted) => &*wanted.resource.owner,
        });
        owners.collect()
    }

    #[test]
    fn changes_of_one_key_keep_their_order_and_hold_no_others_up() {
        let (send, mut asks) = mpsc::channel(16);
        for (key, owner) in [("a", "1"), ("a", "2"), ("b", "3"), ("a", "4"), ("b", "5")] {
            assert!(send.try_send(ask(key, owner)).is_ok());
        }
        let mut later = VecDeque::new();
        assert_eq!(owners(&gather(&mut later, &mut asks)), ["1", "3"]);
        assert!(send.try_send(ask("c", "6")).is_ok());
        assert_eq!(owners(&gather(&mut later, &mut asks)), ["2", "5", "6"]);
        assert_eq!(owners(&gather(&mut later, &mut asks)), ["4"]);
        assert!(later.is_empty());
    }
}
