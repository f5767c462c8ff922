//! However many requests there were, a process holds no more memory, connections or descriptors.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use graph::metrics::Metrics;
use graph::service::{Directory, Host, HostConfig, Hosted};
use graph::topology::{self, ServiceId};
use graph::trace::Tracer;
use graph::work::{Calibration, SharedResources};
use traces::StoreLimits;

/// Knows how many bytes are held.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.fetch_add(size, Ordering::Relaxed);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Calls of every protocol that end well, fail, time out and are made over new connections.
const GRAPH: &str = r#"
[services.root]
entry = true
steps = [
  { cpu = "1us" },
  { parallel = [
    { call = "warm" },
    { call = "cold", connections = "cold 8" },
    { call = "streams", probability = 0.5 },
    { call = "remote" },
    { call = "late", timeout = "1ms", probability = 0.05 },
  ], join = 2 },
]
[services.warm]
faults = { drop = "5%" }
[services.cold]
response = "20KiB"
[services.streams]
protocol = "http2"
faults = { error = "10%" }
[services.remote]
protocol = "grpc"
[services.late]
steps = [{ sleep = "5ms" }]
"#;

/// So many requests, twenty over each connection.
fn ask(address: SocketAddr, requests: usize) {
    let mut room = [0; 4096];
    for _ in 0..requests / 20 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        for _ in 0..20 {
            stream
                .write_all(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            let mut taken = 0;
            while !room[..taken].ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut room[taken..]).unwrap();
                assert!(count > 0, "an answer");
                taken += count;
            }
        }
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn nothing_grows_with_the_number_of_requests() {
    let source = document::Source {
        name: "graph".to_owned(),
        text: GRAPH.to_owned(),
    };
    let topology = Arc::new(topology::read(&source).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let services = 0..topology.services.len() as u32;
    // Small, so that it is full soon: what it holds beyond is told by its own tests.
    let tracer = Tracer::new(
        StoreLimits {
            spans: 2000,
            ..StoreLimits::of_collected()
        },
        Vec::new(),
    );
    let host = Host::start(HostConfig {
        hosted: services
            .map(|service| Hosted {
                service: ServiceId(service),
                replica: 0,
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            })
            .collect(),
        topology,
        directory: Directory::default(),
        threads: 1,
        resources: SharedResources::open(Calibration::measure(), folder.path()).unwrap(),
        metrics: Arc::new(Metrics::new()),
        tracer: tracer.clone(),
        run: traces::ids::Run::default(),
    })
    .unwrap();
    let address = host.directory().get("root", 0).unwrap();
    let held_after = |requests: usize| {
        for _ in 0..requests / 500 {
            ask(address, 500);
            tracer.collect();
        }
        assert_eq!(tracer.counts().dropped, 0);
        // What goes on behind the last answer.
        std::thread::sleep(Duration::from_millis(50));
        tracer.collect();
        (HELD.load(Ordering::Relaxed), descriptors())
    };
    let (first, open) = held_after(5000);
    let (second, still) = held_after(10_000);
    // Buffers and maps have grown to what the busiest moment needed; that moment may come late.
    // A leak of a tenth of a kilobyte for each request would be a million bytes.
    assert!(second < first + 500_000, "{first} bytes, then {second}");
    assert!(still <= open + 16, "{open} descriptors, then {still}");
    host.stop();
}
