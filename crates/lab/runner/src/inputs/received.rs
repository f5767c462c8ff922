//! Logs that programs send: messages of syslog and lines over sockets, entries of systemd's journal.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener as StdListener, UdpSocket as StdUdp};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram as StdUnix;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use lab_experiment::plan::{Input, Plan, System};
use lab_lifecycle::{MAX_LINE_BYTES, SyslogStream, journal_line, syslog_line};
use lab_store::{RunFile, RunFolder};
use processes::{Lines, Program};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::alarm::Alarm;
use crate::options::RunError;
use crate::processes::{Addresses, Ports, copy_names};

/// Most connections that send to one address at a time; further ones are closed.
const CONNECTIONS: usize = 64;
/// Largest datagram.
const DATAGRAM_BYTES: usize = 1 << 16;
/// What the kernel is asked to hold of datagrams that nobody has read yet. It may give less.
const HELD_BYTES: usize = 4 << 20;
/// Once all systems have ended: what comes after so long a silence is not waited for, and nothing is
/// after so long in all.
const QUIET: Duration = Duration::from_millis(250);
const QUIET_WITHIN: Duration = Duration::from_secs(5);

/// The name of the log of what a copy sends.
pub(super) fn arrived(copy: &str) -> String {
    format!("{copy}.received")
}

/// Whether a system sends its log.
pub(super) fn receives(system: &System) -> bool {
    let mut inputs = system.inputs.iter();
    inputs.any(|input| !matches!(input, Input::Files(_)))
}

/// A thread that takes what all systems send.
#[derive(Debug)]
pub(super) struct Received(Option<(watch::Sender<bool>, JoinHandle<Vec<String>>)>);

/// Where the log of one copy comes from.
struct Source {
    copy: String,
    kind: Kind,
    log: PathBuf,
}

enum Kind {
    Tcp(StdListener),
    Udp(StdUdp),
    Unix(PathBuf),
    Journal(Vec<String>),
}

impl Received {
    /// Starts to listen.
    ///
    /// # Errors
    /// When an address is in use, a log cannot be made, or the journal cannot be read.
    pub(super) fn start(
        plan: &Plan,
        folder: &RunFolder,
        addresses: &Addresses,
        ports: &mut Ports,
        alarm: Alarm,
    ) -> Result<Self, RunError> {
        let mut sources = Vec::new();
        for system in plan.systems.iter().filter(|one| receives(one)) {
            // What is the same for every copy is taken once.
            let mut known = HashSet::new();
            for (index, copy) in (0..).zip(copy_names(system)) {
                for input in &system.inputs {
                    let texts = input.templates().iter();
                    let texts: Vec<String> = texts
                        .map(|text| addresses.render_for(text, &system.name, index))
                        .collect();
                    let log = folder.file(RunFile::Log(&arrived(&copy)));
                    let of = |why: String| RunError::SetUp(failed(&copy, &why));
                    if !known.insert((std::mem::discriminant(input), texts.clone())) {
                        opened(&log).map_err(of)?;
                        continue;
                    }
                    let kind = listen(input, texts, ports).map_err(of)?;
                    sources.extend(kind.map(|kind| Source {
                        copy: copy.clone(),
                        kind,
                        log,
                    }));
                }
            }
        }
        if sources.is_empty() {
            return Ok(Self(None));
        }
        let (stop, stopped) = watch::channel(false);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => {
                    let all = LocalSet::new();
                    runtime
                        .block_on(all.run_until(net::local(take(sources, &tell, stopped, alarm))))
                }
                Err(error) => {
                    let _ = tell.send(Err(error.to_string()));
                    Vec::new()
                }
            }
        });
        match told.recv() {
            Ok(Ok(())) => Ok(Self(Some((stop, thread)))),
            Ok(Err(why)) => Err(RunError::SetUp(why)),
            Err(_) => Err(RunError::SetUp(
                "the thread for logs that are sent ended".into(),
            )),
        }
    }

    /// Takes what is still coming; what a person should know of it all.
    pub(super) fn finish(&mut self) -> Vec<String> {
        let Some((stop, thread)) = self.0.take() else {
            return Vec::new();
        };
        stop.send_replace(true);
        thread
            .join()
            .unwrap_or_else(|_| vec!["the reading of logs that are sent ended early".to_owned()])
    }
}

fn failed(copy: &str, why: &str) -> String {
    format!("take the log that {copy} sends: {why}")
}

/// Listens at once, so that whoever starts next finds somebody; `None`: nothing to listen for.
fn listen(input: &Input, texts: Vec<String>, ports: &mut Ports) -> Result<Option<Kind>, String> {
    let text = texts.first().cloned().unwrap_or_default();
    let address = || -> Result<SocketAddr, String> {
        text.parse().map_err(|error| format!("{text}: {error}"))
    };
    Ok(match input {
        Input::Files(_) => None,
        Input::Journal(_) => Some(Kind::Journal(texts)),
        Input::Unix(_) => Some(Kind::Unix(text.into())),
        Input::Tcp(_) => {
            let address = address()?;
            let held = ports.take(address.port());
            let listener = held.map_or_else(|| StdListener::bind(address), Ok);
            let listener = listener.map_err(|error| format!("listen at {address}: {error}"))?;
            Some(Kind::Tcp(listener))
        }
        Input::Udp(_) => {
            let address = address()?;
            let socket = StdUdp::bind(address);
            let socket = socket.map_err(|error| format!("listen at {address}: {error}"))?;
            // What the kernel gives is enough or not; drops are counted.
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, HELD_BYTES);
            Some(Kind::Udp(socket))
        }
    })
}

/// What the tasks of a source share.
struct SourceContext {
    copy: String,
    path: PathBuf,
    log: RefCell<BufWriter<File>>,
    stopped: watch::Receiver<bool>,
    alarm: Alarm,
    /// What a person should know.
    notes: RefCell<Vec<String>>,
}

impl SourceContext {
    fn line(&self, line: &[u8]) {
        let mut log = self.log.borrow_mut();
        let written = log.write_all(line).and_then(|()| log.write_all(b"\n"));
        self.report_failure(written);
    }

    fn message(&self, message: &[u8]) {
        let now = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        match message.starts_with(b"<") {
            true => self.line(&syslog_line(message, now)),
            false => message
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.trim_ascii().is_empty())
                .for_each(|line| self.line(line)),
        }
    }

    fn flush(&self) {
        let flushed = self.log.borrow_mut().flush();
        self.report_failure(flushed);
    }

    fn report_failure(&self, written: std::io::Result<()>) {
        if let Err(error) = written {
            let path = self.path.display();
            self.alarm.broken(format!("cannot write {path}: {error}"));
        }
    }

    /// What comes next; `None`: all systems have ended, and nothing has come for a while.
    async fn next<T>(&self, next: impl Future<Output = T>) -> Option<T> {
        let mut next = pin!(next);
        let mut stopped = self.stopped.clone();
        tokio::select! {
            got = &mut next => return Some(got),
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        tokio::time::timeout(QUIET, next).await.ok()
    }
}

/// Takes what comes, until it is told to stop and nothing comes any more.
async fn take(
    sources: Vec<Source>,
    tell: &mpsc::Sender<Result<(), String>>,
    mut stopped: watch::Receiver<bool>,
    alarm: Alarm,
) -> Vec<String> {
    let (mut tasks, mut taken) = (Vec::new(), Vec::new());
    for source in sources {
        let copy = source.copy.clone();
        match begin(source, &stopped, &alarm) {
            Ok((one, task)) => {
                taken.push(one);
                tasks.push(tokio::task::spawn_local(task));
            }
            Err(why) => {
                let _ = tell.send(Err(failed(&copy, &why)));
                return Vec::new();
            }
        }
    }
    let _ = tell.send(Ok(()));
    let _ = stopped.wait_for(|stopped| *stopped).await;
    let mut notes = Vec::new();
    let all = async {
        for task in tasks {
            let _ = task.await;
        }
    };
    if tokio::time::timeout(QUIET_WITHIN, all).await.is_err() {
        notes.push(
            "logs were still sent when all systems had ended; the rest is left out".to_owned(),
        );
    }
    for one in taken {
        one.flush();
        notes.append(&mut one.notes.borrow_mut());
    }
    notes
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// A log, to which more is appended.
fn opened(log: &Path) -> Result<File, String> {
    let opened = File::options().create(true).append(true).open(log);
    opened.map_err(|error| format!("{}: {error}", log.display()))
}

/// What takes from a source.
fn begin(
    source: Source,
    stopped: &watch::Receiver<bool>,
    alarm: &Alarm,
) -> Result<(Rc<SourceContext>, Task), String> {
    let log = opened(&source.log)?;
    let taken = Rc::new(SourceContext {
        copy: source.copy,
        path: source.log,
        log: RefCell::new(BufWriter::new(log)),
        stopped: stopped.clone(),
        alarm: alarm.clone(),
        notes: RefCell::default(),
    });
    let to = Rc::clone(&taken);
    let watched = |error: std::io::Error| format!("watch its socket: {error}");
    let task = match source.kind {
        Kind::Tcp(listener) => {
            let listener = listener
                .set_nonblocking(true)
                .and_then(|()| TcpListener::from_std(listener));
            net::local(connections(listener.map_err(watched)?, to))
        }
        Kind::Udp(socket) => {
            let socket = socket
                .set_nonblocking(true)
                .and_then(|()| UdpSocket::from_std(socket));
            net::local(datagrams(socket.map_err(watched)?, to))
        }
        Kind::Unix(place) => {
            let socket = socket_at(&place);
            let socket =
                socket.map_err(|error| format!("listen at {}: {error}", place.display()))?;
            net::local(messages(socket, place, to))
        }
        Kind::Journal(words) => net::local(entries(journal(&words, &taken.path)?, to)),
    };
    Ok((taken, task))
}

/// A socket at a place. One that a run has left there which was killed gives way.
fn socket_at(place: &Path) -> std::io::Result<UnixDatagram> {
    match UnixDatagram::bind(place) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_behind(place) => {
            std::fs::remove_file(place)?;
            UnixDatagram::bind(place)
        }
        bound => bound,
    }
}

/// Whether a socket is there that no process has any more.
fn is_left_behind(place: &Path) -> bool {
    let found = std::fs::symlink_metadata(place);
    let is_socket = found.is_ok_and(|found| found.file_type().is_socket());
    let reached = StdUnix::unbound().and_then(|own| own.connect(place));
    is_socket && reached.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

async fn connections(listener: TcpListener, to: Rc<SourceContext>) {
    let mut refused = 0_u64;
    let mut open: Vec<tokio::task::JoinHandle<()>> = Vec::new();
    while let Some(accepted) = to.next(listener.accept()).await {
        open.retain(|one| !one.is_finished());
        match accepted {
            Ok((stream, _)) if open.len() < CONNECTIONS => {
                open.push(tokio::task::spawn_local(net::local(stream_of(
                    stream,
                    Rc::clone(&to),
                ))));
            }
            Ok(_) => refused += 1,
            // Nothing is lost: who connects waits. Without a pause an error that stays would spin.
            Err(_) => tokio::time::sleep(QUIET).await,
        }
    }
    for one in open {
        let _ = one.await;
    }
    if refused > 0 {
        to.notes.borrow_mut().push(format!(
            "{refused} connections of {} that would have sent its log were closed: {CONNECTIONS} may be open at a time",
            to.copy
        ));
    }
}

async fn stream_of(mut stream: TcpStream, to: Rc<SourceContext>) {
    let (mut messages, mut bytes) = (SyslogStream::default(), vec![0; DATAGRAM_BYTES]);
    // One that breaks has ended; what came of it is kept.
    while let Some(Ok(got @ 1..)) = to.next(stream.read(&mut bytes)).await {
        messages.push(&bytes[..got], |message| to.message(message));
        to.flush();
    }
    messages.end(|message| to.message(message));
    to.flush();
}

async fn datagrams(socket: UdpSocket, to: Rc<SourceContext>) {
    let mut bytes = vec![0; DATAGRAM_BYTES];
    while let Some(got) = to.next(socket.recv(&mut bytes)).await {
        // An error is that of a peer that is gone: nothing of ours is lost.
        to.message(&bytes[..got.unwrap_or(0)]);
        to.flush();
    }
    let number = rustix::fs::fstat(socket.as_fd()).map(|found| found.st_ino);
    let drops = measure::udp_drops().into_iter();
    let own = drops.filter(|((inode, _), _)| number == Ok(*inode));
    let dropped: u64 = own.map(|(_, dropped)| dropped).sum();
    if dropped > 0 {
        to.notes.borrow_mut().push(format!(
            "the kernel dropped {dropped} datagrams of the log of {}: they came faster than they were read; \
             raise net.core.rmem_max, or send the log over TCP",
            to.copy
        ));
    }
}

async fn messages(socket: UnixDatagram, place: PathBuf, to: Rc<SourceContext>) {
    let mut bytes = vec![0; DATAGRAM_BYTES];
    while let Some(got) = to.next(socket.recv(&mut bytes)).await {
        to.message(&bytes[..got.unwrap_or(0)]);
        to.flush();
    }
    // It may be outside of the run's folder.
    let _ = std::fs::remove_file(place);
}

/// Starts to follow the journal.
fn journal(words: &[String], log: &Path) -> Result<(Program, PathBuf), String> {
    let now = Timestamp::now();
    let since = format!(
        "--since=@{}.{:06}",
        now.as_second(),
        now.subsec_microsecond()
    );
    let mut args = vec![
        "--follow".to_owned(),
        "--no-tail".into(),
        "--output=json".into(),
        // Without it a message of more than 4 KiB is left out of its entry.
        "--all".into(),
        since,
    ];
    args.extend(words.iter().map(|word| match word.contains('=') {
        true => word.clone(),
        false => format!("--unit={word}"),
    }));
    let errors = log.with_extension("journalctl.err");
    let file = File::create(&errors).map_err(|error| format!("{}: {error}", errors.display()))?;
    let mut program = Program::new("journalctl").args(args);
    program.standard[2] = Some(file.into());
    Ok((program, errors))
}

async fn entries((mut program, errors): (Program, PathBuf), to: Rc<SourceContext>) {
    let ended = |why: String| {
        let said = std::fs::read_to_string(&errors).unwrap_or_default();
        let said = said.lines().next().unwrap_or_default();
        to.alarm
            .broken(format!("follow the journal for {}: {why} {said}", to.copy));
    };
    let output = program.output();
    let started = output.and_then(|output| Ok((output, program.start()?)));
    let (mut output, mut process) = match started {
        Ok(started) => started,
        Err(error) => {
            return ended(format!(
                "start journalctl, which comes with systemd: {error}"
            ));
        }
    };
    let (mut lines, mut bytes) = (Lines::new(MAX_LINE_BYTES), vec![0; DATAGRAM_BYTES]);
    while let Some(got) = to.next(output.read(&mut bytes)).await {
        match got {
            Ok(0) | Err(_) => {
                let how = process.ended().await.unwrap_or_default();
                return ended(format!("journalctl ended with {how}:"));
            }
            Ok(got) => lines.push(&bytes[..got], |entry| {
                if let Some(line) = journal_line(entry.as_bytes()) {
                    to.line(&line);
                }
            }),
        }
        to.flush();
    }
    // It is killed when it is dropped; nobody waits for what it says then.
    let _ = process.stop(QUIET).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_was_left_behind_gives_way_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("log");
        let first = socket_at(&place).unwrap();
        let refused = socket_at(&place).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        drop(first);
        assert!(place.exists());
        socket_at(&place).unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "kept").unwrap();
        socket_at(&file).unwrap_err();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    }
}
