//! Requests of HTTP/1.1, whole and split: the scanner must not panic, must keep to its
//! contract, and must see the same however the bytes come. The first byte chooses where to
//! split; an odd one puts a chunked head before the rest, so that the framing of chunks is
//! reached at once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http1::{Limits, RequestError, RequestHead, RequestScanner, Sink};

const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    heads: Vec<(Vec<u8>, bool)>,
    body: Vec<u8>,
    trailers: Vec<Vec<u8>>,
}

impl Sink for Seen {
    fn body(&mut self, part: &[u8]) {
        assert!(!part.is_empty());
        self.body.extend_from_slice(part);
    }
    fn trailers(&mut self, fields: &[u8]) {
        assert!(!fields.is_empty());
        self.trailers.push(fields.to_vec());
    }
}

/// All requests in the input, given `step` bytes at a time.
fn read(input: &[u8], step: usize) -> (Seen, Option<RequestError>) {
    // Small, so that limits are reached too.
    let limits = Limits {
        head_bytes: 256,
        fields: 8,
        chunk_line_bytes: 32,
        interim: 0,
        as_go: false,
    };
    let mut scanner = RequestScanner::new(limits);
    let (mut seen, mut head) = (Seen::default(), RequestHead::default());
    let (mut start, mut end, mut in_body) = (0, 0, false);
    while end < input.len() {
        end = input.len().min(end + step);
        loop {
            let rest = &input[start..end];
            if !in_body {
                match scanner.head(rest, &mut head) {
                    Ok(Some(length)) => {
                        assert!(length <= rest.len() && head.bytes().len() <= length);
                        assert!(head.bytes().ends_with(b"\r\n\r\n"));
                        assert!(head.fields().count() <= 8);
                        assert!(!head.method().is_empty() && !head.target().is_empty());
                        seen.heads.push((head.bytes().to_vec(), head.keep_alive()));
                        start += length;
                    }
                    Ok(None) => break,
                    Err(error) => return (seen, Some(error)),
                }
            }
            let scan = match scanner.body(&input[start..end], &mut seen) {
                Ok(scan) => scan,
                Err(error) => return (seen, Some(error)),
            };
            start += scan.consumed;
            in_body = !scan.ended;
            if in_body {
                break;
            }
        }
    }
    (seen, None)
}

fuzz_target!(|data: &[u8]| {
    let [step, input @ ..] = data else {
        return;
    };
    let input = if step % 2 == 1 {
        [CHUNKED, input].concat()
    } else {
        input.to_vec()
    };
    let whole = read(&input, input.len().max(1));
    let split = read(&input, usize::from(*step / 2).max(1));
    // A head that breaks the rules may be refused before its end is there, or at it.
    if whole.1.is_none() {
        assert_eq!(whole.0, split.0);
        assert!(split.1.is_none());
    } else {
        assert_eq!(whole.0.heads, split.0.heads);
    }
    assert!(
        whole
            .1
            .is_none_or(|error| !error.answer().is_empty() && error.status() >= 400)
    );
});
