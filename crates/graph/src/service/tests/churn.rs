//! Everything goes wrong at once, and in the end nothing is left of it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stats::SplitMix;

use super::stage::{Client, Stage, graph};
use crate::metrics::Key;

/// Calls that fail, wait, time out, are tried again and are forgotten.
fn troubled(length: &str) -> String {
    format!(
        r#"
seed = 5
[defaults]
connections = 2
timeout = "20ms"
[services.root]
entry = true
response = "echo"
steps = [
  {{ parallel = [
      {{ call = "left", count = 3 }},
      {{ call = "right", retries = 2, backoff = "1ms" }},
      {{ call = "gone", probability = 0.1 }},
    ], join = "any" }},
  {{ call = "cold", connections = "cold 3" }},
  {{ call = "right", wait = false, retries = 1 }},
]
[services.left]
latency = "exponential 3ms"
faults = {{ error = "5%", drop = "5%", delay = {{ rate = "5%", by = "30ms" }} }}
steps = [{{ sleep = "exponential {length}" }}, {{ call = "deep", probability = 0.5 }}]
[services.right]
workers = 1
queue = 3
faults = {{ drop = "10%" }}
steps = [{{ cpu = "500us" }}]
[services.cold]
response = "100KiB"
[services.gone]
faults = {{ drop = "100%" }}
[services.deep]
replicas = 3
faults = {{ error = "10%" }}
"#
    )
}

fn misbehave(address: SocketAddr, seed: u64) {
    let mut random = SplitMix::new(seed);
    for _ in 0..50 {
        let Ok(mut stream) = TcpStream::connect(address) else {
            continue;
        };
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let deadline = (random.uniform() * 60.0) as u64;
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nx-envoy-expected-rq-timeout-ms: {deadline}\r\n\r\n"
        );
        let mut room = [0; 4096];
        match (random.uniform() * 6.0) as u8 {
            // It goes before the answer.
            0 => drop(stream.write_all(request.as_bytes())),
            1 => {
                let _ = stream.write_all(request.as_bytes());
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read(&mut room);
            }
            // Half a head.
            2 => drop(stream.write_all(&request.as_bytes()[..request.len() / 2])),
            // Several at once, of which it reads some.
            3 => {
                let _ = stream.write_all(request.repeat(5).as_bytes());
                let _ = stream.read(&mut room);
            }
            // In good order.
            _ => {
                let mut client = Client::of(stream);
                for _ in 0..3 {
                    client.send(&request);
                    let Some(answer) = client.try_answer(true) else {
                        break;
                    };
                    assert!(matches!(answer.status, 200 | 502..=504), "{answer:?}");
                    assert_eq!(answer.status == 200, answer.failed().1.is_empty());
                }
            }
        }
    }
}

#[test]
fn nothing_is_left_of_trouble() {
    let stage = Stage::on(&troubled("2ms"), 2);
    let address = stage.address("root");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let profiles = [graph(&troubled("4ms")), graph(&troubled("2ms"))];
            for profile in profiles.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                stage.host.swap(std::sync::Arc::clone(profile)).unwrap();
                std::thread::sleep(Duration::from_millis(7));
            }
        });
        let clients: Vec<_> = (0..8)
            .map(|seed| scope.spawn(move || misbehave(address, seed)))
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
    });
    let busy = || -> Vec<(Key, u64, u64)> {
        let all = stage.metrics.snapshot().0.into_iter();
        let all = all.map(|(key, totals)| (key, totals.in_flight, totals.waiting));
        all.filter(|(_, in_flight, waiting)| in_flight + waiting > 0)
            .collect()
    };
    for _ in 0..10_000 {
        if busy().is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(busy(), []);
    // Everything did happen.
    let causes: std::collections::BTreeSet<&str> = stage
        .metrics
        .snapshot()
        .0
        .values()
        .flat_map(|totals| totals.failures.keys())
        .map(|cause| crate::metrics::cause_name(*cause))
        .collect();
    for cause in ["fault", "gone", "reset", "status", "timeout"] {
        assert!(causes.contains(cause), "{cause}: {causes:?}");
    }
    let metrics = std::sync::Arc::clone(&stage.metrics);
    stage.drain();
    for (key, totals) in metrics.snapshot().0 {
        assert_eq!(totals.open, 0, "{key:?}");
    }
}

#[test]
fn bytes_of_all_kinds_end_in_an_answer_or_an_end() {
    let stage = Stage::new("[services.root]\nentry = true\nresponse = \"8B\"\n");
    let address = stage.address("root");
    let good = "POST /a?b HTTP/1.1\r\nHost: a\r\nx: y\r\nTransfer-Encoding: chunked\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let mut random = SplitMix::new(11);
    for _ in 0..400 {
        let mut bytes = good.as_bytes().to_vec();
        for _ in 0..(random.uniform() * 4.0) as usize {
            let at = (random.uniform() * bytes.len() as f64) as usize;
            match (random.uniform() * 3.0) as u8 {
                0 => bytes[at] = (random.uniform() * 256.0) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"\r\n :\0/0"[(random.uniform() * 7.0) as usize]),
            }
        }
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let cut = (random.uniform() * bytes.len() as f64) as usize;
        let _ = stream.write_all(&bytes[..cut]);
        let _ = stream.write_all(&bytes[cut..]);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        // A reset is an end too.
        let _ = stream.read_to_end(&mut answer);
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1."),
            "{bytes:?}"
        );
    }
    assert_eq!(stage.client("root").get("/").status, 200);
    stage.drain();
}
