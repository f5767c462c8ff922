//! Event streams.

use diego::models::EventsByCellId;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use net::{Body, Incoming};
use prost::Message;
use tokio::sync::mpsc;

use super::{Answered, Service, answer};
use crate::bbs::events::Stream;

impl Service {
    /// The events of a stream, of one cell where the request names one.
    pub(super) async fn events(&self, body: Incoming, stream: Stream) -> Answered {
        let request = self.bytes(body).await.ok();
        let request = request.and_then(|bytes| EventsByCellId::decode(bytes).ok());
        let Some(request) = request else {
            return Ok(answer::bare(StatusCode::INTERNAL_SERVER_ERROR));
        };
        Ok(self.stream(stream, request.cell_id))
    }

    /// All events of a stream.
    pub(super) fn all_events(&self, stream: Stream) -> Response<Body> {
        self.stream(stream, String::new())
    }

    fn stream(&self, stream: Stream, cell: String) -> Response<Body> {
        let mut subscription = self.hub.subscribe(stream, cell);
        // One piece may wait for the connection; the others wait with the subscriber.
        let (pieces, body) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let piece = tokio::select! {
                    piece = subscription.next() => piece,
                    () = pieces.closed() => return,
                };
                let Some(piece) = piece else { return };
                if pieces.send(piece).await.is_err() {
                    return;
                }
            }
        });
        let mut response = Response::new(net::stream(body));
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        headers.insert(CONTENT_TYPE, kind);
        let cache = HeaderValue::from_static("no-cache, no-store, must-revalidate");
        headers.insert(CACHE_CONTROL, cache);
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        response
    }
}
