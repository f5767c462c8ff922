//! Requests over HTTP and commands, once each, and what is kept of answers and outputs.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use http::HeaderMap;
use lab_experiment::plan::{Call, Step, Template};
use lab_load::request::{Answer, Take};
use lab_store::{EventKind, RunFile};
use net::ClientError;
use units::{show_bytes, show_seconds};

use crate::captured::CapturedValues;
use crate::loads::{Files, client_tls};
use crate::processes::{Launch, Output, Starting, itself, last_lines, shown};
use crate::standstill;
use crate::steps::{StepError, StepRunner};

/// Characters shown of the body of an answer.
const SHOWN: usize = 200;
/// Most bytes of an answer that are read.
const LARGEST: usize = 64 << 20;

/// What asks and runs what steps, and faults of the file's own, say.
#[derive(Clone, Copy)]
pub(crate) struct Calls<'a> {
    pub(crate) starting: &'a Starting<'a>,
    /// What steps before have kept.
    pub(crate) kept: &'a CapturedValues,
    /// Bodies of requests.
    pub(crate) files: &'a Files,
    pub(crate) seed: u64,
}

impl StepRunner<'_> {
    /// Makes the requests of a step, one after the other.
    pub(crate) async fn call_all(&self, step: &Step) -> Result<(), StepError> {
        for call in &step.calls {
            let told = self.calls.shown_request(call);
            self.status.doing(format!("ask {told}"));
            let text = self.calls.perform(call).await?;
            let text = format!("{told} answered {text}");
            self.recorder.event(EventKind::Answered, &step.name, &text);
        }
        Ok(())
    }
}

impl Calls<'_> {
    /// A request, as it is shown.
    fn shown_request(self, call: &Call) -> String {
        let addresses = self.starting.addresses;
        let target = self.kept.render_redacted(addresses, &call.target);
        let path = self.kept.render_redacted(addresses, &call.request.path);
        format!("{} {target}{path}", call.request.method)
    }

    /// Makes one request and keeps what the file asks for; says what was answered.
    ///
    /// # Errors
    /// What was asked, and what was found.
    pub(crate) async fn perform(self, call: &Call) -> Result<String, String> {
        let asked = self.send_request(call).await;
        asked.map_err(|why| format!("{}: {why}", self.shown_request(call)))
    }

    async fn send_request(self, call: &Call) -> Result<String, String> {
        let (addresses, children) = (self.starting.addresses, self.starting.children);
        let resolve = |reference: &_| self.kept.resolve(addresses, reference);
        // An error may show the text that is wrong, which values were filled into.
        let hidden = |error: &dyn std::fmt::Display| self.kept.hide(&error.to_string());
        let composer = call.composer(self.seed, self.files.of_calls(), &resolve);
        let composer = composer.map_err(|error| hidden(&error))?;
        let mut visit = composer.begin(0);
        let parts = composer.parts(&visit).map_err(|error| hidden(&error))?;
        let (scheme, tls) = match &call.tls {
            None => ("http", None),
            Some(files) => {
                let render = |path: &_| addresses.render(path);
                let tls = client_tls(children.base(), files, render);
                ("https", Some(tls.map_err(|error| hidden(&error))?))
            }
        };
        let client = net::Client::new(net::ClientOptions {
            connect_within: call.within,
            answer_within: call.within,
            answer_bytes: LARGEST,
            tls,
            ..net::ClientOptions::default()
        });
        let uri = format!("{scheme}://{}{}", parts.authority, parts.path);
        let headers = parts.headers.iter();
        let headers = headers.map(|(name, value)| (*name, value.as_ref()));
        let answer = client
            .send(parts.method, &uri, headers, parts.body.into_owned())
            .await
            .map_err(|error| match error {
                // It shows the whole address, which holds what was kept in another form.
                ClientError::Address { cause, .. } => cause.to_owned(),
                error => hidden(&error),
            })?;

        let fields = fields(&answer.headers);
        let whole = Answer {
            status: answer.status.as_u16(),
            fields: &fields,
            body: first(&answer.body),
            body_bytes: answer.body.len() as u64,
            rows: 0,
        };
        if let Some(refusal) = composer.finish(&mut visit, &whole).refusal {
            let refusal = composer.refusals().get(refusal).map_or("", String::as_str);
            let asked = &call.request.assertions;
            let expected = match asked.iter().any(|one| one.describe().starts_with(refusal)) {
                true => format!("expected {refusal}"),
                false => refusal.to_owned(),
            };
            let body = String::from_utf8_lossy(&answer.body);
            let body = match body.trim() {
                "" => "without a body".to_owned(),
                text => format!("with `{}`", shown(&self.kept.hide(text), SHOWN)),
            };
            return Err(format!("answered {} {body}; {expected}", whole.status));
        }
        let kept = values(&call.request.take, &whole)?;
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        let text = format!("{}, {}", whole.status, show_bytes(answer.body.len() as f64));
        let text = match names.is_empty() {
            true => text,
            false => format!("{text}; kept {}", names.join(", ")),
        };
        self.kept.keep(kept);
        Ok(text)
    }

    /// Runs a command by a shell until it has ended well; its output is then the log of that
    /// name. `bound` says how the file calls the longest time, if it does.
    ///
    /// # Errors
    /// How it ended otherwise, with what it said last.
    pub(crate) async fn run(
        self,
        name: &str,
        command: &Template,
        (within, bound): (Duration, &str),
    ) -> Result<(), String> {
        let Starting {
            children,
            addresses,
            folder,
            own_binary,
            ..
        } = self.starting;
        let log = |name: &str| folder.file(RunFile::Log(name));
        let text = self.kept.render(addresses, command);
        let child = children.command(Launch {
            name: name.to_owned(),
            program: "sh".into(),
            args: vec!["-c".into(), text.into()],
            env: itself(own_binary).into(),
            cpus: None,
            cgroup: None,
            stdout: Output::File(log(name)),
            stderr: log(&format!("{name}.err")),
        });
        let child = child.map_err(|error| self.kept.hide(&error.to_string()))?;
        let what = match standstill::within(within, child.exit()).await {
            Ok(ended) if ended.well() => return Ok(()),
            Ok(ended) => ended.to_string(),
            Err(_) => {
                child.stop().await;
                let within = show_seconds(within.as_secs_f64());
                format!("did not end within {within}{bound}")
            }
        };
        let told = self.kept.render_redacted(addresses, command);
        let said = self.kept.hide(&last_lines(&child.logs));
        Err(format!("`{told}` {what}{said}"))
    }

    /// Keeps what the file asks for of what a command printed, which is in a file.
    pub(crate) fn keep_output(self, take: &[Take], output: &Path) -> Result<(), String> {
        if take.is_empty() {
            return Ok(());
        }
        let mut body = Vec::new();
        let file = File::open(output);
        let most = Answer::KEPT as u64 + 1;
        let read = file.and_then(|file| file.take(most).read_to_end(&mut body));
        read.map_err(|error| format!("read {}: {error}", output.display()))?;
        if body.len() > Answer::KEPT {
            return Err(format!(
                "it printed more than {}, of which nothing is kept; print what is to be kept alone",
                show_bytes(Answer::KEPT as f64)
            ));
        }
        let whole = Answer {
            status: 0,
            fields: b"",
            body: &body,
            body_bytes: body.len() as u64,
            rows: 0,
        };
        self.kept.keep(values(take, &whole)?);
        Ok(())
    }
}

/// Header fields as they stand in a message.
pub(crate) fn fields(headers: &HeaderMap) -> Vec<u8> {
    let mut fields = Vec::new();
    for (name, value) in headers {
        fields.extend_from_slice(name.as_str().as_bytes());
        fields.extend_from_slice(b": ");
        fields.extend_from_slice(value.as_bytes());
        fields.push(b'\n');
    }
    fields
}

/// The part of a body that is looked into.
pub(crate) fn first(body: &[u8]) -> &[u8] {
    body.get(..Answer::KEPT).unwrap_or(body)
}

/// What is kept, by name.
fn values(take: &[Take], whole: &Answer<'_>) -> Result<Vec<(String, String)>, String> {
    let values = take.iter().map(|take| {
        let value = take.find(whole);
        let value = value.ok_or_else(|| format!("no value for {}", take.describe()))?;
        Ok((take.name.clone(), value))
    });
    values.collect()
}
