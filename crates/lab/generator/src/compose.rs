//! Stand-in until `lab_load::request::Composer` is merged.
use lab_load::Target;
use lab_load::request::{Body, Mix};
use std::time::Duration;

pub(crate) struct Composer {
    bytes: Vec<u8>,
    head: bool,
}
#[derive(Debug)]
pub(crate) struct Visit;
pub(crate) struct Needs {
    pub(crate) fields: bool,
    pub(crate) body: bool,
}
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) fields: &'a [u8],
    pub(crate) body: &'a [u8],
    pub(crate) body_bytes: u64,
}
pub(crate) struct StepEnd {
    pub(crate) refusal: Option<&'static str>,
    pub(crate) next: Next,
}
pub(crate) enum Next {
    Done,
    After(Duration),
}
#[derive(Debug, thiserror::Error)]
#[error("request")]
pub(crate) struct RequestError;

impl Composer {
    pub(crate) fn new(mix: &Mix, target: &Target, _seed: u64) -> Result<Self, RequestError> {
        let step = mix
            .journeys
            .first()
            .and_then(|j| j.steps.first())
            .ok_or(RequestError)?;
        let body: &[u8] = match &step.body {
            Body::Empty => b"",
            Body::Template(t) => t.as_bytes(),
            Body::Bytes(b) => b,
        };
        let mut bytes = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n",
            step.method, step.path, target.authority
        )
        .into_bytes();
        for (n, v) in &step.headers {
            bytes.extend(format!("{n}: {v}\r\n").bytes());
        }
        if !body.is_empty() {
            bytes.extend(format!("Content-Length: {}\r\n", body.len()).bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(body);
        Ok(Self {
            bytes,
            head: step.method == "HEAD",
        })
    }
    pub(crate) fn kinds(&self) -> &[u8] {
        b"x"
    }
    pub(crate) fn plain(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
    pub(crate) fn begin(&self, _arrival: u64) -> Visit {
        Visit
    }
    pub(crate) fn kind(&self, _v: &Visit) -> usize {
        0
    }
    pub(crate) fn write(&self, _v: &Visit, out: &mut Vec<u8>) -> Result<(), RequestError> {
        out.extend(&self.bytes);
        Ok(())
    }
    pub(crate) fn needs(&self, _v: &Visit) -> Needs {
        Needs {
            fields: false,
            body: false,
        }
    }
    pub(crate) fn no_body(&self, _v: &Visit) -> bool {
        self.head
    }
    pub(crate) fn idempotent(&self, _v: &Visit) -> bool {
        true
    }
    pub(crate) fn finish(&self, _v: &mut Visit, answer: &Answer<'_>) -> StepEnd {
        let _ = (
            answer.fields,
            answer.body,
            answer.body_bytes,
            Next::After(Duration::ZERO),
        );
        StepEnd {
            refusal: (answer.status >= 400).then_some("status"),
            next: Next::Done,
        }
    }
}
