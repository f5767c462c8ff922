//! Ends of answers on bare TCP: found where a search over the whole stream finds them,
//! however it is split. The first bytes are the split, and length and bytes of the
//! delimiter.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::framing::{AnswerEnd, AnswerScanner};

fuzz_target!(|data: &[u8]| {
    let [step, length, rest @ ..] = data else {
        return;
    };
    let length = usize::from(*length % 8) + 1;
    let Some((delimiter, stream)) = rest.split_at_checked(length) else {
        return;
    };
    let mut scanner = AnswerScanner::new(&AnswerEnd::Delimiter(delimiter.to_vec()));
    let (mut found, mut bytes) = (Vec::new(), 0);
    for part in stream.chunks(usize::from(*step).max(1)) {
        let mut rest = part;
        while !rest.is_empty() {
            let scan = scanner.scan(rest);
            assert!(scan.consumed > 0);
            rest = &rest[scan.consumed..];
            bytes += scan.consumed;
            if let Some(length) = scan.complete {
                found.push((bytes, length));
            }
        }
    }
    assert_eq!(bytes, stream.len());

    let (mut expected, mut start) = (Vec::new(), 0);
    while let Some(at) = stream[start..]
        .windows(length)
        .position(|window| window == delimiter)
    {
        let end = start + at + length;
        expected.push((end, (end - start) as u64));
        start = end;
    }
    assert_eq!(found, expected);
});
