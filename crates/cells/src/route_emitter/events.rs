//! The BBS's events, for as long as the emitter runs: subscribed to again whenever the stream ends.

use std::time::Duration;

use telemetry::{Fields, Logger};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::source::Source;
use super::table::{Event, events_of};

/// Events that may wait for the table. While they do the stream is not read, and a BBS cuts off
/// who is too far behind: then all is asked for.
const WAITING: usize = 1024;
/// Pauses between attempts to subscribe: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// What comes from the BBS by itself.
pub(super) enum BbsUpdate {
    /// From here on nothing is missed. What was before is to be asked for.
    Subscribed,
    /// The stream has ended.
    Lost,
    /// Something happened.
    Happened(Vec<Event>),
}

/// Follows the events until the receiver is gone.
pub(super) fn follow(source: Source, logger: Logger) -> mpsc::Receiver<BbsUpdate> {
    let (news, receiver) = mpsc::channel(WAITING);
    tokio::spawn(net::boxed(async move {
        tokio::select! {
            () = subscribe_again(&source, &news, &logger) => {}
            () = news.closed() => {}
        }
    }));
    receiver
}

async fn subscribe_again(source: &Source, news: &mpsc::Sender<BbsUpdate>, logger: &Logger) {
    let [least, most] = PAUSES;
    let mut pause = least;
    loop {
        match source.subscribe().await {
            Ok(mut stream) => {
                logger.info("subscribed-to-bbs-events", Fields::new());
                pause = least;
                if news.send(BbsUpdate::Subscribed).await.is_err() {
                    return;
                }
                let cause = loop {
                    match stream.next().await {
                        Ok(Some(event)) => {
                            let Some(news_of) = read(&event, logger) else {
                                continue;
                            };
                            if news.send(news_of).await.is_err() {
                                return;
                            }
                        }
                        Ok(None) => break "the BBS ended the stream".to_owned(),
                        Err(error) => break error.to_string(),
                    }
                };
                logger.error("event-source-error", &cause, Fields::new());
                if news.send(BbsUpdate::Lost).await.is_err() {
                    return;
                }
            }
            Err(error) => logger.error("failed-to-subscribe", &error, Fields::new()),
        }
        sleep(pause).await;
        pause = (pause * 2).min(most);
    }
}

fn read(event: &diego::sse::Event, logger: &Logger) -> Option<BbsUpdate> {
    match events_of(&event.name, &event.payload) {
        Ok(events) if events.is_empty() => None,
        Ok(events) => Some(BbsUpdate::Happened(events)),
        Err(error) => {
            logger.error("failed-to-read-event", &error, Fields::new());
            None
        }
    }
}
