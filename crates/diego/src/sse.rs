//! Framing of event streams: `id`, `event` and base64 `data` lines, then an empty one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Longest event that a reader accepts, in bytes of text.
const EVENT_BYTES: usize = 64 << 20;

/// The part of an event's text that is the same for every subscriber; each adds
/// its own `id: N` line in front.
pub fn encode(event: &str, payload: &[u8]) -> String {
    let mut text = String::with_capacity(24 + event.len() + payload.len().div_ceil(3) * 4);
    text.push_str("event: ");
    text.push_str(event);
    text.push_str("\ndata: ");
    STANDARD.encode_string(payload, &mut text);
    text.push_str("\n\n");
    text
}

/// One event as a subscriber sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Number of the event in its stream, from 0.
    pub id: u64,
    /// Its name, for instance `task_created`.
    pub name: String,
    /// The encoded message.
    pub payload: Vec<u8>,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read an event stream: {0}")]
pub struct BadStream(String);

/// Puts events together from pieces of a stream.
#[derive(Debug, Default)]
pub struct Decoder(Vec<u8>);

impl Decoder {
    /// Takes the next piece and returns the events that it completes.
    ///
    /// # Errors
    /// When the text is not an event of this protocol, or longer than 64 MiB.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Vec<Event>, BadStream> {
        // A blank line may span two pieces: look again at the last byte.
        let mut from = self.0.len().saturating_sub(1);
        self.0.extend_from_slice(piece);
        let mut events = Vec::new();
        let mut start = 0;
        while let Some(at) = find_blank_line(&self.0[from..]) {
            let end = from + at;
            events.push(parse(&self.0[start..end])?);
            start = end + 2;
            from = start;
        }
        self.0.drain(..start);
        if self.0.len() > EVENT_BYTES {
            return Err(BadStream(format!(
                "an event is longer than {EVENT_BYTES} bytes"
            )));
        }
        Ok(events)
    }
}

fn find_blank_line(text: &[u8]) -> Option<usize> {
    text.windows(2).position(|pair| pair == b"\n\n")
}

fn parse(text: &[u8]) -> Result<Event, BadStream> {
    let text = std::str::from_utf8(text).map_err(|_| BadStream("it is not UTF-8".into()))?;
    let mut event = Event {
        id: 0,
        name: String::new(),
        payload: Vec::new(),
    };
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => {
                event.id = id
                    .parse()
                    .map_err(|_| BadStream(format!("the id {id:?} is no number")))?;
            }
            Some(("event", name)) => event.name = name.to_owned(),
            Some(("data", data)) => {
                event.payload = STANDARD
                    .decode(data)
                    .map_err(|error| BadStream(format!("the data is not base64: {error}")))?;
            }
            _ => return Err(BadStream(format!("unexpected line {line:?}"))),
        }
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_survive_any_cut(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..8),
            cut in 1usize..40,
        ) {
            let text: String = payloads
                .iter()
                .enumerate()
                .map(|(id, payload)| format!("id: {id}\n{}", encode("task_created", payload)))
                .collect();
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for piece in text.as_bytes().chunks(cut) {
                seen.extend(decoder.feed(piece).unwrap());
            }
            prop_assert_eq!(seen.len(), payloads.len());
            for (id, (event, payload)) in seen.iter().zip(&payloads).enumerate() {
                prop_assert_eq!(event.id, id as u64);
                prop_assert_eq!(&event.payload, payload);
            }
        }

        #[test]
        fn any_bytes_are_an_error_or_events(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Decoder::default().feed(&bytes);
        }
    }
}
