//! Replies of Redis, whole and split: the same is seen, nothing panics. The first byte says
//! where to split.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::resp::{Reply, ReplyScanner, ReplySink, RespError};

#[derive(Default)]
struct Values(Vec<u8>);

impl ReplySink for Values {
    fn part(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn next_value(&mut self) {
        self.0.push(b'\n');
    }
}

fn read(input: &[u8], step: usize) -> Result<(Vec<Reply>, Vec<u8>), RespError> {
    let (mut scanner, mut values) = (ReplyScanner::default(), Values::default());
    let mut replies = Vec::new();
    for piece in input.chunks(step) {
        let mut rest = piece;
        while !rest.is_empty() {
            let scan = scanner.scan(rest, &mut values)?;
            assert!(scan.consumed <= rest.len() && scan.consumed > 0);
            rest = &rest[scan.consumed..];
            replies.extend(scan.complete);
        }
    }
    assert!(values.0.len() <= input.len());
    Ok((replies, values.0))
}

fuzz_target!(|data: &[u8]| {
    if let [step, input @ ..] = data {
        let whole = read(input, input.len().max(1));
        assert_eq!(whole, read(input, usize::from(*step).max(1)));
    }
});
