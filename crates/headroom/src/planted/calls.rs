//! What a server asks of another one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes of the name of a request.
const NAME_BYTES: usize = 32;

/// Pause after a connection that could not be opened.
const PAUSE: Duration = Duration::from_millis(10);

/// A server that is asked for each request.
pub(super) struct Downstream {
    pub(super) address: SocketAddr,
    /// Time for an answer.
    pub(super) within: Duration,
    /// How often it is asked for one thing, until it answers.
    pub(super) attempts: u32,
    /// How many things it is asked for.
    pub(super) things: u32,
}

impl Downstream {
    /// Calls everything that a request needs. Whether there was an answer to all.
    pub(super) fn call_all(&self, name: &str) -> bool {
        (0..self.things).all(|_| (0..self.attempts).any(|_| self.attempt(name).is_some()))
    }

    /// `None`: no good answer in time. Whoever works on it is not told.
    fn attempt(&self, name: &str) -> Option<()> {
        let until = Instant::now() + self.within;
        let mut stream = TcpStream::connect_timeout(&self.address, self.within).ok()?;
        stream.set_nodelay(true).ok()?;
        // In one piece: who answers at the first line would else meet the rest unread.
        let request = format!("GET /{name} HTTP/1.1\r\nHost: downstream\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut head = [0; 12];
        let left = until.saturating_duration_since(Instant::now());
        stream
            .set_read_timeout(Some(left.max(Duration::from_micros(1))))
            .ok()?;
        stream.read_exact(&mut head).ok()?;
        head.ends_with(b" 200").then_some(())
    }
}

/// The name of a request in the first line of its head: `GET /r12 HTTP/1.1`.
pub(super) fn name_of(line: &str) -> Option<String> {
    let path = line.strip_prefix("GET /")?.split(' ').next()?;
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_plain && (1..=NAME_BYTES).contains(&path.len())).then(|| path.to_owned())
}

/// Opens connections and keeps them.
pub(super) fn hold(to: SocketAddr, count: usize) {
    let mut held = Vec::new();
    while held.len() < count {
        match TcpStream::connect(to) {
            Ok(stream) => held.push(stream),
            // It is not there yet, or there is no port left.
            Err(_) => thread::sleep(PAUSE),
        }
    }
    loop {
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_name_of_a_request_is_its_plain_path() {
        assert_eq!(name_of("GET /r12 HTTP/1.1\r\n").as_deref(), Some("r12"));
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(40));
        for line in [
            "GET / HTTP/1.1\r\n",
            "GET /a\"b HTTP/1.1\r\n",
            "Host: a\r\n",
            &long,
        ] {
            assert_eq!(name_of(line), None, "{line}");
        }
    }

    #[test]
    fn asked_again_until_it_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let downstream = Downstream {
            address: listener.local_addr().unwrap(),
            within: Duration::from_secs(30),
            attempts: 3,
            things: 1,
        };
        let server = thread::spawn(move || {
            let statuses = ["503 No", "503 No", "200 OK", "503 No", "503 No", "503 No"];
            let mut names = Vec::new();
            for status in statuses {
                let (mut stream, _) = listener.accept().unwrap();
                let head: Vec<String> = BufReader::new(&stream)
                    .lines()
                    .map(Result::unwrap)
                    .take_while(|line| !line.is_empty())
                    .collect();
                names.extend(name_of(&head[0]));
                // In one piece: the client closes as soon as it has the status.
                let answer = format!("HTTP/1.1 {status}\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
            }
            names
        });
        assert!(downstream.call_all("r1"));
        assert!(!downstream.call_all("r2"));
        assert_eq!(server.join().unwrap(), ["r1", "r1", "r1", "r2", "r2", "r2"]);
    }
}
