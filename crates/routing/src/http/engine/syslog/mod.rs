//! The access log as messages of syslog (RFC 5424), over UDP, TCP or a socket of the system.
//!
//! A thread of its own sends them, so that a syslog that is slow or away holds up neither
//! requests nor the log's file: what finds its queue full, or comes while nobody takes it,
//! is dropped and counted.

#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::http::counters::ThreadCounters;
use crate::http::pipeline::text::log_time;
use crate::http::settings::{SyslogNetwork, SyslogSettings};

/// Batches of lines that may wait to be sent.
const WAITING: usize = 64;
/// Longest wait for a connection, and for the other side to take something.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long lines are dropped after something failed, before the next connection.
const PAUSE: Duration = Duration::from_secs(1);
/// The most that a datagram of UDP can hold over IPv4.
const MOST_OF_A_DATAGRAM: usize = 65_507;
/// Where syslog listens on this machine, if the settings do not say it; as Go's library looks
/// for it, which is gorouter's.
const LOCAL: [&str; 3] = ["/dev/log", "/var/run/syslog", "/var/run/log"];
/// Facility user (1), severity informational (6), as gorouter's.
const PRIORITY: u8 = 8 + 6;

/// The lines that wait to be sent.
pub(super) struct SyslogQueue(SyncSender<Vec<u8>>);

impl SyslogQueue {
    /// Takes whole lines, or drops and counts them.
    pub(super) fn offer(&self, lines: &[u8], counters: &ThreadCounters) {
        if self.0.try_send(lines.to_vec()).is_err() {
            counters.syslog_drops.add(count(lines));
        }
    }
}

/// Starts to send. The thread ends when the queue is gone, after the last of its lines.
///
/// # Errors
/// When there is no thread left.
pub(super) fn start(
    settings: &SyslogSettings,
    counters: Arc<ThreadCounters>,
) -> io::Result<(SyslogQueue, JoinHandle<()>)> {
    let (lines, waiting) = sync_channel(WAITING);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let sender = Sender {
        header: Header::new(&host, &settings.name, std::process::id()),
        settings: settings.clone(),
        connection: None,
        pause_ends: None,
        counters,
        message: Vec::new(),
    };
    let thread = std::thread::Builder::new()
        .name("syslog".to_owned())
        .spawn(move || sender.run(&waiting))?;
    Ok((SyslogQueue(lines), thread))
}

fn count(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

/// What every message says of its sender: `HOST NAME PID`.
struct Header(String);

impl Header {
    fn new(host: &str, name: &str, process: u32) -> Self {
        // PRINTUSASCII of so many bytes at most, or nothing, which is a dash.
        let word = |text: &str, most: usize| {
            let word: String = text
                .chars()
                .filter(char::is_ascii_graphic)
                .take(most)
                .collect();
            if word.is_empty() {
                "-".to_owned()
            } else {
                word
            }
        };
        Self(format!("{} {} {process}", word(host, 255), word(name, 48)))
    }

    /// Appends the message of a line (without its end) that is sent `wall` nanoseconds after
    /// 1970; of its text at most `most` bytes.
    fn message(&self, line: &[u8], wall: u64, most: usize, out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "<{PRIORITY}>1 ");
        log_time(wall, out);
        // Syslog knows microseconds, and the log nanoseconds: "…123456789Z".
        out.truncate(out.len() - 4);
        let _ = write!(out, "Z {} - - ", self.0);
        out.extend_from_slice(line.get(..most).unwrap_or(line));
    }
}

enum Connection {
    Udp(UdpSocket),
    Datagrams(UnixDatagram),
    /// TCP, or within this machine.
    Stream(Box<dyn io::Write + Send>),
}

impl Connection {
    fn open(settings: &SyslogSettings) -> io::Result<Self> {
        match settings.network {
            SyslogNetwork::Unix if settings.address.is_empty() => {
                let mut tried = LOCAL.iter().map(|path| Self::open_local(Path::new(path)));
                let first = tried.find(Result::is_ok);
                first.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
            }
            SyslogNetwork::Unix => Self::open_local(Path::new(&settings.address)),
            SyslogNetwork::Udp | SyslogNetwork::Tcp => {
                let mut last = io::ErrorKind::NotFound.into();
                for address in settings.address.to_socket_addrs()? {
                    let opened = match settings.network {
                        SyslogNetwork::Udp => Self::open_udp(address),
                        _ => Self::open_tcp(address),
                    };
                    match opened {
                        Ok(connection) => return Ok(connection),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    fn open_udp(address: std::net::SocketAddr) -> io::Result<Self> {
        let any: std::net::IpAddr = match address {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(address)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self::Udp(socket))
    }

    fn open_tcp(address: std::net::SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self::Stream(Box::new(stream)))
    }

    /// A socket of this machine takes datagrams or a stream; who opened it has decided.
    fn open_local(path: &Path) -> io::Result<Self> {
        let datagrams = UnixDatagram::unbound()?;
        if datagrams.connect(path).is_ok() {
            datagrams.set_write_timeout(Some(PATIENCE))?;
            return Ok(Self::Datagrams(datagrams));
        }
        let stream = UnixStream::connect(path)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self::Stream(Box::new(stream)))
    }

    /// Sends one message. In a stream it ends with a line end (RFC 6587, section 3.4.2).
    fn send(&mut self, message: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Udp(socket) => {
                message.truncate(MOST_OF_A_DATAGRAM);
                socket.send(message).map(drop)
            }
            Self::Datagrams(socket) => socket.send(message).map(drop),
            Self::Stream(stream) => {
                message.push(b'\n');
                stream.write_all(message)
            }
        }
    }
}

struct Sender {
    settings: SyslogSettings,
    header: Header,
    connection: Option<Connection>,
    /// Until then lines are dropped: something failed.
    pause_ends: Option<Instant>,
    counters: Arc<ThreadCounters>,
    /// Memory for a message.
    message: Vec<u8>,
}

impl Sender {
    fn run(mut self, waiting: &Receiver<Vec<u8>>) {
        while let Ok(lines) = waiting.recv() {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                match self.send(line) {
                    true => self.counters.syslog_lines.increment(),
                    false => self.counters.syslog_drops.increment(),
                }
            }
        }
    }

    /// Whether the line was given to the other side.
    fn send(&mut self, line: &[u8]) -> bool {
        if self.connection.is_none() {
            if self.pause_ends.is_some_and(|ends| Instant::now() < ends) {
                return false;
            }
            self.connection = Connection::open(&self.settings).ok();
        }
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let wall = u64::try_from(since_1970.as_nanos()).unwrap_or_default();
        let most = match self.settings.truncate {
            0 => usize::MAX,
            most => most,
        };
        self.message.clear();
        self.header.message(line, wall, most, &mut self.message);
        let sent = self
            .connection
            .as_mut()
            .is_some_and(|connection| connection.send(&mut self.message).is_ok());
        if !sent {
            self.connection = None;
            self.pause_ends = Some(Instant::now() + PAUSE);
        }
        sent
    }
}
