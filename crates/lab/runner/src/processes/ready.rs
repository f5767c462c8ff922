//! Finding out that a system can be used.

use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_experiment::plan::Ready;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::net::TcpStream;

use super::addresses::loopback;

/// Pause between looks.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Longest line of a log in which a text is looked for.
const LINE_BYTES: usize = 1 << 20;

/// Returns once the system at `port`, whose `logs` begin at these bytes, shows that it is ready.
/// The caller bounds the wait and watches for the end of the process.
pub(super) async fn until_ready(
    ready: &Ready,
    port: u16,
    logs: impl Iterator<Item = (&PathBuf, u64)>,
) {
    match ready {
        Ready::Tcp => {
            while !accepts(port).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ready::Http(path) => {
            let client = net::Client::new(net::ClientOptions {
                connect_within: ANSWER,
                answer_within: ANSWER,
                answer_bytes: 1 << 20,
                ..net::ClientOptions::default()
            });
            while !answers(&client, port, path).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ready::Log(text) => {
            let searches = logs.map(|(log, from)| Search::new(log, from));
            let mut searches: Vec<Search> = searches.collect();
            loop {
                for search in &mut searches {
                    // A log that cannot be read yet is looked at again.
                    if search.finds(text).await.unwrap_or(false) {
                        return;
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// What a person reads when readiness did not come.
pub(super) fn describe(ready: &Ready, port: u16) -> String {
    match ready {
        Ready::Tcp => format!("no TCP connection was accepted on {}", loopback(port)),
        Ready::Http(path) => {
            format!(
                "GET http://{}{path} had no answer with status 200 to 399",
                loopback(port)
            )
        }
        Ready::Log(text) => format!("no line of its output contains {text:?}"),
    }
}

async fn accepts(port: u16) -> bool {
    let address = loopback(port);
    let reached = tokio::time::timeout(ANSWER, reach(&address)).await;
    matches!(reached, Ok(Ok(())))
}

/// Connects to an address, and closes the connection.
///
/// # Errors
/// What the system says, or that nobody is there.
pub(crate) async fn reach(address: &str) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    match is_to_itself(&stream) {
        true => Err(io::ErrorKind::ConnectionRefused.into()),
        false => Ok(()),
    }
}

/// Whether a connection has met itself. Where nobody listens it can: among the ports that the kernel
/// gives to connections is the one that is asked for.
fn is_to_itself(stream: &TcpStream) -> bool {
    match (stream.local_addr(), stream.peer_addr()) {
        (Ok(own), Ok(other)) => own == other,
        // It was closed already, by somebody.
        _ => false,
    }
}

async fn answers(client: &net::Client, port: u16, path: &str) -> bool {
    let Ok(uri) = format!("http://{}{path}", loopback(port)).parse() else {
        return false;
    };
    client
        .get(&uri)
        .await
        .is_ok_and(|answer| (200..400).contains(&answer.status.as_u16()))
}

/// Looks for a text in a growing file.
struct Search {
    path: PathBuf,
    read: u64,
    line: Vec<u8>,
}

impl Search {
    fn new(path: &Path, from: u64) -> Self {
        Self {
            path: path.to_owned(),
            read: from,
            line: Vec::new(),
        }
    }

    /// Does what was added since the last look, or the line it continues, contain
    /// the text?
    async fn finds(&mut self, text: &str) -> io::Result<bool> {
        let mut file = File::open(&self.path).await?;
        file.seek(SeekFrom::Start(self.read)).await?;
        let mut added = vec![0; LINE_BYTES];
        loop {
            let count = file.read(&mut added).await?;
            if count == 0 {
                return Ok(false);
            }
            self.read += count as u64;
            for piece in added[..count].split_inclusive(|byte| *byte == b'\n') {
                self.line.extend_from_slice(piece);
                if contains(&self.line, text.as_bytes()) {
                    return Ok(true);
                }
                if piece.ends_with(b"\n") {
                    self.line.clear();
                } else if self.line.len() > LINE_BYTES {
                    // Keep what the text may have begun in.
                    let from = self.line.len() - text.len().min(LINE_BYTES);
                    self.line.drain(..from);
                }
            }
        }
    }
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    text.is_empty() || line.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn a_text_is_found_however_it_arrives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let mut file = std::fs::File::create(&path).unwrap();
        let mut search = Search::new(&path, 0);
        assert!(!search.finds("ready now").await.unwrap());
        file.write_all(b"not yet\nrea").unwrap();
        assert!(!search.finds("ready now").await.unwrap());
        file.write_all(b"dy\nready n").unwrap();
        assert!(!search.finds("ready now").await.unwrap());
        file.write_all(b"ow\n").unwrap();
        assert!(search.finds("ready now").await.unwrap());
    }

    #[tokio::test]
    async fn an_endless_line_is_searched_in_bounded_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let mut text = vec![b'x'; 3 * LINE_BYTES];
        text.extend_from_slice(b"found");
        std::fs::write(&path, &text).unwrap();
        let mut search = Search::new(&path, 0);
        assert!(search.finds("found").await.unwrap());
        assert!(search.line.len() <= 2 * LINE_BYTES + 5);
    }

    #[tokio::test]
    async fn a_connection_that_meets_itself_reaches_nobody() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let own = socket.local_addr().unwrap();
        assert!(is_to_itself(&socket.connect(own).await.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        reach(&address.to_string()).await.unwrap();
    }

    #[tokio::test]
    async fn a_missing_log_is_an_error_to_look_at_again() {
        assert!(
            Search::new(Path::new("/nonexistent/x.log"), 0)
                .finds("x")
                .await
                .is_err()
        );
    }
}
