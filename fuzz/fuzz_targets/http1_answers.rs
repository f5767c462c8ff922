//! Answers of HTTP/1.1, whole and split: the scanner must not panic, must keep to its
//! contract, and must see the same however the bytes come. The first two bytes choose
//! what is expected and where to split; an odd second one puts a chunked head before the
//! rest, so that the framing of chunks is reached at once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http1::{Complete, Expect, Limits, ResponseError, ResponseScanner, Sink};

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    heads: Vec<(u16, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<Vec<u8>>,
}

impl Sink for Seen {
    fn head(&mut self, status: u16, fields: &[u8]) {
        self.heads.push((status, fields.to_vec()));
    }
    fn body(&mut self, part: &[u8]) {
        assert!(!part.is_empty());
        self.body.extend_from_slice(part);
    }
    fn trailers(&mut self, fields: &[u8]) {
        assert!(!fields.is_empty());
        self.trailers.push(fields.to_vec());
    }
}

/// All answers in the input, given `step` bytes at a time.
fn read(input: &[u8], expect: Expect, step: usize) -> (Vec<Complete>, Seen, Option<ResponseError>) {
    // Small, so that limits are reached too.
    let limits = Limits {
        head_bytes: 256,
        fields: 8,
        chunk_line_bytes: 32,
        interim: 4,
        as_go: false,
    };
    let mut scanner = ResponseScanner::new(limits);
    let (mut completes, mut seen, mut start, mut end) = (Vec::new(), Seen::default(), 0, 0);
    scanner.expect(expect);
    while end < input.len() {
        end = input.len().min(end + step);
        loop {
            let before = seen.body.len();
            let scan = match scanner.scan(&input[start..end], &mut seen) {
                Ok(scan) => scan,
                Err(error) => return (completes, seen, Some(error)),
            };
            assert!(scan.consumed <= end - start);
            assert!(seen.body.len() - before <= scan.consumed);
            start += scan.consumed;
            match scan.complete {
                Some(complete) => {
                    completes.push(complete);
                    scanner.expect(expect);
                    if complete.upgraded || !complete.keep_alive {
                        return (completes, seen, None);
                    }
                }
                None => break,
            }
        }
    }
    match scanner.end(&mut seen) {
        Ok(complete) => completes.push(complete),
        Err(error) => return (completes, seen, Some(error)),
    }
    (completes, seen, None)
}

fuzz_target!(|data: &[u8]| {
    let [kind, step, input @ ..] = data else {
        return;
    };
    let expect = [Expect::Body, Expect::NoBody, Expect::Tunnel][usize::from(*kind) % 3];
    let input = if step % 2 == 1 {
        [CHUNKED, input].concat()
    } else {
        input.to_vec()
    };
    let whole = read(&input, expect, input.len().max(1));
    let split = read(&input, expect, usize::from(*step / 2).max(1));
    assert_eq!(whole.0, split.0);
    assert_eq!(whole.1, split.1);
    // A head that breaks the rules may be refused as cut off before its end is there.
    assert_eq!(whole.2.is_some(), split.2.is_some());
});
