//! What a process writes: the end of it is kept, lines go to the log.

use std::collections::VecDeque;

use telemetry::{Fields, Level, Logger};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Bytes kept of what a process wrote last.
const KEPT_BYTES: usize = 64 * 1024;
/// Longest line of the log; longer ones are cut.
const LINE_BYTES: usize = 61_440;

/// The last bytes of an output.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT_BYTES)..];
        let surplus = (self.0.len() + bytes.len()).saturating_sub(KEPT_BYTES);
        self.0.drain(..surplus);
        self.0.extend(bytes);
    }

    /// At most the last `bytes` of it, as text.
    pub(super) fn text(&self, bytes: usize) -> String {
        let from = self.0.len().saturating_sub(bytes);
        let last: Vec<u8> = self.0.range(from..).copied().collect();
        String::from_utf8_lossy(&last).into_owned()
    }
}

/// Splits an output into lines.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES - self.0.len();
            let ends = piece.ends_with(b"\n");
            self.0.extend_from_slice(&piece[..piece.len().min(room)]);
            if ends || self.0.len() == LINE_BYTES {
                each(String::from_utf8_lossy(&self.0).trim_end_matches(['\n', '\r']));
                self.0.clear();
            }
        }
    }
}

/// Reads an output to its end into `tail`.
pub(super) async fn follow(
    mut output: pipe::Receiver,
    tail: &mut Tail,
    logger: &Logger,
    fields: &Fields,
) {
    let logged = logger.enabled(Level::Debug);
    let mut lines = Lines::default();
    let log = |line: &str| logger.debug("line", fields.clone().and("line", line));
    let mut buffer = [0; 4096];
    // An error means that nothing more can be read, which is an end as well.
    while let Ok(read @ 1..) = output.read(&mut buffer).await {
        tail.push(&buffer[..read]);
        if logged {
            lines.push(&buffer[..read], log);
        }
    }
    if logged {
        lines.push(b"\n", |line| {
            if !line.is_empty() {
                log(line);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_bytes_are_kept() {
        let mut tail = Tail::default();
        tail.push(&[b'a'; KEPT_BYTES]);
        tail.push(b"the end");
        assert_eq!(tail.0.len(), KEPT_BYTES);
        assert_eq!(tail.text(8), "athe end");
        tail.push(&[b'b'; 2 * KEPT_BYTES]);
        assert_eq!(tail.0.len(), KEPT_BYTES);
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut lines = Lines::default();
        let mut lengths = Vec::new();
        for _ in 0..20 {
            lines.push(&[b'x'; 8192], |line| lengths.push(line.len()));
        }
        assert_eq!(lengths[0], LINE_BYTES);
        assert!(lines.0.len() < LINE_BYTES);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(
            text in "[a-c\n]{0,60}", cuts in prop::collection::vec(1..9usize, 60),
        ) {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            let (mut rest, mut cuts) = (text.as_bytes(), cuts.into_iter());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                lines.push(now, |line| seen.push(line.to_owned()));
                rest = later;
            }
            lines.push(b"\n", |line| seen.push(line.to_owned()));
            let expected: Vec<String> = text.split('\n').map(str::to_owned).collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
