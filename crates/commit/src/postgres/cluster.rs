//! A PostgreSQL server of one test, gone with it. For this crate's tests, and as a file those of
//! others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test program uses a part")]

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Runs `postgres` in the foreground on a socket in a folder of its own. The server dies
/// with the thread that started it, by the kernel's word.
pub(crate) struct Cluster {
    folder: TempDir,
    bin: PathBuf,
    server: Option<Child>,
    /// Its port of the loopback, if it listens on one.
    port: Option<u16>,
    tls: bool,
}

/// PostgreSQL refuses to run as root; its package makes this user.
const USER: &str = "postgres";

impl Cluster {
    /// Makes and starts a cluster.
    pub(crate) fn start() -> Self {
        let mut cluster = Self::make();
        cluster.resume();
        cluster
    }

    /// One that also listens on a port of the loopback.
    pub(crate) fn start_on_port() -> Self {
        Self::make().on_port()
    }

    /// One that also listens on a port of the loopback, with this certificate and key.
    pub(crate) fn start_with_tls(certificate: &str, key: &str) -> Self {
        let mut cluster = Self::make();
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = cluster.data().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            give_away(&path);
        }
        cluster.tls = true;
        cluster.on_port()
    }

    fn on_port(mut self) -> Self {
        // PostgreSQL cannot pick a free port itself.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        self.port = Some(free.local_addr().unwrap().port());
        drop(free);
        self.resume();
        self
    }

    /// Where one with a port listens.
    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.unwrap()).into()
    }

    fn make() -> Self {
        let folder = tempfile::Builder::new().prefix("pg-").tempdir().unwrap();
        let cluster = Self {
            folder,
            bin: newest_bin(),
            server: None,
            port: None,
            tls: false,
        };
        let path = cluster.folder.path();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = cluster.data();
        std::fs::create_dir(&data).unwrap();
        give_away(&data);
        let mut initdb = cluster.program("initdb", &[]);
        run(initdb
            .args(["--auth=trust", "--username=postgres", "--no-sync", "-D"])
            .arg(&data));
        cluster
    }

    /// Starts the server of a cluster that was stopped.
    pub(crate) fn resume(&mut self) {
        for _ in 0..3000 {
            // One that finds processes of the server before it gives up.
            let server = self.server.as_mut();
            if server.is_none_or(|server| server.try_wait().unwrap().is_some()) {
                self.server = Some(self.spawn());
            }
            if self.psql("postgres", "SELECT 1").status.success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = std::fs::read_to_string(self.folder.path().join("log"));
        panic!("PostgreSQL does not start: {log:?}");
    }

    fn spawn(&self) -> Child {
        let data = self.data();
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut server = self.program("postgres", &["--pdeathsig=INT"]);
        server
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&data)
            .args(["-c", "fsync=off"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        match self.port {
            None => server.args(["-c", "listen_addresses="]),
            Some(port) => server
                .args(["-c", "listen_addresses=127.0.0.1", "-p"])
                .arg(port.to_string()),
        };
        if self.tls {
            server.args(["-c", "ssl=on"]);
        }
        server.spawn().unwrap()
    }

    /// Stops the server at once, as a crash would.
    pub(crate) fn crash(&mut self) {
        self.signal("QUIT");
    }

    /// Kills the server's first process, whose end the others notice.
    pub(crate) fn kill(&mut self) {
        self.signal("KILL");
    }

    /// A new database, and its address.
    pub(crate) fn database(&self, name: &str) -> String {
        let made = self.psql("postgres", &format!("CREATE DATABASE {name}"));
        assert!(made.status.success(), "{made:?}");
        let data = self.data();
        let folder = data.to_str().unwrap().replace('/', "%2F");
        format!("postgres://postgres@{folder}/{name}")
    }

    /// Runs a statement.
    pub(crate) fn psql(&self, database: &str, statement: &str) -> Output {
        let mut psql = plain(self.bin.join("psql"));
        psql.arg("-h").arg(self.data());
        psql.args(["-U", "postgres", "-d", database, "-Atc", statement]);
        if let Some(port) = self.port {
            psql.arg("-p").arg(port.to_string());
        }
        psql.output().unwrap()
    }

    /// What a statement comes to in the database `postgres`, as `psql -At` has it.
    pub(crate) fn ask(&self, statement: &str) -> String {
        let output = self.psql("postgres", statement);
        assert!(output.status.success(), "{statement}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().into()
    }

    /// Who may log in how: lines of `pg_hba.conf` for connections over TCP.
    pub(crate) fn allow(&self, lines: &str) {
        let own = "local all all trust\n";
        std::fs::write(self.data().join("pg_hba.conf"), format!("{own}{lines}\n")).unwrap();
        self.ask("SELECT pg_reload_conf()");
    }

    /// The folder of all its files.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of PostgreSQL, as a user that may run it.
    fn program(&self, name: &str, options: &[&str]) -> Command {
        let mut command = plain("setpriv");
        if is_root() {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
        }
        command.args(options).arg(self.bin.join(name));
        command.current_dir("/").env("LC_ALL", "C");
        command
    }

    fn signal(&mut self, signal: &str) {
        if let Some(mut server) = self.server.take() {
            let pid = server.id().to_string();
            let _ = Command::new("kill").args(["-s", signal, &pid]).status();
            let _ = server.wait();
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.signal("QUIT");
    }
}

/// A command to which nobody's variables tell of another database: a server takes its port from them.
fn plain(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    command
}

/// Makes a file or folder the server's own.
fn give_away(path: &Path) {
    if is_root() {
        run(Command::new("chown").arg(USER).arg(path));
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn newest_bin() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let bins = versions.into_iter().flatten().flatten();
    let bins = bins.map(|version| version.path().join("bin"));
    bins.filter(|bin| Path::new(bin).join("initdb").exists())
        .max()
        .unwrap_or_else(|| panic!("no PostgreSQL; run scripts/install-test-tools"))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
