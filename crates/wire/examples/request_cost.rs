//! What a request's head costs: parsed anew, and recognised as the connection's last one.
//!
//! ```text
//! cargo run --release -p wire --example request_cost
//! ```

use std::hint::black_box;

use wire::clock;
use wire::http1::{Limits, RequestHead, RequestScanner};

const HEADS: [&str; 2] = [
    "GET /index.html?n=1 HTTP/1.1\r\nHost: app-1234.apps.example.com\r\nUser-Agent: hey/0.0.1\r\n\
     Accept-Encoding: gzip\r\nContent-Type: text/html\r\n\r\n",
    "GET /index.html?n=2 HTTP/1.1\r\nHost: app-1235.apps.example.com\r\nUser-Agent: hey/0.0.1\r\n\
     Accept-Encoding: gzip\r\nContent-Type: text/html\r\n\r\n",
];
const ROUNDS: u32 = 2_000_000;

fn main() {
    for (what, step) in [("another head each time", 1), ("the same head again", 0)] {
        let mut scanner = RequestScanner::new(Limits::default());
        let mut head = RequestHead::default();
        let began = clock::thread_cpu();
        let mut bytes = 0;
        for round in 0..ROUNDS {
            let input = black_box(HEADS[(round * step % 2) as usize].as_bytes());
            if let Ok(Some(length)) = scanner.head(input, &mut head) {
                bytes += black_box(length);
            }
        }
        let spent = clock::thread_cpu() - began;
        assert!(bytes > 0, "no head was read");
        println!("{what}: {} ns", spent.as_nanos() / u128::from(ROUNDS));
    }
}
