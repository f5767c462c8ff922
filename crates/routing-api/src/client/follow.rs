//! Follows everything of a kind: a whole list first, then changes, and a whole list again
//! after each interruption and now and then.

use std::time::Duration;

use telemetry::{Fields, Logger};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{ApiClient, ClientError, Event, Events, Kind};

/// Attempts to subscribe before a pause.
const ATTEMPTS: u32 = 3;

/// What a follower is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Update<T> {
    /// All there is; what happened meanwhile comes behind it.
    Full(Vec<T>),
    /// A row was written.
    Upsert(T),
    /// A row is gone.
    Delete(T),
}

/// How to follow.
#[derive(Debug, Clone)]
pub struct FollowSettings {
    /// Time between two whole lists while events arrive, too.
    pub full_every: Duration,
    /// Pause after three attempts that failed.
    pub pause: Duration,
}

impl Default for FollowSettings {
    fn default() -> Self {
        Self {
            full_every: Duration::from_secs(60),
            pause: Duration::from_secs(1),
        }
    }
}

/// Follows until nobody takes updates any more; drop the future to stop earlier.
///
/// Updates are in order: subscribing comes before listing, so that nothing falls between,
/// and events from before the list are told again behind it, with modification tags that
/// tell them apart. A receiver that is slow makes the server end the stream, which then
/// begins anew with a whole list. While the server cannot list, nothing is told: whoever
/// follows keeps what it knows.
pub async fn follow<T: Kind>(
    client: &ApiClient,
    settings: &FollowSettings,
    updates: &mpsc::Sender<Update<T>>,
    logger: &Logger,
) {
    let mut next_full = Instant::now();
    let mut told = false;
    while !updates.is_closed() {
        let mut events = match subscribe(client).await {
            Ok(events) => Some(events),
            Err(error) => {
                // One line for each interruption, not for each attempt.
                if !std::mem::replace(&mut told, true) {
                    logger.error("subscribe-failed", &error, Fields::new());
                }
                None
            }
        };
        if let Some(events) = &mut events {
            if std::mem::replace(&mut told, false) {
                logger.info("subscribed-again", Fields::new());
            }
            next_full = Instant::now();
            let ended = carry(client, settings, events, &mut next_full, updates).await;
            let Err(error) = ended else { return };
            logger.error("events-ended", &error, Fields::new());
        } else if Instant::now() >= next_full {
            // Lists may work where streams do not.
            match client.list().await {
                Ok(all) => {
                    let _ = updates.send(Update::Full(all)).await;
                    next_full = Instant::now() + settings.full_every;
                }
                Err(error) => {
                    logger.debug("list-failed", Fields::new().and("error", error.to_string()))
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(settings.pause) => {}
            () = updates.closed() => return,
        }
    }
}

async fn subscribe<T: Kind>(client: &ApiClient) -> Result<Events<T>, ClientError> {
    let mut attempt = 1;
    loop {
        match client.events().await {
            Ok(events) => return Ok(events),
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => attempt += 1,
        }
    }
}

/// Tells events, and whole lists in between, until nobody listens any more, or until the
/// stream ends or a list fails (an error): a stream beside which lists fail may be dead
/// without knowing it.
async fn carry<T: Kind>(
    client: &ApiClient,
    settings: &FollowSettings,
    events: &mut Events<T>,
    next_full: &mut Instant,
    updates: &mpsc::Sender<Update<T>>,
) -> Result<(), ClientError> {
    loop {
        let update = tokio::select! {
            biased;
            () = updates.closed() => return Ok(()),
            // Due at once: events before the first list would be changes of nothing.
            () = sleep_until(*next_full) => {
                let all = client.list().await?;
                *next_full = Instant::now() + settings.full_every;
                Update::Full(all)
            }
            event = events.next() => match event? {
                Event::Upsert(row) => Update::Upsert(row),
                Event::Delete(row) => Update::Delete(row),
            },
        };
        if updates.send(update).await.is_err() {
            return Ok(());
        }
    }
}
