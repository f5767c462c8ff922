//! Answers: protobuf with status 200, errors in field 1.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use diego::PROTOBUF;
use diego::models::{Error, TaskLifecycleResponse};
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Method, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use net::Body;
use prost::Message;

use crate::answers;

/// Bytes of one piece of a long answer.
const PIECE_BYTES: usize = 256 * 1024;

fn protobuf(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static(PROTOBUF);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A message.
pub(super) fn message(message: &impl Message) -> Response<Body> {
    protobuf(net::full(message.encode_to_vec()))
}

/// A message that is encoded already.
pub(super) fn encoded(message: Bytes) -> Response<Body> {
    protobuf(net::full(message))
}

/// Success that says nothing.
pub(super) fn done() -> Response<Body> {
    protobuf(net::full(Bytes::new()))
}

/// An error: field 1 in every answer.
pub(super) fn error(error: Error) -> Response<Body> {
    message(&TaskLifecycleResponse { error: Some(error) })
}

/// Success or an error.
pub(super) fn lifecycle(result: Result<(), Error>) -> Response<Body> {
    match result {
        Ok(()) => done(),
        Err(failed) => error(failed),
    }
}

/// A message with the record in field 2.
pub(super) fn record(record: &[u8]) -> Response<Body> {
    let mut body = Vec::with_capacity(record.len() + 6);
    append(&mut body, record);
    protobuf(net::full(body))
}

/// A message with all records in field 2, sent in pieces.
pub(super) fn list(records: Vec<Arc<[u8]>>) -> Response<Body> {
    let total = records.iter().map(|record| encoded_len(record)).sum();
    let pieces = Pieces {
        records: records.into_iter(),
        waiting: None,
        rest: Some(total),
    };
    protobuf(pieces.boxed_unsync())
}

/// As [`list`], of records that are only made when they are sent; the length of
/// the answer is then not announced.
pub(super) fn lazy_list(
    records: impl Iterator<Item = Vec<u8>> + Send + Unpin + 'static,
) -> Response<Body> {
    let pieces = Pieces {
        records,
        waiting: None,
        rest: None,
    };
    protobuf(pieces.boxed_unsync())
}

/// The path wants another method.
pub(super) fn wrong_method(wanted: &Method) -> Response<Body> {
    let mut response = answers::wrong_method();
    if let Ok(wanted) = HeaderValue::from_str(wanted.as_str()) {
        response.headers_mut().insert(ALLOW, wanted);
    }
    response
}

/// The answer, after which the connection is closed.
pub(super) fn closing(mut response: Response<Body>) -> Response<Body> {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Field 2, length-delimited.
const TAG: u8 = 0x12;

fn encoded_len(record: &[u8]) -> u64 {
    let length = 1 + prost::length_delimiter_len(record.len()) + record.len();
    length as u64
}

fn append(to: &mut Vec<u8>, record: &[u8]) {
    to.push(TAG);
    prost::encoding::encode_varint(record.len() as u64, to);
    to.extend_from_slice(record);
}

/// Records joined while they are sent, so that a long list is never in memory twice.
struct Pieces<I: Iterator> {
    records: I,
    waiting: Option<I::Item>,
    /// Bytes still to come, where that is known.
    rest: Option<u64>,
}

impl<I> HttpBody for Pieces<I>
where
    I: Iterator<Item: AsRef<[u8]> + Unpin> + Unpin,
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let room = this
            .rest
            .map_or(PIECE_BYTES, |rest| rest.min(PIECE_BYTES as u64) as usize);
        let mut piece = Vec::with_capacity(room);
        while let Some(record) = this.waiting.take().or_else(|| this.records.next()) {
            let length = encoded_len(record.as_ref()) as usize;
            if !piece.is_empty() && piece.len() + length > PIECE_BYTES {
                this.waiting = Some(record);
                break;
            }
            append(&mut piece, record.as_ref());
        }
        if piece.is_empty() {
            return Poll::Ready(None);
        }
        if let Some(rest) = &mut this.rest {
            *rest -= piece.len() as u64;
        }
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use diego::models::{Task, TasksResponse};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_joined_list_is_the_message_with_all_records(
            guids in proptest::collection::vec("[a-z]{0,400}", 0..60)
        ) {
            let tasks: Vec<Task> = guids
                .into_iter()
                .map(|task_guid| Task { task_guid, ..Task::default() })
                .collect();
            let expected = TasksResponse { error: None, tasks: tasks.clone() }.encode_to_vec();
            let records: Vec<Arc<[u8]>> =
                tasks.iter().map(|task| task.encode_to_vec().into()).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let body = list(records).into_body();
            prop_assert_eq!(body.size_hint().exact(), Some(expected.len() as u64));
            let sent = runtime.block_on(body.collect()).unwrap().to_bytes();
            prop_assert_eq!(&sent[..], &expected[..]);
            let lazy = lazy_list(tasks.into_iter().map(|task| task.encode_to_vec()));
            let sent = runtime.block_on(lazy.into_body().collect()).unwrap().to_bytes();
            prop_assert_eq!(&sent[..], &expected[..]);
        }
    }
}
