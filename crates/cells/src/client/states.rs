//! What cells say of themselves.

use bytes::Bytes;
use diego::auction::CellState;
use diego::models::CellPresence;
use diego::{TRACE_HEADER, json};
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::Full;
use prost::Message;

use super::failure::no_connection;
use super::{Caller, Failure, Lines};

/// Cells that are asked at the same time.
const AT_ONCE: usize = 16;

impl Caller {
    /// The state of one cell.
    ///
    /// # Errors
    /// See [`Failure`]; also when there is no such cell or it does not answer.
    pub async fn cell_state(&self, cell_id: &str) -> Result<String, Failure> {
        let cell = self.cell(cell_id).await?;
        let cell = cell.rows.first().cloned().unwrap_or_default();
        self.state(cell).await
    }

    /// Writes the states of all cells, in the order of their list, as they come. Those that do not
    /// answer hold nobody else up.
    ///
    /// # Errors
    /// See [`Failure`]; what failed is told when all have been asked.
    pub async fn cell_states(&self, lines: Lines<'_>) -> Result<(), Failure> {
        let cells = self.cells().await.map_err(|failure| {
            let cause = match failure {
                Failure::Bbs(error) => error.message,
                failure => failure.to_string(),
            };
            let text = format!("BBS error: Failed to get cell registrations from BBS: {cause}");
            Failure::Component(text)
        })?;
        let asked = cells.rows.into_iter().map(|cell| self.state(cell));
        let mut states = stream::iter(asked).buffered(AT_ONCE);
        let mut failures = Vec::new();
        while let Some(state) = states.next().await {
            match state {
                Ok(line) => super::write(&line, lines)?,
                Err(failure) => failures.push(failure.to_string()),
            }
        }
        match failures.is_empty() {
            true => Ok(()),
            false => Err(Failure::Component(failures.join("\n"))),
        }
    }

    async fn state(&self, cell: Bytes) -> Result<String, Failure> {
        let cell = CellPresence::decode(cell).map_err(|error| {
            let text = format!("read a cell's presence: {error}");
            Failure::bbs(diego::error::Type::InvalidProtobufMessage, text)
        })?;
        let state = self.ask_rep(&cell).await;
        state.map_err(|cause| {
            let cell_id = &cell.cell_id;
            let text = format!("Rep error: Failed to get cell state for cell {cell_id}: {cause}");
            Failure::Component(text)
        })
    }

    /// The JSON is passed on as it came, once it is known to be a state.
    async fn ask_rep(&self, cell: &CellPresence) -> Result<String, String> {
        // Newer reps announce an address with TLS beside the old one.
        let base = match &*cell.rep_url {
            "" => &cell.rep_address,
            url => url,
        };
        let uri = format!("{}/state", base.trim_end_matches('/'));
        let uri: Uri = uri
            .parse()
            .map_err(|_| format!("{base:?}, which it announces, is no address"))?;
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = uri;
        if let Ok(trace) = HeaderValue::from_str(&self.trace) {
            request.headers_mut().insert(TRACE_HEADER, trace);
        }
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|cause| no_connection("GET /state", &cause))?;
        if answer.status != StatusCode::OK {
            return Err(format!(
                "unexpected status code: {}",
                answer.status.as_u16()
            ));
        }
        // A list would be read as well, as the fields in their order.
        if !answer.body.trim_ascii_start().starts_with(b"{") {
            return Err("its answer is no state: it is no object".into());
        }
        let state = serde_json::from_slice::<CellState>(&answer.body);
        state.map_err(|error| format!("its answer is no state: {error}"))?;
        json::compact(&answer.body).map_err(|error| error.to_string())
    }
}
