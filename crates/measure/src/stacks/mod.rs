//! Stacks of processes while they run on a processor: sampled by the kernel, named by the symbols of
//! their programs.

mod go;
mod maps;
mod records;
mod ring;
mod symbols;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;

pub use maps::Maps;
pub use records::RawStack;
pub use symbols::{KernelSymbols, Symbols};

use records::Record;
use ring::Ring;

/// How often a processor that a watched process runs on is looked at, in samples a second. No round
/// number, so that work which recurs at a round rate is not always or never seen.
pub const SAMPLES_PER_SECOND: u64 = 99;

/// `perf_event_attr` in its first published size (linux/perf_event.h, `PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_FREQUENCY: u64 = 1 << 10;
const FLAG_TASKS: u64 = 1 << 13;
/// Of `perf_event_open`: closed when a program is executed.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Samples the stacks of all processes that a thread starts, and of all that these start.
///
/// The kernel does it, `SAMPLES_PER_SECOND` times for each second of processor time (a software
/// clock, so it works in virtual machines), and follows frame pointers: what a program's compiler
/// left out of its frames is missing from its stacks. Processes inherit it when they are started, so
/// none is missed, however soon it starts others.
#[derive(Debug)]
pub struct StackSampler {
    /// One for each processor, and the counter that writes into it.
    rings: Vec<(Ring, OwnedFd)>,
    buffer: Vec<u8>,
    lost: u64,
}

/// What was sampled, or what one has to know to tell whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sampled<'a> {
    /// A stack. Our own thread is sampled as well, and those that it starts.
    Stack(RawStack<'a>),
    /// A process was started.
    Started {
        /// Its id.
        pid: u32,
        /// That of who started it.
        parent: u32,
    },
}

/// Why stacks cannot be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// The kernel does not let this user.
    #[error(
        "the kernel lets this user sample nobody: kernel.perf_event_paranoid is {paranoid}; \
         run as root, or set it to 2 or less"
    )]
    Refused {
        /// What the setting says.
        paranoid: String,
    },
    /// Anything else.
    #[error("sample stacks: {0}")]
    Failed(#[from] io::Error),
}

impl StackSampler {
    /// Samples what the calling thread starts from now on, until the value is dropped.
    ///
    /// # Errors
    /// Where sampling is not permitted or not to be had, as in many containers.
    pub fn of_what_this_thread_starts() -> Result<Self, SamplerError> {
        let mut rings = Vec::new();
        let mut with_kernel = true;
        for processor in 0..processors() {
            let mut counter = open(processor, with_kernel);
            if with_kernel && counter.as_ref().is_err_and(is_refusal) {
                with_kernel = false;
                counter = open(processor, with_kernel);
            }
            let counter = match counter {
                Ok(counter) => counter,
                // It may be taken from the machine at any time.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(error) if is_refusal(&error) => return Err(refused()),
                Err(error) => return Err(error.into()),
            };
            let ring = Ring::of(&counter).map_err(|error| match is_refusal(&error) {
                true => refused(),
                false => error.into(),
            })?;
            rings.push((ring, counter));
        }
        Ok(Self {
            rings,
            buffer: Vec::new(),
            lost: 0,
        })
    }

    /// Gives everything that came since the last call. Call it several times a second: a ring holds
    /// some 60 deep stacks a processor, and what finds no room is lost, and counted.
    pub fn drain(&mut self, mut each: impl FnMut(Sampled<'_>)) {
        for (ring, _) in &mut self.rings {
            self.buffer.clear();
            ring.take(&mut self.buffer);
            let mut rest = self.buffer.as_slice();
            while let Some((record, after)) = records::next(rest) {
                match record {
                    Record::Sampled(sampled) => each(sampled),
                    Record::Lost(count) => self.lost += count,
                    Record::Other => {}
                }
                rest = after;
            }
        }
    }

    /// Samples that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

fn refused() -> SamplerError {
    let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    SamplerError::Refused {
        paranoid: setting.unwrap_or_default().trim().to_owned(),
    }
}

/// A counter of the calling thread and all that it starts, while they run on a processor.
fn open(processor: usize, with_kernel: bool) -> io::Result<OwnedFd> {
    let kernel = if with_kernel { 0 } else { FLAG_EXCLUDE_KERNEL };
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: CPU_CLOCK,
        frequency: SAMPLES_PER_SECOND,
        sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_CALLCHAIN,
        flags: FLAG_INHERIT | FLAG_FREQUENCY | FLAG_TASKS | FLAG_EXCLUDE_HYPERVISOR | kernel,
        ..Attributes::default()
    };
    // SAFETY: the attributes are as long as they say; the rest are numbers.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            processor as libc::c_int,
            -1,
            CLOSE_ON_EXEC,
        )
    };
    let opened = Errno::result(opened).map_err(io::Error::from)?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// Processors of the machine, by whose numbers counters are opened.
fn processors() -> usize {
    let configured = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN);
    let configured = configured.ok().flatten().unwrap_or(1);
    usize::try_from(configured).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests;
