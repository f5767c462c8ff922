//! The load on the terminal while it runs, on standard error.
//!
//! A thread of its own writes: a terminal that takes nothing (someone pressed Ctrl-S)
//! must not delay the load. What it cannot take is dropped.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::Term;
use lab_report::load::{Live, live_block, live_line};
use lab_report::terminal::Style;

/// What may wait to be written.
const WAITING: usize = 8;
/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(200);
/// Part of the time gone by that passes between two plain lines, so that a long load
/// does not fill a log.
const SPARSE: u32 = 20;

enum Order {
    /// A block that is drawn in the place of the one before.
    Frame(Vec<String>),
    /// A line that stays.
    Line(String),
}

/// Where the live view goes.
pub(super) struct Screen {
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
    live: bool,
    last: Option<Instant>,
    /// Time of the load of the last plain line.
    told: Duration,
}

impl Screen {
    pub(super) fn open(quiet: bool) -> Self {
        let term = Term::stderr();
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        let live = term.is_term() && !dumb;
        let (orders, taken) = sync_channel(WAITING);
        let thread = (!quiet).then(|| std::thread::spawn(move || write(&term, &taken)));
        Self {
            orders: thread.as_ref().map(|_| orders),
            thread,
            live,
            last: None,
            told: Duration::ZERO,
        }
    }

    /// Shows the state of a load.
    pub(super) fn show(&mut self, live: &Live) {
        let Some(orders) = &self.orders else {
            return;
        };
        let now = Instant::now();
        if self.live {
            if self.last.is_some_and(|last| now < last + FRAME) {
                return;
            }
            self.last = Some(now);
            let (rows, columns) = Term::stderr().size();
            let style = Style {
                width: columns.into(),
                color: console::colors_enabled_stderr(),
            };
            let mut block = live_block(live, style);
            // What has scrolled out of the window could not be drawn over.
            block.truncate(usize::from(rows).saturating_sub(1).max(1));
            let _ = orders.try_send(Order::Frame(block));
        } else {
            let elapsed = live.elapsed();
            // A new hold of a search begins at 0 again.
            if elapsed < self.told || elapsed >= self.told + self.told / SPARSE {
                self.told = elapsed;
                let _ = orders.try_send(Order::Line(live_line(live)));
            }
        }
    }

    /// A line that stays above what is drawn.
    pub(super) fn line(&self, text: String) {
        if let Some(orders) = &self.orders {
            let _ = orders.try_send(Order::Line(text));
        }
    }

    /// Takes the block away, so that the result has its place.
    pub(super) fn close(&mut self) {
        self.orders = None;
        // Whoever holds the terminal must not hold the end of the load.
        let deadline = Instant::now() + Duration::from_secs(1);
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// Writes what comes until nothing more will. A terminal that is gone is no reason to
/// end the load.
fn write(term: &Term, orders: &Receiver<Order>) {
    let mut height = 0;
    while let Ok(order) = orders.recv() {
        let mut text = erase(height);
        match order {
            Order::Frame(lines) => {
                height = lines.len();
                lines.iter().for_each(|line| text += &format!("{line}\n"));
            }
            Order::Line(line) => {
                height = 0;
                text += &format!("{line}\n");
            }
        }
        let _ = (&*term).write_all(text.as_bytes());
        let _ = term.flush();
    }
    let _ = (&*term).write_all(erase(height).as_bytes());
    let _ = term.flush();
}

/// Up to the first line of the block, and nothing after it.
fn erase(height: usize) -> String {
    match height {
        0 => String::new(),
        height => format!("\x1b[{height}A\r\x1b[J"),
    }
}
