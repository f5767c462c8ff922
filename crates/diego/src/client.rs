//! A client of the BBS.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use net::{Client, ClientError};
use prost::Message;
use tokio::sync::mpsc;

use crate::list::{ListError, Records};
use crate::models::{self, error::Type};
use crate::sse::{BadStream, Decoder, Event};
use crate::{PROTOBUF, TRACE_HEADER};

/// Times that a call is sent before its transport error is reported, as the Go client does.
const ATTEMPTS: u32 = 3;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The BBS answered with an error of the protocol.
    #[error("{path}: {} (type {})", .error.message, .error.r#type)]
    Refused {
        /// Path of the call.
        path: String,
        /// What the BBS said.
        error: models::Error,
    },
    /// No answer came, after several attempts.
    #[error("{path}: {cause}")]
    Transport {
        /// Path of the call.
        path: String,
        /// Why the last attempt failed.
        cause: ClientError,
    },
    /// Something answered that is not a BBS.
    #[error("{path}: the answer is not the BBS's: {found}")]
    NotABbs {
        /// Path of the call.
        path: String,
        /// What came instead.
        found: String,
    },
    /// An event stream broke.
    #[error("{path}: {cause}")]
    Stream {
        /// Path of the stream.
        path: String,
        /// What is wrong.
        cause: BadStream,
    },
}

impl CallError {
    /// The protocol's type of error, when the BBS refused.
    pub fn kind(&self) -> Option<Type> {
        match self {
            Self::Refused { error, .. } => Type::try_from(error.r#type).ok(),
            _ => None,
        }
    }

    fn transport(path: &str, cause: ClientError) -> Self {
        let path = path.to_owned();
        Self::Transport { path, cause }
    }

    fn not_a_bbs(path: &str, found: impl ToString) -> Self {
        Self::NotABbs {
            path: path.to_owned(),
            found: found.to_string(),
        }
    }

    fn status(path: &str, status: StatusCode) -> Self {
        let status = status.as_u16();
        let found = format!("Invalid Response with status code: {status}");
        Self::not_a_bbs(path, found)
    }
}

/// Answers of the BBS that may carry an error.
pub trait Failed {
    /// Takes the error out of the answer.
    fn failed(&mut self) -> Option<models::Error>;
}

macro_rules! answers_with_error {
    ($($answer:ident),* $(,)?) => {
        $(impl Failed for models::$answer {
            fn failed(&mut self) -> Option<models::Error> {
                self.error.take()
            }
        })*
    };
}

answers_with_error! {
    DomainsResponse, UpsertDomainResponse, CellsResponse,
    DesiredLrpLifecycleResponse, DesiredLrPsResponse, DesiredLrpResponse,
    DesiredLrpSchedulingInfosResponse, DesiredLrpSchedulingInfoByProcessGuidResponse,
    ActualLrpLifecycleResponse, ActualLrPsResponse, ActualLrPsByProcessGuidsResponse,
    ActualLrpGroupsResponse, ActualLrpGroupResponse,
    EvacuationResponse, RemoveEvacuatingActualLrpResponse,
    TaskLifecycleResponse, StartTaskResponse, TasksResponse, TaskResponse,
}

impl Failed for models::PingResponse {
    fn failed(&mut self) -> Option<models::Error> {
        None
    }
}

/// How calls have gone, over all clones of a [`Bbs`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls that succeeded.
    pub answered: u64,
    /// Calls that the BBS answered with an error.
    pub refused: u64,
    /// Calls that got no answer, or one that is not a BBS's.
    pub failed: u64,
    /// Requests that were sent again because no answer came.
    pub resent: u64,
    /// Time spent on calls, in nanoseconds.
    pub nanoseconds: u64,
}

#[derive(Default)]
struct Counters {
    answered: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    resent: AtomicU64,
    nanoseconds: AtomicU64,
}

/// A BBS at an address; cheap to clone.
#[derive(Clone)]
pub struct Bbs {
    client: Client,
    base: String,
    attempts: u32,
    counters: Arc<Counters>,
}

impl Bbs {
    /// The BBS at `base`, for instance `http://127.0.0.1:8889`.
    pub fn new(client: Client, base: impl Into<String>) -> Self {
        let mut base = base.into();
        base.truncate(base.trim_end_matches('/').len());
        Self {
            client,
            base,
            attempts: ATTEMPTS,
            counters: Arc::default(),
        }
    }

    /// The same BBS; each call is sent once, for callers who would rather know at once.
    #[must_use]
    pub fn once(self) -> Self {
        Self {
            attempts: 1,
            ..self
        }
    }

    /// How the calls have gone so far.
    pub fn counts(&self) -> CallCounts {
        let counters = &self.counters;
        CallCounts {
            answered: counters.answered.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            resent: counters.resent.load(Relaxed),
            nanoseconds: counters.nanoseconds.load(Relaxed),
        }
    }

    /// Calls `path` and decodes the answer.
    ///
    /// # Errors
    /// See [`CallError`]. Transport errors are tried again, so a call must be one
    /// that may arrive twice, as all calls of this protocol are.
    pub async fn call<A: Message + Default + Failed>(
        &self,
        path: &str,
        request: &impl Message,
    ) -> Result<A, CallError> {
        self.call_traced(path, request, "").await
    }

    /// As [`Bbs::call`], passing a trace id on.
    ///
    /// # Errors
    /// As [`Bbs::call`].
    pub async fn call_traced<A: Message + Default + Failed>(
        &self,
        path: &str,
        request: &impl Message,
        trace: &str,
    ) -> Result<A, CallError> {
        let began = Instant::now();
        let body = Bytes::from(request.encode_to_vec());
        let send = || self.send(path, body.clone(), trace);
        let bytes = self.again(send).await;
        let answer = bytes.and_then(|bytes| Self::read(path, bytes));
        self.count(began, &answer);
        answer
    }

    /// Calls `path`, whose answer is a list, and hands out each record as it arrives: the list is never whole in memory.
    /// Returns what `each` has made of them; each attempt begins with a `fresh` one, and one that fails is dropped.
    ///
    /// # Errors
    /// As [`Bbs::call`].
    pub async fn list<R: Message + Default, S>(
        &self,
        path: &str,
        request: &impl Message,
        fresh: impl Fn() -> S,
        each: impl Fn(&mut S, R),
    ) -> Result<S, CallError> {
        let began = Instant::now();
        let body = Bytes::from(request.encode_to_vec());
        let send = || self.send_for_list(path, body.clone(), fresh(), &each);
        let made = self.again(send).await;
        self.count(began, &made);
        made
    }

    /// Sends a call until it is answered or has been sent often enough.
    async fn again<A, F>(&self, send: impl Fn() -> F) -> Result<A, CallError>
    where
        F: Future<Output = Result<A, CallError>>,
    {
        let mut attempt = 1;
        loop {
            match send().await {
                Err(CallError::Transport { .. }) if attempt < self.attempts => {
                    attempt += 1;
                    self.counters.resent.fetch_add(1, Relaxed);
                    tokio::time::sleep(PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    fn count<A>(&self, began: Instant, answer: &Result<A, CallError>) {
        let counters = &self.counters;
        let outcome = match answer {
            Ok(_) => &counters.answered,
            Err(CallError::Refused { .. }) => &counters.refused,
            Err(_) => &counters.failed,
        };
        outcome.fetch_add(1, Relaxed);
        let nanoseconds = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        counters.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }

    /// Reads the answer to a call of `path`.
    fn read<A: Message + Default + Failed>(path: &str, bytes: Bytes) -> Result<A, CallError> {
        let answer = A::decode(bytes);
        let mut answer = answer.map_err(|error| CallError::not_a_bbs(path, error))?;
        match answer.failed() {
            None => Ok(answer),
            Some(error) => Err(CallError::Refused {
                path: path.to_owned(),
                error,
            }),
        }
    }

    /// Calls `path` once and returns the answer's bytes undecoded.
    ///
    /// # Errors
    /// Transport errors, and answers that are not protobuf.
    pub async fn send(&self, path: &str, body: Bytes, trace: &str) -> Result<Bytes, CallError> {
        let uri = self.uri(path)?;
        let mut headers = HeaderMap::new();
        if let Ok(trace) = HeaderValue::from_str(trace)
            && !trace.is_empty()
        {
            headers.insert(TRACE_HEADER, trace);
        }
        let answer = self.client.post(&uri, PROTOBUF, headers, body).await;
        let answer = answer.map_err(|cause| CallError::transport(path, cause))?;
        protobuf(path, answer.status, &answer.headers)?;
        Ok(answer.body)
    }

    async fn send_for_list<R: Message + Default, S>(
        &self,
        path: &str,
        body: Bytes,
        mut made: S,
        each: &impl Fn(&mut S, R),
    ) -> Result<S, CallError> {
        let uri = self.uri(path)?;
        let mut records = Records::default();
        let take = |piece: Bytes| records.take(&piece, |record| each(&mut made, record));
        let client = &self.client;
        let answer = client.post_for_pieces(&uri, PROTOBUF, HeaderMap::new(), body, take);
        let (status, headers) = answer
            .await
            .map_err(|cause| CallError::transport(path, cause))?;
        protobuf(path, status, &headers)?;
        match records.end() {
            Ok(()) => Ok(made),
            Err(ListError::Refused(error)) => Err(CallError::Refused {
                path: path.to_owned(),
                error,
            }),
            Err(malformed) => Err(CallError::not_a_bbs(path, malformed)),
        }
    }

    /// Subscribes to the events of `path`. Events from then on are seen.
    ///
    /// # Errors
    /// When the stream does not open with status 200.
    pub async fn subscribe(
        &self,
        path: &str,
        request: &impl Message,
    ) -> Result<Subscription, CallError> {
        // The oldest stream is the one that wants GET, with a body all the same.
        let method = match path {
            crate::path::GROUP_EVENTS | crate::path::GROUP_EVENTS_R0 => Method::GET,
            _ => Method::POST,
        };
        let mut post = Request::builder().method(method).uri(self.uri(path)?);
        if let Some(headers) = post.headers_mut() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
        }
        let body = http_body_util::Full::new(Bytes::from(request.encode_to_vec()));
        let post = post
            .body(body)
            .map_err(|error| CallError::not_a_bbs(path, error))?;
        let answer = self.client.open(post).await;
        let answer = answer.map_err(|cause| CallError::transport(path, cause))?;
        if answer.status() != StatusCode::OK {
            return Err(CallError::status(path, answer.status()));
        }
        let (pieces, received) = mpsc::channel(16);
        let mut body = answer.into_body();
        tokio::spawn(async move {
            use http_body_util::BodyExt;
            while let Some(frame) = body.frame().await {
                let piece = match frame.map(|frame| frame.into_data()) {
                    Ok(Ok(data)) => Ok(data),
                    Ok(Err(_)) => continue,
                    Err(broken) => Err(broken.to_string()),
                };
                let last = piece.is_err();
                if pieces.send(piece).await.is_err() || last {
                    break;
                }
            }
        });
        Ok(Subscription {
            path: path.to_owned(),
            pieces: received,
            decoder: Decoder::default(),
            ready: VecDeque::new(),
            broken: None,
        })
    }

    fn uri(&self, path: &str) -> Result<Uri, CallError> {
        let uri = format!("{}{path}", self.base);
        uri.parse().map_err(|_| {
            let cause = "it is not an address";
            CallError::transport(path, ClientError::Address { uri, cause })
        })
    }
}

/// Whether an answer is one of the protocol.
fn protobuf(path: &str, status: StatusCode, headers: &HeaderMap) -> Result<(), CallError> {
    let kind = headers.get(CONTENT_TYPE);
    match status == StatusCode::OK && kind.is_some_and(|kind| kind == PROTOBUF) {
        true => Ok(()),
        false => Err(CallError::status(path, status)),
    }
}

/// An open event stream.
pub struct Subscription {
    path: String,
    pieces: mpsc::Receiver<Result<Bytes, String>>,
    decoder: Decoder,
    ready: VecDeque<Event>,
    broken: Option<String>,
}

impl Subscription {
    /// Why the connection broke, once [`Subscription::next`] has said that there is no next event;
    /// `None` when the BBS ended the stream as one is ended.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// The next event; `None` once the stream has ended. May be dropped while
    /// it waits: no event is lost.
    ///
    /// # Errors
    /// When the stream is not one of this protocol.
    pub async fn next(&mut self) -> Result<Option<Event>, CallError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let piece = match self.pieces.recv().await {
                None => return Ok(None),
                Some(Ok(piece)) => piece,
                Some(Err(cause)) => {
                    self.broken = Some(cause);
                    return Ok(None);
                }
            };
            self.ready = self
                .decoder
                .feed(&piece)
                .map_err(|cause| CallError::Stream {
                    path: self.path.clone(),
                    cause,
                })?
                .into();
        }
    }
}
