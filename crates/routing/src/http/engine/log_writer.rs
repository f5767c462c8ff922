//! The access log on its way out: threads gather lines, one writer writes them.
//!
//! No request waits for the log. A thread hands over a buffer at a time; when the writer
//! is so far behind that none is free, the lines are dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::batches::{Batches, BufferPool, WAITING, finish};
use super::syslog::{self, SyslogQueue};
use crate::http::counters::{Counters, ThreadCounters};
use crate::http::settings::AccessLogSettings;

/// The thread that writes. Ends when all [`Batches`] are gone, after the last of them.
pub(super) struct LogWriter {
    full: Sender<Vec<u8>>,
    spare: BufferPool,
    reopen: Arc<AtomicBool>,
    /// The writer's own, and the one that sends to syslog.
    threads: Vec<JoinHandle<()>>,
}

impl LogWriter {
    /// Opens the log and starts to write; `None` when the settings ask for no log.
    ///
    /// # Errors
    /// When the file cannot be opened for appending.
    pub(super) fn start(
        settings: &AccessLogSettings,
        counters: &Counters,
    ) -> io::Result<Option<Self>> {
        if settings.file.is_none() && !settings.stdout && settings.syslog.is_none() {
            return Ok(None);
        }
        let file = settings.file.as_ref().map(open).transpose()?;
        let (mut queue, mut threads) = (None, Vec::new());
        if let Some(settings) = &settings.syslog {
            let (lines, thread) = syslog::start(settings, Arc::clone(counters.syslog()))?;
            queue = Some(lines);
            threads.push(thread);
        }
        let sinks = Sinks {
            path: settings.file.clone(),
            file,
            file_torn: false,
            stdout: settings.stdout,
            stdout_torn: false,
            syslog: queue,
            counters: Arc::clone(counters.log_writer()),
        };
        let (full, waiting) = channel(WAITING);
        let spare = BufferPool::default();
        let reopen = Arc::new(AtomicBool::new(false));
        let (emptied, again) = (spare.clone(), Arc::clone(&reopen));
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write(sinks, waiting, &emptied, &again))?;
        threads.push(thread);
        Ok(Some(Self {
            full,
            spare,
            reopen,
            threads,
        }))
    }

    /// Where a thread gathers its lines.
    pub(super) fn lines(&self) -> Batches {
        Batches::new(self.full.clone(), self.spare.clone())
    }

    /// Opens the file anew, soon: somebody has moved it away.
    pub(super) fn reopen(&self) {
        self.reopen.store(true, Ordering::Release);
        // No lines, for a writer that waits. One whose queue is full is awake.
        let _ = self.full.try_send(Vec::new());
    }

    /// Waits for the last lines, as [`finish`]. All [`Batches`] must be gone.
    pub(super) fn finish(self) {
        drop(self.full);
        finish(self.threads);
    }
}

struct Sinks {
    path: Option<PathBuf>,
    file: Option<File>,
    /// Whether what was written last ended within a line.
    file_torn: bool,
    stdout: bool,
    stdout_torn: bool,
    syslog: Option<SyslogQueue>,
    counters: Arc<ThreadCounters>,
}

/// Writes lines as far as that goes, behind a new line's start if the last ones were
/// `torn`. Gives the number of lines that did not come through whole.
fn append(to: &mut impl Write, lines: &[u8], torn: &mut bool) -> u64 {
    if *torn && to.write_all(b"\n").is_ok() {
        *torn = false;
    }
    let mut rest = lines;
    while !*torn && !rest.is_empty() {
        match to.write(rest) {
            Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => {
                *torn = rest.len() < lines.len()
                    && lines.get(lines.len() - rest.len() - 1) != Some(&b'\n');
                break;
            }
        }
    }
    memchr::memchr_iter(b'\n', rest).count() as u64
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn write(
    mut sinks: Sinks,
    mut waiting: Receiver<Vec<u8>>,
    spare: &BufferPool,
    reopen: &AtomicBool,
) {
    while let Some(mut text) = waiting.blocking_recv() {
        if reopen.swap(false, Ordering::Acquire)
            && let Some(path) = &sinks.path
            && let Ok(file) = open(path)
        {
            (sinks.file, sinks.file_torn) = (Some(file), false);
        }
        // A full disk or a closed pipe costs lines; requests go on.
        let mut lost = 0;
        if let Some(file) = &mut sinks.file {
            lost += append(file, &text, &mut sinks.file_torn);
        }
        if sinks.stdout {
            let mut stdout = io::stdout().lock();
            lost += append(&mut stdout, &text, &mut sinks.stdout_torn);
            // What it holds back is written with the next lines, or lost with the pipe.
            let _ = stdout.flush();
        }
        if let Some(syslog) = &sinks.syslog {
            syslog.offer(&text, &sinks.counters);
        }
        if lost > 0 {
            sinks.counters.log_failures.add(lost);
        }
        text.clear();
        spare.put(text);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::http::settings::{SyslogNetwork, SyslogSettings};

    /// A disk on which so many bytes have room.
    struct Disk {
        text: Vec<u8>,
        room: usize,
    }

    impl io::Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.room - self.text.len());
            self.text.extend_from_slice(&bytes[..fits]);
            match fits {
                0 => Err(io::ErrorKind::StorageFull.into()),
                fits => Ok(fits),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_costs_counted_lines_and_tears_none() {
        let mut disk = Disk {
            text: Vec::new(),
            room: 10,
        };
        let mut torn = false;
        assert_eq!(append(&mut disk, b"one\ntwo\nthree\nfour\n", &mut torn), 2);
        assert!(torn);
        assert_eq!(append(&mut disk, b"five\n", &mut torn), 1);
        disk.room = 100;
        assert_eq!(append(&mut disk, b"six\n", &mut torn), 0);
        assert_eq!(disk.text, b"one\ntwo\nth\nsix\n");
        disk.room = disk.text.len();
        assert_eq!(append(&mut disk, b"seven\n", &mut torn), 1);
        assert!(!torn);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let settings = AccessLogSettings {
            file: Some("/dev/full".into()),
            ..AccessLogSettings::default()
        };
        let all = Counters::new(0);
        let writer = LogWriter::start(&settings, &all).unwrap().unwrap();
        let mut lines = writer.lines();
        lines.entry(7, 1).extend_from_slice(b"one\n");
        lines.hand_over();
        drop(lines);
        writer.finish();
        assert_eq!(all.totals().log_failures, 1);
    }

    #[test]
    fn lines_go_to_syslog_too() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let settings = AccessLogSettings {
            syslog: Some(SyslogSettings {
                network: SyslogNetwork::Udp,
                address: receiver.local_addr().unwrap().to_string(),
                ..SyslogSettings::default()
            }),
            ..AccessLogSettings::default()
        };
        let all = Counters::new(0);
        let writer = LogWriter::start(&settings, &all).unwrap().unwrap();
        let mut lines = writer.lines();
        lines.entry(7, 1).extend_from_slice(b"one\n");
        lines.hand_over();
        drop(lines);
        let patience = Duration::from_secs(20);
        receiver.set_read_timeout(Some(patience)).unwrap();
        let mut buffer = [0; 1024];
        let bytes = receiver.recv(&mut buffer).unwrap();
        assert!(buffer[..bytes].ends_with(b" - - one"));
        writer.finish();
    }

    #[test]
    fn lines_arrive_whole_and_the_file_can_be_moved_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let settings = AccessLogSettings {
            file: Some(path.clone()),
            ..AccessLogSettings::default()
        };
        let writer = LogWriter::start(&settings, &Counters::new(0))
            .unwrap()
            .unwrap();
        let mut lines = writer.lines();
        lines.entry(7, 1).extend_from_slice(b"one\n");
        lines.entry(8, 1).extend_from_slice(b"two\n");
        let mut handed = lines.hand_over();
        while std::fs::read(&path).unwrap() != b"one\ntwo\n" {
            std::thread::yield_now();
        }
        std::fs::rename(&path, folder.path().join("old.log")).unwrap();
        writer.reopen();
        while !path.exists() {
            std::thread::yield_now();
        }
        lines.entry(9, 1).extend_from_slice(b"three\n");
        handed += lines.hand_over();
        drop(lines);
        writer.finish();
        assert_eq!(std::fs::read(&path).unwrap(), b"three\n");
        assert_eq!((handed.taken, handed.dropped), (3, 0));
    }
}
