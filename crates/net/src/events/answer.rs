//! A subscription as the answer to a request.

use http::Response;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use tokio::sync::mpsc;

use super::{Event, Subscription};
use crate::Body;

/// An answer whose body are the events. It ends with its subscription, or with its client.
///
/// To be called within a tokio runtime, where a task carries the events.
pub fn answer<E: Event>(mut subscription: Subscription<E>) -> Response<Body> {
    // One piece may wait for the connection; the others wait with the subscriber.
    let (pieces, body) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let piece = tokio::select! {
                piece = subscription.next() => piece,
                () = pieces.closed() => return,
            };
            let Some(piece) = piece else { return };
            // A connection that takes nothing must not keep a closed subscriber.
            let sent = tokio::select! {
                sent = pieces.send(piece) => sent,
                () = subscription.closed() => return,
            };
            if sent.is_err() {
                return;
            }
        }
    });
    let mut response = Response::new(crate::stream(body));
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (CACHE_CONTROL, "no-cache, no-store, must-revalidate"),
        (CONNECTION, "keep-alive"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
