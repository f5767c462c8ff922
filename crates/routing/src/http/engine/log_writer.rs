//! The access log on its way out: threads gather lines, one writer writes them.
//!
//! No request waits for the log. A thread hands over a buffer at a time; when the writer
//! is so far behind that none is free, the lines are dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::http::counters::ThreadCounters;
use crate::http::settings::AccessLogSettings;
use crate::table::Nanos;

/// A buffer is handed over when it has so many bytes,
const BATCH: usize = 32 * 1024;
/// or when its first line is so old.
const PATIENCE: Nanos = 20_000_000;
/// Buffers that may wait for the writer, from all threads (with [`BATCH`]: 8 MiB).
const WAITING: usize = 256;
/// How often the writer looks whether it should reopen its file.
const GLANCE: Duration = Duration::from_millis(200);

/// The lines of one thread.
pub(super) struct LogLines {
    text: Vec<u8>,
    lines: u64,
    since: Nanos,
    full: SyncSender<Vec<u8>>,
    empty: Arc<std::sync::Mutex<Vec<Vec<u8>>>>,
}

impl LogLines {
    /// Where to write a line, its end included.
    pub(super) fn line(&mut self, now: Nanos) -> &mut Vec<u8> {
        if self.text.is_empty() {
            self.since = now;
        }
        self.lines += 1;
        &mut self.text
    }

    /// When [`LogLines::hand_over`] is to be called at the latest.
    pub(super) fn due(&self) -> Nanos {
        match self.text.len() {
            0 => Nanos::MAX,
            1..BATCH => self.since.saturating_add(PATIENCE),
            _ => 0,
        }
    }

    /// Gives the lines to the writer, or drops them when it is behind.
    pub(super) fn hand_over(&mut self, counters: &ThreadCounters) {
        if self.text.is_empty() {
            return;
        }
        let spare = self.empty.try_lock().ok().and_then(|mut empty| empty.pop());
        let text = std::mem::replace(&mut self.text, spare.unwrap_or_default());
        match self.full.try_send(text) {
            Ok(()) => counters.logged.add(self.lines),
            Err(TrySendError::Full(mut text) | TrySendError::Disconnected(mut text)) => {
                counters.log_drops.add(self.lines);
                text.clear();
                self.text = text;
            }
        }
        self.lines = 0;
    }
}

/// The thread that writes. Ends when all [`LogLines`] are gone, after the last of them.
pub(super) struct LogWriter {
    full: SyncSender<Vec<u8>>,
    empty: Arc<std::sync::Mutex<Vec<Vec<u8>>>>,
    reopen: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl LogWriter {
    /// Opens the log and starts to write; `None` when the settings ask for no log.
    ///
    /// # Errors
    /// When the file cannot be opened for appending.
    pub(super) fn start(settings: &AccessLogSettings) -> io::Result<Option<Self>> {
        if settings.file.is_none() && !settings.stdout {
            return Ok(None);
        }
        let sinks = Sinks {
            path: settings.file.clone(),
            file: settings.file.as_ref().map(open).transpose()?,
            stdout: settings.stdout,
        };
        let (full, waiting) = sync_channel(WAITING);
        let empty = Arc::default();
        let reopen = Arc::new(AtomicBool::new(false));
        let (spare, again) = (Arc::clone(&empty), Arc::clone(&reopen));
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write(sinks, &waiting, &spare, &again))?;
        Ok(Some(Self {
            full,
            empty,
            reopen,
            thread,
        }))
    }

    /// Where a thread gathers its lines.
    pub(super) fn lines(&self) -> LogLines {
        LogLines {
            text: Vec::new(),
            lines: 0,
            since: 0,
            full: self.full.clone(),
            empty: Arc::clone(&self.empty),
        }
    }

    /// Opens the file anew, soon: somebody has moved it away.
    pub(super) fn reopen(&self) {
        self.reopen.store(true, Ordering::Relaxed);
    }

    /// Waits until everything is written. All [`LogLines`] must be gone.
    pub(super) fn finish(self) {
        drop(self.full);
        // A panic there has lost lines, and nothing else.
        let _ = self.thread.join();
    }
}

struct Sinks {
    path: Option<PathBuf>,
    file: Option<File>,
    stdout: bool,
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn write(
    mut sinks: Sinks,
    waiting: &Receiver<Vec<u8>>,
    spare: &std::sync::Mutex<Vec<Vec<u8>>>,
    reopen: &AtomicBool,
) {
    loop {
        let text = match waiting.recv_timeout(GLANCE) {
            Ok(text) => Some(text),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if reopen.swap(false, Ordering::Relaxed)
            && let Some(path) = &sinks.path
            && let Ok(file) = open(path)
        {
            sinks.file = Some(file);
        }
        let Some(mut text) = text else {
            continue;
        };
        // A full disk or a closed pipe costs lines; requests go on. There is nobody else
        // to tell: this is the log.
        if let Some(file) = &mut sinks.file {
            let _ = file.write_all(&text);
        }
        if sinks.stdout {
            let mut stdout = io::stdout().lock();
            let _ = stdout.write_all(&text).and_then(|()| stdout.flush());
        }
        text.clear();
        if let Ok(mut spare) = spare.lock()
            && spare.len() < WAITING
        {
            spare.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_whole_and_the_file_can_be_moved_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let settings = AccessLogSettings {
            file: Some(path.clone()),
            ..AccessLogSettings::default()
        };
        let writer = LogWriter::start(&settings).unwrap().unwrap();
        let counters = ThreadCounters::default();
        let mut lines = writer.lines();
        assert_eq!(lines.due(), Nanos::MAX);
        lines.line(7).extend_from_slice(b"one\n");
        lines.line(8).extend_from_slice(b"two\n");
        assert_eq!(lines.due(), 7 + PATIENCE);
        lines.hand_over(&counters);
        while std::fs::read(&path).unwrap() != b"one\ntwo\n" {
            std::thread::yield_now();
        }
        std::fs::rename(&path, folder.path().join("old.log")).unwrap();
        writer.reopen();
        while !path.exists() {
            std::thread::yield_now();
        }
        lines.line(9).extend_from_slice(b"three\n");
        lines.hand_over(&counters);
        drop(lines);
        writer.finish();
        assert_eq!(std::fs::read(&path).unwrap(), b"three\n");
        assert_eq!((counters.logged.get(), counters.log_drops.get()), (3, 0));
    }

    #[test]
    fn a_writer_that_is_behind_costs_lines_and_not_time() {
        let (full, waiting) = sync_channel(1);
        let mut lines = LogLines {
            text: Vec::new(),
            lines: 0,
            since: 0,
            full,
            empty: Arc::default(),
        };
        let counters = ThreadCounters::default();
        for text in [&b"kept\n"[..], b"dropped\n", b"dropped\n"] {
            lines.line(0).extend_from_slice(text);
            lines.hand_over(&counters);
        }
        assert_eq!((counters.logged.get(), counters.log_drops.get()), (1, 2));
        assert_eq!(waiting.recv().unwrap(), b"kept\n");
    }
}
