//! Stacks of processes while they run on a processor: sampled by the kernel, named by the symbols of
//! their programs.

mod maps;
mod records;
mod ring;
mod symbols;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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

/// Most counters that are open at a time: one for each process and processor.
const MOST_COUNTERS: usize = 512;

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
/// Of `perf_event_open`: closed when a program is executed.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// Samples the stacks of processes and of all that they start from then on.
///
/// The kernel does it, `SAMPLES_PER_SECOND` times for each second of processor time (a software
/// clock, so it works in virtual machines), and follows frame pointers: what a program's compiler
/// left out of its frames is missing from its stacks.
#[derive(Debug)]
pub struct StackSampler {
    /// One for each processor, into which all counters there write.
    rings: Vec<(Ring, OwnedFd)>,
    counters: Vec<OwnedFd>,
    /// Whether the kernel's part of stacks may be seen.
    with_kernel: bool,
    buffer: Vec<u8>,
    lost: u64,
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
    /// Samples nobody yet.
    ///
    /// # Errors
    /// Where sampling is not permitted or not to be had, as in many containers.
    pub fn new() -> Result<Self, SamplerError> {
        let mut sampler = Self {
            rings: Vec::new(),
            counters: Vec::new(),
            with_kernel: true,
            buffer: Vec::new(),
            lost: 0,
        };
        let own = std::process::id();
        if sampler.open(own, 0).is_err_and(|error| is_refusal(&error)) {
            sampler.with_kernel = false;
        }
        match sampler.open(own, 0) {
            Ok(_) => Ok(sampler),
            Err(error) if is_refusal(&error) => {
                let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
                Err(SamplerError::Refused {
                    paranoid: setting.unwrap_or_default().trim().to_owned(),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Samples a process from now on, with all threads and processes that it starts. Of what it
    /// started before nothing is seen, so call it right after its start. Whether there was room for
    /// it.
    ///
    /// # Errors
    /// When the process has ended, or the kernel refuses.
    pub fn add(&mut self, pid: u32) -> Result<bool, SamplerError> {
        let processors = processors();
        if self.counters.len() + processors > MOST_COUNTERS {
            return Ok(false);
        }
        for processor in 0..processors {
            let counter = self.open(pid, processor)?;
            match self.rings.get(processor) {
                Some((_, into)) => {
                    // SAFETY: a call with two descriptors that are open.
                    let set = unsafe {
                        libc::ioctl(counter.as_raw_fd(), SET_OUTPUT as _, into.as_raw_fd())
                    };
                    Errno::result(set).map_err(io::Error::from)?;
                    self.counters.push(counter);
                }
                None => {
                    let ring = Ring::of(&counter)?;
                    self.rings.push((ring, counter));
                }
            }
        }
        Ok(true)
    }

    /// Gives every stack that was sampled since the last call. Call it several times a second: a
    /// ring holds some 60 deep stacks a processor, and what finds no room is lost, and counted.
    pub fn drain(&mut self, mut each: impl FnMut(RawStack<'_>)) {
        for (ring, _) in &mut self.rings {
            self.buffer.clear();
            ring.take(&mut self.buffer);
            let mut rest = self.buffer.as_slice();
            while let Some((record, after)) = records::next(rest) {
                match record {
                    Record::Stack(stack) => each(stack),
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

    fn open(&self, pid: u32, processor: usize) -> io::Result<OwnedFd> {
        let kernel = if self.with_kernel {
            0
        } else {
            FLAG_EXCLUDE_KERNEL
        };
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: CPU_CLOCK,
            frequency: SAMPLES_PER_SECOND,
            sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_CALLCHAIN,
            flags: FLAG_INHERIT | FLAG_FREQUENCY | FLAG_EXCLUDE_HYPERVISOR | kernel,
            ..Attributes::default()
        };
        // SAFETY: the attributes are as long as they say; the rest are numbers.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                pid.cast_signed(),
                processor as libc::c_int,
                -1,
                CLOSE_ON_EXEC,
            )
        };
        let opened = Errno::result(opened).map_err(io::Error::from)?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
    }
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
