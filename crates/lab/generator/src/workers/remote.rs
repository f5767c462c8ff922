//! Workers on other machines as one generator.

use std::fmt;
use std::time::{Duration, Instant};

use lab_load::recording::Timeline;
use lab_load::{Flow, Generate, GenerateError, Recorded, Segment, Span, Workload};
use serde::{Deserialize, Serialize};

use super::coordinator::{Coordinator, Terms};
use super::driver::Driver;
use super::merge::Merge;
use super::message::{End, Order, Word};
use super::nats::Nats;
use super::offset::Offset;
use super::share::shares;
use super::{VERSION, check_session};

/// Time between an order to run and the begin of the run: enough for the order to
/// arrive, and to be sent again if it is lost.
const LEAD: Duration = Duration::from_millis(700);
/// Time between looks at things that nobody announces.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Beyond the longest that a request may take: for merging, sending and a busy machine.
const REPORT_WITHIN: Duration = Duration::from_secs(10);
/// Longest wait, at the end, for workers to hear that it is the end.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Where workers are found, and how long they are waited for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where everybody meets.
    pub nats: Nats,
    /// Name of the session: 1 to 64 letters, digits, `-` or `_`. One run at a time
    /// uses it.
    pub session: String,
    /// Workers that take part; 1 to 1,000. Nothing starts before all are there.
    pub workers: u32,
    /// Longest wait for them.
    pub within: Duration,
    /// Silence after which a worker counts as lost, and a worker takes the coordinator
    /// for lost and stops its load; at least a second.
    pub silence: Duration,
}

impl Settings {
    /// With a minute's patience for workers to come, and three seconds' for silence.
    pub fn new(nats: Nats, session: String, workers: u32) -> Self {
        Self {
            nats,
            session,
            workers,
            within: Duration::from_secs(60),
            silence: Duration::from_secs(3),
        }
    }

    fn check(&self) -> Result<(), GenerateError> {
        check_session(&self.session)?;
        let doing = || "check the workers' settings".to_owned();
        if !(1..=1000).contains(&self.workers) {
            return Err(GenerateError {
                doing: doing(),
                found: format!("{} workers", self.workers),
                help: Some("ask for 1 to 1,000".into()),
            });
        }
        if self.silence < Duration::from_secs(1) {
            return Err(GenerateError {
                doing: doing(),
                found: format!(
                    "silence of {} ms is taken for a loss",
                    self.silence.as_millis()
                ),
                help: Some("allow at least a second: signs of life come every quarter".into()),
            });
        }
        Ok(())
    }
}

/// What is known about a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// Its name, unique among the workers.
    pub name: String,
    /// Processors that it may use.
    pub cores: u32,
    /// Its clock as seen from here.
    pub clock: Option<Offset>,
    /// How much later than told it began its last run; together with the clock's
    /// uncertainty, how well workers are aligned.
    pub began_late: Option<Duration>,
    /// Why it takes part no more.
    pub lost: Option<String>,
}

impl fmt::Display for WorkerFacts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lost {
            Some(why) => write!(formatter, "{} ({why})", self.name),
            None => write!(formatter, "{}", self.name),
        }
    }
}

/// Workers that wait for segments. Dropped, it sends them home.
#[derive(Debug)]
pub struct Remote {
    driver: Driver<Coordinator>,
    /// Longest time in which a worker must have said something while it runs.
    report_within: Duration,
    /// Number of the last run.
    run: u64,
    /// Of each worker, in its last run.
    began_late: Vec<Option<Duration>>,
}

impl Remote {
    /// Waits until all workers are there, gives each its share of the workload, and
    /// waits until all have opened their connections.
    ///
    /// Thread numbers are given in the order in which workers came: worker `i` of `n`
    /// with `t` threads each gets `i*t` to `i*t + t - 1` of `n*t`. Connections are
    /// divided among them, at least one each.
    ///
    /// # Errors
    /// When NATS cannot be reached, workers are missing or of another version, or one
    /// cannot get ready; it says which and why.
    pub fn start(workload: &Workload, settings: &Settings) -> Result<Self, GenerateError> {
        Self::start_while(workload, settings, &mut |_| Flow::Continue)
    }

    /// As [`Remote::start`]; `watch` is called ten times a second with the workers that
    /// are there, and can end the wait.
    ///
    /// # Errors
    /// As [`Remote::start`], and when `watch` ended it.
    pub fn start_while(
        workload: &Workload,
        settings: &Settings,
        watch: &mut dyn FnMut(&[WorkerFacts]) -> Flow,
    ) -> Result<Self, GenerateError> {
        settings.check()?;
        let shares = shares(workload, settings.workers)?;
        let terms = Terms {
            session: settings.session.clone(),
            token: rand::random(),
            version: VERSION.to_owned(),
            wanted: shares.len(),
            silence: settings.silence,
        };
        let driver = Driver::start(&settings.nats, |clock, max_payload| {
            Coordinator::new(terms, clock.origin_unix_ns(), max_payload)
        })?;
        let mut remote = Self {
            driver,
            report_within: settings.silence + workload.timeout + REPORT_WITHIN,
            run: 0,
            began_late: vec![None; shares.len()],
        };
        remote.gather(settings, watch)?;
        for (worker, share) in shares.into_iter().enumerate() {
            let order = Order::Prepare(Box::new(share));
            remote.driver.with(|core| core.tell(worker, &order));
        }
        let within = workload.connections.connect_within * 2 + settings.silence + REPORT_WITHIN;
        remote.prepared(within, watch)?;
        Ok(remote)
    }

    /// What is known about the workers, in the order of their threads.
    pub fn workers(&self) -> Vec<WorkerFacts> {
        let mut facts = self.driver.with(|core| facts(core));
        for (facts, late) in facts.iter_mut().zip(&self.began_late) {
            facts.began_late = *late;
        }
        facts
    }

    fn gather(
        &mut self,
        settings: &Settings,
        watch: &mut dyn FnMut(&[WorkerFacts]) -> Flow,
    ) -> Result<(), GenerateError> {
        let doing = || format!("wait for {} workers", settings.workers);
        let until = Instant::now() + settings.within;
        loop {
            let ready = self.driver.wait(LOOK_EVERY, |core| {
                let aligned = core
                    .workers()
                    .iter()
                    .all(|peer| peer.aligned() || peer.lost.is_some());
                (core.complete() && aligned).then_some(())
            });
            let facts = self.workers();
            let stop = watch(&facts) == Flow::Stop;
            if let Some(lost) = facts.iter().find(|facts| facts.lost.is_some()) {
                return Err(GenerateError {
                    doing: doing(),
                    found: format!("lost {lost}"),
                    help: Some("start it again, then this".into()),
                });
            }
            if ready.is_some() {
                return Ok(());
            }
            if stop || Instant::now() >= until {
                let refusals: Vec<String> = self
                    .driver
                    .with(|core| core.refusals().map(str::to_owned).collect());
                let refused = match refusals.is_empty() {
                    true => String::new(),
                    false => format!("; refused: {}", refusals.join("; ")),
                };
                return Err(GenerateError {
                    doing: doing(),
                    found: format!("{} came{refused}", facts.len()),
                    help: Some(format!(
                        "run on each machine: headroom load --worker --nats {} --session {}",
                        settings.nats, settings.session
                    )),
                });
            }
        }
    }

    fn prepared(
        &mut self,
        within: Duration,
        watch: &mut dyn FnMut(&[WorkerFacts]) -> Flow,
    ) -> Result<(), GenerateError> {
        let until = Instant::now() + within;
        let mut ready = vec![false; self.began_late.len()];
        while ready.iter().any(|ready| !ready) {
            let words = self.words();
            for (worker, word) in words {
                match word {
                    Word::Ready => ready[worker] = true,
                    Word::NotReady(error) => return Err(self.of_worker(worker, error)),
                    Word::Bye => self.bye(worker),
                    Word::Span { .. } | Word::Done { .. } => {}
                }
            }
            let facts = self.workers();
            let doing = || "prepare the workers".to_owned();
            if let Some(lost) = facts.iter().find(|facts| facts.lost.is_some()) {
                return Err(GenerateError {
                    doing: doing(),
                    found: format!("lost {lost}"),
                    help: None,
                });
            }
            if watch(&facts) == Flow::Stop || Instant::now() >= until {
                let not: Vec<&str> = facts
                    .iter()
                    .zip(&ready)
                    .filter(|(_, ready)| !**ready)
                    .map(|(facts, _)| facts.name.as_str())
                    .collect();
                return Err(GenerateError {
                    doing: doing(),
                    found: format!("not ready: {}", not.join(", ")),
                    help: Some("look at what they print".into()),
                });
            }
        }
        Ok(())
    }

    /// What workers have said; waits a moment for it.
    fn words(&self) -> Vec<(usize, Word)> {
        let heard = self.driver.wait(LOOK_EVERY, |core| {
            let mut words = Vec::new();
            for worker in 0..core.workers().len() {
                words.extend(std::iter::from_fn(|| core.hear(worker)).map(|word| (worker, word)));
            }
            (!words.is_empty()).then_some(words)
        });
        heard.unwrap_or_default()
    }

    fn bye(&self, worker: usize) {
        let why = "ended by its own user".to_owned();
        self.driver.with(|core| core.give_up(worker, why));
    }

    fn of_worker(&self, worker: usize, error: GenerateError) -> GenerateError {
        let facts = self.workers();
        let name = facts.get(worker).map_or("?", |facts| &facts.name);
        GenerateError {
            doing: format!("worker {name}: {}", error.doing),
            ..error
        }
    }

    fn tell_all(&self, order: &Order) {
        self.driver.with(|core| {
            for worker in 0..core.workers().len() {
                core.tell(worker, order);
            }
        });
    }

    /// Gives the order to run; the common begin in own Unix time.
    fn begin(&self, segment: &Segment) -> i64 {
        let now = self.driver.now();
        self.driver.with(|core| {
            let at = core.unix_ns(now + LEAD);
            for worker in 0..core.workers().len() {
                let offset = core.workers()[worker]
                    .offset()
                    .map_or(0, |offset| offset.ns);
                let order = Order::Run {
                    run: self.run,
                    segment: segment.clone(),
                    at_unix_ns: at.saturating_add(offset),
                };
                core.tell(worker, &order);
            }
            at
        })
    }
}

fn facts(core: &Coordinator) -> Vec<WorkerFacts> {
    let workers = core.workers().iter();
    let facts = workers.map(|peer| WorkerFacts {
        name: peer.name.clone(),
        cores: peer.cores,
        clock: peer.offset(),
        began_late: None,
        lost: peer.lost.clone(),
    });
    facts.collect()
}

/// A run while it goes on.
struct Run {
    merge: Merge,
    parts: Vec<RunPart>,
}

/// One worker's part of it.
struct RunPart {
    /// What its spans add up to.
    sum: Span,
    /// How it ended; a lost one ends with what it had said.
    end: Option<Result<End, GenerateError>>,
    /// When it last said something about this run.
    heard: Instant,
}

impl Run {
    fn new(workers: usize) -> Self {
        let heard = Instant::now() + LEAD;
        let part = || RunPart {
            sum: Span::empty(0),
            end: None,
            heard,
        };
        Self {
            merge: Merge::new(workers),
            parts: std::iter::repeat_with(part).take(workers).collect(),
        }
    }

    fn span(&mut self, worker: usize, span: Span) {
        let part = &mut self.parts[worker];
        part.heard = Instant::now();
        part.sum.append(&span);
        self.merge.push(worker, span);
    }

    fn end(&mut self, worker: usize, end: Result<End, GenerateError>) {
        self.parts[worker].end.get_or_insert(end);
        self.merge.end(worker);
    }

    /// A worker is lost: what it said counts.
    fn lost(&mut self, worker: usize) {
        let sum = &mut self.parts[worker].sum;
        let end = End {
            total: Box::new(std::mem::replace(sum, Span::empty(0))),
            cut: None,
            late_ns: 0,
        };
        self.end(worker, Ok(end));
    }

    fn is_over(&self) -> bool {
        self.parts.iter().all(|part| part.end.is_some())
    }
}

impl Generate for Remote {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        self.run += 1;
        if self.workers().iter().all(|facts| facts.lost.is_some()) {
            return Err(GenerateError {
                doing: "run a segment".into(),
                found: "every worker is lost".into(),
                help: Some("start workers and this again".into()),
            });
        }
        let began_unix_ns = self.begin(segment);
        let count = self.began_late.len();
        let mut run = Run::new(count);
        let mut timeline = Timeline::default();
        let mut stopped = false;
        let mut ended = vec![false; count];
        while !run.is_over() {
            for (worker, word) in self.words() {
                match word {
                    Word::Span { run: number, span } if number == self.run => {
                        run.span(worker, *span)
                    }
                    Word::Done { run: number, end } if number == self.run => {
                        if end.is_err() {
                            self.tell_all(&Order::Stop { run: self.run });
                        }
                        ended[worker] = true;
                        run.end(worker, end);
                    }
                    Word::Bye => self.bye(worker),
                    // Of an older run.
                    _ => {}
                }
            }
            for (worker, facts) in self.workers().iter().enumerate() {
                let part = &run.parts[worker];
                if part.end.is_some() {
                    continue;
                }
                let quiet = part.heard.elapsed();
                if facts.lost.is_some() {
                    run.lost(worker);
                } else if quiet > self.report_within {
                    let why = format!(
                        "alive, but said nothing of its load for {} s",
                        quiet.as_secs()
                    );
                    self.driver.with(|core| core.give_up(worker, why));
                    run.lost(worker);
                }
            }
            while let Some(span) = run.merge.pop() {
                if watch(&span) == Flow::Stop && !stopped {
                    stopped = true;
                    self.tell_all(&Order::Stop { run: self.run });
                }
                timeline.push(span);
            }
        }
        self.recorded(segment, began_unix_ns, run, timeline)
    }
}

impl Remote {
    fn recorded(
        &mut self,
        segment: &Segment,
        began_unix_ns: i64,
        run: Run,
        timeline: Timeline,
    ) -> Result<Recorded, GenerateError> {
        let facts = self.workers();
        let mut total = Span::empty(0);
        let mut cut = None;
        for (worker, part) in run.parts.into_iter().enumerate() {
            let end = match part.end {
                None => continue,
                Some(Err(error)) => return Err(self.of_worker(worker, error)),
                Some(Ok(end)) => end,
            };
            total.merge(&end.total);
            self.began_late[worker] = facts[worker]
                .lost
                .is_none()
                .then(|| Duration::from_nanos(end.late_ns));
            cut = cut.or(end.cut);
        }
        // The sum of peaks that were not at the same time would be too high.
        let peak = |of: fn(&Span) -> u64| timeline.spans().iter().map(of).max();
        total.backlog = peak(|span| span.backlog).unwrap_or(total.backlog);
        total.in_flight = peak(|span| span.in_flight).unwrap_or(total.in_flight);
        let lost: Vec<String> = facts
            .iter()
            .filter(|facts| facts.lost.is_some())
            .map(WorkerFacts::to_string)
            .collect();
        if lost.len() == facts.len() {
            cut = Some("every worker was lost".into());
        }
        Ok(Recorded {
            segment: segment.clone(),
            began_unix_ns,
            total,
            timeline,
            cut,
            lost,
        })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.tell_all(&Order::Stop { run: self.run });
        self.tell_all(&Order::Leave);
        let _ = self
            .driver
            .wait(LEAVE_WITHIN, |core| core.is_idle().then_some(()));
    }
}
