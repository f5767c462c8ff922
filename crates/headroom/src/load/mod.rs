//! `headroom load`: load on one target, from the command line.
//!
//! No asynchronous runtime is started unless workers are asked for: the generator's
//! threads, one that shows, and one that waits for Ctrl-C are all there is.

mod args;
mod ending;
mod files;
mod interrupt;
mod kubernetes;
mod plan;
mod requests_file;
mod screen;
mod search;
mod watched;
mod workers;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab_generator::{Local, calibrate};
use lab_load::knee::Capacity;
use lab_load::slo::Judgement;
use lab_load::{Flow, Generate, Recorded, Segment, Span, Summary, Workload, steady, validity};
use lab_report::load::Live;
use lab_store::Outcome;

pub(crate) use args::{AFTER_HELP, LoadArgs};
use files::Files;
use interrupt::Interrupt;
pub(crate) use plan::read_text;
use plan::{Plan, Task};
use screen::Screen;
use watched::Watched;

/// Why a load ended early, when a person ended it.
const INTERRUPTED: &str = "interrupted";

/// Runs a load and shows what it came to; the outcome is the exit code.
pub(crate) fn run(args: &LoadArgs) -> Result<Outcome> {
    let interrupt = Interrupt::catch()?;
    if args.workers.worker {
        return workers::serve(&args.workers, &interrupt);
    }
    let url = args.url.as_deref().context("load what? Give a URL")?;
    let plan = Plan::of(args, url)?;
    if args.kubernetes.kubernetes {
        return kubernetes::render(args, &plan.workload.target, plan.workload.threads);
    }
    let mut files = Files::create(args)?;
    let mut generator = start(args, &plan.workload, &interrupt, &mut files)?;
    files.started()?;
    let page = match &plan.task {
        Task::Load(segment) if args.page => Some(Watched::start(args, url, &plan, segment)?),
        _ => None,
    };
    let mut observers = Observers {
        live: Live::new(&title(url, &plan.task), length(&plan.task)),
        screen: Screen::open(args.quiet),
        page,
        interrupt: &interrupt,
    };
    let done = match &plan.task {
        Task::Load(segment) => load(generator.as_mut(), segment, &mut observers, &mut files),
        Task::Search(search) => {
            search::run(generator.as_mut(), search, &plan.workload, &mut observers)
        }
    };
    observers.screen.close();
    let mut done = done?;
    // Connections are closed before anything is computed, so that the target rests.
    drop(generator);
    if interrupt.pressed() {
        done.recorded.cut = Some(INTERRUPTED.to_owned());
    }
    let mut summary = summary(args, url, &plan, &done)?;
    summary.notes.extend(files.sampled());
    let told = ending::report(args, &plan, &done, &summary, files);
    // The result does not wait for those who have the page open.
    observers
        .page
        .map_or(Ok(()), |page| page.finish(&summary))?;
    told
}

/// Puts load on a target and says what it came to; nothing is judged or shown.
pub(crate) fn measure(args: &LoadArgs) -> Result<Summary> {
    let interrupt = Interrupt::catch()?;
    let url = args.url.as_deref().context("load what? Give a URL")?;
    let plan = Plan::of(args, url)?;
    let mut files = Files::create(args)?;
    let mut generator = start(args, &plan.workload, &interrupt, &mut files)?;
    files.started()?;
    let Task::Load(segment) = &plan.task else {
        bail!("a search is no measurement");
    };
    let recorded = generator.run(segment, &mut |_| interrupt.flow())?;
    if interrupt.pressed() {
        bail!("{INTERRUPTED}");
    }
    let done = Done {
        recorded,
        capacity: None,
    };
    summary(args, url, &plan, &done)
}

/// What a load left.
struct Done {
    recorded: Recorded,
    /// What a search found.
    capacity: Option<Capacity>,
}

fn start(
    args: &LoadArgs,
    workload: &Workload,
    interrupt: &Interrupt,
    files: &mut Files,
) -> Result<Box<dyn Generate>> {
    if let Some(workers) = args.workers.workers {
        return workers::gather(&args.workers, workers, workload, interrupt);
    }
    let local = match files.for_samples()? {
        Some(file) => {
            let (local, log) = Local::with_samples(workload.clone(), Box::new(file))?;
            files.sampling(log);
            local
        }
        None => Local::start(workload.clone())?,
    };
    interrupt.stops(local.stopper());
    Ok(Box::new(local))
}

/// Everything that looks on.
struct Observers<'i> {
    live: Live,
    screen: Screen,
    page: Option<Watched>,
    interrupt: &'i Interrupt,
}

impl Observers<'_> {
    fn span(&mut self, span: &Span) -> Flow {
        if let Some(page) = &self.page {
            page.span(span);
        }
        self.live.add(span);
        self.screen.show(&self.live);
        self.interrupt.flow()
    }
}

fn load(
    generator: &mut dyn Generate,
    segment: &Segment,
    observers: &mut Observers<'_>,
    files: &mut Files,
) -> Result<Done> {
    files.begin();
    let recorded = generator.run(segment, &mut |span| {
        files.span(span);
        observers.span(span)
    })?;
    Ok(Done {
        recorded,
        capacity: None,
    })
}

fn summary(args: &LoadArgs, url: &str, plan: &Plan, done: &Done) -> Result<Summary> {
    let (warm_up, workload) = (args.warm_up, &plan.workload);
    let mut summary = Summary::of(warm_up, &args.name, url, workload, &done.recorded)?;
    if let Some(judged) = judged(args, plan, done) {
        summary.validity = validity::check_for(&plan.workload, &done.recorded, &judged);
    }
    summary.capacity = done.capacity.clone();
    if let Some(capacity) = &summary.capacity {
        summary.validity = capacity.validity(summary.validity.clone());
    }
    summary.floor = calibrate::stored();
    summary.notes.extend(plan.notes.iter().cloned());
    if done.capacity.is_some() {
        summary.notes.push(
            "the numbers beside the knee are of its hold at the highest rate that held, or of \
             the last one that counts if none did"
                .to_owned(),
        );
    }
    Ok(summary)
}

/// What the load came to against what is expected of it.
fn judged(args: &LoadArgs, plan: &Plan, done: &Done) -> Option<Judgement> {
    let load = steady::judged(&done.recorded, args.warm_up.left_out());
    plan.expect.as_ref().map(|expect| expect.judge(&load))
}

fn title(url: &str, task: &Task) -> String {
    match task {
        Task::Search(search) => format!("{url}  searching for the knee: {}", search.slo),
        Task::Load(segment) => match &segment.model {
            lab_load::Model::Open(arrivals) => format!("{url}  {}", arrivals.describe()),
            lab_load::Model::Closed { .. } => format!("{url}  closed loop"),
        },
    }
}

fn length(task: &Task) -> Option<Duration> {
    match task {
        Task::Search(_) => None,
        Task::Load(segment) => segment.lasts(),
    }
}
