//! A driver that is a program of its own and speaks JSON lines; see `docs/drivers.md`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab_experiment::plan::{self, Make, Rate};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Counts, DriverError, MakeOutcome};
use crate::alarm::Alarm;
use crate::processes::{Child, last_lines};

/// Version of the protocol.
pub(crate) const PROTOCOL: u32 = 1;
/// Longest line, in bytes.
const LINE_BYTES: u64 = 1 << 20;
/// Characters of a line that an error shows.
const SHOWN: usize = 200;
/// Characters of what a driver says of a failure that are told.
const SAID: usize = 1_000;

/// Bounds of waits for the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For the answer to the greeting.
    pub(crate) hello: Duration,
    /// Without any line while a make is under way.
    pub(crate) silence: Duration,
    /// For it to take a line from us.
    pub(crate) take: Duration,
    /// For its end after the last line.
    pub(crate) close: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(10),
            silence: Duration::from_secs(60),
            take: Duration::from_secs(10),
            close: Duration::from_secs(5),
        }
    }
}

/// What the program is told at first.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Greeting {
    pub(crate) protocol: u32,
    pub(crate) seed: u64,
    pub(crate) talk_to: Option<String>,
    /// Most requests that a make of the plan has under way.
    pub(crate) in_flight: u32,
    /// Files for what is talked to, and this machine's address for it, where the file of the
    /// experiment says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsFiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reach_at: Option<IpAddr>,
}

/// PEM files of mutual TLS.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authority: String,
}

/// What we send.
#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Request<'a> {
    Hello(&'a Greeting),
    Make {
        id: u64,
        what: &'a str,
        count: u64,
        rate: Option<f64>,
        in_flight: u32,
        r#as: Option<&'a str>,
        options: &'a BTreeMap<String, String>,
    },
    Close,
}

/// What it sends. A line may hold counts and an answer at once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    ok: Option<bool>,
    entities: Option<BTreeMap<String, Vec<String>>>,
    id: Option<u64>,
    done: Option<bool>,
    #[serde(default)]
    made: u64,
    #[serde(default)]
    failed: u64,
    #[serde(default)]
    errors: BTreeMap<String, u64>,
    error: Option<String>,
    /// A state that is null is unknown until it is told again.
    counts: Option<BTreeMap<String, BTreeMap<String, Option<u64>>>>,
}

/// A running driver program.
#[derive(Debug)]
pub(crate) struct Program {
    name: String,
    child: Child,
    limits: Limits,
    stdin: tokio::sync::Mutex<(Sender, u64)>,
    shared: Arc<Shared>,
    reading: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    entities: BTreeMap<String, Vec<String>>,
    state: Mutex<State>,
    heard: watch::Sender<Instant>,
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    hello: Option<oneshot::Sender<Result<(), String>>>,
    make: Option<(u64, oneshot::Sender<Result<MakeOutcome, String>>)>,
    closing: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Program {
    /// Greets a program that was just started.
    pub(crate) async fn open(
        driver: &plan::Driver,
        mut child: Child,
        greeting: Greeting,
        limits: Limits,
        alarm: Alarm,
    ) -> Result<Self, DriverError> {
        let fail = |cause: String| DriverError::new(&driver.name, cause);
        let Some((stdin, stdout)) = child.pipes.take() else {
            return Err(fail("it has no pipes".into()));
        };
        let (answered, answer) = oneshot::channel();
        let shared = Arc::new(Shared {
            entities: driver.entities.clone(),
            state: Mutex::new(State {
                counts: zeros(&driver.entities),
                hello: Some(answered),
                ..State::default()
            }),
            heard: watch::channel(Instant::now()).0,
        });
        let reading = tokio::spawn(net::boxed({
            let (shared, name, logs) =
                (Arc::clone(&shared), driver.name.clone(), child.logs.clone());
            let exit = child.watch();
            async move {
                let wrong = read(stdout, &shared).await;
                let wrong = match wrong {
                    Some(wrong) => wrong,
                    // Its end says more than that its output ended.
                    None => match tokio::time::timeout(limits.close, exit.ended()).await {
                        Ok(ended) => format!("it {ended}"),
                        Err(_) => "it closed its output".to_owned(),
                    },
                };
                let wrong = format!("{wrong}{}", last_lines(&logs));
                let (hello, make, closing) = {
                    let mut state = shared.state();
                    (state.hello.take(), state.make.take(), state.closing)
                };
                hello.map(|hello| hello.send(Err(wrong.clone())));
                make.map(|(_, make)| make.send(Err(wrong.clone())));
                if !closing {
                    alarm.broken(DriverError::new(&name, wrong));
                }
            }
        }));
        let program = Self {
            name: driver.name.clone(),
            child,
            limits,
            stdin: tokio::sync::Mutex::new((stdin, 0)),
            shared,
            reading,
        };
        program
            .send(&Request::Hello(&greeting))
            .await
            .map_err(fail)?;
        match tokio::time::timeout(limits.hello, answer).await {
            Ok(Ok(Ok(()))) => Ok(program),
            Ok(Ok(Err(wrong))) => Err(fail(wrong)),
            // The reader tells why before it ends.
            Ok(Err(_)) => Err(fail("it ended".into())),
            Err(_) => Err(fail(format!(
                "no answer to the greeting within {:?}; it must answer each line at once{}",
                limits.hello,
                last_lines(&program.child.logs)
            ))),
        }
    }

    /// Brings entities about; returns when every request was answered.
    pub(crate) async fn make(&self, make: &Make) -> Result<MakeOutcome, DriverError> {
        let made = self.request_make(make).await;
        made.map_err(|cause| DriverError::new(&self.name, cause))
    }

    /// Adds what is counted now.
    pub(crate) fn counts(&self, into: &mut Counts) {
        let state = self.shared.state();
        let counts = state.counts.iter();
        into.extend(counts.map(|(key, count)| (key.clone(), *count)));
    }

    /// Ends it.
    pub(crate) async fn close(self) {
        self.shared.state().closing = true;
        // One that misbehaved is not listened to any more and hears no farewell.
        if !self.reading.is_finished() {
            let _ = self.send(&Request::Close).await;
            drop(self.stdin);
            let _ = tokio::time::timeout(self.limits.close, self.child.exit()).await;
        }
        self.child.stop().await;
        self.reading.abort();
    }

    async fn request_make(&self, make: &Make) -> Result<MakeOutcome, String> {
        let (answered, mut answer) = oneshot::channel();
        let id = {
            let mut stdin = self.stdin.lock().await;
            stdin.1 += 1;
            stdin.1
        };
        self.shared.state().make = Some((id, answered));
        let request = Request::Make {
            id,
            what: &make.what,
            count: make.count,
            rate: match make.rate {
                Rate::Max => None,
                Rate::PerSecond(rate) => Some(rate),
            },
            in_flight: make.in_flight,
            r#as: make.shape.as_deref(),
            options: &make.options,
        };
        self.send(&request).await?;
        let mut heard = self.shared.heard.subscribe();
        let asked = Instant::now();
        loop {
            let last = (*heard.borrow_and_update()).max(asked);
            tokio::select! {
                answer = &mut answer => {
                    return answer.unwrap_or_else(|_| Err("it ended".into()));
                }
                _ = heard.changed() => {}
                () = tokio::time::sleep_until(last + self.limits.silence) => {
                    return Err(format!(
                        "no line for {:?} while it makes {} {}; it must send counts, or the answer{}",
                        self.limits.silence, make.count, make.what, last_lines(&self.child.logs)
                    ));
                }
            }
        }
    }

    async fn send(&self, request: &Request<'_>) -> Result<(), String> {
        let mut line = serde_json::to_vec(request).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let mut stdin = self.stdin.lock().await;
        let write = async {
            stdin.0.write_all(&line).await?;
            stdin.0.flush().await
        };
        match tokio::time::timeout(self.limits.take, write).await {
            Ok(Ok(())) => Ok(()),
            // Its output tells why; the reader reports it.
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            Ok(Err(error)) => Err(format!("write to it: {error}")),
            Err(_) => Err(format!(
                "it did not read our line within {:?}",
                self.limits.take
            )),
        }
    }
}

fn zeros(entities: &BTreeMap<String, Vec<String>>) -> Counts {
    entities
        .iter()
        .flat_map(|(what, states)| {
            states
                .iter()
                .map(move |state| (what.clone(), state.clone()))
        })
        .map(|key| (key, 0))
        .collect()
}

/// Reads lines until the end, or until something is wrong, which it returns.
async fn read(stdout: Receiver, shared: &Shared) -> Option<String> {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stdout)
            .take(LINE_BYTES + 1)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) => return None,
            Ok(_) if line.len() as u64 > LINE_BYTES => {
                return Some(format!(
                    "a line is longer than {LINE_BYTES} bytes: {}",
                    shown(&line)
                ));
            }
            Ok(_) => {}
            Err(error) => return Some(format!("read from it: {error}")),
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Err(wrong) = take(&line, shared) {
            return Some(format!("{wrong}; the line is {}", shown(&line)));
        }
        shared.heard.send_replace(Instant::now());
    }
}

fn take(line: &[u8], shared: &Shared) -> Result<(), String> {
    let mut line: Line =
        serde_json::from_slice(line).map_err(|error| format!("a line is no message: {error}"))?;
    line.error = line
        .error
        .map(|error| crate::processes::shown(&error, SAID));
    let mut state = shared.state();
    for (what, counts) in line.counts.iter().flatten() {
        for (name, count) in counts {
            let key = (what.clone(), name.clone());
            let states = shared.entities.get(what);
            match count {
                _ if !states.is_some_and(|states| states.contains(name)) => {
                    return Err(format!("`makes` of the file has no {what}.{name}"));
                }
                Some(count) => state.counts.insert(key, *count),
                None => state.counts.remove(&key),
            };
        }
    }
    if let Some(hello) = state.hello.take_if(|_| line.ok.is_some()) {
        let answer = greeted(&line, &shared.entities);
        // Whoever waited gave up; nothing to tell.
        let _ = hello.send(answer);
        return Ok(());
    }
    let Some(id) = line.id else {
        return match (line.counts, line.error) {
            (_, Some(error)) => Err(format!("it says: {error}")),
            (Some(_), None) => Ok(()),
            (None, None) => Err("a line has neither counts nor an answer".to_owned()),
        };
    };
    let Some((_, make)) = state.make.take_if(|(asked, _)| *asked == id) else {
        return Err(format!(
            "it answers a make with id {id} that was not asked or is answered"
        ));
    };
    let answer = match (line.error, line.done) {
        (Some(error), _) => Err(error),
        (None, Some(true)) => Ok(MakeOutcome {
            accepted: line.made,
            refused: line.failed,
            errors: sanitized(line.errors),
        }),
        (None, _) => return Err("an answer has neither `done` nor `error`".to_owned()),
    };
    let _ = make.send(answer);
    Ok(())
}

/// Texts without what could steer the terminal; of those that are alike then the counts are added up.
fn sanitized(errors: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut tamed: BTreeMap<String, u64> = BTreeMap::new();
    for (text, count) in errors {
        let text = crate::processes::shown(&text, SAID);
        let known = tamed.entry(text).or_default();
        *known = known.saturating_add(count);
    }
    tamed
}

fn greeted(line: &Line, entities: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    if line.ok != Some(true) {
        let error = line.error.as_deref().unwrap_or("it gave no reason");
        return Err(format!("it refused the greeting: {error}"));
    }
    match &line.entities {
        Some(made) if made == entities => Ok(()),
        made => Err(format!(
            "it makes {:?}, but `makes` of the file says {entities:?}; make them equal",
            made.clone().unwrap_or_default()
        )),
    }
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN)]);
    let text: String = text.trim_end().chars().take(SHOWN).collect();
    format!("{text:?}")
}

#[cfg(test)]
mod tests;
