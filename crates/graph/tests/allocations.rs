//! A plain request takes no memory from the allocator once everything has grown.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod running;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use running::{Running, graph};

/// Counts what all threads ask of the allocator, but the one that asks the graph.
struct Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static EXEMPT: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if !EXEMPT.get() {
        ASKED.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller says.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_plain_chain_takes_no_memory() {
    EXEMPT.set(true);
    let topology = graph(
        r#"
[trace]
sample = "0%"
[defaults]
response = "echo"
[services.root]
entry = true
steps = [{ cpu = "1us" }, { call = "branch" }]
[services.branch]
steps = [{ parallel = [{ call = "leaf" }, { call = "leaf", request = "300B" }] }]
[services.leaf]
response = "1KiB"
"#,
    );
    let running = Running::start(&topology, 1);
    let mut stream = TcpStream::connect(running.entry()).unwrap();
    let mut room = vec![0; 16 * 1024];
    let mut ask = |times: usize| {
        for _ in 0..times {
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            let mut taken = 0;
            while !ended(&room[..taken]) {
                taken += stream.read(&mut room[taken..]).unwrap();
            }
        }
    };
    ask(2000);
    // On a busy machine more may come at once than before, and something grows once more.
    let mut taken = [0; 3];
    for one in &mut taken {
        let before = ASKED.load(Ordering::Relaxed);
        ask(1000);
        *one = ASKED.load(Ordering::Relaxed) - before;
    }
    assert!(taken.contains(&0), "{taken:?} for a thousand requests each");
    running.host.stop();
}

/// Whether an answer is whole.
fn ended(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.split("Content-Length: ").nth(1).unwrap();
    body.len() == length.parse::<usize>().unwrap()
}
