//! The lines of an output, however it arrives.

/// Splits an output into lines. One that is longer than the bound comes in pieces.
#[derive(Debug)]
pub struct Lines {
    /// What came of the line that has not ended.
    line: Vec<u8>,
    longest: usize,
}

impl Lines {
    /// Lines, or pieces of them, of at most so many bytes, at least one.
    pub fn new(longest: usize) -> Self {
        Self {
            line: Vec::new(),
            longest: longest.max(1),
        }
    }

    /// Takes what came, and gives each line that it ends, without its end.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&str)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (mut rest, ends) = match part.split_last() {
                Some((b'\n', part)) => (part, true),
                _ => (part, false),
            };
            while self.line.len() + rest.len() > self.longest {
                let (now, later) = rest.split_at(self.longest - self.line.len());
                self.line.extend_from_slice(now);
                self.give(&mut each);
                rest = later;
            }
            self.line.extend_from_slice(rest);
            if ends {
                self.give(&mut each);
            }
        }
    }

    /// The output has ended: gives what came of its last line, if anything did.
    pub fn end(&mut self, each: impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.give(each);
        }
    }

    fn give(&mut self, mut each: impl FnMut(&str)) {
        let line = String::from_utf8_lossy(&self.line);
        each(line.trim_end_matches('\r'));
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_endless_line_comes_in_pieces() {
        let mut lines = Lines::new(61_440);
        let mut lengths = Vec::new();
        for _ in 0..20 {
            lines.push(&[b'x'; 8192], |line| lengths.push(line.len()));
        }
        assert_eq!(lengths, [61_440, 61_440]);
        assert!(lines.line.len() <= 61_440);
        lines.push(b"\nnext\r\n\nlast", |line| lengths.push(line.len()));
        lines.end(|line| lengths.push(line.len()));
        lines.end(|line| lengths.push(line.len()));
        assert_eq!(lengths[2..], [20 * 8192 - 2 * 61_440, 4, 0, 4]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(
            text in "[a-c\n]{0,60}", cuts in prop::collection::vec(1..9usize, 60),
        ) {
            let mut lines = Lines::new(7);
            let mut seen = Vec::new();
            let (mut rest, mut cuts) = (text.as_bytes(), cuts.into_iter());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                lines.push(now, |line| seen.push(line.to_owned()));
                rest = later;
            }
            lines.end(|line| seen.push(line.to_owned()));
            let pieces = text.lines().flat_map(|line| match line.len() {
                0 => vec![String::new()],
                _ => line.as_bytes().chunks(7)
                    .map(|piece| String::from_utf8_lossy(piece).into_owned()).collect(),
            });
            prop_assert_eq!(seen, pieces.collect::<Vec<_>>());
        }
    }
}
