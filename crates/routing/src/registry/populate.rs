//! The registrar: registers many routes over NATS and keeps them fresh, as the populator
//! of routing-perf-release does. One message for each route.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use nats::client::{Client, ClientConfig, ConnectError, PublishError};
use tokio::sync::watch;
use tokio::time::Instant;

/// Messages are paced in groups, no finer than the timer of the runtime.
const TICK: Duration = Duration::from_millis(1);

/// Longest wait at the end for NATS to take the last messages.
const FLUSH: Duration = Duration::from_secs(10);

/// What is registered, and how.
#[derive(Debug, Clone)]
pub struct PopulateSettings {
    /// Where NATS is.
    pub client: ClientConfig,
    /// How many routes.
    pub routes: u64,
    /// First part of their names: `<prefix>-<i>.<domain>`, i from 0.
    pub prefix: String,
    /// Last part of their names.
    pub domain: String,
    /// Where they lead: route i to backend i modulo their number.
    pub backends: Vec<SocketAddr>,
    /// Pause between two messages; 0: none.
    pub pause: Duration,
    /// From one round of messages to the next. A round that takes longer is followed by
    /// the next one at once.
    pub every: Duration,
    /// End after one round and leave the routes.
    pub once: bool,
}

/// How far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whole rounds that NATS has taken.
    pub rounds: u64,
    /// Messages of all rounds that were handed to NATS.
    pub messages: u64,
    /// Routes are being unregistered.
    pub leaving: bool,
}

/// Why it cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PopulateError {
    /// There is no backend to register.
    #[error("populate: no backend is named; name one as ADDRESS:PORT")]
    NoBackend,
    /// NATS cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A message cannot be published.
    #[error("populate: {0}")]
    Publish(#[from] PublishError),
}

/// Registers routes until `stop`, then unregisters them. While NATS is away it waits.
///
/// # Errors
/// When NATS cannot be reached at the beginning, or the settings make no messages.
pub async fn populate(
    settings: PopulateSettings,
    progress: &watch::Sender<Progress>,
    stop: impl Future<Output = ()>,
) -> Result<(), PopulateError> {
    if settings.backends.is_empty() {
        return Err(PopulateError::NoBackend);
    }
    let client = Client::connect(settings.client.clone()).await?;
    {
        let refresh = refresh(&settings, &client, progress);
        tokio::pin!(refresh, stop);
        tokio::select! {
            done = &mut refresh => return done,
            () = &mut stop => {}
        }
    }
    progress.send_modify(|progress| progress.leaving = true);
    let leave = round(&settings, &client, b"router.unregister", progress);
    // Without NATS nobody can be told; the routes grow stale by themselves.
    let routes = u32::try_from(settings.routes).unwrap_or(u32::MAX);
    let paced = settings.pause.saturating_mul(routes).saturating_mul(2);
    let left = tokio::time::timeout(FLUSH.saturating_add(paced), leave);
    left.await.unwrap_or(Ok(()))?;
    client.close().await;
    Ok(())
}

/// Round after round; ends after the first one if there is to be only one.
async fn refresh(
    settings: &PopulateSettings,
    client: &Client,
    progress: &watch::Sender<Progress>,
) -> Result<(), PopulateError> {
    loop {
        let begin = Instant::now();
        round(settings, client, b"router.register", progress).await?;
        let taken = client.flush().await.is_ok();
        progress.send_modify(|progress| progress.rounds += u64::from(taken));
        if settings.once && taken {
            return Ok(());
        }
        tokio::time::sleep(settings.every.saturating_sub(begin.elapsed())).await;
    }
}

async fn round(
    settings: &PopulateSettings,
    client: &Client,
    subject: &[u8],
    progress: &watch::Sender<Progress>,
) -> Result<(), PopulateError> {
    let mut payload = BytesMut::new();
    let begin = Instant::now();
    let mut sent = 0;
    while sent < settings.routes {
        let until = due(settings.pause, begin.elapsed(), settings.routes);
        let before = sent;
        while sent < until {
            registration(settings, sent, &mut payload);
            client.publish_when_room(subject, &payload).await?;
            sent += 1;
            if sent % 256 == 0 {
                tokio::task::yield_now().await;
            }
        }
        progress.send_modify(|progress| progress.messages += sent - before);
        if sent < settings.routes {
            tokio::time::sleep(TICK).await;
        }
    }
    Ok(())
}

/// Messages that a round should have sent after `elapsed`. At least one.
fn due(pause: Duration, elapsed: Duration, routes: u64) -> u64 {
    if pause.is_zero() {
        return routes;
    }
    let sent = elapsed.as_nanos() / pause.as_nanos();
    u64::try_from(sent)
        .unwrap_or(u64::MAX)
        .saturating_add(1)
        .min(routes)
}

/// As the populator of routing-perf-release writes it.
fn registration(settings: &PopulateSettings, number: u64, into: &mut BytesMut) {
    use std::fmt::Write as _;
    let backends = &settings.backends;
    let backend = backends[(number % backends.len() as u64) as usize];
    into.clear();
    // Writing to a growing buffer cannot fail.
    let _ = write!(
        into,
        r#"{{"host":"{}","port":{},"uris":["{}-{number}.{}"]}}"#,
        backend.ip(),
        backend.port(),
        settings.prefix,
        settings.domain,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_by_a_schedule() {
        let (pause, ms) = (Duration::from_micros(50), Duration::from_millis(1));
        assert_eq!(due(pause, Duration::ZERO, 100), 1);
        assert_eq!(due(pause, ms, 100), 21);
        assert_eq!(due(pause, 100 * ms, 100), 100);
        assert_eq!(due(Duration::ZERO, Duration::ZERO, 100), 100);
    }
}
