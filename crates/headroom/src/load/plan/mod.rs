//! From the command line to a workload and a segment. Everything that is wrong is said
//! here, before there is load.

mod database;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use lab_load::arrivals::{Arrivals, Shape, trace};
use lab_load::knee::Search;
use lab_load::request::{
    AnswerEnd, Assertion, Body, Composer, Mix, RequestError, Step, parse_header,
};
use lab_load::slo::Slo;
use lab_load::{
    Connections, GuardLimits, Length, Model, Pace, Protocol, Segment, Share, Target, TlsSettings,
    Workload,
};
use units::{UnitError, parse_duration};

use super::args::LoadArgs;
use super::requests_file;

/// Rate of a load that nobody gave one: enough to tell p99 in ten seconds, little
/// enough to do no harm.
const RATE: f64 = 100.0;
/// Length of a load that nobody gave one.
const LENGTH: Duration = Duration::from_secs(10);
/// Users of a closed loop that nobody gave a number, as hey and oha have it.
const USERS: u32 = 50;
/// Most connections of an open loop, unless asked otherwise.
const MOST_CONNECTIONS: u32 = 1024;
/// Requests a second that one thread makes without becoming the limit.
const RATE_OF_A_THREAD: f64 = 40_000.0;
/// Longest files that are read.
const BODY_BYTES: u64 = 16 << 20;
const PEM_BYTES: u64 = 1 << 20;
const TRACE_BYTES: u64 = 512 << 20;

/// A load that is ready to begin.
pub(super) struct Plan {
    pub(super) workload: Workload,
    pub(super) task: Task,
    /// What a reader of the result should know.
    pub(super) notes: Vec<String>,
    pub(super) expect: Option<Slo>,
}

/// What is to be done.
pub(super) enum Task {
    /// One segment.
    Load(Segment),
    /// A search for the highest rate that holds.
    Search(Box<Search>),
}

impl Plan {
    pub(super) fn of(args: &LoadArgs, url: &str) -> Result<Self> {
        let mut notes = Vec::new();
        let (target, path) = target(args, url)?;
        let mix = mix(args, &target, &path)?;
        if let Some(place) = &args.connect_to {
            notes.push(format!(
                "connections went to {place} instead of the URL's host (--connect-to)"
            ));
        }
        if args.requests_file.is_some() && !matches!(path.as_str(), "" | "/") {
            notes.push(format!(
                "{path} of the URL was not asked for: --requests-file has the paths"
            ));
        }
        if target.protocol == Protocol::Tcp && args.answer.is_none() && args.requests_file.is_none()
        {
            notes.push(
                "an answer ends when the target closes the connection; --answer tells another end"
                    .to_owned(),
            );
        }
        let task = task(args, &mut notes)?;
        warm_up(args, &task)?;
        let threads = threads(args, &task);
        let workload = Workload {
            connections: connections(args, &task, &target)?,
            timeout: args.timeout,
            pace: pace(args),
            threads,
            share: Share { first: 0, threads },
            cpus: args
                .cpus
                .as_ref()
                .map_or_else(Vec::new, |cpus| cpus.0.clone()),
            seed: args.seed,
            tls: tls(args, &target, &mut notes)?,
            guard: guard(args),
            target,
            mix,
        };
        // Mistakes in templates are best shown with their place.
        Composer::new(&workload.mix, &workload.target, workload.seed)
            .map_err(|error| shown(&error))?;
        Ok(Self {
            workload,
            task,
            notes,
            expect: args
                .expect
                .as_deref()
                .map(|text| objective("--expect", text))
                .transpose()?,
        })
    }
}

fn target(args: &LoadArgs, url: &str) -> Result<(Target, String)> {
    let (mut target, path) = Target::parse(url).map_err(|error| match url.contains('@') {
        // What stands there may be a password.
        true => anyhow!("{error}{}", error.hint()),
        false => placed(url, &error),
    })?;
    database::check(args, &target)?;
    target.login.password = database::password(args, &target)?;
    if args.http2 {
        match target.protocol {
            Protocol::Http1 | Protocol::Http2 => target.protocol = Protocol::Http2,
            _ => bail!("--http2 is for http:// and https:// only"),
        }
    }
    if let Some(place) = &args.connect_to {
        (target.host, target.port) = Target::place(place, target.port)
            .map_err(|error| anyhow!("--connect-to {place:?}: {error}"))?;
    }
    Ok((target, path))
}

fn mix(args: &LoadArgs, target: &Target, path: &str) -> Result<Mix> {
    if let Some(file) = &args.requests_file {
        return requests_file::read_requests(file, target);
    }
    let body = match target.protocol {
        protocol if protocol.has_rows() => database::statement(args, protocol)?,
        _ => body(args)?,
    };
    if matches!(target.protocol, Protocol::Tcp | Protocol::Udp) && body == Body::Empty {
        bail!("a request over TCP or UDP is its bytes; give them with -d TEXT or -D FILE");
    }
    let http = matches!(target.protocol, Protocol::Http1 | Protocol::Http2);
    let method = match (&args.method, &body) {
        (Some(method), _) => method.to_uppercase(),
        (None, Body::Empty) if http => "GET".to_owned(),
        (None, _) if http => "POST".to_owned(),
        (None, _) => String::new(),
    };
    let mut step = Step::new("request", &method, path);
    for text in &args.headers {
        step.headers
            .push(parse_header(text).map_err(|error| shown(&error))?);
    }
    let given = |(name, _): &(String, String)| name.eq_ignore_ascii_case("Content-Type");
    if let Some(value) = &args.content_type
        && !step.headers.iter().any(given)
    {
        step.headers
            .push(("Content-Type".to_owned(), value.clone()));
    }
    for text in &args.asserts {
        step.assertions
            .push(Assertion::parse(text).map_err(|error| shown(&error))?);
    }
    if let Some(text) = &args.answer {
        step.answer = AnswerEnd::parse(text).map_err(|error| shown(&error))?;
    }
    step.body = body;
    Ok(Mix::of(step))
}

fn body(args: &LoadArgs) -> Result<Body> {
    if let Some(text) = &args.data {
        // With wrk, -d is the duration.
        if args.method.is_none() && parse_duration(text).is_ok_and(|time| !time.is_zero()) {
            bail!(
                "-d {text} would be the body, as it is for hey and curl; did you mean \
                 -z {text}, the duration? To send \"{text}\", say -m POST as well"
            );
        }
        return Ok(Body::Template(text.clone()));
    }
    match &args.data_file {
        Some(file) => Ok(Body::Bytes(read(file, BODY_BYTES, "the body")?)),
        None => Ok(Body::Empty),
    }
}

fn task(args: &LoadArgs, notes: &mut Vec<String>) -> Result<Task> {
    if let Some(text) = &args.knee {
        return search(args, text).map(|search| Task::Search(Box::new(search)));
    }
    let requests = args.requests;
    let segment = |model, duration| Segment {
        model,
        length: Length { duration, requests },
        first: 0,
    };
    let given = args.duration.or((requests.is_none()).then_some(LENGTH));
    if args.closed {
        let think = args.think.unwrap_or_default();
        return Ok(Task::Load(segment(Model::Closed { think }, given)));
    }
    let arrivals = arrivals(args, notes)?;
    // A staircase and a ramp have a length of their own, and a trace is over with its last time.
    let own = match &arrivals {
        Arrivals::Trace(_) => return Ok(Task::Load(segment(Model::Open(arrivals), args.duration))),
        Arrivals::Rate {
            shape: Shape::Steps(steps),
            ..
        } => Some(steps.iter().map(|(_, length)| *length).sum()),
        Arrivals::Rate {
            shape: Shape::Ramp { over, .. },
            ..
        } => Some(*over),
        Arrivals::Rate { .. } => None,
    };
    let duration = args.duration.or(own).or(given);
    let length = Length { duration, requests };
    if arrivals.planned(&length) == Some(0.0) {
        bail!(
            "no request would be due: {} is less than one in so short a load; raise the rate, or \
             let it go on for longer (-z, -n)",
            arrivals.describe()
        );
    }
    Ok(Task::Load(segment(Model::Open(arrivals), duration)))
}

/// A warm-up that is left out leaves something.
fn warm_up(args: &LoadArgs, task: &Task) -> Result<()> {
    let Task::Load(segment) = task else {
        return Ok(());
    };
    let left_out = args.warm_up.left_out();
    match segment.lasts() {
        Some(lasts) if !left_out.is_zero() && left_out >= lasts => bail!(
            "--warm-up {} leaves nothing of a load of {}; shorten it, or let the load go on for \
             longer",
            units::write_duration(left_out),
            units::write_duration(lasts)
        ),
        _ => Ok(()),
    }
}

fn arrivals(args: &LoadArgs, notes: &mut Vec<String>) -> Result<Arrivals> {
    if let Some(file) = &args.trace {
        let text = read_text(file, TRACE_BYTES, "the trace")?;
        return trace::parse(&text).with_context(|| format!("read the trace {}", file.display()));
    }
    let words = args.arrivals.as_deref().unwrap_or("poisson").trim();
    let whole = has_rate(words);
    let text = match (args.rate, &args.ramp) {
        (None, None) if whole => words.to_owned(),
        _ if whole => bail!(
            "--arrivals \"{words}\" has a rate already; leave --rate and --ramp out, or leave \
             the rate out of it"
        ),
        (Some(rate), _) => format!("{words} {rate}/s"),
        (None, Some(ramp)) => {
            let how = match args.step {
                Some(step) => format!("steps of {}", units::write_duration(step)),
                None => {
                    let over = args.duration.unwrap_or(LENGTH);
                    format!("over {}", units::write_duration(over))
                }
            };
            format!("{words} {ramp} {how}")
        }
        (None, None) => {
            notes.push(format!(
                "no rate was asked for, so it is {RATE}/s; --rate 5000/s sets another, --knee \
                 finds the highest that holds, --closed goes as fast as the target answers"
            ));
            format!("{words} {RATE}/s")
        }
    };
    Arrivals::parse(&text).map_err(|error| placed(&text, &error))
}

/// Whether arrivals are more than a process: whether they say a rate, right or wrong.
fn has_rate(arrivals: &str) -> bool {
    let words: Vec<&str> = arrivals.split_whitespace().collect();
    let (["poisson" | "constant", rate @ ..] | ["burst", _, rate @ ..] | rate) = words.as_slice();
    rate.iter()
        .any(|word| word.contains(|character: char| character.is_ascii_digit()))
}

fn search(args: &LoadArgs, text: &str) -> Result<Search> {
    let objective = objective("--knee", text)?;
    let mut search = match args.thorough {
        true => Search::new(objective),
        false => Search::brief(objective),
    };
    if let Some(words) = &args.arrivals {
        let text = format!("{words} 1/s");
        match Arrivals::parse(&text) {
            Ok(Arrivals::Rate { process, .. }) => search.process = process,
            Ok(Arrivals::Trace(_)) => {}
            Err(_) => bail!(
                "--arrivals \"{words}\": a search sets the rate itself; expected poisson, \
                 constant or \"burst 50\""
            ),
        }
    }
    search.from = args.from.unwrap_or(search.from);
    search.most = args.up_to;
    search.grow = args.grow.unwrap_or(search.grow);
    search.each = args.each.unwrap_or(search.each);
    search.longest = search.longest.max(search.each);
    search.confirm = search.confirm.max(search.each);
    search.precision = args.precision.unwrap_or(search.precision);
    search.within = args.within.unwrap_or(search.within);
    search.seed = args.seed;
    search.check()?;
    Ok(search)
}

fn objective(flag: &str, text: &str) -> Result<Slo> {
    Slo::parse(text).map_err(|error| placed(text, &error).context(flag.to_owned()))
}

fn connections(args: &LoadArgs, task: &Task, target: &Target) -> Result<Connections> {
    let closed = closed(task);
    if let (Some(held), Some(most)) = (args.connections, args.max_connections)
        && held > most
    {
        bail!("-c {held} is more than --max-connections {most}; leave one of them out");
    }
    let many = matches!(target.protocol, Protocol::Http2 | Protocol::Grpc);
    let usual = match (closed, many) {
        (true, _) => USERS,
        // A few connections carry many exchanges each.
        (false, true) => 4,
        // Enough for answers that take some 20 ms; more are opened on demand.
        (false, false) => (highest_rate(task) / 50.0).clamp(8.0, 256.0) as u32,
    };
    let held = args.connections.unwrap_or(usual);
    let most = match closed {
        true => held,
        false => args.max_connections.unwrap_or(MOST_CONNECTIONS),
    };
    Ok(Connections {
        held: held.min(args.max_connections.unwrap_or(held)),
        most: most.max(held.min(args.max_connections.unwrap_or(held))),
        requests_each: args.requests_each.or(args.disable_keepalive.then_some(1)),
        streams: match many {
            _ if target.protocol == Protocol::Redis => args.pipeline.unwrap_or(1),
            true => args.streams.unwrap_or(if closed { 1 } else { 100 }),
            false => args.streams.unwrap_or(1),
        },
        connect_within: args.connect_within,
    })
}

fn closed(task: &Task) -> bool {
    match task {
        Task::Load(segment) => matches!(segment.model, Model::Closed { .. }),
        Task::Search(_) => false,
    }
}

/// The highest rate that is planned; in a search where it begins.
fn highest_rate(task: &Task) -> f64 {
    match task {
        Task::Search(search) => search.most.unwrap_or(search.from),
        Task::Load(segment) => match &segment.model {
            Model::Closed { .. } => f64::INFINITY,
            Model::Open(Arrivals::Trace(times)) => {
                let seconds = times
                    .last()
                    .map_or(1.0, |last| (*last as f64 / 1e9).max(1.0));
                times.len() as f64 / seconds
            }
            Model::Open(Arrivals::Rate { shape, .. }) => match shape {
                Shape::Constant(rate) => *rate,
                Shape::Ramp { from, to, .. } => from.max(*to),
                Shape::Steps(steps) => steps.iter().map(|(rate, _)| *rate).fold(0.0, f64::max),
                Shape::Sine {
                    mean, amplitude, ..
                } => mean + amplitude,
            },
        },
    }
}

/// As many as the rate needs, and a processor left for the target if it runs here too.
fn threads(args: &LoadArgs, task: &Task) -> u32 {
    if let Some(threads) = args.threads {
        return threads;
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let most = u32::try_from(cores.saturating_sub(1))
        .unwrap_or(1)
        .clamp(1, 16);
    match task {
        Task::Search(_) => most,
        Task::Load(_) if closed(task) => most.min(args.connections.unwrap_or(USERS)),
        Task::Load(_) => {
            let needed = (highest_rate(task) / RATE_OF_A_THREAD)
                .ceil()
                .clamp(1.0, 256.0);
            most.min(needed as u32)
        }
    }
}

fn pace(args: &LoadArgs) -> Pace {
    match args.tick {
        _ if args.spin => Pace::Spin,
        Some(tick) => Pace::Tick(tick),
        None if args.closed && !args.no_coalesce => Pace::Coalesce,
        None => Pace::Exact,
    }
}

fn tls(args: &LoadArgs, target: &Target, notes: &mut Vec<String>) -> Result<TlsSettings> {
    let pem = |file: &Option<std::path::PathBuf>, what: &str| -> Result<String> {
        let Some(file) = file else {
            return Ok(String::new());
        };
        let bytes = read(file, PEM_BYTES, what)?;
        let text = String::from_utf8(bytes).unwrap_or_default();
        // An empty text would stand for the public authorities.
        match text.contains("-----BEGIN ") {
            true => Ok(text),
            false => bail!("read {what} {}: found no PEM in it", file.display()),
        }
    };
    if args.insecure && target.tls {
        notes.push("certificates were not checked (--insecure)".to_owned());
    }
    Ok(TlsSettings {
        authorities: pem(&args.cacert, "the authorities")?,
        certificate: pem(&args.cert, "the certificate")?,
        key: pem(&args.key, "the private key")?,
        insecure: args.insecure,
    })
}

fn guard(args: &LoadArgs) -> GuardLimits {
    let (asked, usual) = (&args.guard, GuardLimits::default());
    GuardLimits {
        late_after: asked.late_after.unwrap_or(usual.late_after),
        sent_share: asked
            .allow_unsent
            .map_or(usual.sent_share, |unsent| 1.0 - unsent),
        steal_share: asked.allow_steal.unwrap_or(usual.steal_share),
        little: usual.little,
    }
}

/// A whole file, if it is not larger than `most`.
pub(super) fn read(file: &Path, most: u64, what: &str) -> Result<Vec<u8>> {
    let reading = || format!("read {what} {}", file.display());
    let mut bytes = Vec::new();
    let found = File::open(file)
        .with_context(reading)?
        .take(most + 1)
        .read_to_end(&mut bytes)
        .with_context(reading)? as u64;
    if found > most {
        let most = most >> 20;
        bail!("{}: expected {most} MiB at most, found more", reading());
    }
    Ok(bytes)
}

/// A whole file as text, if it is not larger than `most`.
pub(crate) fn read_text(file: &Path, most: u64, what: &str) -> Result<String> {
    let bytes = read(file, most, what)?;
    String::from_utf8(bytes).with_context(|| format!("read {what} {}", file.display()))
}

/// An error in a request, with its line and a caret.
pub(super) fn shown(error: &RequestError) -> anyhow::Error {
    match error.excerpt() {
        Some(excerpt) => anyhow!("{error}\n\n{}", indented(&excerpt)),
        None => anyhow!("{error}"),
    }
}

fn placed(text: &str, error: &UnitError) -> anyhow::Error {
    anyhow!("{error}{}\n\n{}", error.hint(), caret(text, &error.at))
}

/// A text with carets under a part of it.
fn caret(text: &str, at: &std::ops::Range<usize>) -> String {
    let before = text
        .get(..at.start)
        .map_or(0, |before| before.chars().count());
    let marked = text
        .get(at.clone())
        .map_or(1, |part| part.chars().count().max(1));
    indented(&format!(
        "{text}\n{}{}",
        " ".repeat(before),
        "^".repeat(marked)
    ))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests;
