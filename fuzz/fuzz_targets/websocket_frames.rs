//! Frames of a WebSocket server, whole and split: the same is seen, nothing panics. The
//! first byte says where to split.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::websocket::{Event, FrameScanner, WebSocketError};

const MOST_BYTES: u64 = 4096;

/// What was seen, parts of messages joined.
type Seen = (Vec<String>, Vec<u8>);

fn read(input: &[u8], step: usize) -> (Seen, Result<(), WebSocketError>) {
    let mut scanner = FrameScanner::new(MOST_BYTES);
    let (mut events, mut message, mut start, mut end) = (Vec::new(), Vec::new(), 0, 0);
    while end < input.len() {
        end = input.len().min(end + step);
        loop {
            let scan = match scanner.scan(&input[start..end]) {
                Ok(scan) => scan,
                Err(error) => return ((events, Vec::new()), Err(error)),
            };
            assert!(scan.consumed <= end - start);
            start += scan.consumed;
            match scan.event {
                None => break,
                Some(Event::Data { text, part, ends }) => {
                    message.extend_from_slice(part);
                    assert!(message.len() as u64 <= MOST_BYTES);
                    if let Some(bytes) = ends {
                        assert_eq!(bytes, message.len() as u64);
                        assert!(!text || std::str::from_utf8(&message).is_ok());
                        events.push(format!("{text} {message:?}"));
                        message.clear();
                    }
                }
                Some(other) => events.push(format!("{other:?}")),
            }
        }
    }
    ((events, message), scanner.end())
}

fuzz_target!(|data: &[u8]| {
    if let [step, input @ ..] = data {
        let whole = read(input, input.len().max(1));
        assert_eq!(whole, read(input, usize::from(*step).max(1)));
    }
});
