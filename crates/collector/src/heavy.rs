//! Requests that may take much memory or time: few at once, and away from the others.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use net::{Body, Incoming, read_body};
use tokio::sync::{Semaphore, SemaphorePermit};
use traces::{Nanos, Origin, Store};

use crate::answer::{Query, Refusal, whole};
use crate::intake::{BODY_BYTES, BODY_WITHIN, Form, Intake};
use crate::kept;
use crate::server::{aside, stopping, unread};

/// Bodies that are understood, and answers that are made of many spans, at once: each may take as
/// much memory as the longest body.
const AT_ONCE: usize = 4;

/// Bytes of bodies that are here, whole or not, as they came.
const ARRIVING: usize = AT_ONCE * BODY_BYTES;

/// Places for requests that read or compute much; who finds none waits. A body takes one when it is
/// whole, so that nobody waits for who sends slowly.
#[derive(Debug)]
pub struct Heavy {
    places: Semaphore,
    arriving: Semaphore,
}

impl Default for Heavy {
    fn default() -> Self {
        Self {
            places: Semaphore::new(AT_ONCE),
            arriving: Semaphore::new(ARRIVING),
        }
    }
}

impl Heavy {
    /// A place, for as long as the caller keeps it.
    ///
    /// # Errors
    /// When the server stops.
    pub async fn place(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        self.places.acquire().await.map_err(|_| stopping())
    }

    /// A whole body of at most so many bytes, and the room that it takes until that is dropped.
    ///
    /// # Errors
    /// When it is longer, comes too slowly, or there is no room for more of it.
    pub async fn read<B>(&self, body: B, most: usize) -> Result<(Bytes, Room<'_>), Refusal>
    where
        B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
    {
        let (mut room, mut is_full) = (None, false);
        let measured = Measured {
            body,
            arriving: &self.arriving,
            room: &mut room,
            is_full: &mut is_full,
        };
        let read = read_body(measured, most, BODY_WITHIN).await;
        match read {
            Ok(body) => Ok((body, room)),
            Err(_) if is_full => Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too much is being sent at once: send it again later",
            )),
            Err(error) => Err(unread(&error)),
        }
    }

    /// Takes in the spans of a request's body.
    ///
    /// # Errors
    /// What makes the body none, or none that is kept.
    pub async fn take(
        &self,
        intake: &Arc<Intake>,
        form: Form,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let (head, body) = request.into_parts();
        let (body, _room) = self.read(body, BODY_BYTES).await?;
        let _place = self.place().await?;
        let intake = Arc::clone(intake);
        aside("reading the spans", move || {
            intake.take(form, &head.headers, body)
        })
        .await?
    }

    /// The spans of whole traces that a query asks for, as a file of its format; of
    /// `usual` traces if it does not say how many.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub async fn spans(
        &self,
        (store, origin): (&Store, &Origin),
        now: Nanos,
        query: Query<'_>,
        usual: usize,
    ) -> Result<Response<Body>, Refusal> {
        let format = query.text("format").unwrap_or_else(|| "otlp".to_owned());
        let (content_type, write) = kept::form(&format)?;
        let _place = self.place().await?;
        let spans = kept::whole(store, now, query, usual)?;
        let origin = origin.clone();
        aside("writing the spans", move || {
            whole(content_type, write(&spans.concat(), &origin))
        })
        .await
    }
}

/// What a body that came takes of what there is room for.
pub type Room<'h> = Option<SemaphorePermit<'h>>;

/// A body of which each piece needs room when it comes.
struct Measured<'r, 'h, B> {
    body: B,
    arriving: &'h Semaphore,
    room: &'r mut Room<'h>,
    is_full: &'r mut bool,
}

impl<B> http_body::Body for Measured<'_, '_, B>
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        let this = self.get_mut();
        let Some(frame) = ready!(Pin::new(&mut this.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let frame = frame.map_err(|error| error.to_string());
        let length = frame.as_ref().ok().and_then(|frame| frame.data_ref());
        let length = length.map_or(0, Bytes::len);
        let wanted = u32::try_from(length).unwrap_or(u32::MAX);
        // To wait for room would be to wait for others that may wait, too.
        let Ok(more) = this.arriving.try_acquire_many(wanted) else {
            *this.is_full = true;
            return Poll::Ready(Some(Err("there is no room for more".to_owned())));
        };
        match this.room {
            Some(room) => room.merge(more),
            None => *this.room = Some(more),
        }
        Poll::Ready(Some(frame))
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
    use http_body_util::{Empty, Full};

    use super::*;

    /// The first byte of a body of which the rest never comes.
    struct Slow(bool);

    impl http_body::Body for Slow {
        type Data = Bytes;
        type Error = String;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
            match std::mem::replace(&mut self.0, true) {
                true => Poll::Pending,
                false => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"a"))))),
            }
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_who_sends_slowly() {
        let heavy = Arc::new(Heavy::default());
        let slow = (0..3 * AT_ONCE).map(|_| {
            let heavy = Arc::clone(&heavy);
            tokio::spawn(async move { heavy.read(Slow(false), BODY_BYTES).await.is_ok() })
        });
        let slow: Vec<_> = slow.collect();
        while heavy.arriving.available_permits() > ARRIVING - 3 * AT_ONCE {
            tokio::task::yield_now().await;
        }
        let (body, room) = heavy
            .read(Full::new(Bytes::from_static(b"whole")), BODY_BYTES)
            .await
            .unwrap();
        assert_eq!(body, "whole");
        let place = heavy.place().await;
        assert!(place.is_ok());
        drop((room, place));
        slow.iter().for_each(|one| one.abort());
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_may_be_sent_again() {
        let heavy = Heavy::default();
        let all = heavy.arriving.try_acquire_many(ARRIVING as u32).unwrap();
        let body = || Full::new(Bytes::from_static(b"whole"));
        let refused = heavy.read(body(), BODY_BYTES).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(heavy.read(Empty::<Bytes>::new(), BODY_BYTES).await.is_ok());
        drop(all);
        let (_, room) = heavy.read(body(), BODY_BYTES).await.unwrap();
        assert_eq!(heavy.arriving.available_permits(), ARRIVING - 5);
        drop(room);
        assert_eq!(heavy.arriving.available_permits(), ARRIVING);
    }
}
