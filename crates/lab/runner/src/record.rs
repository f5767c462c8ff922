//! What happened to the run, written while it happens.

use std::sync::{Arc, Mutex, PoisonError};

use lab_store::{Appender, Event, EventKind, RunFolder, StoreError};
use measure::Clock;

use crate::alarm::Alarm;
use crate::progress::Status;

/// Writes events to `events.jsonl` and shows them.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    clock: Clock,
    events: Arc<Mutex<Appender<Event>>>,
    status: Status,
    alarm: Alarm,
}

impl Recorder {
    pub(crate) fn new(
        folder: &RunFolder,
        clock: Clock,
        status: Status,
        alarm: Alarm,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            clock,
            events: Arc::new(Mutex::new(folder.appender()?)),
            status,
            alarm,
        })
    }

    /// Records an event of now. An event that cannot be written ends the run: a
    /// record with holes would be worse than none.
    pub(crate) fn event(&self, kind: EventKind, name: &str, text: &str) {
        let event = Event {
            t_s: self.clock.now_s(),
            kind,
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // Flushed each time: events are few, and a crash must not lose them.
        if let Err(error) = events.append(&event).and_then(|()| events.flush()) {
            self.alarm.broken(error);
        }
        drop(events);
        self.status.record_event(event);
    }
}
