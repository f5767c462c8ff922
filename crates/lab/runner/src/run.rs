//! A run from its first file to its verdict.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use lab_experiment::plan::{FaultMechanism, LeftOut, Network, Plan};
use lab_store::{
    Appender, EntityCount, EventKind, FaultRecord, ProcessSample, RunFile, RunFolder, Verdict,
};
use measure::Clock;
use processes::{Reaper, RunTag};

use crate::alarm::{Alarm, Cause};
use crate::calls::Calls;
use crate::captured::CapturedValues;
use crate::drivers::{self, DriverError, Opening, Program};
use crate::entities::Counter;
use crate::environment::{clock_was_set, environment};
use crate::faults::Faults;
use crate::findings::{Recorded, findings};
use crate::inputs::Inputs;
use crate::installed::is_installed;
use crate::interrupt::Interrupts;
use crate::judge::{Ending, Judged, Measured, copies, judge, metrics};
use crate::loads::{self, Files, Loads, Outcome};
use crate::mine::{LogMiner, Mark};
use crate::options::{Finished, Options, RunError};
use crate::probes::{self, Probes, Tried};
use crate::processes::{
    Addresses, Children, Ended, Ports, Running, StartError, Starting, Systems, last_lines,
};
use crate::profile::{Profiler, Stacks};
use crate::progress::{Shown, Status};
use crate::proxies::Proxies;
use crate::record::Recorder;
use crate::recoveries::{Requests, again_and_again, effects};
use crate::skipped::Skipped;
use crate::standstill::{self, Standstills};
use crate::steps::{StepLength, StepRunner};
use crate::store::keep;
use crate::undoing::{UndoLedger, sweep};
use crate::watch::Watcher;

/// Makes a plan happen: starts its systems, makes its steps, watches, follows the
/// logs, stops everything, and judges.
///
/// A plan with a network of its own takes the calling thread into that, and what it starts from
/// then on; it stays there.
///
/// Blocks until the run is over. Must not be called from within an asynchronous
/// runtime. `SIGINT` and `SIGTERM` end the run in order; a second one at once.
///
/// # Errors
/// When the run could not be made at all: the folder cannot be written, a system
/// does not start. Once the first step has begun every outcome, also an error, is a
/// [`Finished`].
pub fn run(mut plan: Plan, experiment_text: &str, options: Options) -> Result<Finished, RunError> {
    let left_out = leave_out(&mut plan);
    // Before anything is bound or started: what there is then is in the run's network.
    if plan.network == Network::Own {
        lab_faults::kernel::enter().map_err(|error| RunError::SetUp(error.to_string()))?;
    }
    // All children are forked by this thread, which lives as long as the run: the
    // kernel kills a child when the thread that forked it ends.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RunError::SetUp(error.to_string()))?;
    let made = make(&plan, experiment_text, &options, left_out);
    runtime.block_on(net::local(made))
}

/// Leaves out of a plan what this machine has no program for, as a run does before all else. Says
/// what that is.
pub fn leave_out(plan: &mut Plan) -> LeftOut {
    plan.leave_out(is_installed)
}

async fn make(
    plan: &Plan,
    text: &str,
    options: &Options,
    left_out: LeftOut,
) -> Result<Finished, RunError> {
    let files = Files::read(plan, &options.base)?;
    let alarm = Alarm::new();
    let interrupts =
        Interrupts::listen(alarm.clone()).map_err(|error| RunError::SetUp(error.to_string()))?;
    let mut session = Session::open(plan, text, options, alarm)?;
    let started = session.start().await;
    let (mut durations, mut outcomes) = (Vec::new(), Outcomes::default());
    let ending = match &started {
        Ok(()) => session.walk(&mut durations, &files, &mut outcomes).await,
        Err(error) => Ending::Broken(error.to_string()),
    };
    let mut left = session.tear_down(&interrupts).await;
    let interrupted = matches!(session.alarm.cause(), Some(Cause::Interrupted(_)));
    outcomes.left_out = left_out;
    let folder = session.folder.clone();
    let concluded = session.conclude(&durations, outcomes, ending);
    let (folder, verdict) = concluded.inspect_err(|_| folder.break_off())?;
    left.extend(verdict.notes.iter().cloned());
    let work = folder.path().join(WORK);
    started.map(|()| Finished {
        interrupted,
        kept: (options.keep && work.exists()).then_some(work),
        folder,
        verdict,
        notes: left,
    })
}

/// What came of the loads of a run.
#[derive(Default)]
struct Outcomes {
    loads: Vec<Outcome>,
    requests: Requests,
    skipped: Vec<Skipped>,
    /// What this machine has no program for.
    left_out: LeftOut,
    faults: Vec<FaultRecord>,
    /// Numbers that steps kept.
    kept: BTreeMap<String, f64>,
    probes: Tried,
    /// What could not be kept.
    notes: Vec<String>,
}

/// The folder for files of the systems, inside the run's.
const WORK: &str = "work";

/// Time between the last step and the end of what is judged, in which systems write to
/// their logs what they did in it.
const LAST_LINES: Duration = Duration::from_millis(250);

/// What starting systems needs, of a session. No method: it borrows some of the fields only.
macro_rules! starting {
    ($session:ident) => {
        Starting {
            children: &$session.children,
            reaper: &$session.reaper,
            addresses: &$session.addresses,
            folder: &$session.folder,
            recorder: &$session.recorder,
            status: &$session.status,
            watcher: $session.watcher.as_ref(),
            profiler: $session.profiler.as_ref(),
            systems: &$session.plan.systems,
            own_binary: $session.options.own_binary.clone(),
            tag: $session.tag.to_string(),
        }
    };
}

/// Everything that a run has open.
struct Session<'a> {
    plan: &'a Plan,
    options: &'a Options,
    clock: Clock,
    alarm: Alarm,
    folder: RunFolder,
    work: PathBuf,
    status: Status,
    shown: Option<Shown>,
    recorder: Recorder,
    counts: Option<Appender<lab_store::EntityCount>>,
    watcher: Option<Watcher>,
    profiler: Option<Profiler>,
    sampled: Stacks,
    miner: LogMiner,
    inputs: Inputs,
    reaper: Arc<Reaper>,
    tag: RunTag,
    children: Children,
    addresses: Addresses,
    ports: Ports,
    proxies: Proxies,
    ledger: RefCell<UndoLedger>,
    systems: Systems,
    drivers: Vec<(String, Program)>,
    judged: Judged,
    /// What could not be undone.
    left: Vec<String>,
}

impl<'a> Session<'a> {
    /// Makes the folder and everything that watches. No system runs yet.
    fn open(
        plan: &'a Plan,
        text: &str,
        options: &'a Options,
        alarm: Alarm,
    ) -> Result<Self, RunError> {
        let set_up =
            |what: &str, error: std::io::Error| RunError::SetUp(format!("{what}: {error}"));
        let out_dir = std::path::absolute(&options.out_dir)
            .map_err(|error| set_up("find the folder of runs", error))?;
        let base = std::path::absolute(&options.base)
            .map_err(|error| set_up("find the folder of the experiment", error))?;
        let (clock, now) = (Clock::start(), Timestamp::now());
        let folder = RunFolder::create(&out_dir, &plan.name, now)?;
        let left = sweep(&out_dir);
        let run_id = folder.id();
        folder.write(RunFile::Experiment, text.as_bytes())?;
        folder.write_json(RunFile::Plan, plan)?;
        folder.write_json(RunFile::Environment, &environment(&run_id, clock, options))?;

        let tag = RunTag::new(&run_id, clock.origin_unix_ns());
        let reaper = Arc::new(Reaper::start(&options.reaper)?);
        reaper.tag(&tag)?;
        let work = folder.path().join(WORK);
        if !options.keep {
            reaper.folder(&work)?;
        }
        fs::create_dir(&work)
            .map_err(|error| set_up(&format!("make {}", work.display()), error))?;

        let status = Status::new(plan, clock);
        options.underway.begin(&folder, clock, &status);
        let recorder = Recorder::new(&folder, clock, status.clone(), alarm.clone())?;
        options.underway.at_work(&recorder, &alarm, &plan.page);
        let mut ports = Ports::new();
        let addresses = Addresses::allot(plan, &work, &mut ports)?;
        let origin = clock.origin_unix_ns();
        let mut faults = plan.steps.iter().flat_map(|step| &step.faults);
        let ledger = match faults.any(|fault| fault.kind.is_on_ledger()) {
            true => {
                UndoLedger::open(&out_dir, &options.guardian, &reaper).map_err(RunError::SetUp)?
            }
            false => UndoLedger::default(),
        };
        Ok(Self {
            counts: Some(folder.appender()?),
            inputs: Inputs::start(plan, &folder, &addresses, &mut ports, alarm.clone())?,
            miner: LogMiner::start(
                plan,
                &folder,
                origin,
                (status.clone(), options.underway.viewers()),
                alarm.clone(),
            )?,
            profiler: Some(Profiler::start(clock)),
            sampled: Stacks::default(),
            watcher: Some(Watcher::start(
                &folder,
                clock,
                (status.clone(), options.underway.viewers()),
                alarm.clone(),
            )?),
            shown: Shown::start(options.display, status.clone()),
            children: Children::new(Arc::clone(&reaper), tag.clone(), base),
            proxies: Proxies::default(),
            ledger: RefCell::new(ledger),
            systems: Systems::default(),
            drivers: Vec::new(),
            judged: Judged {
                from_s: 0.0,
                to_s: 0.0,
            },
            plan,
            options,
            clock,
            alarm,
            left,
            folder,
            work,
            status,
            recorder,
            reaper,
            tag,
            addresses,
            ports,
        })
    }

    /// Starts the systems and opens the drivers.
    async fn start(&mut self) -> Result<(), RunError> {
        let logs = self.folder.path().join("logs");
        let alarm = self.alarm.clone();
        let early = |cause: Cause| RunError::Early {
            cause: describe(&cause),
            interrupted: matches!(cause, Cause::Interrupted(_)),
            logs: logs.clone(),
        };
        let start_error = |cause: StartError| RunError::Start {
            cause: Box::new(cause),
            logs: logs.clone(),
        };
        let starting = starting!(self);
        // What the kernel leads on keeps its port: nobody else may get it.
        for (connection, port, _) in self.addresses.proxies() {
            if self.plan.way(connection) != FaultMechanism::Rules {
                self.ports.release(port);
            }
        }
        let proxies = Proxies::start(&self.addresses, self.plan);
        self.proxies = proxies.map_err(RunError::SetUp)?;
        let systems = &mut self.systems;
        systems.prepare(&starting).map_err(start_error)?;
        let started = systems.start(&mut self.ports, &starting);
        tokio::select! {
            biased;
            cause = alarm.raised() => return Err(early(cause)),
            started = started => {
                started.map_err(start_error)?;
            }
        }
        for driver in &self.plan.drivers {
            self.status.doing(format!("open driver {}", driver.name));
            let opening = Opening {
                children: &self.children,
                addresses: &self.addresses,
                alarm: &self.alarm,
                own_binary: &self.options.own_binary,
                seed: self.plan.seed,
                in_flight: in_flight(self.plan),
                log: self
                    .folder
                    .file(RunFile::Log(&format!("driver-{}", driver.name))),
            };
            let failed = |cause: DriverError| RunError::Driver {
                cause,
                logs: logs.clone(),
            };
            let opened = tokio::select! {
                biased;
                // What the driver says about itself is better than that it ended.
                opened = drivers::open(driver, opening) => opened.map_err(failed)?,
                cause = alarm.raised() => return Err(early(cause)),
                ended = self.systems.supervise(&starting) => {
                    return Err(early(Cause::Broken(unexpected(ended))));
                }
            };
            self.drivers.push((driver.name.clone(), opened));
        }
        Ok(())
    }

    /// Makes the steps, until they are done or something ends the run.
    async fn walk(
        &mut self,
        durations: &mut Vec<StepLength>,
        files: &Files,
        outcomes: &mut Outcomes,
    ) -> Ending {
        let Some(samples) = self.counts.take() else {
            return Ending::Complete;
        };
        self.inputs.look();
        self.judged.from_s = self.clock.now_s();
        self.miner.mark(Mark::Begin);
        let mut counter = Counter::new(self.clock, samples, self.options.underway.viewers());
        let loads = Loads {
            plan: self.plan,
            folder: &self.folder,
            addresses: &self.addresses,
            files,
            recorder: &self.recorder,
            status: &self.status,
            underway: &self.options.underway,
            start: self.options.generator,
            clock: self.clock,
            state: RefCell::default(),
        };
        let starting = starting!(self);
        let (made, slowed, open) = (RefCell::default(), RefCell::default(), RefCell::default());
        let kept = CapturedValues::default();
        let standstills = Standstills::new(self.clock);
        let probes = match Probes::open(
            self.plan,
            &self.systems,
            &starting,
            (self.clock, self.options.underway.viewers()),
        ) {
            Ok(probes) => probes,
            Err(why) => return Ending::Broken(why),
        };
        let calls = Calls {
            starting: &starting,
            kept: &kept,
            files,
            seed: self.plan.seed,
        };
        let bench = StepRunner {
            probes: &probes,
            faults: Faults {
                calls,
                probes: &probes,
                systems: &self.systems,
                proxies: &self.proxies,
                starting: &starting,
                seed: self.plan.seed,
                clock: self.clock,
                made: &made,
                slowed: &slowed,
                ledger: &self.ledger,
                open: &open,
            },
            calls,
            loads: &loads,
            plan: self.plan,
            folder: &self.folder,
            addresses: &self.addresses,
            drivers: &self.drivers,
            recorder: &self.recorder,
            status: &self.status,
            kept: &kept,
            standstills: &standstills,
        };
        let ending = tokio::select! {
            biased;
            never = standstills.look() => match never {},
            cause = self.alarm.raised() => Ending::Broken(describe(&cause)),
            ended = self.systems.supervise(&starting) => Ending::Broken(unexpected(ended)),
            ending = bench.walk(durations) => ending,
            error = counter.run(&self.drivers, &self.status) => Ending::Broken(error.to_string()),
            error = probes.run() => Ending::Broken(error.to_string()),
        };
        // Nobody looks after this.
        let stood = standstills.all();
        let cut = match &ending {
            Ending::Broken(why) | Ending::Failed(why) | Ending::Doubtful(why) => why.as_str(),
            Ending::Complete => "the run is over",
        };
        let not_undone = bench.faults.undo_open().await;
        outcomes.notes = loads.finish(cut).await;
        outcomes.notes.extend(not_undone);
        (outcomes.loads, outcomes.requests, outcomes.skipped) = loads.into_outcomes();
        outcomes.faults = made.into_inner();
        outcomes.kept = kept.numbers();
        let tried = probes
            .flush()
            .and_then(|()| probes::record_summaries(self.plan, &self.folder, &self.recorder));
        // The last counts are those that ended the last wait.
        let last = counter
            .sample(&self.drivers, &self.status)
            .and_then(|()| counter.flush());
        let mined = self.plan.lifecycles.len() + self.plan.loops.len() > 0;
        if mined && self.alarm.cause().is_none() {
            self.status.doing("wait for the last log lines");
            tokio::time::sleep(LAST_LINES).await;
        }
        self.inputs.look();
        self.judged.to_s = self.clock.now_s();
        self.miner.mark(Mark::End);
        let kept = last.and(tried.map(|tried| outcomes.probes = tried));
        outcomes.probes.stood = stood;
        match (ending, kept) {
            (Ending::Complete, Err(error)) => Ending::Broken(error.to_string()),
            (ending, _) => ending,
        }
    }

    /// Stops and removes everything that was started. Returns what is left, which
    /// is nothing unless the system refuses.
    async fn tear_down(&mut self, interrupts: &Interrupts) -> Vec<String> {
        self.options.underway.over();
        if let Some(Cause::Interrupted(signal)) = self.alarm.cause() {
            self.recorder
                .event(EventKind::Interrupted, &self.plan.name, signal);
        }
        let mut left = std::mem::take(&mut self.left);
        // Of a fault that is still being made nothing could be undone for good.
        self.children.dropped_commands().await;
        // What is ended in order must have what it needs for that.
        left.extend(self.ledger.get_mut().close());
        self.status.doing("stop the systems");
        self.recorder
            .event(EventKind::TearDown, &self.plan.name, "");
        let drivers = std::mem::take(&mut self.drivers);
        let orderly = async {
            for (_, driver) in drivers {
                driver.close().await;
            }
            self.systems.stop().await;
        };
        tokio::select! {
            () = orderly => {}
            () = interrupts.again() => {}
        }
        // Whatever still runs had its time.
        self.systems.kill();
        let carriers = self.tag.sweep();
        if !carriers.is_empty() {
            left.push(format!("processes {carriers:?} could not be ended"));
        }
        for running in self.systems.unreported() {
            let ended = running.child.exit().await;
            self.recorder
                .event(EventKind::SystemExited, &running.name, &ended.to_string());
        }
        if let Some(watcher) = self.watcher.take() {
            watcher.stop();
        }
        if let Some(profiler) = self.profiler.take() {
            self.sampled = profiler.stop();
        }
        left.extend(self.inputs.finish());
        if let Err(error) = self.systems.remove_groups() {
            left.push(format!("a cgroup could not be removed: {error}"));
        }
        let has_disks = self.plan.systems.iter().any(|one| one.disk_bytes.is_some());
        if has_disks && !processes::unmount_disks_below(&self.work) {
            left.push("file systems of systems could not be unmounted".to_owned());
        }
        if !self.options.keep
            && let Err(error) = fs::remove_dir_all(&self.work)
        {
            left.push(format!(
                "{} could not be removed: {error}",
                self.work.display()
            ));
        }
        if let Err(error) = self.reaper.done() {
            left.push(error.to_string());
        }
        left
    }

    /// Reads the logs to their end, stores what they told, and judges.
    fn conclude(
        self,
        durations: &[StepLength],
        outcomes: Outcomes,
        ending: Ending,
    ) -> Result<(RunFolder, Verdict), RunError> {
        self.status.doing("read the logs to their end");
        let duration_s = self.clock.now_s();
        let mined = self.miner.finish();
        let told = mined.incomplete.clone().map_or(Ok(()), Err);
        // The last samples and events are written when the steps are over.
        let recorded = match self.alarm.cause() {
            Some(Cause::Broken(what)) => Err(what),
            _ => Ok(()),
        };
        let kept = keep(&self.folder, &mined).map_err(|error| error.to_string());
        let samples = self.folder.records::<ProcessSample>();
        let (samples, read) = match samples {
            Ok(samples) => (samples, Ok(())),
            Err(error) => (Vec::new(), Err(error.to_string())),
        };
        let ending = ending.on(recorded.and(told).and(kept).and(read));
        let samples = self.judged.samples(samples);
        let (made, requests) = (outcomes.faults, outcomes.requests);
        let seen = (requests, &outcomes.probes);
        let faults = record_faults(self.plan, &self.folder, made, seen, self.judged.to_s)?;
        let silent = outcomes.probes.silent(self.plan);
        let measured = Measured {
            tables: &mined.judged.tables,
            loops: &mined.judged.loops,
            samples: &samples,
            copies: copies(self.plan),
            steps: durations,
            loads: loads::Measured(&outcomes.loads),
            skipped: &outcomes.skipped,
            left_out: outcomes.left_out,
            faults: &faults,
            kept: outcomes.kept,
            probes: outcomes.probes,
        };
        let mut verdict = judge(self.plan, &measured, ending, duration_s);
        let found = findings(&Recorded {
            plan: self.plan,
            folder: &self.folder,
            judged: self.judged,
            tables: &mined.judged.tables,
            repeated: &mined.repeated,
            loops: &mined.judged.loops,
            copies: &mined.copies,
            samples: &samples,
            loads: &outcomes.loads,
            faults: &faults,
        });
        let summaries = outcomes.loads.iter().map(|load| &load.summary);
        let stored = self.sampled.store(&self.folder, self.clock, summaries);
        verdict.notes.clone_from(&measured.left_out.lines);
        verdict.notes.extend(outcomes.notes);
        verdict
            .notes
            .extend(outcomes.skipped.iter().map(Skipped::note));
        verdict.notes.extend(mined.silent);
        if let Err(error) = stored {
            let note = format!("the stacks of the worst seconds are not stored: {error}");
            verdict.notes.push(note);
        }
        verdict.notes.extend(silent);
        verdict
            .notes
            .extend(standstill::told(&measured.probes.stood));
        match &found {
            Ok(found) => self.folder.write_json(RunFile::Findings, found)?,
            Err(error) => verdict
                .notes
                .push(format!("what limited the run is not known: {error}")),
        }
        verdict.notes.extend(mined.notes);
        verdict.notes.extend(again_and_again(&faults));
        verdict
            .notes
            .extend(clock_was_set(self.clock.wall_ahead_ns()));
        self.status.doing(match verdict.outcome {
            lab_store::Outcome::Error => "ended with an error",
            _ => "done",
        });
        if let Some(shown) = self.shown {
            shown.stop();
        }
        let metrics = metrics(self.plan, &measured);
        self.folder.write_json(RunFile::Metrics, &metrics)?;
        self.folder.write_json(RunFile::Verdict, &verdict)?;
        Ok((self.folder, verdict))
    }
}

/// Shows what the faults of a run did until `end_s`, and stores it.
fn record_faults(
    plan: &Plan,
    folder: &RunFolder,
    mut faults: Vec<FaultRecord>,
    (requests, probes): (Requests, &Tried),
    end_s: f64,
) -> Result<Vec<FaultRecord>, RunError> {
    if !faults.is_empty() {
        // Without counts nothing is said of entities; that they cannot be read is told
        // where they are drawn.
        let counts = folder.records::<EntityCount>().unwrap_or_default();
        effects(plan, &mut faults, requests, (&counts, probes), end_s);
        folder.write_json(RunFile::Faults, &faults)?;
    }
    Ok(faults)
}

/// Most requests that any make has under way.
fn in_flight(plan: &Plan) -> u32 {
    let makes = plan.steps.iter().filter_map(|step| step.make.as_ref());
    makes.map(|make| make.in_flight).max().unwrap_or(1)
}

fn describe(cause: &Cause) -> String {
    match cause {
        Cause::Interrupted(signal) => format!("interrupted by {signal}"),
        Cause::Broken(what) => what.clone(),
    }
}

/// Why a run cannot go on when a system has ended that it needs.
fn unexpected(ended: Result<Running, StartError>) -> String {
    let running = match ended {
        Ok(running) => running,
        Err(error) => return error.to_string(),
    };
    let child = &running.child;
    let ended = child
        .ended()
        .map_or_else(|| "ended".to_owned(), |ended| ended.to_string());
    format!(
        "{} {ended} while the run needed it{}; its command was `{}`{}",
        running.name,
        match child.ended().is_some_and(Ended::well) {
            true => " (a system has to stay in the foreground)",
            false => "",
        },
        child.command_line,
        last_lines(&child.logs)
    )
}

/// Whether a run here can have a network of its own, tried once for the process: if not, why.
///
/// # Errors
/// Why not, as a sentence for people.
pub fn may_have_own_network() -> Result<(), String> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    let tried = || lab_faults::kernel::able().map_err(|error| error.to_string());
    TRIED.get_or_init(tried).clone()
}
