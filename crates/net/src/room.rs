//! Memory that bodies take while they come: counted as it is taken, so that a peer that announces
//! much and sends little holds little.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::body::{BodyError, read_body};

/// Room for bodies that are here, whole or not. Who finds none is told so at once: to wait for it
/// would be to wait for others that may wait, too.
#[derive(Debug)]
pub struct Room(Semaphore);

/// A body, and the room that it takes until this is dropped.
#[derive(Debug)]
pub struct Held<'r> {
    /// The whole body.
    pub body: Bytes,
    _room: Option<SemaphorePermit<'r>>,
}

/// Why a body is not read.
#[derive(Debug)]
pub enum BodyReadError {
    /// Other bodies take all the room; it may be sent again.
    NoRoom,
    /// It is no body that may be had.
    Body(BodyError),
}

impl Room {
    /// Room for so many bytes, and at most for those of a semaphore (2^61 − 1).
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)))
    }

    /// Bytes that are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.0.available_permits()
    }

    /// Reads a body of at most so many bytes, waiting for all of it at most `within`. The rest of
    /// one that finds no room is read and thrown away, for as long again at most, or its peer would
    /// not see the answer.
    ///
    /// # Errors
    /// When there is no room for all of it, and as [`read_body`].
    pub async fn read<B>(
        &self,
        body: B,
        bytes_max: usize,
        within: Duration,
    ) -> Result<Held<'_>, BodyReadError>
    where
        B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
    {
        let mut counted = Counted {
            body,
            room: &self.0,
            left: bytes_max,
            held: None,
            full: false,
        };
        let read = read_body(&mut counted, bytes_max, within).await;
        if counted.full && !matches!(read, Err(BodyError::TooLong { .. })) {
            counted.held = None;
            let rest = async { while let Some(Ok(_)) = counted.body.frame().await {} };
            // Who is slower than that gets what answer the connection still carries.
            let _ = tokio::time::timeout(within, rest).await;
            return Err(BodyReadError::NoRoom);
        }
        let body = read.map_err(BodyReadError::Body)?;
        let _room = counted.held;
        Ok(Held { body, _room })
    }
}

/// A body that takes room as it comes.
struct Counted<'r, B> {
    body: B,
    room: &'r Semaphore,
    /// Bytes that may still come; what comes after them is thrown away.
    left: usize,
    held: Option<SemaphorePermit<'r>>,
    full: bool,
}

impl<B> Body for Counted<'_, B>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        let Poll::Ready(came) = Pin::new(&mut self.body).poll_frame(context) else {
            return Poll::Pending;
        };
        let came = came.map(|frame| frame.map_err(|error| error.to_string()));
        let bytes = match &came {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        let Some(left) = self.left.checked_sub(bytes) else {
            (self.left, self.held) = (0, None);
            return Poll::Ready(came);
        };
        self.left = left;
        let taken = u32::try_from(bytes).ok();
        let taken = taken.and_then(|bytes| self.room.try_acquire_many(bytes).ok());
        let Some(taken) = taken else {
            self.full = true;
            return Poll::Ready(Some(Err("no room".into())));
        };
        match &mut self.held {
            Some(held) => held.merge(taken),
            none => *none = Some(taken),
        }
        Poll::Ready(came)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::Full;
    use tokio::sync::mpsc;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(60);

    /// A body of which a test says what comes, announced as 1 MB.
    struct Sent(mpsc::UnboundedReceiver<&'static [u8]>);

    impl Body for Sent {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let came = self.0.poll_recv(context);
            came.map(|came| came.map(|bytes| Ok(Frame::data(Bytes::from_static(bytes)))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(1 << 20)
        }
    }

    fn whole(bytes: usize) -> Full<Bytes> {
        Full::new(vec![b'x'; bytes].into())
    }

    #[tokio::test]
    async fn what_has_come_takes_room_until_it_is_dropped() {
        let room = Room::new(100);
        let (send, sent) = mpsc::unbounded_channel();
        let mut slow = Box::pin(room.read(Sent(sent), 2 << 20, WITHIN));
        // It announces much and has sent nothing: all others are read.
        let none = tokio::time::timeout(Duration::ZERO, &mut slow).await;
        assert!(none.is_err());
        let first = room.read(whole(100), 1_000, WITHIN).await.unwrap();
        assert_eq!(first.body.len(), 100);
        let refused = room.read(whole(1), 1_000, WITHIN).await;
        assert!(matches!(refused, Err(BodyReadError::NoRoom)), "{refused:?}");
        drop(first);
        // What came of it counts.
        send.send(&[b'y'; 60]).unwrap();
        assert!(
            tokio::time::timeout(Duration::ZERO, &mut slow)
                .await
                .is_err()
        );
        let refused = room.read(whole(41), 1_000, WITHIN).await;
        assert!(matches!(refused, Err(BodyReadError::NoRoom)), "{refused:?}");
        assert!(room.read(whole(40), 1_000, WITHIN).await.is_ok());
        // One that does not fit gives back what it had.
        send.send(&[b'y'; 41]).unwrap();
        drop(send);
        let refused = slow.await;
        assert!(matches!(refused, Err(BodyReadError::NoRoom)), "{refused:?}");
        assert!(room.read(whole(100), 1_000, WITHIN).await.is_ok());
        // Nor does a body hold any that is too long.
        let refused = room.read(whole(90), 80, WITHIN).await;
        let too_long = matches!(refused, Err(BodyReadError::Body(BodyError::TooLong { .. })));
        assert!(too_long, "{refused:?}");
        assert_eq!(room.free(), 100);
    }
}
