//! The lines of a child's output.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest line that is passed on; what is longer is cut.
const LONGEST: usize = 64 << 10;

/// Reads lines until the end.
pub(super) struct Lines<R> {
    from: R,
    /// Read and not given yet.
    buffer: Vec<u8>,
    /// Whether the rest of a line that was cut is left out.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            skipping: false,
        }
    }

    /// The next line, without its end; `None` behind the last one. What is dropped while
    /// it waits loses nothing.
    pub(super) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let rest_of_a_line = std::mem::take(&mut self.skipping);
                if rest_of_a_line {
                    continue;
                }
                return Some(text(&line));
            }
            if self.buffer.len() >= LONGEST {
                let line = std::mem::take(&mut self.buffer);
                let before = std::mem::replace(&mut self.skipping, true);
                if before {
                    continue;
                }
                return Some(text(&line));
            }
            // An error is the end as well: nobody writes any more.
            let read = self.from.read_buf(&mut self.buffer).await.unwrap_or(0);
            if read == 0 {
                let rest = std::mem::take(&mut self.buffer);
                let line = !rest.is_empty() && !self.skipping;
                return line.then(|| text(&rest));
            }
        }
    }
}

fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    String::from_utf8_lossy(line).into_owned()
}
