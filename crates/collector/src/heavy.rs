//! Requests that may take much memory or time: few at once, and away from the others.

use std::sync::Arc;

use http::{Request, Response};
use net::{Body, Incoming, read_body};
use tokio::sync::{Semaphore, SemaphorePermit};
use traces::{Nanos, Origin, Store};

use crate::answer::{Query, Refusal, whole};
use crate::intake::{BODY_BYTES, BODY_WITHIN, Form, Intake};
use crate::kept;
use crate::server::{aside, stopping, unread};

/// Bodies that are read, and answers that are made of many spans, at once: each may take as
/// much memory as the longest body.
const AT_ONCE: usize = 4;

/// Places for requests that read or compute much; who finds none waits.
#[derive(Debug)]
pub struct Heavy(Semaphore);

impl Default for Heavy {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

impl Heavy {
    /// A place, for as long as the caller keeps it.
    ///
    /// # Errors
    /// When the server stops.
    pub async fn place(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        self.0.acquire().await.map_err(|_| stopping())
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
        let _place = self.place().await?;
        let (head, body) = request.into_parts();
        let body = read_body(body, BODY_BYTES, BODY_WITHIN).await;
        let body = body.map_err(|error| unread(&error))?;
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
