//! A temporary place to run the binary in, and what may be seen from outside.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longest wait for something that is sure to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// The machine. Most tests share it; those that find out how fast something goes do not.
static MACHINE: RwLock<()> = RwLock::new(());

/// A test's hold on the machine.
enum Machine {
    Shared(#[expect(dead_code)] RwLockReadGuard<'static, ()>),
    Alone(#[expect(dead_code)] RwLockWriteGuard<'static, ()>),
}

/// One test's own folder, with the binary and the project's experiments at hand.
pub(crate) struct Lab {
    folder: TempDir,
    _machine: Machine,
    _turn: Turn,
}

thread_local! {
    static TAKEN: Cell<bool> = const { Cell::new(false) };
}

/// A test has one lab at a time: a second one would wait behind whoever waits for the first to go.
struct Turn;

impl Turn {
    fn take() -> Self {
        assert!(!TAKEN.replace(true), "this test has a lab already");
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TAKEN.set(false);
    }
}

impl Lab {
    pub(crate) fn new() -> Self {
        // Another test that failed leaves the machine as it was.
        let turn = Turn::take();
        let shared = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        Self::on(turn, Machine::Shared(shared))
    }

    /// A place for a test beside which no other one runs.
    pub(crate) fn alone() -> Self {
        let turn = Turn::take();
        let alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        Self::on(turn, Machine::Alone(alone))
    }

    fn on(turn: Turn, machine: Machine) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            _machine: machine,
            _turn: turn,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file written");
        path
    }

    /// An experiment of the project, with guards that a busy machine does not break. What its paths lead to
    /// stands beside it, as in the project.
    pub(crate) fn patient(&self, name: &str) -> PathBuf {
        const USUAL: &str = r#"guard = { late_after = "{late}" }"#;
        const LOOSE: &str = r#"guard = { late_after = "60s", steal_share = "100%", little = "100%", sent_share = "0%" }"#;
        let text = fs::read_to_string(experiment(name)).expect("an experiment");
        assert!(text.contains(USUAL), "{name} has other guards");
        for beside in ["systems", "drivers", "graphs"] {
            let link = self.path(beside);
            if !link.exists() {
                std::os::unix::fs::symlink(experiment(beside), link).expect("a link");
            }
        }
        self.write(name, &text.replace(USUAL, LOOSE))
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headroom"));
        command.current_dir(project()).stdin(Stdio::null());
        // What this user wishes of colours is not what tests are about.
        for wish in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"] {
            command.env_remove(wish);
        }
        command
    }

    /// `headroom run FILE --out <here>` with further arguments.
    pub(crate) fn run_command(&self, file: &Path, more: &[&str]) -> Command {
        let mut command = self.command();
        command
            .arg("run")
            .arg(file)
            .arg("--out")
            .arg(self.path("runs"))
            .args(more);
        command
    }

    pub(crate) fn run(&self, file: &Path, more: &[&str]) -> Finished {
        Finished::of(
            self.run_command(file, more)
                .output()
                .expect("headroom starts"),
        )
    }

    /// The only run folder that this test made.
    pub(crate) fn run_folder(&self) -> PathBuf {
        let mut found: Vec<_> = fs::read_dir(self.path("runs"))
            .expect("a folder of runs")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// The results of the loads of the only run, by the names of their files.
    pub(crate) fn loads(&self) -> BTreeMap<String, Value> {
        let entries = fs::read_dir(self.run_folder().join("loads")).expect("loads");
        entries
            .map(|entry| {
                let path = entry.expect("an entry").path();
                let text = fs::read_to_string(&path).expect("a load");
                let name = path.file_stem().expect("a name").to_string_lossy();
                (
                    name.into_owned(),
                    serde_json::from_str(&text).expect("JSON"),
                )
            })
            .collect()
    }

    /// Waits until the run under way has written `text` into its events.
    pub(crate) fn wait_for_event(&self, child: &mut Child, text: &str) {
        wait_until(&format!("event {text:?}"), || {
            if let Some(status) = child.try_wait().expect("a child") {
                panic!("headroom ended ({status}) before {text:?}");
            }
            let Ok(runs) = fs::read_dir(self.path("runs")) else {
                return false;
            };
            runs.filter_map(Result::ok).any(|run| {
                fs::read_to_string(run.path().join("events.jsonl"))
                    .is_ok_and(|events| events.contains(text))
            })
        });
    }
}

/// What a finished command printed.
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn expect_stderr(self, part: &str) -> Self {
        assert!(
            self.stderr.contains(part),
            "no {part:?} in:\n{}",
            self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// A process that is killed at the end, whatever becomes of the test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn experiment(name: &str) -> PathBuf {
    project().join("experiments").join(name)
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What the first try found that found anything. A busy machine may leave a question open, and an honest
/// instrument says so; then the next try gives it more of what it lacked.
#[track_caller]
pub(crate) fn answered<S, A>(
    tries: impl IntoIterator<Item = S>,
    mut once: impl FnMut(S) -> Result<A, String>,
) -> A {
    let mut open = Vec::new();
    for more in tries {
        match once(more) {
            Ok(answer) => return answer,
            Err(why) => open.push(why),
        }
    }
    panic!("no try had an answer:\n{}", open.join("\n"));
}

/// Whether nobody knows if an expectation holds because a busy machine let too little be measured, as it says
/// itself.
pub(crate) fn is_open(expectation: &Value) -> bool {
    const WHY: [(&str, &str); 5] = [
        ("inconclusive", "hold the step for longer"),
        (
            "inconclusive",
            "of which not one is in each tenth of the step",
        ),
        ("inconclusive", "too little was seen of"),
        ("inconclusive", "so it may be more"),
        ("invalid", "the generator was late itself"),
    ];
    let note = expectation["note"].as_str().unwrap_or_default();
    let mut why = WHY.iter();
    why.any(|(outcome, why)| expectation["outcome"] == *outcome && note.contains(why))
}

/// Processes that carry the mark of the run in `folder`, as `pid name` lines.
pub(crate) fn processes_of_run(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("environment.json")).expect("an environment");
    let run: Value = serde_json::from_str(&text).expect("JSON");
    // The mark has the run's name, the process that makes it and its start; runs of two tests may have one name.
    let id = run["run_id"].as_str().expect("a name");
    let begin = id.replace(|c: char| !c.is_ascii_alphanumeric(), "-") + ".";
    let end = format!(".{}", run["started_at_unix_ns"]);
    let is_marked = |variable: &[u8]| {
        let marks = variable.strip_prefix(b"HEADROOM_RUN=").unwrap_or_default();
        let mut marks = marks.split(|byte| *byte == b',');
        marks.any(|mark| mark.starts_with(begin.as_bytes()) && mark.ends_with(end.as_bytes()))
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").filter_map(Result::ok) {
        let Ok(environment) = fs::read(entry.path().join("environ")) else {
            continue;
        };
        if environment.split(|byte| *byte == 0).any(is_marked) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push(format!(
                "{} {}",
                entry.file_name().to_string_lossy(),
                name.trim()
            ));
        }
    }
    found
}
