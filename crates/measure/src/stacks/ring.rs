//! The memory that the kernel writes samples into.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// Pages of samples, a power of two: 32 KiB, so that 14 processors fit into what the kernel lets
/// anybody lock (`perf_event_mlock_kb`).
const PAGES: usize = 8;
/// Places of the two counters within the first page (`struct perf_event_mmap_page`).
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// A ring that the kernel writes and we read.
#[derive(Debug)]
pub(super) struct Ring {
    start: NonNull<libc::c_void>,
    page: usize,
}

// SAFETY: the memory is this value's alone, whichever thread has it.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring of a counter.
    pub(super) fn of(counter: &OwnedFd) -> io::Result<Self> {
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
        let page = page.ok().flatten().unwrap_or(4096);
        let page = usize::try_from(page).unwrap_or(4096);
        let length = (page * (PAGES + 1)).try_into().map_err(io::Error::other)?;
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe { mmap(None, length, both, MapFlags::MAP_SHARED, counter.as_fd(), 0)? };
        Ok(Self { start, page })
    }

    /// Appends what came since the last call.
    pub(super) fn take(&mut self, into: &mut Vec<u8>) {
        let size = self.page * PAGES;
        let (head, tail) = (self.counter(HEAD_AT), self.counter(TAIL_AT));
        // What was written before the counter was raised is seen after it is read.
        let to = head.load(Ordering::Acquire);
        let mut from = tail.load(Ordering::Relaxed);
        while from < to {
            let place = from as usize % size;
            let length = ((to - from) as usize).min(size - place);
            // SAFETY: the bytes lie within the mapping, behind its first page, and the kernel
            // writes none of them before the tail is raised.
            let bytes = unsafe {
                let data = self.start.as_ptr().cast::<u8>().add(self.page + place);
                std::slice::from_raw_parts(data, length)
            };
            into.extend_from_slice(bytes);
            from += length as u64;
        }
        // The kernel may write there again once all of it was read.
        tail.store(to, Ordering::Release);
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: eight bytes within the first page at a multiple of eight, which the kernel reads
        // and writes as a whole.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().cast::<u8>().add(at).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody reads it any more.
        let _ = unsafe { munmap(self.start, self.page * (PAGES + 1)) };
    }
}
