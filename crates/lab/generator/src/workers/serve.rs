//! A worker: what it does for its coordinator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab_load::{Flow, Generate, GenerateError, Segment, Workload};
use measure::Machine;

use super::driver::Driver;
use super::message::{End, Hello, Order, Word, hex};
use super::nats::Nats;
use super::worker::{Over, Worker};
use super::{VERSION, check_session};

/// Time between looks at things that nobody announces.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A worker that would begin later than this says so instead.
const LATEST: Duration = Duration::from_millis(500);
/// Longest wait, at the end, for the coordinator to hear the last word.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

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
        id: hex(rand::random()),
        name: settings.name.clone(),
        version: VERSION.to_owned(),
        cores: Machine::detect().cores,
    };
    let session = settings.session.clone();
    let nats = settings.nats.clone().patient(settings.within);
    let began = Instant::now();
    let driver = Driver::start(&nats, |clock, max_payload| {
        Worker::new(session, hello, clock.origin_unix_ns(), max_payload)
    })?;
    let served = follow(settings, &driver, began + settings.within, start_local);
    let _ = driver.wait(LEAVE_WITHIN, |core| core.is_idle().then_some(()));
    served
}

fn follow(
    settings: &ServeSettings,
    driver: &Driver<Worker>,
    join_until: Instant,
    start_local: impl Fn(Workload) -> Result<Box<dyn Generate + Send>, GenerateError>,
) -> Result<(), GenerateError> {
    let doing = || {
        format!(
            "take part in session {} over {}",
            settings.session, settings.nats
        )
    };
    let error = |found: String, help: &str| GenerateError {
        doing: doing(),
        found,
        help: Some(help.into()),
    };
    let mut local: Option<Box<dyn Generate + Send>> = None;
    loop {
        let order = driver.wait(LOOK_EVERY, |core| {
            core.hear()
                .map(Ok)
                .or_else(|| core.over().cloned().map(Err))
        });
        if settings.interrupted.load(Ordering::Relaxed) {
            driver.with(|core| core.tell(&Word::Bye));
            return Ok(());
        }
        let order = match order {
            Some(Ok(order)) => order,
            Some(Err(Over::Left)) => return Ok(()),
            Some(Err(Over::Refused(why))) => {
                return Err(error(
                    format!("the coordinator refused: {why}"),
                    "use another session, or more --workers there",
                ));
            }
            Some(Err(Over::Lost(why))) => {
                return Err(error(
                    format!("the coordinator was lost: {why}"),
                    "look at what it printed, and at NATS",
                ));
            }
            None => {
                let joined = driver.with(|core| core.has_joined());
                if !joined && Instant::now() >= join_until {
                    let help = "start it: headroom load URL --workers N, with the same --nats and --session";
                    return Err(error("no coordinator answered".into(), help));
                }
                continue;
            }
        };
        match order {
            Order::Prepare(workload) => {
                // The old connections go first: their ports may be needed.
                local = None;
                let word = match start_local(*workload) {
                    Ok(started) => {
                        local = Some(started);
                        Word::Ready
                    }
                    Err(error) => Word::NotReady(error),
                };
                driver.with(|core| core.tell(&word));
            }
            Order::Run {
                run,
                segment,
                at_unix_ns,
            } => {
                let end = match &mut local {
                    Some(local) => {
                        run_part(settings, driver, local.as_mut(), run, &segment, at_unix_ns)
                    }
                    None => Err(error(
                        "told to run before it was told what".into(),
                        "this is a mistake in headroom; report it",
                    )),
                };
                driver.with(|core| core.tell(&Word::Done { run, end }));
            }
            // These are heard at once, where they come in.
            Order::Stop { .. } | Order::Leave => {}
        }
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
    let behind = || {
        let now = driver.with(|core| core.unix_ns(driver.now()));
        i128::from(now) - i128::from(at_unix_ns)
    };
    let ahead = u64::try_from(-behind()).unwrap_or(0);
    let _ = driver.wait(Duration::from_nanos(ahead), |core| {
        (!core.goes_on(run)).then_some(())
    });
    let late = Duration::from_nanos(u64::try_from(behind()).unwrap_or(0));
    if late > LATEST {
        return Err(GenerateError {
            doing: "begin together with the other workers".into(),
            found: format!("the order came {} ms too late", late.as_millis()),
            help: Some("look at the network between here and NATS".into()),
        });
    }
    let recorded = local.run(segment, &mut |span| {
        let mut span = Box::new(span.clone());
        span.pack();
        let goes_on = driver.with(|core| {
            core.tell(&Word::Span { run, span });
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
        late_ns: u64::try_from(late.as_nanos()).unwrap_or(u64::MAX),
    })
}
