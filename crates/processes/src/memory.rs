//! Memory that this process has freed and the kernel has not got back.

/// Gives the kernel what the allocator keeps of freed memory. Without it, memory that was freed between
/// pieces that are still in use stays with the process for ever (glibc's `malloc_trim`). It takes a
/// lock of each of the allocator's arenas after the other: some milliseconds for hundreds of MiB,
/// in which a thread that allocates from that arena waits. On systems without glibc it does nothing.
pub fn give_back_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call has no preconditions, and may be made from any thread.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_between_pieces_in_use_goes_back() {
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages = statm.split(' ').nth(1).unwrap();
            pages.parse::<u64>().unwrap() * 4096
        };
        let begin = resident();
        let mut pieces: Vec<Box<[u8]>> = (0..400_000).map(|_| vec![1; 300].into()).collect();
        let full = resident() - begin;
        // One in a thousand stays, so that no end of the heap is free.
        let mut number = 0;
        pieces.retain(|_| {
            number += 1;
            number % 1000 == 0
        });
        let kept = resident().saturating_sub(begin);
        assert!(
            kept > full / 2,
            "freed memory went back by itself: {kept} of {full}"
        );
        give_back_freed_memory();
        let left = resident().saturating_sub(begin);
        assert!(left < full / 2, "{left} of {full} bytes are left");
        assert_eq!(pieces.len(), 400);
    }
}
