//! Puts the progress on the screen.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::{Term, measure_text_width};

use super::render::{event, render, summary};
use super::status::Status;
use crate::options::Display;

/// Time between two looks, which is also the time between two redraws.
const PERIOD: Duration = Duration::from_millis(100);
/// Time between two status lines where nothing can be redrawn.
const STATUS_EVERY: Duration = Duration::from_secs(5);

/// A thread that shows a run. A terminal that does not take output (someone
/// pressed Ctrl-S) delays this thread and nothing else.
#[derive(Debug)]
pub(crate) struct Shown {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Shown {
    /// Starts to show; `None` where nothing is to be shown.
    pub(crate) fn start(display: Display, status: Status) -> Option<Self> {
        let term = Term::stderr();
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        let live = match display {
            Display::None => return None,
            Display::Plain => false,
            Display::Auto => term.is_term() && !dumb,
        };
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut screen: Box<dyn Screen> = match live {
                true => Box::new(Block {
                    term,
                    widths: Vec::new(),
                }),
                false => Box::new(Lines {
                    next: Instant::now() + STATUS_EVERY,
                }),
            };
            loop {
                let ended = stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout);
                // A closed terminal is no reason to end the run.
                let _ = screen.show(&status);
                if ended {
                    let _ = screen.close();
                    return;
                }
            }
        });
        Some(Self { stop, thread })
    }

    /// Shows the last state and ends.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // Whoever holds the terminal must not hold the end of the run.
        let deadline = Instant::now() + Duration::from_secs(1);
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

trait Screen {
    fn show(&mut self, status: &Status) -> std::io::Result<()>;

    /// Sets apart what comes after.
    fn close(&mut self) -> std::io::Result<()>;
}

/// A block that is drawn again and again in its place.
struct Block {
    term: Term,
    /// Widths of the lines on the screen.
    widths: Vec<usize>,
}

impl Screen for Block {
    fn show(&mut self, status: &Status) -> std::io::Result<()> {
        let (rows, columns) = self.term.size();
        let color = console::colors_enabled_stderr();
        let mut lines = render(&status.view(), usize::from(columns).max(1), color);
        // What has scrolled out of the window could not be drawn over.
        lines.truncate(usize::from(rows).saturating_sub(1).max(1));
        let mut text = String::new();
        // A window that became narrower has broken the lines on it.
        let broken = |width: &usize| width.div_ceil(usize::from(columns).max(1)).max(1);
        let height: usize = self.widths.iter().map(broken).sum();
        if height > 0 {
            text.push_str(&format!("\x1b[{height}A\r"));
        }
        for line in &lines {
            text.push_str("\x1b[2K");
            text.push_str(line);
            text.push('\n');
        }
        // A shorter block leaves lines of the one before.
        text.push_str("\x1b[J");
        self.widths = lines.iter().map(|line| measure_text_width(line)).collect();
        self.term.write_str(&text)?;
        self.term.flush()
    }

    fn close(&mut self) -> std::io::Result<()> {
        self.term.write_line("")
    }
}

/// A line for each event, and where the run is every few seconds.
struct Lines {
    next: Instant,
}

impl Screen for Lines {
    fn show(&mut self, status: &Status) -> std::io::Result<()> {
        let mut out = std::io::stderr().lock();
        let events = status.take_events();
        for line in events.iter().map(event) {
            writeln!(out, "{line}")?;
        }
        let now = Instant::now();
        if !events.is_empty() {
            self.next = now + STATUS_EVERY;
        } else if now >= self.next {
            self.next = now + STATUS_EVERY;
            writeln!(out, "{}", summary(&status.view()))?;
        }
        out.flush()
    }

    fn close(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
