//! What it costs to scan an answer: `cargo run --release -p wire --example scan_cost`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use wire::http1::{Limits, ResponseError, ResponseScanner, Sink};

const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: nginx/1.26.0\r\nDate: Sat, 21 Nov 2026 13:24:19 GMT\r\n\
    Content-Type: text/plain; charset=utf-8\r\nConnection: keep-alive\r\n\
    ETag: \"66a0f4c2-400\"\r\nAccept-Ranges: bytes\r\n";

#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn body(&mut self, part: &[u8]) {
        self.0 += part.len() as u64;
    }
}

fn main() -> Result<(), ResponseError> {
    let body = "x".repeat(1024);
    let plain = format!("{HEAD}Content-Length: 1024\r\n\r\n{body}").into_bytes();
    let chunked =
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n400\r\n{body}\r\n0\r\n\r\n").into_bytes();
    println!(
        "head of {} bytes, body of {} bytes",
        plain.len() - body.len(),
        body.len()
    );
    println!(
        "httparse alone          {:6.1} ns",
        best(|| httparse_alone(&plain))
    );
    println!("Content-Length          {:6.1} ns", scanned(&plain)?);
    println!("chunked, one chunk      {:6.1} ns", scanned(&chunked)?);
    println!("head and body in turn   {:6.1} ns", in_turn(&plain)?);
    Ok(())
}

fn httparse_alone(input: &[u8]) {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let _ = black_box(response.parse(black_box(input)));
}

fn scanned(input: &[u8]) -> Result<f64, ResponseError> {
    let (mut scanner, mut count) = (ResponseScanner::new(Limits::default()), Count::default());
    let mut result = Ok(());
    let cost = best(|| {
        let scan = scanner.scan(black_box(input), &mut count);
        result = black_box(scan).map(|_| ());
    });
    result.map(|()| cost)
}

fn in_turn(input: &[u8]) -> Result<f64, ResponseError> {
    let (head, body) = input.split_at(input.len() - 1024);
    let (mut scanner, mut count) = (ResponseScanner::new(Limits::default()), Count::default());
    let mut result = Ok(());
    let cost = best(|| {
        let first = scanner.scan(black_box(head), &mut count);
        let second = scanner.scan(black_box(body), &mut count);
        result = black_box(first.and(second)).map(|_| ());
    });
    result.map(|()| cost)
}

/// Nanoseconds a call: the best of many rounds, which other load disturbs least.
fn best(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 10_000;
    let mut best = Duration::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        best = best.min(start.elapsed());
    }
    best.as_secs_f64() * 1e9 / f64::from(CALLS)
}
