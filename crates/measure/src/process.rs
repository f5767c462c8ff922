//! What `/proc` says of one process, and samples of it.

use std::fs;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::proc_text::{Malformed, Placed, Stat, parse_placed, parse_stat};

/// What a process used at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Processor time since the sample before, in cores; in the first sample, since
    /// the sampler was made.
    pub cpu_cores: f64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Open file descriptors.
    pub fds: u64,
    /// Threads.
    pub threads: u64,
}

/// Why a process could not be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// It is no more, or only waits to be collected.
    #[error("process {pid} is gone")]
    Gone {
        /// Its id.
        pid: u32,
    },
    /// The system refused.
    #[error("read {what} of process {pid}: {cause}")]
    Refused {
        /// What was read.
        what: &'static str,
        /// Id of the process.
        pid: u32,
        /// What the system said.
        cause: io::Error,
    },
    /// `/proc` has another form than expected.
    #[error("sample process {pid}: {cause}")]
    Malformed {
        /// Id of the process.
        pid: u32,
        /// What is wrong.
        cause: Malformed,
    },
}

/// Samples one process. It never mistakes a later process with the same id for it.
#[derive(Debug)]
pub struct ProcessSampler {
    pid: u32,
    start_ticks: u64,
    page_bytes: u64,
    cpu_clock: ClockId,
    last_cpu: Duration,
    last_at: Instant,
}

impl ProcessSampler {
    /// Starts to watch the process `pid`.
    ///
    /// # Errors
    /// When it is gone or may not be read.
    pub fn new(pid: u32) -> Result<Self, SampleError> {
        let raw = i32::try_from(pid).map_err(|_| SampleError::Gone { pid })?;
        let cpu_clock =
            clock_getcpuclockid(Pid::from_raw(raw)).map_err(|_| SampleError::Gone { pid })?;
        let page_bytes = sysconf(SysconfVar::PAGE_SIZE)
            .ok()
            .flatten()
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or(4096);
        let mut sampler = Self {
            pid,
            start_ticks: 0,
            page_bytes,
            cpu_clock,
            last_cpu: Duration::ZERO,
            last_at: Instant::now(),
        };
        sampler.start_ticks = stat(pid)?.start_ticks;
        sampler.last_cpu = sampler.cpu()?;
        sampler.last_at = Instant::now();
        Ok(sampler)
    }

    /// Id of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// [`SampleError::Gone`] once the process has ended.
    pub fn sample(&mut self) -> Result<Sample, SampleError> {
        let stat = stat(self.pid)?;
        if stat.start_ticks != self.start_ticks || matches!(stat.state, 'Z' | 'X') {
            return Err(SampleError::Gone { pid: self.pid });
        }
        let cpu = self.cpu()?;
        let at = Instant::now();
        let wall = at.saturating_duration_since(self.last_at).as_secs_f64();
        let used = cpu.saturating_sub(self.last_cpu).as_secs_f64();
        (self.last_cpu, self.last_at) = (cpu, at);
        Ok(Sample {
            cpu_cores: if wall > 0.0 { used / wall } else { 0.0 },
            rss_bytes: stat.rss_pages.saturating_mul(self.page_bytes),
            fds: descriptors(self.pid)?,
            threads: stat.threads,
        })
    }

    /// Processor time of all threads, ended ones too, in nanoseconds: the ticks of
    /// `stat` are 10 ms long, too coarse for ten samples a second.
    fn cpu(&self) -> Result<Duration, SampleError> {
        self.cpu_clock
            .now()
            .map(Duration::from)
            .map_err(|cause| refused(self.pid, "the processor time", cause.into()))
    }
}

/// The numbers of all processes.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// What can be told of the environment of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Environment {
    /// What its program was started with: `NAME=value`, each ended by a zero byte.
    Known(Vec<u8>),
    /// It is in the middle of `execve`, when nobody can see it.
    NotYet,
    /// It has ended, is another user's, or is a thread of the kernel.
    Nobody,
}

/// Most looks at a process that goes from program to program.
const LOOKS: u32 = 4;

/// The environment that the program of a process was started with.
pub(crate) fn environment(pid: u32) -> Environment {
    for _ in 0..LOOKS {
        let Ok(environ) = read_at_once(&format!("/proc/{pid}/environ")) else {
            return Environment::Nobody;
        };
        if !environ.is_empty() {
            return Environment::Known(environ);
        }
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else {
            return Environment::Nobody;
        };
        match parse_placed(&String::from_utf8_lossy(&stat)) {
            Ok(Placed::Environment(0)) => return Environment::Known(environ),
            // It was of a program that has been replaced meanwhile.
            Ok(Placed::Environment(_)) => {}
            Ok(Placed::NotYet) => return Environment::NotYet,
            Ok(Placed::NoMemory) | Err(_) => return Environment::Nobody,
        }
    }
    Environment::NotYet
}

/// A whole file by one `read`. A second one would find the end of the file where the process
/// has gone to its next program meanwhile, and leave us with the beginning of an environment.
fn read_at_once(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let read = fs::File::open(path)?.read(&mut bytes)?;
        if read < bytes.len() {
            bytes.truncate(read);
            return Ok(bytes);
        }
        // More than 6 MiB the kernel starts no program with.
        bytes.resize(bytes.len() * 4, 0);
    }
}

pub(crate) fn stat(pid: u32) -> Result<Stat, SampleError> {
    let text = fs::read(format!("/proc/{pid}/stat"));
    let text = text.map_err(|cause| refused(pid, "stat", cause))?;
    // The command's name may be any bytes.
    let stat = parse_stat(&String::from_utf8_lossy(&text));
    stat.map_err(|cause| SampleError::Malformed { pid, cause })
}

/// How many descriptors a process has open.
pub(crate) fn descriptors(pid: u32) -> Result<u64, SampleError> {
    let path = format!("/proc/{pid}/fd");
    let metadata = fs::metadata(&path).map_err(|cause| refused(pid, "fd", cause))?;
    // From Linux 6.2 on the size of the folder is the number of descriptors.
    if metadata.len() > 0 {
        return Ok(metadata.len());
    }
    let entries = fs::read_dir(&path).map_err(|cause| refused(pid, "fd", cause))?;
    Ok(entries.count() as u64)
}

/// How many descriptors a process has open, and how many it may have; `None`: it has ended,
/// is another user's, or has no limit.
pub fn descriptors_of(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let limit = descriptor_limit(&text)?;
    Some((descriptors(pid).ok()?, limit))
}

/// The soft limit of `/proc/PID/limits`.
fn descriptor_limit(limits: &str) -> Option<u64> {
    let line = limits.lines();
    let mut found = line.filter_map(|line| line.strip_prefix("Max open files"));
    found.next()?.split_ascii_whitespace().next()?.parse().ok()
}

/// Which of these processes has a socket open, by its inode. Reads every descriptor of each.
pub fn holder_of_socket(pids: &[u32], inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    let holds = |pid: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        let mut entries = descriptors.into_iter().flatten().flatten();
        entries.any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == &*wanted))
    };
    pids.iter().copied().find(|pid| holds(pid))
}

fn refused(pid: u32, what: &'static str, cause: io::Error) -> SampleError {
    // Reading a process that just ended says ESRCH, ENOENT or (its clock) EINVAL.
    const GONE: [i32; 3] = [
        nix::errno::Errno::ESRCH as i32,
        nix::errno::Errno::ENOENT as i32,
        nix::errno::Errno::EINVAL as i32,
    ];
    match cause.raw_os_error() {
        Some(code) if GONE.contains(&code) => SampleError::Gone { pid },
        _ => SampleError::Refused { what, pid, cause },
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn shell(script: &str) -> Killed {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::null());
        Killed(command.spawn().unwrap())
    }

    #[test]
    fn a_busy_process_uses_more_than_an_idle_one() {
        let busy = shell("while :; do :; done");
        let idle = shell("exec sleep 60");
        let mut busy_sampler = ProcessSampler::new(busy.0.id()).unwrap();
        let mut idle_sampler = ProcessSampler::new(idle.0.id()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let (busy, idle) = (
            busy_sampler.sample().unwrap(),
            idle_sampler.sample().unwrap(),
        );
        assert!(busy.cpu_cores > idle.cpu_cores, "{busy:?} {idle:?}");
        assert!(busy.cpu_cores < 1.5, "one thread uses one core: {busy:?}");
        assert_eq!(busy.threads, 1);
        assert!(busy.rss_bytes > 100_000, "{busy:?}");
        assert!(busy.fds >= 3, "{busy:?}");
    }

    #[test]
    fn an_ended_process_is_gone_even_before_it_is_collected() {
        let mut child = shell("read line");
        let mut sampler = ProcessSampler::new(child.0.id()).unwrap();
        child.0.kill().unwrap();
        // Until the signal has done its work samples succeed.
        let error = loop {
            if let Err(error) = sampler.sample() {
                break error;
            }
        };
        assert!(matches!(error, SampleError::Gone { .. }), "{error}");
        child.0.wait().unwrap();
        assert!(matches!(sampler.sample(), Err(SampleError::Gone { .. })));
    }

    /// The shell gives its variables on in an order of its own, so any may be what is cut off.
    #[test]
    fn an_environment_is_told_whole_or_not_at_all() {
        let again = "exec sh -c \"$AGAIN\"";
        let mut command = Command::new("sh");
        command.args(["-c", again]).env_clear();
        command.envs([("PATH", "/usr/bin:/bin"), ("AGAIN", again), ("ONE", "1")]);
        let child = Killed(command.env("LONG", "x".repeat(100_000)).spawn().unwrap());
        let (mut whole, mut cut) = (0, Vec::new());
        // The kernel lets us go on a moment before the child has its own environment.
        for _ in 0..3000 {
            if let Environment::Known(environ) = environment(child.0.id()) {
                let has = |name: &str| {
                    environ
                        .split(|byte| *byte == 0)
                        .any(|at| at.starts_with(name.as_bytes()))
                };
                match ["AGAIN=", "ONE=1", "LONG=xx"].map(has) {
                    [true, true, true] if environ.len() > 100_000 => whole += 1,
                    [false, false, false] => {}
                    _ => cut.push(environ.len()),
                }
            }
        }
        assert_eq!(cut, [0; 0]);
        assert!(whole > 100, "{whole}");
    }

    #[test]
    fn a_process_that_never_was_is_gone() {
        assert!(matches!(
            ProcessSampler::new(u32::MAX),
            Err(SampleError::Gone { .. })
        ));
        assert!(matches!(
            ProcessSampler::new(i32::MAX as u32),
            Err(SampleError::Gone { .. })
        ));
    }

    #[test]
    fn the_limit_of_descriptors_is_the_soft_one() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max open files            1024                 524288               files     \n";
        assert_eq!(descriptor_limit(text), Some(1024));
        assert_eq!(
            descriptor_limit("Max open files  unlimited unlimited files"),
            None
        );
        let (open, limit) = descriptors_of(std::process::id()).unwrap();
        assert!((3..=limit).contains(&open), "{open} of {limit}");
        assert_eq!(descriptors_of(u32::MAX), None);
    }

    #[test]
    fn the_holder_of_a_socket_is_found() {
        use std::os::fd::AsRawFd;
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = std::process::id();
        let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_str().unwrap();
        let inode = text.trim_start_matches("socket:[").trim_end_matches(']');
        let inode: u64 = inode.parse().unwrap();
        assert_eq!(holder_of_socket(&[u32::MAX, own], inode), Some(own));
        assert_eq!(holder_of_socket(&[own], u64::MAX), None);
    }

    /// Of processes that open nothing more: in this one other tests open and close some meanwhile.
    #[test]
    fn open_descriptors_are_counted() {
        let open = |files: &str| {
            let script = format!("{files} echo; exec sleep 60");
            let mut command = Command::new("sh");
            command.args(["-c", &script]).stdout(Stdio::piped());
            let mut child = Killed(command.spawn().unwrap());
            let told = child.0.stdout.as_mut().unwrap().read_exact(&mut [0]);
            told.unwrap();
            let mut sampler = ProcessSampler::new(child.0.id()).unwrap();
            sampler.sample().unwrap().fds
        };
        let files: String = (3..10).map(|fd| format!("exec {fd}</dev/null; ")).collect();
        assert_eq!(open(&files), open("") + 7);
    }
}
