//! A program that is run: its exit status, and what it prints.

use std::path::PathBuf;
use std::rc::Rc;

use http::HeaderMap;
use lab_experiment::plan::CommandValue;
use processes::Signal;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Semaphore;

use super::value::{Part, Value};
use crate::processes::{Child, Children, Launch, shown};

/// Bytes that are kept of what a program prints; the rest is read and dropped.
const MOST_BYTES: usize = 64 << 10;
/// Programs of all probes that run at a time; others wait, which counts as theirs to answer.
pub(super) const AT_A_TIME: usize = 16;
/// Characters of what a failed program said that are told.
const SAID: usize = 200;

/// A program to run.
pub(super) struct Command {
    pub(super) children: Children,
    pub(super) launch: Launch,
    pub(super) value: ValueSource,
    pub(super) places: Rc<Semaphore>,
}

/// What of it is the value.
pub(super) enum ValueSource {
    Output,
    Exit,
    Part(Part),
}

impl ValueSource {
    pub(super) fn of(value: &CommandValue) -> Self {
        match value {
            CommandValue::Output => Self::Output,
            CommandValue::Exit => Self::Exit,
            CommandValue::Part(source) => Self::Part(Part::of(source)),
        }
    }
}

/// Kills what still runs when nobody waits for it any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.ended().is_none() {
            self.0.signal(Signal::SIGKILL);
        }
    }
}

impl Command {
    /// Runs the program once. Dropped, it is killed with its whole group.
    pub(super) async fn run(&self) -> Result<Option<Value>, String> {
        let place = self.places.acquire().await;
        let _place = place.map_err(|error| error.to_string())?;
        let child = self.children.start(self.launch.clone());
        let mut running = Running(child.map_err(|error| error.to_string())?);
        let Some((_, output)) = running.0.pipes.take() else {
            return Err("it has no pipes".to_owned());
        };
        let mut printed = Vec::new();
        let ended = {
            let reading = read(&output, &mut printed);
            let exit = running.0.exit();
            tokio::pin!(reading, exit);
            tokio::select! {
                ended = &mut exit => ended,
                () = &mut reading => exit.await,
            }
        };
        // What it left in the pipe; a process that it left behind may hold that open.
        drain(&output, &mut printed);
        let status = ended.status();
        match (&self.value, status) {
            (ValueSource::Exit, Some(status)) => return Ok(Some(Value::Number(f64::from(status)))),
            (_, Some(0)) => {}
            _ => {
                let said = shown(&self.first_line(&running.0), SAID);
                let said = if said.is_empty() {
                    said
                } else {
                    format!(": {said}")
                };
                return Err(format!("it {ended}{said}"));
            }
        }
        match &self.value {
            ValueSource::Part(part) => part.find(&printed, &HeaderMap::new()).map(Some),
            _ => Ok(Value::of_text(&String::from_utf8_lossy(&printed))),
        }
    }

    /// The first line that this process wrote to standard error.
    fn first_line(&self, child: &Child) -> String {
        use std::io::{Read, Seek, SeekFrom};
        let (path, from): (&PathBuf, _) = (&self.launch.stderr, child.logs_from.first());
        let mut text = Vec::new();
        let read = std::fs::File::open(path).and_then(|mut file| {
            file.seek(SeekFrom::Start(from.copied().unwrap_or(0)))?;
            file.take(4 * SAID as u64).read_to_end(&mut text)
        });
        match read {
            Ok(_) => {
                let text = String::from_utf8_lossy(&text);
                text.lines().next().unwrap_or_default().to_owned()
            }
            // What it said stays in the log.
            Err(_) => String::new(),
        }
    }
}

/// Reads a pipe to its end.
async fn read(output: &Receiver, printed: &mut Vec<u8>) {
    while output.readable().await.is_ok() {
        if drain(output, printed) {
            return;
        }
    }
}

/// Reads what there is now; whether that was all there will be.
fn drain(output: &Receiver, printed: &mut Vec<u8>) -> bool {
    let mut chunk = [0; 4096];
    loop {
        match output.try_read(&mut chunk) {
            Ok(0) => return true,
            Ok(count) => {
                let room = MOST_BYTES.saturating_sub(printed.len()).min(count);
                printed.extend_from_slice(&chunk[..room]);
            }
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}
