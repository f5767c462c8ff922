//! Answers of the server that a page comes from.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, ETAG, HeaderValue};
use http::{Request, Response, StatusCode};
use lab_report::{Page, Update};
use net::{Body, Handler, Incoming, Limits};
use tokio::sync::watch;

use super::access::{Access, Act, Known, PageRequest, Refusal};
use super::{PageActions, cpu_of_thread};

/// Bounds of the server: it is for the person at this machine.
pub(super) const LIMITS: Limits = Limits {
    connections: 16,
    head_bytes: 8 << 10,
    head_within: Duration::from_secs(10),
    handshake_within: Duration::from_secs(1),
    write_stall: Duration::from_secs(10),
    drain: Duration::from_secs(1),
};

/// Bounds of what somebody sends to have something done.
const BODY_BYTES: usize = 4 << 10;
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// The body of a note.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Noted {
    note: String,
}

/// The body of a change of a load's rate.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    load: String,
    /// As the experiment file has it: `500/s`; a bare number is per second.
    rate: String,
}

/// Longest wait for data that are newer than those that somebody has.
const WAIT: Duration = Duration::from_secs(5);

/// Headers of every answer: it is not kept, not told to others, not shown within another page.
const HEADERS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("content-security-policy", "frame-ancestors 'none'"),
];

/// What is shown, at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    /// Grows with each; 0: there is nothing yet.
    pub(super) number: u64,
    page: Option<Arc<Page>>,
    /// It is the last one.
    over: bool,
    /// Why there is none; empty: nothing failed.
    trouble: String,
}

impl Snapshot {
    /// Puts another page in place of this one, unless that was the last.
    pub(super) fn replace(&mut self, page: Page, over: bool) {
        if !self.over {
            *self = Self {
                number: self.number + 1,
                page: Some(Arc::new(page)),
                over,
                trouble: String::new(),
            };
        }
    }

    /// The page of this moment could not be made.
    pub(super) fn fail(&mut self, why: String) {
        self.trouble = why;
    }
}

/// Answers questions with the newest snapshot, and says that somebody wants the next.
pub(super) struct Serving {
    pub(super) access: Access,
    pub(super) newest: watch::Receiver<Snapshot>,
    /// Where a next snapshot is asked for.
    pub(super) wanted: SyncSender<()>,
    /// When somebody asked last.
    pub(super) asked: Arc<Mutex<Option<Instant>>>,
    /// Processor time that answers have taken; whoever makes the next snapshot takes it into account.
    pub(super) spent: Arc<Mutex<Duration>>,
    /// What may be done to what is shown.
    pub(super) acts: Box<dyn PageActions>,
}

impl Handler for Serving {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let admitted = self
            .access
            .admit(request.method(), request.uri(), request.headers());
        // What a browser asks for on its own ends at the token, too.
        match admitted {
            Err(refusal) => refused(refusal),
            Ok(PageRequest::Act(act)) => self.done(act, request.into_body()).await,
            Ok(PageRequest::Page) => match self.newer_than(0).await {
                Ok(Snapshot {
                    page: Some(page), ..
                }) => answer(
                    StatusCode::OK,
                    "text/html; charset=utf-8",
                    page.served().into(),
                ),
                Ok(Snapshot { trouble, .. }) | Err(Snapshot { trouble, .. }) => not_yet(&trouble),
            },
            Ok(PageRequest::Data { known }) => {
                match self
                    .newer_than(known.map_or(0, |known| known.snapshot))
                    .await
                {
                    Ok(Snapshot {
                        page: Some(page),
                        number,
                        ..
                    }) => self.update(&page, number, known),
                    Ok(Snapshot { trouble, .. })
                    | Err(Snapshot {
                        number: 0, trouble, ..
                    }) => not_yet(&trouble),
                    Err(_) => {
                        let mut answer = answer(StatusCode::NOT_MODIFIED, "", Bytes::new());
                        answer.headers_mut().remove(CONTENT_TYPE);
                        if let Some(known) = known {
                            tag(&mut answer, known);
                        }
                        answer
                    }
                }
            }
        }
    }
}

impl Serving {
    /// What somebody lacks who has the data that are known.
    fn update(&self, page: &Page, number: u64, known: Option<Known>) -> Response<Body> {
        let cpu = cpu_of_thread();
        let update = page.update(known.map(|known| known.lifecycles));
        let cost = cpu_of_thread().saturating_sub(cpu);
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += cost;
        match update {
            Err(error) => not_yet(&error.to_string()),
            Ok(Update { bytes, lifecycles }) => {
                let mut answer = answer(StatusCode::OK, "application/octet-stream", bytes.into());
                let has = Known {
                    snapshot: number,
                    lifecycles,
                };
                tag(&mut answer, has);
                answer
            }
        }
    }

    async fn done(&self, act: Act, body: Incoming) -> Response<Body> {
        let body = match net::read_body(body, BODY_BYTES, BODY_WITHIN).await {
            Ok(body) => body,
            Err(error) => return text(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        match RunCommand::read(act, &body) {
            Err(why) => text(StatusCode::BAD_REQUEST, &why),
            Ok(asked) => match asked.done(self.acts.as_ref()) {
                Ok(()) => answer(StatusCode::NO_CONTENT, "text/plain", Bytes::new()),
                Err(why) => text(StatusCode::CONFLICT, &why),
            },
        }
    }

    /// A snapshot that is not of this number, as soon as there is one; the error is the newest
    /// when there was none in time.
    async fn newer_than(&self, known: u64) -> Result<Snapshot, Snapshot> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        // One that is full has been asked for already.
        let _ = self.wanted.try_send(());
        let mut newest = self.newest.clone();
        let newer = newest.wait_for(|snapshot| ![0, known].contains(&snapshot.number));
        match tokio::time::timeout(WAIT, newer).await {
            Ok(Ok(snapshot)) => Ok(snapshot.clone()),
            // None in time, or the run is over and nothing more comes.
            _ => Err(self.newest.borrow().clone()),
        }
    }
}

/// A command to the run, once it was understood.
#[derive(Debug, PartialEq)]
enum RunCommand {
    Mark(String),
    Rate(String, f64),
    Stop,
}

impl RunCommand {
    /// Reads a body; an error is a mistake of whoever sent it.
    fn read(act: Act, body: &[u8]) -> Result<Self, String> {
        match act {
            Act::Stop => Ok(Self::Stop),
            Act::Mark => match serde_json::from_slice::<Noted>(body) {
                Ok(noted) => Ok(Self::Mark(noted.note)),
                Err(error) => Err(format!("found {error}; expected {{\"note\": \"...\"}}")),
            },
            Act::Rate => match serde_json::from_slice::<Changed>(body) {
                Ok(changed) => Ok(Self::Rate(changed.load, per_second(&changed.rate)?)),
                Err(error) => Err(format!(
                    "found {error}; expected {{\"load\": \"...\", \"rate\": \"500/s\"}}"
                )),
            },
        }
    }

    /// Has it done; an error says what stands against it now.
    fn done(&self, acts: &dyn PageActions) -> Result<(), String> {
        match self {
            Self::Mark(note) => acts.mark(note),
            Self::Rate(load, rate) => acts.rate(load, *rate),
            Self::Stop => acts.stop(),
        }
    }
}

/// A rate as a person writes it.
fn per_second(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let rate = match text.parse::<f64>() {
        Ok(rate) => rate,
        Err(_) => units::parse_rate(text).map_err(|error| error.to_string())?,
    };
    match rate.is_finite() && rate > 0.0 {
        true => Ok(rate),
        false => Err(format!("found a rate of {text}; expected one above 0")),
    }
}

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Body> {
    let mut answer = net::response(status, kind, body);
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn text(status: StatusCode, text: &str) -> Response<Body> {
    answer(
        status,
        "text/plain; charset=utf-8",
        format!("{text}\n").into(),
    )
}

fn refused(refusal: Refusal) -> Response<Body> {
    let mut answer = text(refusal.status(), &refusal.to_string());
    if refusal == Refusal::Method {
        let headers = answer.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("GET, POST"));
    }
    answer
}

fn not_yet(trouble: &str) -> Response<Body> {
    let why = match trouble {
        "" => "there is nothing to show yet; ask again",
        trouble => trouble,
    };
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

fn tag(answer: &mut Response<Body>, has: Known) {
    if let Ok(tag) = HeaderValue::from_str(&has.tag()) {
        answer.headers_mut().insert(ETAG, tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_told_from_what_cannot_be_done() {
        let rate = |body: &str| RunCommand::read(Act::Rate, body.as_bytes());
        let asked = RunCommand::Rate("users".into(), 80.0);
        assert_eq!(rate(r#"{"load": "users", "rate": "80/s"}"#), Ok(asked));
        for wrong in [
            r#"{"load": "users", "rate": "fast"}"#,
            r#"{"load": "users", "rate": 80}"#,
            r#"{"load": "users"}"#,
            "",
            "[",
        ] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        let mark = |body: &str| RunCommand::read(Act::Mark, body.as_bytes());
        assert_eq!(mark(r#"{"note": "x"}"#), Ok(RunCommand::Mark("x".into())));
        assert!(mark(r#"{"note": 5}"#).is_err() && mark("{}").is_err());
        assert_eq!(RunCommand::read(Act::Stop, b""), Ok(RunCommand::Stop));
        // Of a page that can only be read, what is understood cannot be done.
        let stop = RunCommand::Stop.done(&super::super::ReadOnly);
        assert!(stop.is_err());
    }
}
