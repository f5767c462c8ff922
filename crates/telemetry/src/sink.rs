//! Where log lines go: a bounded queue and one thread that writes.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::lager::Level;

/// Lines that may wait for the writer. When the reader of our output is slower
/// than that, debug and info lines are dropped and counted; error lines wait.
const QUEUE_LINES: usize = 65_536;

/// Pause after a write in which lines gather. A thread that waits for the next line
/// is woken by each, and waking it costs the caller more than the line.
const GATHER: Duration = Duration::from_millis(1);

/// Bytes gathered before one write.
const BATCH_BYTES: usize = 256 * 1024;

/// A destination of log lines, shared by all loggers of a process.
#[derive(Clone)]
pub struct Sink(Inner);

#[derive(Clone)]
enum Inner {
    Thread(Arc<Writer>),
    Memory(Arc<Mutex<String>>),
    Nothing,
}

struct Writer {
    queue: SyncSender<Message>,
    dropped: AtomicU64,
}

enum Message {
    Line(String),
    Flush(SyncSender<()>),
}

impl Sink {
    /// Writes to standard output from a thread of its own, so that no caller
    /// ever waits for the reader of our output.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn stdout() -> std::io::Result<Self> {
        Self::to(std::io::stdout())
    }

    /// Writes to `output` from a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn to(output: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE_LINES);
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_lines(&lines, output))?;
        Ok(Self(Inner::Thread(Arc::new(Writer {
            queue,
            dropped: AtomicU64::new(0),
        }))))
    }

    /// Keeps lines in memory, for tests.
    pub fn memory() -> Self {
        Self(Inner::Memory(Arc::default()))
    }

    /// Drops every line.
    pub fn nothing() -> Self {
        Self(Inner::Nothing)
    }

    /// The lines kept by a [`Sink::memory`]; empty for every other sink.
    pub fn kept(&self) -> String {
        match &self.0 {
            Inner::Memory(text) => text.lock().map(|text| text.clone()).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Lines dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        match &self.0 {
            Inner::Thread(writer) => writer.dropped.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// Returns once every line so far is written.
    pub fn flush(&self) {
        if let Inner::Thread(writer) = &self.0 {
            let (done, wait) = sync_channel(1);
            if writer.queue.send(Message::Flush(done)).is_ok() {
                // An error means that the thread has ended: nothing is left to wait for.
                let _ = wait.recv();
            }
        }
    }

    /// Writes a line of another process (without its end) as it is. It may be dropped, as
    /// any line that is no error.
    pub fn pass_on(&self, mut line: String) {
        line.push('\n');
        self.write(line, Level::Info);
    }

    pub(crate) fn write(&self, line: String, level: Level) {
        match &self.0 {
            Inner::Thread(writer) => writer.write(line, level),
            Inner::Memory(text) => {
                if let Ok(mut text) = text.lock() {
                    text.push_str(&line);
                }
            }
            Inner::Nothing => {}
        }
    }
}

impl Writer {
    fn write(&self, line: String, level: Level) {
        match self.queue.try_send(Message::Line(line)) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(line)) if level >= Level::Error => {
                let _ = self.queue.send(line);
            }
            Err(TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Writes what waits in as few calls as possible; ends when all loggers are gone.
/// A reader that went away is not an error of ours: later lines are dropped.
fn write_lines(lines: &Receiver<Message>, mut output: impl Write) {
    let mut batch = Vec::with_capacity(BATCH_BYTES);
    while let Ok(first) = lines.recv() {
        let mut flushed = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Line(line) => batch.extend_from_slice(line.as_bytes()),
                Message::Flush(done) => flushed.push(done),
            }
            next = (batch.len() < BATCH_BYTES)
                .then(|| lines.try_recv().ok())
                .flatten();
        }
        let _ = write_whole(&mut output, &batch);
        batch.clear();
        for done in flushed {
            let _ = done.send(());
        }
        std::thread::sleep(GATHER);
    }
}

/// Writes all of it. Another program may have made the terminal or pipe that it shares with us one
/// that takes nothing while it is full.
fn write_whole(output: &mut impl Write, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(GATHER),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    loop {
        match output.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(GATHER),
            flushed => return flushed,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::{Fields, Logger};

    #[test]
    fn a_line_has_lagers_form() {
        let sink = Sink::memory();
        Logger::new("bbs", sink.clone(), Level::Info)
            .session("request")
            .session("desire-task")
            .with("session", "1.2")
            .info("starting", Fields::new().and("task-guid", "t-1"));
        let line: Value = serde_json::from_str(sink.kept().trim_end()).unwrap();
        assert_eq!(line["source"], "bbs");
        assert_eq!(line["message"], "bbs.request.desire-task.starting");
        assert_eq!(line["log_level"], 1);
        assert_eq!(line["data"]["session"], "1.2");
        assert_eq!(line["data"]["task-guid"], "t-1");
        let (seconds, decimals) = line["timestamp"].as_str().unwrap().split_once('.').unwrap();
        assert!(seconds.parse::<u64>().unwrap() > 1_700_000_000);
        assert_eq!(decimals.len(), 9);
    }

    #[test]
    fn lines_below_the_least_level_are_not_written() {
        let sink = Sink::memory();
        let logger = Logger::new("rep", sink.clone(), Level::Info);
        logger.debug("noise", Fields::new());
        assert_eq!(sink.kept(), "");
    }

    #[test]
    fn a_flush_waits_for_the_lines_before_it() {
        let (reader, writer) = std::io::pipe().unwrap();
        let sink = Sink::to(writer).unwrap();
        let logger = Logger::new("rep", sink.clone(), Level::Info);
        for n in 0..100 {
            logger.info("line", Fields::new().and("n", n));
        }
        sink.flush();
        drop((logger, sink));
        let text = std::io::read_to_string(reader).unwrap();
        assert_eq!(text.lines().count(), 100);
    }

    /// Takes a few bytes every other time, and is full otherwise.
    struct Full {
        taken: Arc<Mutex<Vec<u8>>>,
        turn: usize,
    }

    impl Full {
        fn turn(&mut self) -> std::io::Result<()> {
            self.turn += 1;
            match self.turn % 2 {
                0 => Ok(()),
                _ => Err(ErrorKind::WouldBlock.into()),
            }
        }
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.turn()?;
            let count = bytes.len().min(7);
            self.taken.lock().unwrap().extend(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            self.turn()
        }
    }

    #[test]
    fn an_output_that_is_full_for_a_moment_loses_nothing() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let sink = Sink::to(Full {
            taken: Arc::clone(&taken),
            turn: 0,
        });
        let sink = sink.unwrap();
        sink.pass_on("one line".to_owned());
        sink.pass_on("and another".to_owned());
        sink.flush();
        assert_eq!(*taken.lock().unwrap(), b"one line\nand another\n");
    }

    proptest! {
        #[test]
        fn any_text_stays_one_line_of_json(key in ".*", value in ".*") {
            let sink = Sink::memory();
            let logger = Logger::new("x", sink.clone(), Level::Info).with(&key, &value);
            logger.info("event", Fields::new());
            let text = sink.kept();
            prop_assert_eq!(text.matches('\n').count(), 1);
            let line: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(line["data"][&key].as_str(), Some(value.as_str()));
        }
    }
}
