//! Servers and clients to test with.
#![allow(dead_code, unreachable_pub, reason = "not every test uses all of it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nats::client::{Client, ClientConfig, QueueLimits, Subscription};
use nats::server::{Server, ServerConfig};
use tempfile::TempDir;

/// Time for what happens at once on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A nats-server of its own; ends with this value.
pub struct NatsServer {
    child: Child,
    folder: TempDir,
    pub port: u16,
}

impl NatsServer {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_at(-1, arguments)
    }

    /// At a port that is free; -1: at any.
    pub fn start_at(port: i32, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(nats_server())
            .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
            .arg("--ports_file_dir")
            .arg(folder.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server starts; scripts/install-test-tools installs it");
        let port = wait_for_port(folder.path(), child.id());
        Self {
            child,
            folder,
            port,
        }
    }

    pub fn url(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Ends it without a farewell.
    pub fn kill(mut self) -> u16 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.port
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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

fn wait_for_port(folder: &Path, pid: u32) -> u16 {
    for _ in 0..3000 {
        let found = std::fs::read_dir(folder)
            .unwrap()
            .flatten()
            .find_map(|file| {
                let name = file.file_name().into_string().ok()?;
                name.contains(&pid.to_string()).then_some(())?;
                let text = std::fs::read_to_string(file.path()).ok()?;
                let rest = text.split("nats://127.0.0.1:").nth(1)?;
                rest.split('"').next()?.parse().ok()
            });
        if let Some(port) = found {
            return port;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nats-server did not say where it listens");
}

pub fn config(url: &str) -> ClientConfig {
    ClientConfig {
        servers: vec![url.parse().unwrap()],
        pause: Duration::from_millis(5),
        longest_pause: Duration::from_millis(50),
        ..ClientConfig::default()
    }
}

pub async fn connect(url: &str) -> Client {
    Client::connect(config(url)).await.unwrap()
}

pub async fn server() -> Server {
    server_with(ServerConfig::default()).await
}

/// At a free port.
pub async fn server_with(config: ServerConfig) -> Server {
    let listen = "127.0.0.1:0".parse().unwrap();
    Server::start(ServerConfig { listen, ..config })
        .await
        .unwrap()
}

pub async fn subscribe(client: &Client, subject: &str) -> Subscription {
    let subscription = client.subscribe(subject, QueueLimits::default()).unwrap();
    client.flush().await.unwrap();
    subscription
}

/// The next `count` messages as `(subject, reply, payload)`.
pub async fn take(subscription: &mut Subscription, count: usize) -> Vec<(String, String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut found = Vec::new();
    while found.len() < count {
        let batch = tokio::time::timeout(PATIENCE, subscription.next())
            .await
            .expect("messages arrive")
            .expect("the client lives");
        found.extend(batch.iter().map(|message| {
            (
                text(message.subject),
                text(message.reply),
                text(message.payload),
            )
        }));
    }
    assert_eq!(found.len(), count, "{found:?}");
    found
}

/// Waits until `check` holds.
pub async fn until(what: &str, mut check: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if check() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen");
}
