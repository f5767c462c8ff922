//! Frames of NATS, whole and split: the same is seen, bounds hold, nothing panics. The
//! first byte says where to split.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nats::codec::{Limits, ProtocolError, Scanner};

/// Small, so that they are reached.
const LIMITS: Limits = Limits {
    line_bytes: 128,
    payload_bytes: 64,
};

fn read(input: &[u8], step: usize) -> (Vec<String>, Option<ProtocolError>) {
    let mut scanner = Scanner::new(LIMITS);
    let (mut frames, mut start, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = input.len().min(end + step);
        loop {
            match scanner.scan(&input[start..end]) {
                Ok(Some(scanned)) => {
                    assert!(scanned.consumed > 0 && scanned.consumed <= end - start);
                    assert!(scanned.consumed <= LIMITS.line_bytes + LIMITS.payload_bytes + 2);
                    frames.push(format!("{:?}", scanned.frame));
                    start += scanned.consumed;
                }
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
        assert!(end - start < LIMITS.line_bytes + LIMITS.payload_bytes + 2);
    }
    (frames, None)
}

fuzz_target!(|data: &[u8]| {
    if let [step, input @ ..] = data {
        let some = read(input, 1);
        let others = read(input, usize::from(*step).max(1));
        assert_eq!(some.0, others.0);
        let kind = |error: &ProtocolError| std::mem::discriminant(error);
        // Bytes that come at once may be refused before the frame is whole.
        if let (Some(one), Some(other)) = (&some.1, &others.1) {
            assert_eq!(kind(one), kind(other));
        }
    }
});
