//! The steps of a service in a graph's file.

use std::path::PathBuf;

use document::{Kind, Node, Problem, Span, Value};

use super::amounts::{self, CALLS, SIZE, STEPS, TIME};
use super::fields::{Fields, noted};
use super::read::{Connected, Reader};
use super::{Action, Call, Join, ServiceId, Step, StepId, Work, draft, value};
use crate::amount::Amount;

/// The keys that say what a step does. `cpu` beside `lock` is the time with the lock held.
const KINDS: [&str; 13] = [
    "call",
    "cpu",
    "ops",
    "primes",
    "memory",
    "fork",
    "disk",
    "lock",
    "sleep",
    "stress-ng",
    "stress-ng-status",
    "parallel",
    "steps",
];

/// Most attempts after a failed one.
const MOST_RETRIES: u32 = 100;

/// Largest number that primes are sought below: a sieve of it takes seconds.
pub(super) const MOST_PRIME: u32 = 4_000_000_000;

/// Largest working set: 64 GiB.
const MOST_MEMORY: u64 = 64 << 30;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Longest name of a lock, in bytes.
const MOST_LOCK_NAME: usize = 63;

/// Where a step belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) service: ServiceId,
    pub(super) endpoint: usize,
}

/// A call as it was written, for the checks that need the whole graph. In the order of the
/// steps' ids.
#[derive(Debug)]
pub(super) struct WrittenCall {
    pub(super) at: At,
    pub(super) to: ServiceId,
    /// The name of who is called.
    pub(super) span: Span,
    /// The path, if there is one.
    pub(super) path: Option<(String, Span)>,
    /// Where the time-out stands, if it was written.
    pub(super) timeout: Option<Span>,
}

impl Reader<'_> {
    /// A list of steps.
    pub(super) fn steps(&mut self, node: &Node, at: At) -> Vec<Step> {
        let nodes = value::list(node, "a list of steps such as [{ cpu = \"1ms\" }]");
        let nodes = noted(nodes, &mut self.problems).unwrap_or_default();
        nodes.iter().filter_map(|one| self.step(one, at)).collect()
    }

    /// The next step's number.
    pub(super) fn next_step(&mut self) -> StepId {
        self.last_step += 1;
        StepId(self.last_step)
    }

    fn step(&mut self, node: &Node, at: At) -> Option<Step> {
        let id = self.next_step();
        let kind = noted(kind(node), &mut self.problems)?;
        let mut fields = Fields::of(node, &mut self.problems)?;
        let action = match kind {
            "call" => self.call(&mut fields, at).map(Action::Call),
            "parallel" => self.parallel(&mut fields, at),
            "steps" => {
                let steps = fields.node("steps");
                steps.map(|node| Action::Sequence(self.steps(node, at)))
            }
            kind => self.work(kind, &mut fields).map(Action::Work),
        };
        // A mistyped kind beside a key that is one too: `{ lok = "row", cpu = "1ms" }`.
        fields.finish_or(&KINDS, &mut self.problems);
        action.map(|action| Step { id, action })
    }

    fn parallel(&mut self, fields: &mut Fields<'_>, at: At) -> Option<Action> {
        let node = fields.node("parallel")?;
        let branches = self.steps(node, at);
        let most = u32::try_from(branches.len()).unwrap_or(u32::MAX);
        let join = fields.read("join", &mut self.problems, |node| join(node, most));
        if most == 0 && matches!(&node.value, Value::List(nodes) if nodes.is_empty()) {
            let message = "expected at least one step that runs beside others, found none";
            self.problems.push(Problem::new(node.span.clone(), message));
        }
        Some(Action::Parallel {
            branches,
            join: join.unwrap_or(Join::All),
        })
    }

    fn call(&mut self, fields: &mut Fields<'_>, at: At) -> Option<Call> {
        let problems = &mut self.problems;
        let name = fields.node("call")?;
        let path = fields.node("path");
        let timeout = fields.node("timeout");
        let connections = fields.node("connections");
        let mut call = Call {
            timeout: self.defaults.timeout,
            ..draft::call(super::EdgeId(0))
        };
        fields.fill("probability", problems, &mut call.probability, value::share);
        fields.fill("count", problems, &mut call.count, |node| {
            amounts::read(node, CALLS)
        });
        fields.fill("request", problems, &mut call.request, |node| {
            amounts::read(node, SIZE)
        });
        fields.fill("timeout", problems, &mut call.timeout, timeout_of);
        fields.fill("retries", problems, &mut call.retries, |node| {
            value::whole(node, 0..=MOST_RETRIES)
        });
        fields.fill("backoff", problems, &mut call.backoff, value::time);
        fields.fill("wait", problems, &mut call.wait, bool::of);
        call.path = fields.read("path", problems, path_of);
        let connections = fields
            .read("connections", problems, super::settings::connections)
            .zip(connections.map(|node| node.span.clone()));
        let to = self.service_named(name)?;
        let connected = Connected {
            from: at.service,
            to,
            written: connections,
        };
        call.edge = self.edge(connected);
        self.calls.push(WrittenCall {
            at,
            to,
            span: name.span.clone(),
            path: call.path.clone().zip(path.map(|node| node.span.clone())),
            timeout: timeout.map(|node| node.span.clone()),
        });
        Some(call)
    }

    fn work(&mut self, kind: &'static str, fields: &mut Fields<'_>) -> Option<Work> {
        let problems = &mut self.problems;
        let time = |node| amounts::read(node, TIME);
        match kind {
            "cpu" => fields.read(kind, problems, time).map(Work::Cpu),
            "sleep" => fields.read(kind, problems, time).map(Work::Sleep),
            "ops" => fields
                .read(kind, problems, |node| amounts::read(node, STEPS))
                .map(Work::Ops),
            "primes" => fields
                .read(kind, problems, |node| value::whole(node, 0..=MOST_PRIME))
                .map(|most| Work::Primes(u64::from(most))),
            "memory" => {
                let set = fields.read(kind, problems, memory);
                let touches = fields.read("touches", problems, |node| amounts::read(node, STEPS));
                let set = set?;
                // Once over all of it.
                let all = Amount::Constant((set / LINE).max(1) as f64);
                let touches = touches.unwrap_or(all);
                Some(Work::Memory { set, touches })
            }
            "fork" => fields.read(kind, problems, program).map(Work::Fork),
            "disk" => self.disk(fields.node(kind)?),
            "lock" => {
                let name = fields.read(kind, problems, lock_name);
                let hold = fields.read("cpu", problems, time);
                Some(Work::Lock {
                    name: name?,
                    hold: hold.unwrap_or(Amount::ZERO),
                })
            }
            "stress-ng" => {
                let job = fields.read(kind, problems, job_file);
                let waits = fields.read("wait", problems, bool::of);
                let job = self.folder.join(job?);
                Some(match waits.unwrap_or(true) {
                    true => Work::StressNg { job },
                    false => Work::StressNgBackground { job },
                })
            }
            "stress-ng-status" => fields
                .read(kind, problems, only_true)
                .map(|()| Work::StressNgStatus),
            _ => None,
        }
    }

    fn disk(&mut self, node: &Node) -> Option<Work> {
        let problems = &mut self.problems;
        let mut fields = Fields::of(node, problems)?;
        let size = |node| amounts::read(node, SIZE);
        let read = fields.read("read", problems, size);
        let write = fields.read("write", problems, size);
        let sync = fields.read("sync", problems, bool::of);
        fields.finish(problems);
        Some(Work::Disk {
            read: read.unwrap_or(Amount::ZERO),
            write: write.unwrap_or(Amount::ZERO),
            sync: sync.unwrap_or(false),
        })
    }
}

/// What a step does, by the one key that says it.
fn kind(node: &Node) -> Result<&'static str, Problem> {
    let Value::Table(entries) = &node.value else {
        return Err(value::expected("a step such as { cpu = \"1ms\" }", node));
    };
    let has = |kind: &&&str| entries.iter().any(|entry| entry.key == **kind);
    let mut found: Vec<&'static str> = KINDS.iter().filter(has).copied().collect();
    if found.contains(&"lock") {
        found.retain(|kind| *kind != "cpu");
    }
    match found.as_slice() {
        [kind] => Ok(kind),
        [] => Err(no_kind(node, entries)),
        [one, other, ..] => {
            let message = format!("a step does one thing; found \"{one}\" and \"{other}\"");
            let help = format!("write them as two steps: {{ {one} = … }}, {{ {other} = … }}");
            Err(Problem::new(node.span.clone(), message).help(help))
        }
    }
}

fn no_kind(node: &Node, entries: &[document::Entry]) -> Problem {
    let mistyped = entries.iter().find_map(|entry| {
        let near = units::nearest(&entry.key, KINDS)?;
        Some((entry, near))
    });
    match mistyped {
        Some((entry, near)) => {
            let message = format!("unknown key \"{}\"", entry.key);
            Problem::new(entry.key_span.clone(), message).suggest(near)
        }
        None => {
            let message = "this step does nothing";
            let help = format!("a step has one of: {}", KINDS.join(", "));
            Problem::new(node.span.clone(), message).help(help)
        }
    }
}

fn join(node: &Node, branches: u32) -> Result<Join, Problem> {
    match &node.value {
        Value::Text(text) if text == "all" => Ok(Join::All),
        Value::Text(text) if text == "any" => Ok(Join::Quorum(1)),
        Value::Integer(_) => value::whole(node, 1..=branches.max(1)).map(Join::Quorum),
        _ => {
            let what = "\"all\", \"any\" or how many branches must end well";
            Err(value::expected(what, node))
        }
    }
}

/// A time-out: above zero, so that a call can end.
pub(super) fn timeout_of(node: &Node) -> Result<u64, Problem> {
    match value::time(node)? {
        0 => Err(value::expected("a time-out above 0", node)),
        time => Ok(time),
    }
}

/// A path of a request: it begins with a slash, and has no space or control character.
pub(super) fn path_of(node: &Node) -> Result<String, Problem> {
    let path = value::text(node)?;
    match is_path(path) {
        true => Ok(path.to_owned()),
        false => Err(value::expected("a path such as \"/busywork\"", node)),
    }
}

pub(super) fn is_path(path: &str) -> bool {
    const MOST: usize = 1024;
    path.starts_with('/') && path.len() <= MOST && path.bytes().all(|byte| byte.is_ascii_graphic())
}

fn memory(node: &Node) -> Result<u64, Problem> {
    match value::size(node)? {
        size if (1..=MOST_MEMORY).contains(&size) => Ok(size),
        _ => Err(value::expected("a working set from 1B to 64GiB", node)),
    }
}

/// A program and its arguments.
fn program(node: &Node) -> Result<Vec<String>, Problem> {
    let words: Option<Vec<String>> = match &node.value {
        Value::Text(program) => Some(vec![program.clone()]),
        value => Kind::read(value),
    };
    words
        .filter(|words| words.first().is_some_and(|program| !program.is_empty()))
        .ok_or_else(|| value::expected("a program and its arguments such as [\"date\"]", node))
}

fn job_file(node: &Node) -> Result<PathBuf, Problem> {
    PathBuf::read(&node.value).ok_or_else(|| value::expected("the path of a job file", node))
}

fn lock_name(node: &Node) -> Result<String, Problem> {
    let name = value::text(node)?;
    match (1..=MOST_LOCK_NAME).contains(&name.len()) {
        true => Ok(name.to_owned()),
        false => Err(value::expected("a name of 1 to 63 bytes", node)),
    }
}

fn only_true(node: &Node) -> Result<(), Problem> {
    match bool::of(node)? {
        true => Ok(()),
        false => Err(value::expected("true", node)),
    }
}
