//! A stream of events, whole and split: the same is read. The first byte says where to
//! split.

#![no_main]

use diego::sse::{Decoder, Event};
use libfuzzer_sys::fuzz_target;

fn read(input: &[u8], step: usize) -> (Vec<Event>, bool) {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for piece in input.chunks(step) {
        match decoder.feed(piece) {
            Ok(more) => events.extend(more),
            Err(_) => return (events, true),
        }
    }
    (events, false)
}

fuzz_target!(|data: &[u8]| {
    if let [step, input @ ..] = data {
        let one_by_one = read(input, 1);
        let (events, failed) = read(input, usize::from(*step).max(1));
        assert_eq!(failed, one_by_one.1);
        // Events of a piece that ends in an error are not told.
        assert!(one_by_one.0.starts_with(&events));
        assert!(failed || events == one_by_one.0);
    }
});
