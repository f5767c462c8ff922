//! A real PostgreSQL server of one test, gone with it.
#![allow(dead_code, unreachable_pub)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// PostgreSQL refuses to run as root; its package makes this user.
const USER: &str = "postgres";

/// See the module. It dies with the thread that started it, by the kernel's word.
pub struct PostgresServer {
    folder: TempDir,
    bin: PathBuf,
    pub address: SocketAddr,
    child: Option<Child>,
}

impl PostgresServer {
    /// Where everybody on this machine may log in without a password.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("pg-").tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        // PostgreSQL cannot pick a free port itself.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut server = Self {
            folder,
            bin: newest_bin(),
            address: free.local_addr().unwrap(),
            child: None,
        };
        drop(free);
        let data = server.data();
        std::fs::create_dir(&data).unwrap();
        if is_root() {
            run(Command::new("chown").arg(USER).arg(&data));
        }
        let mut initdb = server.program("initdb", &[]);
        run(initdb
            .args(["--auth=trust", "--username=postgres", "--no-sync", "-D"])
            .arg(&data));
        server.resume();
        server
    }

    /// Starts it again where it was.
    pub fn resume(&mut self) {
        let data = self.data();
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut server = self.program("postgres", &["--pdeathsig=INT"]);
        server
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&data)
            .args(["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-p"])
            .arg(self.address.port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.child = Some(server.spawn().unwrap());
        for _ in 0..3000 {
            if self.try_ask("SELECT 1").is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = std::fs::read_to_string(self.folder.path().join("log"));
        panic!("PostgreSQL does not start: {log:?}");
    }

    /// Ends it at once, as a crash would.
    pub fn crash(&mut self) {
        if let Some(mut child) = self.child.take() {
            let pid = child.id().to_string();
            let _ = Command::new("kill").args(["-s", "QUIT", &pid]).status();
            let _ = child.wait();
        }
    }

    /// Who may log in how: lines of `pg_hba.conf` for connections over TCP.
    pub fn allow(&self, lines: &str) {
        let own = "local all all trust\n";
        std::fs::write(self.data().join("pg_hba.conf"), format!("{own}{lines}\n")).unwrap();
        self.ask("SELECT pg_reload_conf()");
    }

    /// What a statement comes to, as `psql -At` has it.
    pub fn ask(&self, sql: &str) -> String {
        self.try_ask(sql).unwrap_or_else(|| panic!("{sql} failed"))
    }

    fn try_ask(&self, sql: &str) -> Option<String> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.arg("-h")
            .arg(self.data())
            .arg("-p")
            .arg(self.address.port().to_string());
        let output = psql.args(["-U", "postgres", "-Atc", sql]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| text.trim_end().to_owned())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of PostgreSQL, as a user that may run it.
    fn program(&self, name: &str, options: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        if is_root() {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
        }
        command.args(options).arg(self.bin.join(name));
        command.current_dir("/").env("LC_ALL", "C");
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.crash();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn newest_bin() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let bins = versions.into_iter().flatten().flatten();
    let bins = bins.map(|version| version.path().join("bin"));
    bins.filter(|bin: &PathBuf| Path::new(bin).join("initdb").exists())
        .max()
        .unwrap_or_else(|| panic!("no PostgreSQL; run scripts/install-test-tools"))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
