//! What a process writes: the end of it is kept.

use std::borrow::Cow;
use std::collections::VecDeque;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Bytes kept of what a process wrote last.
const KEPT_BYTES: usize = 64 * 1024;
/// Longest line of the log; longer ones come in pieces.
pub(super) const LINE_BYTES: usize = 61_440;

/// The last bytes of an output.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
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

/// Reads an output to its end, in the pieces in which it comes.
pub(super) async fn follow(mut output: pipe::Receiver, mut each: impl FnMut(&[u8])) {
    let mut buffer = [0; 4096];
    // An error means that nothing more can be read, which is an end as well.
    while let Ok(read @ 1..) = output.read(&mut buffer).await {
        each(&buffer[..read]);
    }
}

/// What was written, where a carriage return ends a line: so it does in Diego's log, for programs that show
/// their progress.
pub(super) fn returns_as_ends(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.contains(&b'\r') {
        return Cow::Borrowed(bytes);
    }
    let ends = bytes.iter().map(|byte| match byte {
        b'\r' => b'\n',
        byte => *byte,
    });
    Cow::Owned(ends.collect())
}

#[cfg(test)]
mod tests {
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
}
