//! A generator that is threads of this process.

mod advice;
mod check;
mod machine;
mod resolve;
mod samples;

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_load::recording::Timeline;
use lab_load::{Flow, Generate, GenerateError, Model, Protocol, Recorded, Segment, Span, Workload};
use measure::Clock;
use wire::clock;
use wire::poller::Waker;
use wire::tls::{TlsClient, TlsOptions};

use crate::engine::{Engine, EngineError, Outages, Report, ReportSender, Sampler, Setup, Turns};
use crate::merge::Merge;
use lab_load::request::{Composer, Mix};
use machine::Machine;
use samples::Samplers;

pub use samples::{SampleCounts, SampleLog};

/// Time between the command to begin and the beginning, so that all threads are there.
const LEAD: u64 = 5_000_000;
/// Spans of one thread that wait to be taken; a thread that finds no room merges its
/// spans until there is some.
const SPANS: usize = 16;

/// A generator that is threads of this process. Its connections are open from
/// [`Local::start`] until it is dropped.
pub struct Local {
    stopper: Stopper,
    threads: Vec<Thread>,
    reports: Receiver<(usize, Report)>,
    machine: Machine,
    /// Changes of the rate that segments before had.
    turned: usize,
}

struct Thread {
    commands: Option<Sender<Command>>,
    emptied: SyncSender<Box<Span>>,
    handle: Option<JoinHandle<()>>,
}

/// What a thread is told.
enum Command {
    /// A segment to run, and when it begins.
    Run { segment: Arc<Segment>, began: u64 },
    /// To see which connections are closed.
    Look,
}

/// Ends the segment of a [`Local`] that is under way, from any thread and at once.
#[derive(Clone)]
pub struct Stopper {
    setup: Arc<Setup>,
    begins_at: Arc<AtomicU64>,
    wakers: Vec<Waker>,
}

impl Stopper {
    /// No more requests; those in flight are awaited. Without effect between segments.
    pub fn stop(&self) {
        self.setup.stop.store(true, Ordering::Relaxed);
        self.wakers.iter().for_each(Waker::wake);
    }

    /// Now, on the clock of [`Stopper::begin_next_at`] and [`Stopper::end_at`]: nanoseconds
    /// whose zero has no meaning. All generators of a process have the same clock.
    pub fn now() -> u64 {
        clock::now()
    }

    /// The next segment begins at this moment. If that has passed already, what fell due
    /// since then is sent late, and counts so.
    pub fn begin_next_at(&self, at: u64) {
        self.begins_at.store(at, Ordering::Relaxed);
    }

    /// From this moment on, requests of the segment that is under way fall due at this rate per
    /// second, if its arrivals can be [`turned`](lab_load::arrivals::Arrivals::turned). Moments
    /// ascend; of one that has passed already, what fell due since then is sent late, and counts so.
    pub fn turn_at(&self, at: u64, rate: f64) {
        self.setup.turns.add(at, rate);
        self.wakers.iter().for_each(Waker::wake);
    }

    /// When requests of the segment that is under way, or of the last one, failed.
    pub fn outages(&self) -> Arc<Outages> {
        Arc::clone(&self.setup.outages)
    }

    /// The segment that is under way, if it has no length of its own, ends at this
    /// moment: what is due earlier belongs to it. With [`Stopper::begin_next_at`] of
    /// another generator, one load goes on where the other ends.
    pub fn end_at(&self, at: u64) {
        self.setup.ends_at.store(at, Ordering::Relaxed);
        self.wakers.iter().for_each(Waker::wake);
    }
}

impl Local {
    /// Checks a workload, resolves its target and opens the connections that are to be
    /// held. Whatever is wrong with any of that is said here, before there is load.
    ///
    /// # Errors
    /// What was found, and what to do next.
    pub fn start(workload: Workload) -> Result<Self, GenerateError> {
        let setup = Self::prepare(workload)?;
        Self::open(setup, None)
    }

    /// The same, and writes one line for each request to `out`, as comma-separated
    /// values under a line of names. Times are in seconds, `intended_s` from the start
    /// of the segment. Lines come in the order in which requests ended, some hundred of
    /// a thread together.
    ///
    /// A load never waits for `out`: what it cannot take in time is counted and lost. Before the
    /// first segment nothing is written.
    ///
    /// # Errors
    /// What was found, and what to do next.
    pub fn with_samples(
        workload: Workload,
        out: Box<dyn Write + Send>,
    ) -> Result<(Self, SampleLog), GenerateError> {
        let setup = Self::prepare(workload)?;
        let (samplers, unwritten) = samples::queue();
        let local = Self::open(Arc::clone(&setup), Some(samplers))?;
        let log = samples::write_to(out, unwritten, setup)?;
        Ok((local, log))
    }

    fn prepare(workload: Workload) -> Result<Arc<Setup>, GenerateError> {
        check::workload(&workload)?;
        let mix = sent_mix(&workload);
        let composer = Composer::new(&mix, &workload.target, workload.seed);
        let composer =
            composer.map_err(|error| GenerateError::new("prepare the requests", error))?;
        let tls = tls_client(&workload)?;
        let addresses = resolve::addresses(&workload)?;
        Ok(Arc::new(Setup {
            composer,
            addresses,
            tls,
            stop: AtomicBool::new(false),
            ends_at: AtomicU64::new(0),
            turns: Turns::default(),
            outages: Arc::default(),
            workload,
        }))
    }

    fn open(setup: Arc<Setup>, samplers: Option<Samplers>) -> Result<Self, GenerateError> {
        let threads = setup.workload.threads as usize;
        let (sender, reports) = sync_channel(SPANS * threads);
        let mut local = Self {
            machine: Machine::now(),
            turned: 0,
            threads: Vec::with_capacity(threads),
            reports,
            stopper: Stopper {
                setup,
                begins_at: Arc::default(),
                wakers: Vec::with_capacity(threads),
            },
        };
        for number in 0..threads {
            let sampler = samplers.as_ref().map(Samplers::sampler);
            local.spawn(number, sender.clone(), sampler)?;
        }
        drop(sender);
        for _ in 0..threads {
            match local.reports.recv() {
                Ok((_, Report::Ready(waker))) => local.stopper.wakers.push(waker),
                Ok((_, Report::Failed(trouble))) => return Err(local.explain(trouble)),
                Ok(_) | Err(_) => return Err(vanished()),
            }
        }
        Ok(local)
    }

    /// Ends the segment that is under way, from another thread or a handler of signals.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    fn spawn(
        &mut self,
        number: usize,
        reports: SyncSender<(usize, Report)>,
        sampler: Option<Sampler>,
    ) -> Result<(), GenerateError> {
        let (commands, orders) = channel();
        let (emptied, empties) = sync_channel(SPANS);
        let setup = Arc::clone(&self.stopper.setup);
        let sender = ReportSender {
            number,
            reports,
            emptied: empties,
        };
        let spawned = std::thread::Builder::new()
            .name(format!("load-{number}"))
            .spawn(move || work(setup, &sender, &orders, sampler));
        let handle = spawned.map_err(|error| {
            GenerateError::new(
                format!("start thread {} of the generator", number + 1),
                error,
            )
            .help("use fewer threads")
        })?;
        self.threads.push(Thread {
            commands: Some(commands),
            emptied,
            handle: Some(handle),
        });
        Ok(())
    }

    fn explain(&self, trouble: EngineError) -> GenerateError {
        let setup = &self.stopper.setup;
        advice::explain(&setup.workload, &setup.addresses, trouble)
    }
}

impl Generate for Local {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        let setup = Arc::clone(&self.stopper.setup);
        setup.stop.store(false, Ordering::Relaxed);
        setup.outages.clear();
        let now = clock::now();
        let began = match self.stopper.begins_at.swap(0, Ordering::Relaxed) {
            0 => now + LEAD,
            at => at,
        };
        let ahead = i64::try_from(i128::from(began) - i128::from(now)).unwrap_or(0);
        let began_unix_ns = Clock::start().origin_unix_ns().saturating_add(ahead);
        let shared = Arc::new(segment.clone());
        for thread in &self.threads {
            let segment = Arc::clone(&shared);
            thread.send(Command::Run { segment, began })?;
        }
        let mut recorded = Recorded {
            segment: segment.clone(),
            began_unix_ns,
            total: Span::empty(setup.composer.kinds().len()),
            timeline: Timeline::default(),
            cut: None,
            lost: Vec::new(),
            notes: setup.addresses.note.iter().cloned().collect(),
        };
        self.machine = Machine::now();
        let mut merge = Merge::new(self.threads.len(), 1);
        while !merge.ended() {
            match self.reports.recv() {
                Ok((number, Report::Span(span))) => {
                    let emptied = merge.add(number, span);
                    // Without room for it the span is freed.
                    let _ = self.threads[number].emptied.try_send(emptied);
                }
                Ok((number, Report::Ended(ending))) => {
                    if ending.stopped {
                        recorded.cut = Some("stopped".to_owned());
                    }
                    for span in [Some(ending.last), ending.after].into_iter().flatten() {
                        let emptied = merge.add(number, span);
                        let _ = self.threads[number].emptied.try_send(emptied);
                    }
                    merge.end(number);
                }
                Ok((_, Report::Failed(trouble))) => return Err(self.explain(trouble)),
                Ok((_, Report::Ready(_) | Report::TurnedAway(_))) => {}
                Err(_) => return Err(vanished()),
            }
            while let Some(mut span) = merge.next() {
                span.machine = self.machine.since_last();
                let flow = watch(&span);
                recorded.total.append(&span);
                recorded.timeline.push(span);
                if flow == Flow::Stop {
                    self.stopper.stop();
                }
            }
        }
        let ended = setup.ends_at.load(Ordering::Relaxed);
        if segment.length.duration.is_none() && ended > began {
            recorded.segment.length.duration = Some(Duration::from_nanos(ended - began));
        }
        let turns = setup.turns.after(self.turned).unwrap_or_default();
        self.turned += turns.len();
        turned(&mut recorded.segment, began, &turns);
        Ok(recorded)
    }

    fn turned_away(&mut self) -> Result<u32, GenerateError> {
        let mut all = 0;
        for thread in &self.threads {
            thread.send(Command::Look)?;
        }
        for _ in &self.threads {
            match self.reports.recv() {
                Ok((_, Report::TurnedAway(few))) => all += few,
                Ok((_, Report::Failed(trouble))) => return Err(self.explain(trouble)),
                Ok(_) | Err(_) => return Err(vanished()),
            }
        }
        Ok(all)
    }
}

impl Thread {
    fn send(&self, command: Command) -> Result<(), GenerateError> {
        let told = self.commands.as_ref().map(|to| to.send(command));
        match told {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(vanished()),
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stopper.stop();
        for thread in &mut self.threads {
            // Without a sender the thread ends after its segment.
            thread.commands = None;
        }
        // Room for what the threads still have to tell.
        let handles = self
            .threads
            .iter_mut()
            .filter_map(|thread| thread.handle.take());
        let handles: Vec<_> = handles.collect();
        while handles.iter().any(|handle| !handle.is_finished()) {
            let _ = self.reports.recv_timeout(Duration::from_millis(10));
        }
    }
}

/// Has a segment say at which rates its requests fell due.
fn turned(segment: &mut Segment, began: u64, turns: &[(u64, f64)]) {
    let length = segment.length.duration;
    for (at, rate) in turns.iter().filter(|(at, _)| *at > began) {
        let at = Duration::from_nanos(at - began);
        let rest = length.map(|length| length.saturating_sub(at));
        if let Model::Open(arrivals) = &mut segment.model
            && rest.is_none_or(|rest| !rest.is_zero())
            && let Ok(turned) = arrivals.turned(at, *rate, rest)
        {
            *arrivals = turned;
        }
    }
}

/// What a thread does.
fn work(
    setup: Arc<Setup>,
    sender: &ReportSender,
    orders: &Receiver<Command>,
    sampler: Option<Sampler>,
) {
    let end_on_drop = EndOnDrop(sender);
    clock::precise_timers();
    let cpus = &setup.workload.cpus;
    if let Some(cpu) = cpus.get(sender.number % cpus.len().max(1))
        && let Err(error) = clock::pin_to(*cpu)
    {
        return sender.send(Report::Failed(EngineError::System(
            "pin a thread to its processor",
            error,
        )));
    }
    let mut engine = match Engine::new(setup, sender.number as u32, sampler) {
        Ok(engine) => engine,
        Err(error) => {
            return sender.send(Report::Failed(EngineError::System("watch sockets", error)));
        }
    };
    match engine.open_held() {
        Ok(()) => sender.send(Report::Ready(engine.waker())),
        Err(trouble) => return sender.send(Report::Failed(trouble)),
    }
    while let Ok(command) = orders.recv() {
        let told = match command {
            Command::Run { segment, began } => {
                engine.run(&segment, began, sender).map(Report::Ended)
            }
            Command::Look => engine.turned_away().map(Report::TurnedAway),
        };
        match told {
            Ok(report) => sender.send(report),
            Err(trouble) => return sender.send(Report::Failed(trouble)),
        }
    }
    drop(end_on_drop);
}

/// Tells that a thread was lost, so that nobody waits for it.
struct EndOnDrop<'a>(&'a ReportSender);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lost = std::io::Error::other("it ended by a mistake of its own");
            let trouble = EngineError::System("keep a thread running", lost);
            self.0.send(Report::Failed(trouble));
        }
    }
}

fn vanished() -> GenerateError {
    GenerateError::new("run the generator's threads", "one of them has ended")
        .help("start the generator anew")
}

/// The mix as it is sent: where a connection carries one request, that says so, and the target
/// does not wait for another.
fn sent_mix(workload: &Workload) -> Cow<'_, Mix> {
    const CONNECTION: &str = "Connection";
    let http1 = workload.target.protocol == Protocol::Http1;
    if !http1 || workload.connections.requests_each != Some(1) {
        return Cow::Borrowed(&workload.mix);
    }
    let mut mix = workload.mix.clone();
    let journeys = mix.journeys.iter_mut();
    for step in journeys.flat_map(|journey| &mut journey.steps) {
        let mut names = step.headers.iter().map(|(name, _)| name);
        if !names.any(|name| name.eq_ignore_ascii_case(CONNECTION)) {
            let close = (CONNECTION.to_owned(), "close".to_owned());
            step.headers.push(close);
        }
    }
    Cow::Owned(mix)
}

fn tls_client(workload: &Workload) -> Result<Option<TlsClient>, GenerateError> {
    if !workload.target.tls {
        return Ok(None);
    }
    let settings = &workload.tls;
    let options = TlsOptions {
        authorities: &settings.authorities,
        public_authorities: false,
        certificate: &settings.certificate,
        key: &settings.key,
        insecure: settings.insecure,
        protocols: match workload.target.protocol {
            Protocol::Http1 | Protocol::WebSocket => &["http/1.1"],
            Protocol::Http2 | Protocol::Grpc => &["h2"],
            Protocol::Tcp | Protocol::Udp | Protocol::Redis | Protocol::Postgres => &[],
        },
    };
    let name = resolve::name_of(&workload.target.authority);
    let client =
        TlsClient::new(name, &options).map_err(|error| GenerateError::new("prepare TLS", error))?;
    Ok(Some(client))
}

#[cfg(test)]
mod tests;
