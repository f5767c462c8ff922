//! The line that is logged for a request.

use wire::http1::RequestHead;

use super::pipeline::{Client, Exchange, Pipeline, Times};

/// Appends the line of a request that has ended, with its line end.
pub fn write_line(
    pipeline: &Pipeline,
    head: &RequestHead,
    client: &Client,
    exchange: &Exchange,
    now: Times,
    out: &mut Vec<u8>,
) {
    let _ = (pipeline, client, exchange, now);
    out.extend_from_slice(head.target());
    out.push(b'\n');
}
