//! Requests that may take much memory or time: few at once, and away from the others.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use net::{Body, BodyReadError, Held, Incoming, Room};
use tokio::sync::{Semaphore, SemaphorePermit};
use traces::{Nanos, Origin, Store};

use crate::answer::{Query, Refusal, whole};
use crate::intake::{BODY_BYTES, BODY_WITHIN, Form, Intake};
use crate::kept;
use crate::server::{run_blocking, stopping, unread};

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
    arriving: Room,
}

impl Default for Heavy {
    fn default() -> Self {
        Self {
            places: Semaphore::new(AT_ONCE),
            arriving: Room::new(ARRIVING),
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
    pub async fn read<B>(&self, body: B, most: usize) -> Result<Held<'_>, Refusal>
    where
        B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
    {
        let read = self.arriving.read(body, most, BODY_WITHIN).await;
        read.map_err(|not_read| match not_read {
            BodyReadError::NoRoom => Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too much is being sent at once: send it again later",
            ),
            BodyReadError::Body(error) => unread(&error),
        })
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
        let held = self.read(body, BODY_BYTES).await?;
        let _place = self.place().await?;
        let (intake, body) = (Arc::clone(intake), held.body.clone());
        run_blocking("reading the spans", move || {
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
        run_blocking("writing the spans", move || {
            whole(content_type, write(&spans.concat(), &origin))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body::Frame;
    use http_body_util::Full;

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
        while heavy.arriving.free() > ARRIVING - 3 * AT_ONCE {
            tokio::task::yield_now().await;
        }
        let whole = Full::new(Bytes::from_static(b"whole"));
        let held = heavy.read(whole, BODY_BYTES).await.unwrap();
        assert_eq!(held.body, "whole");
        let place = heavy.place().await;
        assert!(place.is_ok());
        drop((held, place));
        slow.iter().for_each(|one| one.abort());
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_may_be_sent_again() {
        let heavy = Heavy {
            arriving: Room::new(9),
            ..Heavy::default()
        };
        let body = || Full::new(Bytes::from_static(b"whole"));
        let held = heavy.read(body(), BODY_BYTES).await.unwrap();
        let refused = heavy.read(body(), BODY_BYTES).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        drop(held);
        assert!(heavy.read(body(), BODY_BYTES).await.is_ok());
    }
}
