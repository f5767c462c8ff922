//! A request on its way through the router: what is sent to the endpoint is one head that
//! our own scanner reads, with a body that ends as the client's does, and what is answered
//! in its place is one whole answer. Nothing of a request can become a second one.
//!
//! An odd first byte puts a line and a host in front, so that a route is found at once.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use rand::SeedableRng;
use rand::rngs::StdRng;
use routing::http::pipeline::{Admission, Client, Exchange, Pipeline, Times};
use routing::http::settings::HttpSettings;
use routing::table::{Endpoint, PoolSettings, RouteKey, Table, TableSettings};
use wire::http1::{Complete, Expect, Limits, RequestHead, RequestScanner, ResponseScanner, Sink};

const START: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\n";

const NOW: Times = Times {
    mono: 1_000_000_000,
    wall: 1_795_249_040_286_360_016,
};

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let table = Table::new(TableSettings::default());
    for uri in ["a", "*.b"] {
        let endpoint = Endpoint {
            identity: "10.0.0.1:8080".into(),
            app: "app".into(),
            ..Endpoint::default()
        };
        let key = RouteKey::new(uri).expect("a route");
        table.register(&key, endpoint, &PoolSettings::default(), NOW.mono);
    }
    table
});

static PIPELINE: LazyLock<Pipeline> = LazyLock::new(|| {
    let mut settings = HttpSettings::default();
    settings.tracing.zipkin = true;
    settings.tracing.w3c = true;
    Pipeline::new(Arc::new(settings))
});

struct Nothing;

impl Sink for Nothing {}

fuzz_target!(|data: &[u8]| {
    let [kind, input @ ..] = data else {
        return;
    };
    let input = if kind % 2 == 1 {
        [START, input].concat()
    } else {
        input.to_vec()
    };
    let mut head = RequestHead::default();
    let read = RequestScanner::new(Limits::default()).head(&input, &mut head);
    let Ok(Some(_)) = read else {
        return;
    };
    let client = Client::new(([203, 0, 113, 9], 4711).into(), None);
    let mut exchange = Exchange::default();
    let mut random = StdRng::seed_from_u64(1);
    let mut out = Vec::new();
    match PIPELINE.admit(&head, &client, &TABLE, NOW, &mut random, &mut exchange) {
        Admission::Forward => {
            let pool = Arc::clone(exchange.pool().expect("a request that goes on has a pool"));
            let endpoint = pool.endpoints()[0].clone();
            exchange.progress.endpoint = Some(endpoint.clone());
            PIPELINE.write_request(&head, &mut exchange, Some(&endpoint), &mut out);
            let mut sent = RequestHead::default();
            let length = RequestScanner::new(Limits::default())
                .head(&out, &mut sent)
                .unwrap_or_else(|error| panic!("{error:?}: {}", out.escape_ascii()));
            assert_eq!(length, Some(out.len()), "{}", out.escape_ascii());
            assert_eq!(sent.body(), head.body(), "{}", out.escape_ascii());
            assert_eq!(sent.method(), head.method());
        }
        Admission::Answer(refusal) => {
            PIPELINE.write_refusal(&head, &mut exchange, refusal, true, NOW, &mut out);
            check_answer(&head, &out);
        }
        Admission::HealthCheck => {
            PIPELINE.write_health(&head, &mut exchange, true, true, NOW, &mut out);
            check_answer(&head, &out);
        }
    }
});

fn check_answer(head: &RequestHead, out: &[u8]) {
    let mut scanner = ResponseScanner::new(Limits::default());
    if head.method() == b"HEAD" {
        scanner.expect(Expect::NoBody);
    }
    let scan = scanner
        .scan(out, &mut Nothing)
        .unwrap_or_else(|error| panic!("{error:?}: {}", out.escape_ascii()));
    assert_eq!(scan.consumed, out.len(), "{}", out.escape_ascii());
    // An answer without a length ends with the connection.
    let _: Complete = match scan.complete {
        Some(complete) => complete,
        None => scanner.end(&mut Nothing).expect("a whole answer"),
    };
}
