//! Bodies of requests and answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, combinators::UnsyncBoxBody};
use tokio::sync::mpsc::Receiver;

/// The body of an answer: whole, empty, or produced while it is sent.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body that is known whole; its length is announced.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// No body.
pub fn empty() -> Body {
    Empty::new().boxed_unsync()
}

/// An answer whose body is of this content type.
pub fn response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// An answer in plain text.
pub fn plain_text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    response(status, "text/plain; charset=utf-8", text)
}

/// A body of pieces as they arrive; it ends when their sender is dropped.
pub fn stream(pieces: Receiver<Bytes>) -> Body {
    Pieces(pieces).boxed_unsync()
}

struct Pieces(Receiver<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is longer than allowed.
    #[error("the body is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// It did not arrive in time.
    #[error("the body did not arrive within {limit:?}")]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// The connection broke.
    #[error("the body broke off: {0}")]
    Broken(String),
}

/// Of a body that is too long, so many times the allowed length is read and thrown away,
const DISCARDED: u64 = 8;
/// and no more bytes than these.
const DISCARDED_MOST: u64 = 1 << 30;

/// Reads a body of at most `bytes_max` bytes, waiting for all of it at most `within`. One
/// that is longer is read on to its end if it is not much longer, so that its sender, who
/// may be writing still, finds the answer and not a broken connection.
///
/// # Errors
/// See [`BodyError`]; the rest of the body is then unread and the connection
/// should be closed.
pub async fn read_body<B>(body: B, bytes_max: usize, within: Duration) -> Result<Bytes, BodyError>
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let mut body = body;
    let announced = body.size_hint().lower();
    let read = if announced > bytes_max as u64 {
        Err(BodyError::TooLong { limit: bytes_max })
    } else {
        tokio::time::timeout(within, collect(&mut body, bytes_max))
            .await
            .unwrap_or(Err(BodyError::TooSlow { limit: within }))
    };
    if let Err(BodyError::TooLong { .. }) = read {
        let most = (bytes_max as u64).saturating_mul(DISCARDED);
        // Who is slower than that gets what answer the connection still carries.
        let discarded = discard(&mut body, most.min(DISCARDED_MOST));
        let _ = tokio::time::timeout(within, discarded).await;
    }
    read
}

/// Reads what is left of a body, if it is not more than `most`.
async fn discard<B>(body: &mut B, most: u64)
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let mut read = 0;
    while read <= most && body.size_hint().lower() <= most {
        match body.frame().await {
            Some(Ok(frame)) => read += frame.data_ref().map_or(0, |data| data.len() as u64),
            _ => return,
        }
    }
}

async fn collect<B>(body: &mut B, bytes_max: usize) -> Result<Bytes, BodyError>
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    take_pieces(body, bytes_max, |data| match &first {
        None => first = Some(data),
        Some(head) => {
            if rest.is_empty() {
                rest.reserve(head.len() + data.len());
            }
            rest.extend_from_slice(&data);
        }
    })
    .await?;
    // Most bodies are one piece and need no copy.
    match first {
        None => Ok(Bytes::new()),
        Some(head) if rest.is_empty() => Ok(head),
        Some(head) => {
            let mut whole = BytesMut::with_capacity(head.len() + rest.len());
            whole.extend_from_slice(&head);
            whole.extend_from_slice(&rest);
            Ok(whole.freeze())
        }
    }
}

/// Hands out the pieces of a body of at most `bytes_max` bytes as they arrive.
pub(crate) async fn take_pieces<B>(
    body: &mut B,
    bytes_max: usize,
    mut take: impl FnMut(Bytes),
) -> Result<(), BodyError>
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let mut read: usize = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        read = read.saturating_add(data.len());
        if read > bytes_max {
            return Err(BodyError::TooLong { limit: bytes_max });
        }
        take(data);
    }
    Ok(())
}
