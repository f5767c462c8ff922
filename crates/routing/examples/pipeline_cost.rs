//! What the pipeline costs for a request, without sockets: admission, the head for the
//! endpoint, the head for the client, the line of the log.
//!
//! `cargo run --release -p routing --example pipeline_cost [-- ROUNDS]`

use std::hint::black_box;
use std::sync::Arc;

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use routing::http::access_log::write_line;
use routing::http::pipeline::{Admission, Answer, AnswerBody, Client, Exchange, Pipeline, Times};
use routing::http::settings::HttpSettings;
use routing::table::{Endpoint, PoolSettings, RouteKey, Table, TableSettings};
use wire::http1::{Limits, RequestHead, RequestScanner};

const SMALL: &str = "GET /index.html HTTP/1.1\r\nHost: app-4711.example.com\r\n\r\n";
const BROWSER: &str = "GET /api/items?page=2 HTTP/1.1\r\nHost: app-4711.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:141.0) Gecko/20100101 Firefox/141.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Referer: https://app-4711.example.com/\r\nConnection: keep-alive\r\n\
    Cookie: theme=dark; session=0123456789abcdef0123456789abcdef\r\n\
    Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n\
    X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n\r\n";
const ANSWER: &str = "Server: nginx\r\nDate: Sat, 21 Nov 2026 08:17:20 GMT\r\n\
    Content-Type: text/html\r\nContent-Length: 1024\r\nConnection: keep-alive\r\n\
    Last-Modified: Fri, 20 Nov 2026 08:00:00 GMT\r\nETag: \"655b1c80-400\"\r\n\
    Accept-Ranges: bytes\r\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = match std::env::args().nth(1) {
        Some(rounds) => rounds.parse()?,
        None => 1_000_000,
    };
    for (name, request) in [("small", SMALL), ("browser", BROWSER)] {
        run(name, request, rounds)?;
    }
    Ok(())
}

fn run(name: &str, request: &str, rounds: u64) -> Result<(), Box<dyn std::error::Error>> {
    let pipeline = Pipeline::new(Arc::new(HttpSettings::default()));
    let table = Table::new(TableSettings::default());
    let endpoint = Endpoint {
        identity: "10.0.16.5:61001".into(),
        app: "11111111-2222-3333-4444-555555555555".into(),
        instance_id: "0f2f4a9c-6c1c-4a27-7a0e-7c4d".into(),
        instance_index: "0".into(),
        ..Endpoint::default()
    };
    let key = RouteKey::new("app-4711.example.com")?;
    table.register(&key, endpoint, &PoolSettings::default(), 0);
    let client = Client::new("203.0.113.9:40112".parse()?, None);
    let mut head = RequestHead::default();
    RequestScanner::new(Limits::default()).head(request.as_bytes(), &mut head)?;
    let mut random = SmallRng::seed_from_u64(1);
    let mut exchange = Exchange::default();
    let mut out = Vec::with_capacity(8192);
    let answer = Answer {
        status: 200,
        reason: b"OK",
        fields: ANSWER.as_bytes(),
        body: AnswerBody::Exactly(1024),
    };
    let mut spent = [0_u64; 4];
    for round in 0..rounds {
        let now = Times {
            mono: round * 1_000,
            wall: 1_795_249_040_286_360_016 + round * 1_000,
        };
        let begin = wire::clock::now();
        let admission = pipeline.admit(
            black_box(&head),
            &client,
            &table,
            now,
            &mut random,
            &mut exchange,
        );
        let admitted = wire::clock::now();
        let (Admission::Forward, Some(pool)) = (admission, exchange.pool()) else {
            return Err(format!("the request was not admitted: {admission:?}").into());
        };
        let endpoint = Arc::clone(&pool.endpoints()[0]);
        exchange.progress.endpoint = Some(Arc::clone(&endpoint));
        out.clear();
        let chosen = wire::clock::now();
        pipeline.write_request(&head, &mut exchange, Some(&endpoint), &mut out);
        let requested = wire::clock::now();
        pipeline.write_answer(&head, &mut exchange, &answer, true, now, &mut out);
        let answered = wire::clock::now();
        exchange.progress.backend_started = now.mono + 1;
        exchange.progress.backend_finished = now.mono + 500_000;
        write_line(&pipeline, &head, &client, &exchange, now, &mut out);
        let logged = wire::clock::now();
        black_box(&out);
        for (spent, time) in spent.iter_mut().zip([
            admitted - begin,
            requested - chosen,
            answered - requested,
            logged - answered,
        ]) {
            *spent += time;
        }
    }
    // Reading the clock is in each of the four.
    let begin = wire::clock::now();
    for _ in 0..rounds {
        black_box(wire::clock::now());
    }
    let clock = (wire::clock::now() - begin) / rounds;
    let each = spent.map(|spent| (spent / rounds).saturating_sub(clock));
    println!(
        "{name}: admit {} ns, write_request {} ns, write_answer {} ns, log line {} ns; \
         together {} ns",
        each[0],
        each[1],
        each[2],
        each[3],
        each.iter().sum::<u64>()
    );
    Ok(())
}
