//! This test process again, as a server that gets killed.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The server; it is killed at the end.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// Runs a test that [`serve`]s in this folder alone, with these variables.
    pub(crate) async fn start(test: &str, folder: &Path, variables: &[(&str, &str)]) -> Self {
        let file = folder.join("address");
        let _ = std::fs::remove_file(&file);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let address = async {
            loop {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                match text.parse() {
                    Ok(address) => return address,
                    Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
        };
        let address = tokio::time::timeout(Duration::from_secs(120), address).await;
        Self {
            child,
            address: address.expect("the child does not start"),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL: it gets no chance to write anything.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells where the server listens, and goes on until it is killed.
pub(crate) async fn serve(folder: &Path, address: SocketAddr) {
    let temporary = folder.join("address.new");
    std::fs::write(&temporary, address.to_string()).unwrap();
    std::fs::rename(temporary, folder.join("address")).unwrap();
    std::future::pending::<()>().await;
}
