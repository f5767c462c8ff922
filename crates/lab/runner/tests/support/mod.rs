//! Runs for tests: experiments of small shell and Python programs.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lab_experiment::catalogue::Catalogue;
use lab_experiment::plan::Plan;
use lab_experiment::{Source, check};
use lab_runner::{Display, Finished, Options, RunError};
use lab_store::{Event, EventKind, FaultRecord, Outcome, RunFile};

/// The example that is a laboratory of its own; `cargo test` builds it.
pub fn lab_process() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples/lab_process");
    assert!(
        path.exists(),
        "{} is missing: test all targets of the package",
        path.display()
    );
    path
}

/// A plan from the text of an experiment, to which name and version are added.
pub fn plan(text: &str) -> (Plan, String) {
    let text = format!("lab = 1\nname = \"test\"\nabout = \"a test\"\n{text}");
    let source = Source {
        name: "test.toml".into(),
        text: text.clone(),
    };
    let catalogue = Catalogue {
        may_mount: true,
        ..Catalogue::default()
    };
    let plan = check(&source, &[], &catalogue).unwrap_or_else(|problems| {
        let problems: Vec<String> = problems
            .iter()
            .map(|problem| problem.render(false))
            .collect();
        panic!("{}", problems.join("\n"))
    });
    (plan, text)
}

/// Settings of a run in a folder.
pub fn options(out_dir: &Path) -> Options {
    Options {
        display: Display::None,
        reaper: vec![lab_process().into(), "reaper".into()],
        guardian: vec![lab_process().into(), "guardian".into()],
        ..Options::for_this_binary(out_dir).unwrap()
    }
}

/// Makes an experiment in a new folder, if it can be made.
pub fn attempt(text: &str) -> (tempfile::TempDir, Result<Finished, RunError>) {
    let folder = tempfile::tempdir().unwrap();
    let (plan, text) = plan(text);
    let finished = lab_runner::run(plan, &text, options(folder.path()));
    (folder, finished)
}

/// Makes an experiment in a new folder.
pub fn run(text: &str) -> (tempfile::TempDir, Finished) {
    let (folder, finished) = attempt(text);
    (folder, finished.unwrap_or_else(|error| panic!("{error}")))
}

/// The error of an experiment that cannot be made, as a person reads it.
pub fn refused(text: &str) -> String {
    let (_folder, finished) = attempt(text);
    finished.expect_err("the run must be refused").to_string()
}

/// Names of events of a kind, in order.
pub fn events(finished: &Finished, kind: EventKind) -> Vec<String> {
    let events: Vec<Event> = finished.folder.records().unwrap();
    let events = events.into_iter().filter(|event| event.kind == kind);
    events.map(|event| event.name).collect()
}

/// The log of a system.
pub fn log(finished: &Finished, name: &str) -> String {
    let path = finished
        .folder
        .path()
        .join("logs")
        .join(format!("{name}.log"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The run passed, and nothing is to be told.
#[track_caller]
pub fn passed(finished: &Finished) {
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    assert_eq!(notes(finished), Vec::<&str>::new());
}

/// What is to be told of a run, but for how long a busy machine left the laboratory no processor.
pub fn notes(finished: &Finished) -> Vec<&str> {
    let notes = finished.notes.iter().map(String::as_str);
    notes.filter(|note| !note.contains(STOOD_STILL)).collect()
}

/// Part of the note that says so.
pub const STOOD_STILL: &str = "the laboratory itself stood still";

/// Every event, in order.
pub fn all(finished: &Finished) -> Vec<Event> {
    finished.folder.records::<Event>().unwrap()
}

/// Events of a kind: when, name and text.
pub fn of(finished: &Finished, kind: EventKind) -> Vec<(f64, String, String)> {
    let events = all(finished).into_iter();
    let of = events.filter(|event| event.kind == kind);
    of.map(|event| (event.t_s, event.name, event.text))
        .collect()
}

/// The faults that were made.
pub fn faults(finished: &Finished) -> Vec<FaultRecord> {
    finished.folder.read_json(RunFile::Faults).unwrap()
}

/// How each expectation was judged, in order.
pub fn outcomes(finished: &Finished) -> Vec<Outcome> {
    let expectations = finished.verdict.expectations.iter();
    expectations.map(|judged| judged.outcome).collect()
}

/// `server.py PORT [DELAY [FROM TO]]`: answers each request so many seconds after it came, and
/// says its path. Requests whose path ends with a number from FROM on, and below TO, fail.
const SERVER: &str = r#"
import asyncio, sys
delay = float(sys.argv[2]) if len(sys.argv) > 2 else 0
fails = range(*map(int, sys.argv[3:5])) if len(sys.argv) > 4 else []
async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ")[1].decode()
            print(path, flush=True)
            failed = fails and int(path.rsplit("/", 1)[1]) in fails
            asyncio.create_task(answer(writer, failed))
    except Exception:
        writer.close()
async def answer(writer, failed):
    await asyncio.sleep(delay)
    status = b"503 Out" if failed else b"200 OK"
    writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1000)
    await server.serve_forever()
asyncio.run(main())
"#;

/// Writes a server of HTTP in Python to a folder; gives its path.
pub fn server(folder: &Path) -> PathBuf {
    let path = folder.join("server.py");
    std::fs::write(&path, SERVER).unwrap();
    path
}

/// Writes an executable script.
pub fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A laboratory in a process of its own, whose every process can be found.
pub struct Lab {
    pub folder: tempfile::TempDir,
    pub process: Child,
    mark: String,
}

const MARK: &str = "LAB_RUNNER_TEST";

impl Lab {
    /// Starts to make an experiment.
    pub fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (_, text) = plan(text);
        let file = folder.path().join("test.toml");
        std::fs::write(&file, text).unwrap();
        let mark = folder.path().display().to_string();
        let process = Command::new(lab_process())
            .arg(&file)
            .arg(folder.path().join("runs"))
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            folder,
            process,
            mark,
        }
    }

    /// Every process that descends from it, reaper included.
    pub fn processes(&self) -> Vec<String> {
        let needle = format!("{MARK}={}", self.mark);
        let entries = std::fs::read_dir("/proc").unwrap();
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let environ = std::fs::read(path.join("environ")).unwrap_or_default();
                environ
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == needle.as_bytes())
            })
            .map(|path| {
                let command = std::fs::read(path.join("cmdline")).unwrap_or_default();
                let command = String::from_utf8_lossy(&command).replace('\0', " ");
                format!("{} {command}", path.display())
            })
            .collect()
    }

    /// Waits, within bounds, for something that must come true.
    pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..3000 {
            if holds(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!(
            "{what}: not within 30 s; there are {:#?}, {:#?} and {} ledgers of faults",
            self.processes(),
            self.work_folders(),
            self.ledgers()
        );
    }

    /// Folders for work files that are there.
    pub fn work_folders(&self) -> Vec<PathBuf> {
        let Ok(runs) = std::fs::read_dir(self.folder.path().join("runs")) else {
            return Vec::new();
        };
        let folders = runs.filter_map(|run| Some(run.ok()?.path().join("work")));
        folders.filter(|folder| folder.exists()).collect()
    }

    /// Lines of all event records so far.
    pub fn events(&self) -> String {
        let Ok(runs) = std::fs::read_dir(self.folder.path().join("runs")) else {
            return String::new();
        };
        let events = runs
            .filter_map(|run| std::fs::read_to_string(run.ok()?.path().join("events.jsonl")).ok());
        events.collect()
    }

    /// Ledgers of faults that are still to be undone.
    fn ledgers(&self) -> usize {
        let ledgers = self.folder.path().join("runs/faults-to-undo");
        std::fs::read_dir(ledgers).map_or(0, Iterator::count)
    }

    /// Nothing may be left, at the latest after a bounded wait. All at once, for a process that
    /// has just begun has no environment yet, and is not seen.
    pub fn assert_nothing_is_left(&self) {
        self.until("nothing is left", |lab| {
            lab.processes().is_empty() && lab.work_folders().is_empty() && lab.ledgers() == 0
        });
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
