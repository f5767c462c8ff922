//! Programs of the machine, run to their end: with a list of arguments, never by a shell, with
//! nothing of the agent's environment, for a bounded time and with a bounded output.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use processes::{Process, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Where programs are.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long a program that takes too long has to end by itself.
const GRACE: Duration = Duration::from_secs(1);
/// Bytes that one reading takes.
const CHUNK: usize = 16 << 10;
/// Bytes that a pipe takes without waiting once it takes any.
const PIPE: usize = 4_096;
/// Readings of what is left when a program has ended: what it left running may write on.
const LEFT: usize = 64;

/// A program with all that it is given.
pub(super) struct Call<'a> {
    pub(super) program: &'a str,
    pub(super) args: &'a [&'a str],
    /// Its environment beside the path and the language.
    pub(super) env: &'a [(&'a str, &'a str)],
    /// Its input; secrets go here, as everybody sees arguments.
    pub(super) input: &'a [u8],
    pub(super) limit: Duration,
    /// Bytes of its output that are kept, and of its errors. If 0, nobody listens.
    pub(super) kept: usize,
}

/// How a program ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) output: OutputHead,
    pub(super) errors: OutputHead,
}

/// The beginning of an output.
#[derive(Debug, Default)]
pub(super) struct OutputHead {
    pub(super) bytes: Vec<u8>,
    /// Was there more?
    pub(super) cut: bool,
}

impl Ended {
    /// Its output as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.bytes).into_owned()
    }

    /// How it ended, and the last line that it wrote, of its errors if there are any: for people.
    pub(super) fn describe(&self) -> String {
        let said = [&self.errors.bytes, &self.output.bytes];
        let said = said.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let lines = said.iter().flat_map(|text| text.lines().rev());
        let mut last = lines.map(str::trim).filter(|line| !line.is_empty());
        match last.next() {
            None => self.status.to_string(),
            Some(line) => {
                let line = &line[..line.floor_char_boundary(400)];
                format!("{}, it said: {line}", self.status)
            }
        }
    }
}

/// Runs a program.
pub(super) fn run(path: &OsString, call: &Call<'_>) -> io::Result<Ended> {
    let mut program = Program::without_environment(call.program).args(call.args);
    program.env.insert("PATH".into(), path.clone());
    program.env.insert("LC_ALL".into(), "C".into());
    let more = call.env.iter();
    program
        .env
        .extend(more.map(|(name, value)| (name.into(), value.into())));
    program.folder = Some("/".into());
    let mut pipes = [Reader::none(), Reader::none()];
    if call.kept > 0 {
        for (pipe, place) in pipes.iter_mut().zip([1, 2]) {
            let (ours, its) = io::pipe()?;
            program.standard[place] = Some(its.into());
            *pipe = Reader::new(ours, call.kept);
        }
    }
    let mut input = Writer {
        pipe: None,
        left: call.input,
    };
    if !call.input.is_empty() {
        let (its, ours) = io::pipe()?;
        program.standard[0] = Some(its.into());
        input.pipe = Some(ours);
    }
    let mut process = program.spawn().map_err(io::Error::other)?;
    let until = Instant::now() + call.limit;
    let status = loop {
        if let Some(ended) = process.ended()? {
            break ended.status;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            process.stop(GRACE)?;
            let seconds = call.limit.as_secs_f64();
            return Err(io::Error::other(format!(
                "it did not end within {seconds} s and was ended, with all that it had started"
            )));
        }
        work(Some(&process), &mut pipes, &mut input, left)?;
    };
    input.pipe = None;
    for _ in 0..LEFT {
        if !work(None, &mut pipes, &mut input, Duration::ZERO)? {
            break;
        }
    }
    let [output, errors] = pipes.map(|pipe| pipe.kept);
    Ok(Ended {
        status,
        output,
        errors,
    })
}

/// Waits until something can be read or written or the process has ended, and does it; says
/// whether there was something.
fn work(
    process: Option<&Process>,
    pipes: &mut [Reader; 2],
    input: &mut Writer<'_>,
    longest: Duration,
) -> io::Result<bool> {
    let mut fds = Vec::with_capacity(4);
    let open = pipes.iter().filter_map(|pipe| pipe.pipe.as_ref());
    fds.extend(open.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    if let Some(pipe) = &input.pipe {
        fds.push(PollFd::new(pipe, PollFlags::OUT));
    }
    if let Some(process) = process {
        fds.push(PollFd::new(process, PollFlags::IN));
    } else if fds.is_empty() {
        return Ok(false);
    }
    let longest = Timespec::try_from(longest).ok();
    let ready = match poll(&mut fds, longest.as_ref()) {
        Ok(ready) => ready,
        Err(rustix::io::Errno::INTR) => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    let mut ready_ones = fds.iter().map(|fd| !fd.revents().is_empty());
    let places = pipes.each_ref().map(|pipe| {
        let open = pipe.pipe.is_some();
        open && ready_ones.next().unwrap_or_default()
    });
    let takes = input.pipe.is_some() && ready_ones.next().unwrap_or_default();
    drop(ready_ones);
    drop(fds);
    for (pipe, readable) in pipes.iter_mut().zip(places) {
        if readable {
            pipe.read()?;
        }
    }
    if takes {
        input.write();
    }
    Ok(ready > 0)
}

struct Reader {
    pipe: Option<PipeReader>,
    kept: OutputHead,
    most: usize,
}

impl Reader {
    fn none() -> Self {
        Self {
            pipe: None,
            kept: OutputHead::default(),
            most: 0,
        }
    }

    fn new(pipe: PipeReader, most: usize) -> Self {
        Self {
            pipe: Some(pipe),
            most,
            ..Self::none()
        }
    }

    /// Reads once from a pipe that has something. What is more than is kept is thrown away, as
    /// the program would wait otherwise.
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        let mut chunk = [0; CHUNK];
        let found = match pipe.read(&mut chunk) {
            Ok(0) => {
                self.pipe = None;
                return Ok(());
            }
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        };
        let room = self.most - self.kept.bytes.len();
        let taken = found.min(room);
        self.kept.bytes.extend_from_slice(&chunk[..taken]);
        self.kept.cut |= taken < found;
        Ok(())
    }
}

struct Writer<'a> {
    pipe: Option<PipeWriter>,
    left: &'a [u8],
}

impl Writer<'_> {
    /// Writes once to a pipe that takes something. A program need not read its input.
    fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let now = &self.left[..self.left.len().min(PIPE)];
        match pipe.write(now) {
            Ok(written) => self.left = &self.left[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.left = &[],
        }
        if self.left.is_empty() {
            self.pipe = None;
        }
    }
}
