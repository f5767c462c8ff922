//! Event streams (`text/event-stream`), read as they arrive.

use std::collections::VecDeque;
use std::marker::PhantomData;

use http_body_util::BodyExt;
use net::Incoming;
use serde::de::DeserializeOwned;

use super::ClientError;

/// Longest event that is taken, in bytes.
const EVENT_BYTES: usize = 1 << 20;

/// One change of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<T> {
    /// The row was written.
    Upsert(T),
    /// The row is gone, as it was last.
    Delete(T),
}

/// Puts events together from pieces of a stream: names and data, in order.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Bytes in which no end of an event begins.
    looked_at: usize,
}

impl Decoder {
    /// Takes the next piece, and tells of each event that it completes: its name and its
    /// data. Fields of other kinds, and events without data, are passed over.
    ///
    /// # Errors
    /// When an event is no UTF-8, or longer than 1 MiB.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Vec<(String, String)>, ClientError> {
        self.bytes.extend_from_slice(piece);
        let mut events = Vec::new();
        let mut start = 0;
        // An end may span two pieces: look again at the last byte.
        let mut from = self.looked_at;
        while let Some(at) = self.bytes[from..].windows(2).position(|two| two == b"\n\n") {
            let end = from + at;
            let text = std::str::from_utf8(&self.bytes[start..end])
                .map_err(|_| ClientError::Stream("an event is no UTF-8".to_owned()))?;
            events.extend(parse(text));
            start = end + 2;
            from = start;
        }
        self.bytes.drain(..start);
        self.looked_at = self.bytes.len().saturating_sub(1);
        if self.bytes.len() > EVENT_BYTES {
            let cause = format!("an event is longer than {EVENT_BYTES} bytes");
            return Err(ClientError::Stream(cause));
        }
        Ok(events)
    }
}

fn parse(text: &str) -> Option<(String, String)> {
    let (mut name, mut data) = (String::new(), None::<String>);
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => match &mut data {
                None => data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            },
            _ => {}
        }
    }
    data.map(|data| (name, data))
}

/// The events of one connection.
pub struct Events<T> {
    body: Incoming,
    decoder: Decoder,
    ready: VecDeque<(String, String)>,
    of: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Events<T> {
    pub(super) fn new(body: Incoming) -> Self {
        Self {
            body,
            decoder: Decoder::default(),
            ready: VecDeque::new(),
            of: PhantomData,
        }
    }

    /// The next event. A future that is dropped loses none.
    ///
    /// # Errors
    /// When the stream ended, broke, or says what cannot be understood; then subscribe
    /// again, and list.
    pub async fn next(&mut self) -> Result<Event<T>, ClientError> {
        loop {
            if let Some((name, data)) = self.ready.pop_front() {
                let unreadable = |cause: String| Err(ClientError::Stream(cause));
                let row = match serde_json::from_str(&data) {
                    Ok(row) => row,
                    Err(error) => return unreadable(format!("an event's data: {error}")),
                };
                return match name.as_str() {
                    "Upsert" => Ok(Event::Upsert(row)),
                    "Delete" => Ok(Event::Delete(row)),
                    other => unreadable(format!("unknown event {other:?}")),
                };
            }
            match self.body.frame().await {
                None => return Err(ClientError::Stream("the stream ended".to_owned())),
                Some(Err(error)) => return Err(ClientError::Stream(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.ready.extend(self.decoder.feed(&piece)?);
                    }
                }
            }
        }
    }
}
