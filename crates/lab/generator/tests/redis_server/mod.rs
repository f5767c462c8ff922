//! A real Redis server of one test, gone with it.
#![allow(dead_code, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::free_port::free_port;

/// See the module.
pub struct RedisServer {
    child: Child,
    folder: TempDir,
    pub address: SocketAddr,
    arguments: Vec<String>,
}

impl RedisServer {
    /// With nothing out of the ordinary.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        // Redis cannot pick a free port itself.
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|each| (*each).to_owned()).collect();
        let child = launch(&folder, address, &arguments);
        let server = Self {
            child,
            folder,
            address,
            arguments,
        };
        server.wait();
        server
    }

    /// A folder that lives as long as the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again where it was, without its data.
    pub fn restart(&mut self) {
        self.child = launch(&self.folder, self.address, &self.arguments);
        self.wait();
    }

    fn wait(&self) {
        for _ in 0..1000 {
            if self.is_up() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let log = std::fs::read_to_string(self.folder.path().join("log"));
        panic!("Redis does not start: {log:?}");
    }

    /// Whether it replies: by then it listens at all its ports, of which this is the first.
    fn is_up(&self) -> bool {
        let replies = |mut stream: TcpStream| {
            stream.write_all(b"PING\r\n")?;
            stream.read(&mut [0])
        };
        TcpStream::connect(self.address)
            .and_then(replies)
            .is_ok_and(|read| read == 1)
    }

    /// The reply to a command without blanks in its words, as it comes, without its last end of
    /// line.
    pub fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .write_all(format!("{command}\r\nQUIT\r\n").as_bytes())
            .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
            .strip_suffix("+OK\r\n")
            .unwrap_or(&reply)
            .trim_end()
            .to_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(folder: &TempDir, address: SocketAddr, arguments: &[String]) -> Child {
    // Debian's package of the tools has the server, under the name of its other use; what it is
    // depends on the name by which it is called.
    let debian = Path::new("/usr/bin/redis-check-rdb");
    let mut command = match debian.exists() {
        true => Command::new(debian),
        false => Command::new("redis-server"),
    };
    command
        .arg0("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
        .args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--enable-debug-command",
            "yes",
            "--dir",
        ])
        .arg(folder.path())
        .arg("--logfile")
        .arg(folder.path().join("log"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server starts; scripts/install-test-tools installs it")
}
