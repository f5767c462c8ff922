//! A NATS server of one's own, workers as threads and as processes, and load that is
//! simulated.

// Each test file uses a part of it; what fails here fails the test.
#![allow(dead_code, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod simulated;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use lab_generator::workers::{Nats, Remote, ServeSettings, Settings, serve};
use lab_load::{Flow, Generate, GenerateError, Workload};
use simulated::Simulated;
use tempfile::TempDir;

/// A real NATS server on a free port of this machine.
pub struct NatsServer {
    child: Child,
    folder: TempDir,
    port: u16,
    arguments: Vec<String>,
}

impl NatsServer {
    /// With nothing out of the ordinary.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|each| (*each).to_owned()).collect();
        let child = launch(&folder, -1, &arguments);
        let ports = folder
            .path()
            .join(format!("nats-server_{}.ports", child.id()));
        let port = wait_for_port(&ports);
        Self {
            child,
            folder,
            port,
            arguments,
        }
    }

    /// Ends it at once, as the loss of its machine would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again where it was.
    pub fn restart(&mut self) {
        self.child = launch(&self.folder, i32::from(self.port), &self.arguments);
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// How it is reached.
    pub fn nats(&self) -> Nats {
        self.nats_with(&[])
    }

    /// How it is reached, with these variables set.
    pub fn nats_with(&self, variables: &[(&str, &str)]) -> Nats {
        Nats::new(Some(&self.url()), |name| {
            let found = variables.iter().find(|(each, _)| *each == name);
            found.map(|(_, value)| (*value).to_owned())
        })
        .unwrap()
    }

    /// What a coordinator of so many workers is told.
    pub fn settings(&self, workers: u32) -> Settings {
        Settings::new(self.nats(), "test".into(), workers)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(folder: &TempDir, port: i32, arguments: &[String]) -> Child {
    let log = folder.path().join("log");
    Command::new(nats_server())
        .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
        .arg("--ports_file_dir")
        .arg(folder.path())
        .arg("--log")
        .arg(log)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server starts; scripts/install-test-tools installs it")
}

/// Debian puts it where only root's `PATH` looks.
fn nats_server() -> PathBuf {
    let debian = Path::new("/usr/sbin/nats-server");
    if debian.exists() {
        debian.into()
    } else {
        "nats-server".into()
    }
}

fn wait_for_port(file: &Path) -> u16 {
    for _ in 0..1000 {
        let text = fs::read_to_string(file).unwrap_or_default();
        let port = text
            .split("://127.0.0.1:")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .and_then(|port| port.parse().ok());
        if let Some(port) = port {
            return port;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!(
        "nats-server said within 10 s where it listens, in {}",
        file.display()
    );
}

/// A coordinator whose workers nobody watches.
pub fn start(workload: &Workload, settings: &Settings) -> Result<Remote, GenerateError> {
    Remote::start(workload, settings, &mut |_| Flow::Continue)
}

/// A worker as a thread of this process.
pub struct WorkerThread {
    pub interrupted: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), GenerateError>>,
}

impl WorkerThread {
    /// How its session ended.
    pub fn end(self) -> Result<(), GenerateError> {
        self.thread.join().unwrap()
    }
}

/// Starts a worker whose load is simulated, with so much real time for each second.
pub fn worker(nats: &Nats, name: &str, second: Duration) -> WorkerThread {
    worker_with(nats, name, move |workload| {
        Ok(Box::new(Simulated { workload, second }))
    })
}

/// Starts a worker with a generator of one's own.
pub fn worker_with(
    nats: &Nats,
    name: &str,
    start_local: impl Fn(lab_load::Workload) -> Result<Box<dyn Generate + Send>, GenerateError>
    + Send
    + 'static,
) -> WorkerThread {
    let interrupted = Arc::new(AtomicBool::new(false));
    let settings = ServeSettings {
        nats: nats.clone(),
        session: "test".into(),
        name: name.into(),
        within: Duration::from_secs(60),
        interrupted: Arc::clone(&interrupted),
    };
    let thread = std::thread::spawn(move || serve(&settings, start_local));
    WorkerThread {
        interrupted,
        thread,
    }
}

/// A worker as a process, which can be killed.
pub struct WorkerProcess(Child);

impl WorkerProcess {
    /// With load that is simulated, each of whose seconds takes so many milliseconds.
    pub fn simulated(server: &NatsServer, name: &str, second_ms: u64) -> Self {
        Self::start(server, name, &second_ms.to_string())
    }

    /// With real load.
    pub fn local(server: &NatsServer, name: &str) -> Self {
        Self::start(server, name, "local")
    }

    fn start(server: &NatsServer, name: &str, load: &str) -> Self {
        // Examples are built beside the tests: target/debug/{deps,examples}.
        let test = std::env::current_exe().unwrap();
        let example = test
            .parent()
            .unwrap()
            .parent()
            .unwrap()
            .join("examples/load_worker");
        let child = Command::new(example)
            .args([&server.url(), "test", name, load])
            .stdin(Stdio::null())
            .spawn()
            .expect("the example load_worker is built with the tests");
        Self(child)
    }

    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its end; whether it ended well.
    pub fn end(&mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
