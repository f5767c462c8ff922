//! Streams of events.

use diego::error::Type;
use diego::json::{self, shapes};
use diego::models::EventsByCellId;
use diego::sse::Event;
use diego::{CallError, Subscription, path};

use super::{Caller, Failure, Lines};

impl Caller {
    /// Writes each event of tasks as a line, until the BBS ends the stream.
    ///
    /// # Errors
    /// See [`Failure`]; also when the stream breaks or a line cannot be written.
    pub async fn task_events(&self, lines: Lines<'_>) -> Result<(), Failure> {
        let mut events = self.subscribe(path::TASK_EVENTS, "").await?;
        while let Some(event) = events.next().await? {
            write(&event, lines)?;
        }
        ended(&events)
    }

    /// Writes each event of what is desired and of instances as a line, of one cell or, if that is
    /// empty, of all; with `groups` also those of instances by process and index, as they were once
    /// told. Until the BBS ends the streams.
    ///
    /// # Errors
    /// As [`Caller::task_events`].
    pub async fn lrp_events(
        &self,
        cell_id: &str,
        groups: bool,
        lines: Lines<'_>,
    ) -> Result<(), Failure> {
        let mut old = match groups {
            true => Some(self.subscribe(path::GROUP_EVENTS, cell_id).await?),
            false => None,
        };
        let mut new = Some(self.subscribe(path::INSTANCE_EVENTS, cell_id).await?);
        let mut broken = Ok(());
        while old.is_some() || new.is_some() {
            // Neither stream loses an event when its wait is given up for the other.
            let (event, of_groups) = tokio::select! {
                event = next(&mut old) => (event, true),
                event = next(&mut new) => (event, false),
            };
            let stream = if of_groups { &mut old } else { &mut new };
            match event {
                // What both streams tell is written once.
                Ok(Some(event)) if of_groups && !is_of_groups(&event.name) => {}
                Ok(Some(event)) => write(&event, lines)?,
                Ok(None) => {
                    if let Some(stream) = stream.take() {
                        broken = broken.and(ended(&stream));
                    }
                }
                Err(error) => {
                    *stream = None;
                    broken = broken.and(Err(error.into()));
                }
            }
        }
        broken
    }

    async fn subscribe(&self, path: &str, cell_id: &str) -> Result<Subscription, Failure> {
        let request = EventsByCellId {
            cell_id: cell_id.to_owned(),
        };
        let subscribed = self.bbs.subscribe(path, &request);
        let subscribed = tokio::time::timeout(self.within, subscribed).await;
        let subscribed = subscribed.map_err(|_| {
            let text = format!("{path}: no answer within {:?}", self.within);
            Failure::bbs(Type::Timeout, text)
        })?;
        // Whatever it is, it is of no known type.
        subscribed.map_err(|error| match Failure::from(error) {
            Failure::Other(text) => Failure::bbs(Type::UnknownError, text),
            Failure::Bbs(error) => Failure::bbs(Type::UnknownError, error.message),
            failure => failure,
        })
    }
}

/// The next event of a stream that is open; never anything of none.
async fn next(stream: &mut Option<Subscription>) -> Result<Option<Event>, CallError> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

fn is_of_groups(name: &str) -> bool {
    matches!(
        name,
        "actual_lrp_created" | "actual_lrp_changed" | "actual_lrp_removed"
    )
}

fn ended(stream: &Subscription) -> Result<(), Failure> {
    match stream.broken() {
        None => Ok(()),
        Some(cause) => Err(Failure::Other(format!(
            "the stream of events broke: {cause}; events from now on are not seen: list what there is, and subscribe again"
        ))),
    }
}

fn write(event: &Event, lines: Lines<'_>) -> Result<(), Failure> {
    let Some(shape) = shapes::of_event(&event.name) else {
        let text = format!(
            "the event {:?} is of no kind that is known here",
            event.name
        );
        return Err(Failure::Other(text));
    };
    let data = json::print(shape, &event.payload)?;
    let mut line = String::with_capacity(data.len() + 64);
    line.push_str("{\"type\":");
    json::quote(&event.name, &mut line);
    line.push_str(",\"data\":");
    line.push_str(&data);
    line.push('}');
    super::write(&line, lines)
}
