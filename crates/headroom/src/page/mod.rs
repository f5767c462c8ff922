//! The page of a run or a load while it goes on, served on loopback.
//!
//! It must not disturb what it shows. While nobody has the page open, nothing is gathered.
//! While somebody has, a thread that gives way to others gathers what the run has so far and
//! makes the report's own data from it, at most five times a second and at most a fifth of
//! a processor's time, answers included. Of lifecycles an answer has what its asker lacks.

mod access;
mod serving;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab_report::{Page, ReportError};
use nix::time::ClockId;
use tokio::sync::watch;

use access::Access;
use serving::{LIMITS, Serving, Snapshot};

/// Shortest time from one snapshot to the next.
const PERIOD: Duration = Duration::from_millis(200);
/// The next snapshot comes no sooner than so many times what the last one cost.
const REST: u32 = 4;
/// How often a snapshot is tried for one who waits for it.
const TRIES: u32 = 25;
/// How far the page's threads give way to others.
const NICENESS: i32 = 10;
/// Somebody who asked no longer ago than this has the page open.
const OPEN: Duration = Duration::from_secs(10);
/// How long pages that are open have time to take the last data.
const LAST: Duration = Duration::from_secs(2);

/// Who makes the page of a moment.
pub(crate) trait PageSource:
    Fn() -> Option<Result<Page, ReportError>> + Send + 'static
{
}

impl<F: Fn() -> Option<Result<Page, ReportError>> + Send + 'static> PageSource for F {}

/// What may be done to what a page shows.
pub(crate) trait PageActions: Send + Sync + 'static {
    /// Notes something at this moment.
    ///
    /// # Errors
    /// Why it may not be, or cannot be now.
    fn mark(&self, note: &str) -> Result<(), String>;

    /// Has requests of a load fall due at another rate per second.
    ///
    /// # Errors
    /// Why it may not be, or cannot be now.
    fn rate(&self, load: &str, rate: f64) -> Result<(), String>;

    /// Ends it.
    ///
    /// # Errors
    /// Why it may not be, or cannot be now.
    fn stop(&self) -> Result<(), String>;
}

/// Of a page that can only be read.
pub(crate) struct ReadOnly;

impl PageActions for ReadOnly {
    fn mark(&self, _: &str) -> Result<(), String> {
        self.stop()
    }

    fn rate(&self, _: &str, _: f64) -> Result<(), String> {
        self.stop()
    }

    fn stop(&self) -> Result<(), String> {
        Err("this page can only be read".to_owned())
    }
}

/// A page that is served.
pub(crate) struct LivePage {
    url: String,
    shown: Arc<watch::Sender<Snapshot>>,
    asked: Arc<Mutex<Option<Instant>>>,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
}

impl LivePage {
    /// Serves what is about to begin; port 0: one that is free. `look` makes the page of the moment,
    /// or `None` as long as there is nothing to show; `acts` does what its readers ask for.
    pub(crate) fn start(port: u16, look: impl PageSource, acts: impl PageActions) -> Result<Self> {
        let doing = "serve the page";
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context(doing)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = runtime
            .block_on(net::bind(address))
            .with_context(|| format!("{doing} (--page-port takes another port, 0 a free one)"))?;
        let access = Access::new(listener.local_addr().context(doing)?.port());
        let url = access.url();
        let (shown, newest) = watch::channel(Snapshot::default());
        let shown = Arc::new(shown);
        // Of those who want the next snapshot one is enough.
        let (wanted, wants) = mpsc::sync_channel(1);
        let (asked, spent) = (Arc::default(), Arc::default());
        let serving = Arc::new(Serving {
            access,
            newest,
            wanted,
            asked: Arc::clone(&asked),
            spent: Arc::clone(&spent),
            acts: Box::new(acts),
        });
        let (stop, shutdown) = net::shutdown();
        let showing = Arc::clone(&shown);
        std::thread::Builder::new()
            .name("snapshots".to_owned())
            .spawn(move || snapshots(&look, &wants, &showing, &spent))
            .context(doing)?;
        let server = std::thread::Builder::new()
            .name("page".to_owned())
            .spawn(move || {
                stand_back();
                runtime.block_on(net::serve(listener, None, LIMITS, serving, shutdown));
            })
            .context(doing)?;
        Ok(Self {
            url,
            shown,
            asked,
            stop,
            server,
        })
    }

    /// Where it can be opened.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Shows the end of the run to those who have the page open, and serves no more.
    pub(crate) fn finish(self, page: Page) {
        self.shown
            .send_modify(|snapshot| snapshot.replace(page, true));
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_some_and(|asked| asked.elapsed() < OPEN) {
            std::thread::sleep(LAST);
        }
        // A server that has ended needs no telling.
        let _ = self.stop.send(true);
        let _ = self.server.join();
    }
}

/// Takes snapshots as they are wanted, until nobody can want any.
fn snapshots(
    look: &impl PageSource,
    wants: &Receiver<()>,
    shown: &watch::Sender<Snapshot>,
    spent: &Mutex<Duration>,
) {
    stand_back();
    let mut earliest = Instant::now();
    while wants.recv().is_ok() {
        for _ in 0..TRIES {
            std::thread::sleep(earliest.saturating_duration_since(Instant::now()));
            let (began, cpu) = (Instant::now(), cpu_of_thread());
            let page = look();
            let answers =
                std::mem::take(&mut *spent.lock().unwrap_or_else(PoisonError::into_inner));
            let cost = cpu_of_thread().saturating_sub(cpu) + answers;
            earliest = (began + PERIOD).max(Instant::now() + cost * REST);
            match page {
                Some(Ok(page)) => {
                    shown.send_modify(|snapshot| snapshot.replace(page, false));
                    break;
                }
                Some(Err(error)) => shown.send_modify(|snapshot| snapshot.fail(error.to_string())),
                None => {}
            }
        }
    }
}

/// Has the calling thread give way to others.
fn stand_back() {
    // Where it is not allowed, the bounds in time still hold.
    let _ = rustix::process::nice(NICENESS);
}

/// Processor time of the calling thread so far.
fn cpu_of_thread() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock.now().map_or(Duration::ZERO, Duration::from)
}
