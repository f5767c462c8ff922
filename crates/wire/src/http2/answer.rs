//! One exchange, from its request to its answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h2::RecvStream;
use h2::client::ResponseFuture;
use http::HeaderMap;

use super::StreamError;
use super::payload::Sending;

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its header fields.
    pub headers: HeaderMap,
    /// The fields behind its body, if there are any.
    pub trailers: Option<HeaderMap>,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// The start of the body, as much as was asked for.
    pub body: Vec<u8>,
}

/// An exchange that has no whole answer yet.
#[derive(Debug)]
pub(super) struct Exchange {
    request: Sending,
    keep: usize,
    stage: Stage,
    /// What is known of it so far.
    answer: Answer,
}

#[derive(Debug)]
enum Stage {
    Head(ResponseFuture),
    Body(RecvStream),
    Ended,
}

impl Exchange {
    pub(super) fn new(request: Sending, response: ResponseFuture, keep: usize) -> Self {
        Self {
            request,
            keep,
            stage: Stage::Head(response),
            answer: Answer::default(),
        }
    }

    /// Tells the peer that nobody waits any more (RST_STREAM, CANCEL).
    pub(super) fn cancel(mut self) {
        self.request.reset(h2::Reason::CANCEL);
    }

    /// Goes on as far as what was received allows.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Answer, StreamError>> {
        // A server that takes no more of the request may still answer: the answer tells.
        let _ = self.request.advance(context);
        let result = ready!(self.advance(context));
        self.stage = Stage::Ended;
        Poll::Ready(result.map_err(|error| StreamError::from(&error)))
    }

    fn advance(&mut self, context: &mut Context<'_>) -> Poll<Result<Answer, h2::Error>> {
        let answer = &mut self.answer;
        loop {
            match &mut self.stage {
                Stage::Head(response) => {
                    let response = ready!(Pin::new(response).poll(context))?;
                    let (head, body) = response.into_parts();
                    answer.status = head.status.as_u16();
                    answer.headers = head.headers;
                    self.stage = Stage::Body(body);
                }
                Stage::Body(body) => {
                    while let Some(part) = ready!(body.poll_data(context)) {
                        let part = part?;
                        answer.body_bytes = answer.body_bytes.saturating_add(part.len() as u64);
                        let room = self.keep.saturating_sub(answer.body.len());
                        answer.body.extend_from_slice(&part[..room.min(part.len())]);
                        body.flow_control().release_capacity(part.len())?;
                    }
                    answer.trailers = ready!(body.poll_trailers(context))?;
                    return Poll::Ready(Ok(std::mem::take(answer)));
                }
                Stage::Ended => return Poll::Pending,
            }
        }
    }
}
