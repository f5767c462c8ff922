//! A worker: what it does for its coordinator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab_load::{Flow, Generate, GenerateError, Segment, Workload};
use measure::Machine;

use super::connection::unix_ns;
use super::driver::{Driver, LEAVE_WITHIN, LOOK_EVERY};
use super::message::{End, Hello, Order, WorkerReport};
use super::nats::Nats;
use super::worker::{Over, Worker};
use super::{VERSION, check_session};

/// A worker that would begin later than this says so instead.
const LATEST: Duration = Duration::from_millis(500);

/// Where a worker finds its coordinator.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Where everybody meets. It is waited for as long as for the coordinator.
    pub nats: Nats,
    /// Name of the session, as the coordinator was told.
    pub session: String,
    /// What people call this worker: the name of the machine, for instance.
    pub name: String,
    /// Longest wait for NATS and for a coordinator that takes this worker in.
    pub within: Duration,
    /// Set by the user's Ctrl-C: the load ends, the coordinator is told, and the
    /// worker leaves.
    pub interrupted: Arc<AtomicBool>,
}

/// Joins a session, runs what its coordinator says, and returns when that says it is
/// over. `start_local` opens the connections of a workload.
///
/// Without a word from the coordinator for as long as the coordinator agreed to, the
/// load is stopped at the end of the current second.
///
/// # Errors
/// When NATS or the coordinator do not come in time, the coordinator does not want
/// this worker, or is lost. What goes wrong with the load itself is told to the
/// coordinator, and is no error here.
pub fn serve(
    settings: &ServeSettings,
    start_local: impl Fn(Workload) -> Result<Box<dyn Generate + Send>, GenerateError>,
) -> Result<(), GenerateError> {
    check_session(&settings.session)?;
    let hello = Hello {
        id: rand::random(),
        name: settings.name.clone(),
        version: VERSION.to_owned(),
        cores: Machine::detect().cores,
    };
    let until = Instant::now() + settings.within;
    let nats = settings.nats.clone().waiting(settings.within);
    let driver = Driver::start(&nats, |max_payload| {
        Worker::new(settings.session.clone(), hello, max_payload)
    })?;
    let served = follow(settings, &driver, until, start_local);
    let _ = driver.wait(LEAVE_WITHIN, |core| core.is_idle().then_some(()));
    served
}

fn follow(
    settings: &ServeSettings,
    driver: &Driver<Worker>,
    join_until: Instant,
    start_local: impl Fn(Workload) -> Result<Box<dyn Generate + Send>, GenerateError>,
) -> Result<(), GenerateError> {
    let ended = |found: String, help: &str| {
        let (session, nats) = (&settings.session, &settings.nats);
        let doing = format!("take part in session {session} over {nats}");
        GenerateError::new(doing, found).help(help)
    };
    let mut local: Option<Box<dyn Generate + Send>> = None;
    loop {
        let order = driver.wait(LOOK_EVERY, Worker::receive);
        if settings.interrupted.load(Ordering::Relaxed) {
            driver.with(|core| core.send(&WorkerReport::Bye));
            return Ok(());
        }
        let report = match order {
            None => {
                let joined = driver.with(|core| core.has_joined());
                if !joined && Instant::now() >= join_until {
                    let help = "start it: headroom load URL --workers N, with the same --nats and --session";
                    return Err(ended("no coordinator answered".into(), help));
                }
                continue;
            }
            Some(Err(Over::Refused(why))) => {
                let help = "use another session, or more --workers there";
                return Err(ended(format!("the coordinator refused: {why}"), help));
            }
            Some(Err(Over::Lost(why))) => {
                let help = "look at what it printed, and at NATS";
                return Err(ended(format!("the coordinator was lost: {why}"), help));
            }
            Some(Ok(Order::Leave)) => return Ok(()),
            // Of a run that is over.
            Some(Ok(Order::Stop { .. })) => continue,
            Some(Ok(Order::Prepare(workload))) => {
                // The old connections go first: their ports may be needed.
                local = None;
                match start_local(*workload) {
                    Ok(started) => {
                        local = Some(started);
                        WorkerReport::Ready
                    }
                    Err(error) => WorkerReport::NotReady(error),
                }
            }
            Some(Ok(Order::Run {
                run,
                segment,
                at_unix_ns,
            })) => {
                let end = match &mut local {
                    Some(local) => {
                        run_part(settings, driver, local.as_mut(), run, &segment, at_unix_ns)
                    }
                    None => Err(ended(
                        "told to run before it was told what".into(),
                        "this is a mistake in headroom; report it",
                    )),
                };
                match end {
                    // It leaves: what it said counts, and those that stay go on.
                    Ok(End { cut: Some(_), .. })
                        if settings.interrupted.load(Ordering::Relaxed) =>
                    {
                        continue;
                    }
                    end => WorkerReport::Done { run, end },
                }
            }
        };
        driver.with(|core| core.send(&report));
    }
}

fn run_part(
    settings: &ServeSettings,
    driver: &Driver<Worker>,
    local: &mut dyn Generate,
    run: u64,
    segment: &Segment,
    at_unix_ns: i64,
) -> Result<End, GenerateError> {
    let late_ns = || unix_ns(driver.now()).saturating_sub(at_unix_ns);
    let ahead = u64::try_from(late_ns().saturating_neg()).unwrap_or(0);
    let _ = driver.wait(Duration::from_nanos(ahead), |core| {
        (!core.goes_on(run)).then_some(())
    });
    let late_ns = u64::try_from(late_ns()).unwrap_or(0);
    if Duration::from_nanos(late_ns) > LATEST {
        let found = format!("the order came {} ms too late", late_ns / 1_000_000);
        let help = "look at the network between here and NATS";
        let doing = "begin together with the other workers";
        return Err(GenerateError::new(doing, found).help(help));
    }
    let recorded = local.run(segment, &mut |span| {
        let mut span = Box::new(span.clone());
        span.pack();
        let goes_on = driver.with(|core| {
            core.send(&WorkerReport::Span { run, span });
            core.goes_on(run)
        });
        match goes_on && !settings.interrupted.load(Ordering::Relaxed) {
            true => Flow::Continue,
            false => Flow::Stop,
        }
    })?;
    let mut total = Box::new(recorded.total);
    total.pack();
    Ok(End {
        total,
        cut: recorded.cut,
        late_ns,
        notes: recorded.notes,
    })
}
