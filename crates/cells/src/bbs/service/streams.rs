//! Event streams.

use diego::models::EventsByCellId;
use http::{Response, StatusCode};
use net::{Body, Incoming};
use prost::Message;

use super::{Answered, Service};
use crate::answers;
use crate::bbs::events::Stream;

impl Service {
    /// The events of a stream, of one cell where the request names one.
    pub(super) async fn events(&self, body: Incoming, stream: Stream) -> Answered {
        let request = self.bytes(body).await.ok();
        let request = request.and_then(|bytes| EventsByCellId::decode(bytes).ok());
        let Some(request) = request else {
            return Ok(answers::bare(StatusCode::INTERNAL_SERVER_ERROR));
        };
        Ok(self.stream(stream, request.cell_id))
    }

    /// All events of a stream.
    pub(super) fn all_events(&self, stream: Stream) -> Response<Body> {
        self.stream(stream, String::new())
    }

    fn stream(&self, stream: Stream, cell: String) -> Response<Body> {
        net::events::answer(self.hub.subscribe(stream, cell))
    }
}
