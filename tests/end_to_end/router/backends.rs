//! Backends as those behind the recorded router.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use super::PATIENCE;

/// What a backend does with a request.
#[derive(Clone, Copy)]
pub(super) enum Does {
    /// Answers with the request that it got as a body, behind more fields.
    Echo(&'static str),
    /// Answers these bytes.
    Says(&'static str),
    /// Answers these bytes and closes.
    SaysAndCloses(&'static str),
    /// Closes without an answer.
    Close,
    /// Answers this to whatever comes, and closes.
    Blurts(&'static str),
    /// Resets the connection.
    Reset,
    /// Never answers.
    Hang,
    /// Switches protocols, and sends back what it gets.
    Tunnel,
}

/// A backend that runs until the test's process ends.
pub(super) struct Backend {
    address: SocketAddr,
    seen: Mutex<Receiver<String>>,
}

impl Backend {
    pub(super) fn start(does: Does) -> Self {
        Self::behind(does, Some)
    }

    /// With what `welcome` makes of a connection: TLS, or nothing if that fails.
    pub(super) fn behind<S: Wire>(
        does: Does,
        welcome: impl Fn(TcpStream) -> Option<S> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, seen) = channel();
        let welcome = Arc::new(welcome);
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let (sender, welcome) = (sender.clone(), Arc::clone(&welcome));
                std::thread::spawn(move || {
                    if let Some(mut stream) = welcome(stream) {
                        // A broken connection ends its thread.
                        let _ = serve(&mut stream, does, &sender);
                    }
                });
            }
        });
        Self {
            address,
            seen: Mutex::new(seen),
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The next request that it saw: head, then body.
    pub(super) fn saw(&self) -> String {
        let seen = self.seen.lock().expect("a receiver");
        seen.recv_timeout(PATIENCE).expect("a request")
    }

    /// Forgets what it saw.
    pub(super) fn forget(&self) {
        let seen = self.seen.lock().expect("a receiver");
        while seen.try_recv().is_ok() {}
    }
}

/// A port that refuses connections, for as long as the test's process lives: the client's end
/// of a connection holds it, so that nobody else gets it to listen there.
pub(super) fn dead_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let stream = TcpStream::connect(address).expect("a connection");
    let port = stream.local_addr().expect("an address").port();
    std::mem::forget((listener, stream));
    port
}

/// Bytes both ways.
pub(super) trait Wire: Read + Write + 'static {}

impl Wire for TcpStream {}

/// Reads a request; `None` at the end of the connection. The body of a request that waits
/// for leave to send it is not read.
pub(super) fn read_request(stream: &mut impl Read) -> Option<(String, String)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(byte(stream)?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lower = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if lower.contains("\r\ntransfer-encoding: chunked\r\n") {
        read_chunks(stream, &mut body)?;
    } else if let Some((_, rest)) = lower.split_once("\r\ncontent-length: ")
        && !lower.contains("\r\nexpect:")
    {
        let length = rest.split("\r\n").next()?.parse().ok()?;
        for _ in 0..length {
            body.push(byte(stream)?);
        }
    }
    Some((head, String::from_utf8_lossy(&body).into_owned()))
}

fn read_chunks(stream: &mut impl Read, body: &mut Vec<u8>) -> Option<()> {
    loop {
        let size = line(stream)?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            while !line(stream)?.trim().is_empty() {}
            return Some(());
        }
        for _ in 0..size {
            body.push(byte(stream)?);
        }
        line(stream)?;
    }
}

fn line(stream: &mut impl Read) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.push(byte(stream)?);
    }
    String::from_utf8(line).ok()
}

fn byte(stream: &mut impl Read) -> Option<u8> {
    let mut byte = [0];
    (stream.read(&mut byte).ok()? == 1).then_some(byte[0])
}

fn serve<S: Wire>(stream: &mut S, does: Does, seen: &Sender<String>) -> Option<()> {
    if matches!(does, Does::Reset) {
        // All but the first byte stays unread, and so closing resets.
        byte(stream)?;
        return None;
    }
    if let Does::Blurts(text) = does {
        byte(stream)?;
        stream.write_all(text.as_bytes()).ok()?;
        while byte(stream).is_some() {}
        return None;
    }
    loop {
        let (head, body) = read_request(stream)?;
        // Nobody may look at it.
        let _ = seen.send(format!("{head}{body}"));
        let closing = head.contains("\r\nConnection: close\r\n");
        match does {
            Does::Echo(more) => {
                // The recorded backend put the body first and left out the empty line.
                let echo = format!("{body}{}", &head[..head.len() - 2]);
                let length = echo.len();
                let mut answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{more}\r\n");
                if !head.starts_with("HEAD ") {
                    answer.push_str(&echo);
                }
                stream.write_all(answer.as_bytes()).ok()?;
            }
            Does::Says(text) => stream.write_all(text.as_bytes()).ok()?,
            Does::SaysAndCloses(text) => {
                stream.write_all(text.as_bytes()).ok()?;
                return None;
            }
            Does::Close | Does::Reset | Does::Blurts(_) => return None,
            Does::Hang => {
                while byte(stream).is_some() {}
                return None;
            }
            Does::Tunnel => {
                let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                              Connection: Upgrade\r\nX-B: 1\r\n\r\n";
                stream.write_all(answer.as_bytes()).ok()?;
                while let Some(one) = byte(stream) {
                    stream.write_all(&[one]).ok()?;
                }
                return None;
            }
        }
        stream.flush().ok()?;
        if closing {
            return None;
        }
    }
}
