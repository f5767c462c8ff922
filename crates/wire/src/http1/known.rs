//! The head of an earlier answer, to recognise the next one by.

use super::length::Framing;
use super::{Expect, Limits};

/// Longest head that is remembered.
const MOST_BYTES: usize = 4 * 1024;

/// The head of an earlier answer. Targets repeat themselves: most heads differ from the
/// one before by nothing, or once a second by the time of day, and to compare is much
/// cheaper than to parse. One serves any number of connections to the same target.
#[derive(Debug, Clone, Default)]
pub struct KnownHead {
    /// The head with its empty line.
    bytes: Vec<u8>,
    /// Where its field lines begin and end.
    fields: (usize, usize),
    /// Under what it was read, and as what.
    read: Option<((Expect, Limits), Meaning)>,
}

/// What a head says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meaning {
    pub(super) status: u16,
    pub(super) framing: Framing,
}

impl KnownHead {
    /// If the input begins with this head, and it was read under the same terms: its
    /// meaning, its field lines and its length.
    pub(super) fn recognise<'i>(
        &self,
        input: &'i [u8],
        expect: Expect,
        limits: &Limits,
    ) -> Option<(Meaning, &'i [u8], usize)> {
        let (asked, meaning) = self.read.as_ref()?;
        let same = input.starts_with(&self.bytes) && *asked == (expect, *limits);
        let (begin, end) = self.fields;
        same.then(|| (*meaning, &input[begin..end], self.bytes.len()))
    }

    /// Remembers a whole head and where its field lines are, unless it is very long.
    pub(super) fn remember(
        &mut self,
        head: &[u8],
        fields: (usize, usize),
        asked: (Expect, Limits),
        meaning: Meaning,
    ) {
        self.bytes.clear();
        self.read = None;
        if head.len() > MOST_BYTES {
            return;
        }
        self.bytes.extend_from_slice(head);
        (self.fields, self.read) = (fields, Some((asked, meaning)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Complete, ResponseError, ResponseScanner, Sink};
    use super::*;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Seen(Vec<u8>);

    impl Sink for Seen {
        fn head(&mut self, status: u16, fields: &[u8]) {
            self.0.extend_from_slice(&status.to_be_bytes());
            self.0.extend_from_slice(fields);
        }
        fn body(&mut self, part: &[u8]) {
            self.0.extend_from_slice(part);
        }
    }

    type Outcome = Result<Option<Complete>, ResponseError>;

    /// What is seen of an answer that comes in two pieces.
    fn scan(
        mut known: Option<&mut KnownHead>,
        answer: &str,
        cut: usize,
        expect: Expect,
    ) -> (Outcome, Seen) {
        let mut scanner = ResponseScanner::new(Limits::default());
        scanner.expect(expect);
        let mut seen = Seen::default();
        let mut done = 0;
        for end in [cut.min(answer.len()), answer.len()] {
            let input = &answer.as_bytes()[done..end];
            let scan = match &mut known {
                Some(known) => scanner.scan_after(known, input, &mut seen),
                None => scanner.scan(input, &mut seen),
            };
            match scan {
                Ok(scan) if scan.complete.is_some() => return (Ok(scan.complete), seen),
                Ok(scan) => done += scan.consumed,
                Err(error) => return (Err(error), seen),
            }
        }
        (Ok(None), seen)
    }

    const ANSWERS: [&str; 8] = [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz",
        "HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\nabc",
        "HTTP/1.1 404 No\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\n\r\nuntil close",
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc",
    ];

    proptest! {
        /// Whatever came before, and however it is split, the same is seen of an answer.
        #[test]
        fn what_is_known_changes_nothing(
            answers in prop::collection::vec((0..ANSWERS.len(), 0..80_usize, 0..3_u8), 1..12),
        ) {
            let mut known = KnownHead::default();
            for (answer, cut, expect) in answers {
                let expect = match expect {
                    0 => Expect::NoBody,
                    1 => Expect::Tunnel,
                    _ => Expect::Body,
                };
                let answer = ANSWERS[answer];
                prop_assert_eq!(
                    scan(Some(&mut known), answer, cut, expect),
                    scan(None, answer, cut, expect)
                );
            }
        }
    }
}
