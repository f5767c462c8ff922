//! Whole messages, each exactly once and in order, over a bus that may lose, repeat or
//! delay. NATS promises at most once; a connection that comes back has lost what was
//! under way. So parts are numbered, kept until thanked for, and sent again from the
//! first that is missing (go-back-N).

use std::collections::VecDeque;
use std::time::Duration;

use thiserror::Error;

use super::frame::{Body, HEAD_BYTES};

/// Time after which parts that nobody thanked for are sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Time between signs of life.
pub(crate) const BEAT_EVERY: Duration = Duration::from_millis(250);
/// Parts under way at once. With those of a full-size part it stays far below what
/// NATS holds for a slow consumer (64 MiB).
const WINDOW: usize = 64;
/// Longest part, however much the server would take.
const PART_BYTES: usize = 256 * 1024;
/// Longest message, and the most that waits to be thanked for.
pub(crate) const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Why a link is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum LinkError {
    /// More is to be sent than the other side takes.
    #[error("{0} bytes wait to be taken by the other side; at most {MESSAGE_BYTES} may")]
    Full(usize),
    /// The other side sends a message that is too long.
    #[error("a message of more than {MESSAGE_BYTES} bytes came")]
    TooLong,
    /// The other side thanks for what was never sent.
    #[error("thanks came for part {0}, which was never sent")]
    NeverSent(u64),
}

/// One end of a link.
#[derive(Debug)]
pub(crate) struct Link {
    part_bytes: usize,
    /// Parts not thanked for yet, the oldest first.
    parts: VecDeque<Part>,
    /// Bytes in them.
    queued: usize,
    /// Number of the first of them.
    first: u64,
    /// How many of them were sent since the last begin from the first.
    sent: usize,
    /// When one was last sent or thanked for.
    moved: Duration,
    /// Number of the part to take next.
    expected: u64,
    /// Parts of the message that is coming.
    coming: Vec<u8>,
    /// Whether the other side waits for thanks.
    owes_thanks: bool,
    /// When the last frame left.
    spoke: Option<Duration>,
    /// When the last frame came.
    heard: Duration,
}

#[derive(Debug)]
struct Part {
    last: bool,
    content: Vec<u8>,
}

impl Link {
    /// A link that begins at `now`, over a bus that takes `max_payload` bytes at a time.
    pub(crate) fn new(max_payload: usize, now: Duration) -> Self {
        Self {
            part_bytes: max_payload.saturating_sub(HEAD_BYTES).clamp(1, PART_BYTES),
            parts: VecDeque::new(),
            queued: 0,
            first: 0,
            sent: 0,
            moved: now,
            expected: 0,
            coming: Vec::new(),
            owes_thanks: false,
            spoke: None,
            heard: now,
        }
    }

    /// Puts a message in the queue.
    pub(crate) fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let queued = self.queued + message.len();
        if queued > MESSAGE_BYTES {
            return Err(LinkError::Full(queued));
        }
        self.queued = queued;
        let count = message.len().div_ceil(self.part_bytes).max(1);
        for index in 0..count {
            let from = index * self.part_bytes;
            let to = message.len().min(from + self.part_bytes);
            self.parts.push_back(Part {
                last: index + 1 == count,
                content: message[from..to].to_vec(),
            });
        }
        Ok(())
    }

    /// Takes a frame that came; gives the message that it completes. A part is taken
    /// only if there is `room` for a message; if not, it will come again.
    pub(crate) fn take(
        &mut self,
        body: &Body,
        room: bool,
        now: Duration,
    ) -> Result<Option<Vec<u8>>, LinkError> {
        self.heard = now;
        match body {
            Body::Data {
                number,
                acknowledged,
                last,
                content,
            } => {
                self.thanked(*acknowledged, now)?;
                self.owes_thanks = true;
                if *number != self.expected || !room {
                    return Ok(None);
                }
                if self.coming.len() + content.len() > MESSAGE_BYTES {
                    return Err(LinkError::TooLong);
                }
                self.expected += 1;
                self.coming.extend(content);
                Ok(last.then(|| std::mem::take(&mut self.coming)))
            }
            Body::Beat { acknowledged } => self.thanked(*acknowledged, now).map(|()| None),
            Body::Ping { .. } | Body::Pong { .. } => Ok(None),
        }
    }

    fn thanked(&mut self, acknowledged: u64, now: Duration) -> Result<(), LinkError> {
        // Thanks may be overtaken by later ones; they are then old and say nothing.
        let Some(taken) = acknowledged.checked_sub(self.first) else {
            return Ok(());
        };
        let taken = usize::try_from(taken)
            .ok()
            .filter(|taken| *taken <= self.parts.len())
            .ok_or(LinkError::NeverSent(acknowledged))?;
        for part in self.parts.drain(..taken) {
            self.queued -= part.content.len();
        }
        self.first = acknowledged;
        self.sent = self.sent.saturating_sub(taken);
        if taken > 0 {
            self.moved = now;
        }
        Ok(())
    }

    /// What is to be sent now.
    pub(crate) fn due(&mut self, now: Duration) -> Vec<Body> {
        if self.sent > 0 && now.saturating_sub(self.moved) >= AGAIN_AFTER {
            self.sent = 0;
        }
        let mut bodies = Vec::new();
        while self.sent < self.parts.len().min(WINDOW) {
            let part = &self.parts[self.sent];
            bodies.push(Body::Data {
                number: self.first + self.sent as u64,
                acknowledged: self.expected,
                last: part.last,
                content: part.content.clone(),
            });
            self.sent += 1;
            self.moved = now;
        }
        let quiet = self
            .spoke
            .is_none_or(|spoke| now.saturating_sub(spoke) >= BEAT_EVERY);
        if bodies.is_empty() && (self.owes_thanks || quiet) {
            bodies.push(Body::Beat {
                acknowledged: self.expected,
            });
        }
        if !bodies.is_empty() {
            self.owes_thanks = false;
            self.spoke = Some(now);
        }
        bodies
    }

    /// How long the other side has been silent.
    pub(crate) fn silent(&self, now: Duration) -> Duration {
        now.saturating_sub(self.heard)
    }

    /// Whether everything sent was taken.
    pub(crate) fn is_idle(&self) -> bool {
        self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    /// What becomes of one frame on the way.
    #[derive(Debug, Clone, Copy)]
    enum Fate {
        Arrives,
        Lost,
        Twice,
        Late,
    }

    fn fates() -> impl Strategy<Value = Vec<Fate>> {
        let fate = prop_oneof![
            3 => Just(Fate::Arrives),
            1 => Just(Fate::Lost),
            1 => Just(Fate::Twice),
            1 => Just(Fate::Late),
        ];
        proptest::collection::vec(fate, 1..200)
    }

    /// Carries messages from one link to another over a bus with these fates, and then
    /// over a good one.
    fn carry(messages: &[Vec<u8>], fates: &[Fate], payload: usize) -> Vec<Vec<u8>> {
        let mut now = Duration::ZERO;
        let mut ends = [Link::new(payload, now), Link::new(payload, now)];
        for message in messages {
            ends[0].send(message).unwrap();
        }
        let mut late: [Vec<Body>; 2] = Default::default();
        let mut fates = fates.iter().copied();
        let mut got = Vec::new();
        for _ in 0..10_000 {
            if ends[0].is_idle() {
                break;
            }
            now += STEP;
            for from in 0..2 {
                let mut arriving = std::mem::take(&mut late[from]);
                for body in ends[from].due(now) {
                    match fates.next().unwrap_or(Fate::Arrives) {
                        Fate::Arrives => arriving.push(body),
                        Fate::Lost => {}
                        Fate::Twice => arriving.extend([body.clone(), body]),
                        Fate::Late => late[from].push(body),
                    }
                }
                for body in arriving {
                    got.extend(ends[1 - from].take(&body, true, now).unwrap());
                }
            }
        }
        assert!(ends[0].is_idle(), "everything is thanked for in the end");
        got
    }

    proptest! {
        #[test]
        fn each_message_comes_once_and_in_order(
            messages in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..300), 0..12),
            fates in fates(),
            part in 1usize..64,
        ) {
            prop_assert_eq!(carry(&messages, &fates, HEAD_BYTES + part), messages);
        }
    }

    #[test]
    fn silence_is_counted_and_beats_end_it() {
        let mut link = Link::new(1000, Duration::ZERO);
        assert_eq!(link.silent(STEP * 3), STEP * 3);
        let beat = Body::Beat { acknowledged: 0 };
        assert_eq!(link.take(&beat, true, STEP * 4), Ok(None));
        assert_eq!(link.silent(STEP * 5), STEP);
    }

    #[test]
    fn a_beat_leaves_when_nothing_else_does() {
        let mut link = Link::new(1000, Duration::ZERO);
        let beat = vec![Body::Beat { acknowledged: 0 }];
        assert_eq!(link.due(Duration::ZERO), beat);
        assert_eq!(link.due(BEAT_EVERY / 2), vec![]);
        assert_eq!(link.due(BEAT_EVERY), beat);
    }

    #[test]
    fn without_room_nothing_is_thanked_for() {
        let (mut a, mut b) = (
            Link::new(1000, Duration::ZERO),
            Link::new(1000, Duration::ZERO),
        );
        a.send(b"one").unwrap();
        for body in a.due(STEP) {
            assert_eq!(b.take(&body, false, STEP), Ok(None));
        }
        for body in b.due(STEP) {
            a.take(&body, true, STEP).unwrap();
        }
        assert!(!a.is_idle());
        let again = a.due(STEP + AGAIN_AFTER);
        assert_eq!(b.take(&again[0], true, STEP), Ok(Some(b"one".to_vec())));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut link = Link::new(1 << 20, Duration::ZERO);
        link.send(&vec![0; MESSAGE_BYTES]).unwrap();
        assert_eq!(link.send(&[0]), Err(LinkError::Full(MESSAGE_BYTES + 1)));
        let thanks = Body::Beat {
            acknowledged: 1 << 40,
        };
        assert_eq!(
            link.take(&thanks, true, STEP),
            Err(LinkError::NeverSent(1 << 40))
        );
    }
}
