//! Where an answer ends on a bare TCP connection.

use memchr::memmem;

/// How the end of an answer is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerEnd {
    /// After so many bytes.
    Bytes(u64),
    /// Behind these bytes, which belong to the answer.
    Delimiter(Vec<u8>),
    /// After as many bytes as the request had.
    Echo,
    /// With the connection.
    Close,
}

/// Finds the ends of the answers of one connection, one after the other. It keeps none
/// of their bytes.
#[derive(Debug, Clone)]
pub struct AnswerScanner {
    rule: Rule,
    /// Bytes of this answer so far.
    bytes: u64,
}

#[derive(Debug, Clone)]
enum Rule {
    Count { length: u64 },
    Echo { length: u64 },
    Delimiter(Box<Delimiter>),
    Close,
}

/// How far a scan came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerScan {
    /// Bytes of the input that belong to this answer: all, unless it ended.
    pub consumed: usize,
    /// Bytes of the whole answer, if it ended.
    pub complete: Option<u64>,
}

/// Why an answer could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AnswerError {
    /// The stream ended before the first byte of an answer.
    #[error("the connection was closed before the answer began")]
    ClosedBefore,
    /// The stream ended within an answer.
    #[error("the connection was closed within the answer, after {0} bytes")]
    ClosedEarly(u64),
}

impl AnswerError {
    /// The same as a short constant text, to count by.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::ClosedBefore => "closed before answer",
            Self::ClosedEarly(_) => "closed early",
        }
    }
}

impl AnswerScanner {
    /// A scanner for a connection on which nothing was received yet. An answer that can
    /// have no bytes (no bytes, the echo of nothing, an empty delimiter) ends with the
    /// next call of [`scan`](Self::scan), whatever it is given.
    pub fn new(end: &AnswerEnd) -> Self {
        let rule = match end {
            AnswerEnd::Bytes(length) => Rule::Count { length: *length },
            AnswerEnd::Echo => Rule::Echo { length: 0 },
            AnswerEnd::Delimiter(bytes) => Rule::Delimiter(Box::new(Delimiter::new(bytes))),
            AnswerEnd::Close => Rule::Close,
        };
        Self { rule, bytes: 0 }
    }

    /// Says how long the request was whose answer comes next. Only echoes need it.
    pub fn expect(&mut self, request_bytes: u64) {
        if let Rule::Echo { length } = &mut self.rule {
            *length = request_bytes;
        }
    }

    /// Scans until the end of an answer or of the input.
    pub fn scan(&mut self, input: &[u8]) -> AnswerScan {
        let end = match &mut self.rule {
            Rule::Count { length } | Rule::Echo { length } => {
                usize::try_from(length.saturating_sub(self.bytes))
                    .ok()
                    .filter(|left| *left <= input.len())
            }
            Rule::Delimiter(delimiter) => delimiter.end(input),
            Rule::Close => None,
        };
        let consumed = end.unwrap_or(input.len());
        self.bytes = self.bytes.saturating_add(consumed as u64);
        let complete = end.map(|_| std::mem::take(&mut self.bytes));
        AnswerScan { consumed, complete }
    }

    /// Says that the stream has ended; gives the bytes of the answer.
    ///
    /// # Errors
    /// When that is not how the answer ends.
    pub fn end(&mut self) -> Result<u64, AnswerError> {
        match (&self.rule, std::mem::take(&mut self.bytes)) {
            (Rule::Close, bytes) => Ok(bytes),
            (_, 0) => Err(AnswerError::ClosedBefore),
            (_, bytes) => Err(AnswerError::ClosedEarly(bytes)),
        }
    }
}

/// Finds a delimiter, also one that is split over inputs (Knuth, Morris and Pratt at the
/// edges, a fast search between them).
#[derive(Debug, Clone)]
struct Delimiter {
    finder: memmem::Finder<'static>,
    /// For each length of a match that fails: the longest shorter one that still holds.
    fallback: Vec<usize>,
    /// Bytes of the delimiter that end what was seen so far.
    matched: usize,
}

impl Delimiter {
    fn new(bytes: &[u8]) -> Self {
        let mut fallback = vec![0; bytes.len()];
        let mut matched = 0;
        for at in 1..bytes.len() {
            while matched > 0 && bytes[at] != bytes[matched] {
                matched = fallback[matched - 1];
            }
            matched += usize::from(bytes[at] == bytes[matched]);
            fallback[at] = matched;
        }
        Self {
            finder: memmem::Finder::new(bytes).into_owned(),
            fallback,
            matched: 0,
        }
    }

    /// Where the delimiter ends in the input.
    fn end(&mut self, input: &[u8]) -> Option<usize> {
        let length = self.fallback.len();
        let mut from = 0;
        // A match that began before the input.
        while self.matched > 0 {
            if self.step(*input.get(from)?) {
                return Some(from + 1);
            }
            from += 1;
        }
        let rest = &input[from..];
        if let Some(found) = self.finder.find(rest) {
            return Some(from + found + length);
        }
        // A match that goes on behind it.
        for &byte in &rest[rest.len().saturating_sub(length.saturating_sub(1))..] {
            self.step(byte);
        }
        None
    }

    /// Whether the delimiter ends with this byte.
    fn step(&mut self, byte: u8) -> bool {
        let needle = self.finder.needle();
        while self.matched > 0 && needle[self.matched] != byte {
            self.matched = self.fallback[self.matched - 1];
        }
        self.matched += usize::from(needle[self.matched] == byte);
        if self.matched == needle.len() {
            self.matched = 0;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lengths of the answers in a stream given in parts, and the bytes left over.
    fn answers(end: &AnswerEnd, parts: &[&[u8]]) -> (Vec<u64>, u64) {
        let mut scanner = AnswerScanner::new(end);
        let mut lengths = Vec::new();
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let scan = scanner.scan(rest);
                rest = &rest[scan.consumed..];
                lengths.extend(scan.complete);
            }
        }
        (lengths, scanner.bytes)
    }

    #[test]
    fn counts_bytes() {
        assert_eq!(
            answers(&AnswerEnd::Bytes(3), &[b"ab", b"cdefg"]),
            (vec![3, 3], 1)
        );
    }

    #[test]
    fn an_answer_without_bytes_ends_at_once() {
        for end in [
            AnswerEnd::Bytes(0),
            AnswerEnd::Echo,
            AnswerEnd::Delimiter(Vec::new()),
        ] {
            let mut scanner = AnswerScanner::new(&end);
            let ended = AnswerScan {
                consumed: 0,
                complete: Some(0),
            };
            assert_eq!(scanner.scan(b""), ended, "{end:?}");
            assert_eq!(scanner.scan(b"x"), ended, "{end:?}");
        }
    }

    #[test]
    fn an_echo_is_as_long_as_its_request() {
        let mut scanner = AnswerScanner::new(&AnswerEnd::Echo);
        for length in [4, 1, 9] {
            scanner.expect(length);
            let input = vec![b'.'; usize::try_from(length).unwrap() + 1];
            assert_eq!(
                scanner.scan(&input),
                AnswerScan {
                    consumed: input.len() - 1,
                    complete: Some(length)
                }
            );
        }
    }

    #[test]
    fn a_delimiter_may_be_split_and_may_repeat_itself() {
        let end = AnswerEnd::Delimiter(b"aab".to_vec());
        assert_eq!(
            answers(&end, &[b"xa", b"a", b"a", b"b.", b"aab"]),
            (vec![5, 4], 0)
        );
    }

    #[test]
    fn the_end_of_the_stream() {
        let mut close = AnswerScanner::new(&AnswerEnd::Close);
        assert_eq!(close.scan(b"abc").complete, None);
        assert_eq!(close.end(), Ok(3));
        let mut count = AnswerScanner::new(&AnswerEnd::Bytes(2));
        assert_eq!(count.end(), Err(AnswerError::ClosedBefore));
        count.scan(b"x");
        assert_eq!(count.end(), Err(AnswerError::ClosedEarly(1)));
    }

    proptest! {
        /// However a stream is split, its answers end where a search over all of it says.
        #[test]
        fn delimiters_are_found_however_the_stream_is_split(
            delimiter in proptest::collection::vec(0_u8..2, 1..6),
            parts in proptest::collection::vec(proptest::collection::vec(0_u8..2, 0..20), 0..20),
        ) {
            let stream = parts.concat();
            let mut expected = Vec::new();
            let mut rest = &stream[..];
            while let Some(found) = memmem::find(rest, &delimiter) {
                expected.push((found + delimiter.len()) as u64);
                rest = &rest[found + delimiter.len()..];
            }
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let seen = answers(&AnswerEnd::Delimiter(delimiter), &parts);
            prop_assert_eq!(seen, (expected, rest.len() as u64));
        }
    }
}
