//! Recorded log lines, made again from what they say.

use routing::http::pipeline::retry::Failure;
use routing::http::pipeline::{Admission, Client, Refusal, Times};
use routing::table::{PoolSettings, Table, TableSettings};
use wire::http1::BodyLength;

use super::router::Router;
use super::transcript::{log_behind, without_ids};

const LINES: &str = include_str!("../data/gorouter/access-log.txt");
const FIRST: &str = include_str!("../data/gorouter/transcript-1.txt");
const SECOND: &str = include_str!("../data/gorouter/transcript-2.txt");

/// The value behind `name:` or at a place, quotes removed; `None`: a dash.
fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let at = line.find(&format!(" {name}:"))? + name.len() + 2;
    let rest = &line[at..];
    let text = match rest.strip_prefix('"') {
        Some(quoted) => &quoted[..quoted.find('"')?],
        None => rest.split(' ').next()?,
    };
    (text != "-").then_some(text)
}

fn nanos(seconds: &str) -> i64 {
    (seconds.parse::<f64>().unwrap() * 1e9).round() as i64
}

/// Nanoseconds behind the microseconds that were logged: the response's time is the sum of
/// the other two, each of which was rounded by itself.
fn unrounded(response: i64, own: i64, backend: i64) -> (i64, i64) {
    let near = [-499, -250, 0, 250, 499];
    let rounds_to = |time: i64, to: i64| (time + 500) / 1000 == to / 1000;
    near.iter()
        .flat_map(|a| near.iter().map(move |b| (response + a, backend + b)))
        .find(|(response, backend)| rounds_to(response - backend, own))
        .unwrap()
}

/// Brings the exchange to the end that the line tells of.
fn end_as(router: &mut Router, admission: Admission, status: u16, error: Option<&str>) {
    let mut bytes = Vec::new();
    match (admission, error) {
        (_, Some("Connection Limit Reached")) => {
            router.refuse(Refusal::Overloaded, &mut bytes);
            return;
        }
        (Admission::Answer(refusal), _) => {
            router.refuse(refusal, &mut bytes);
            return;
        }
        _ => {}
    }
    let endpoint = router.exchange.pool().unwrap().endpoints()[0].clone();
    router.exchange.progress.endpoint = Some(endpoint.clone());
    router.pipeline.write_request(
        &router.head,
        &mut router.exchange,
        Some(&endpoint),
        &mut bytes,
    );
    let failure = match error {
        None => {
            router.answer(status, "", BodyLength::UntilClose, &mut bytes);
            return;
        }
        Some(error) if error.contains("dial tcp") => Failure::Dial("connection refused"),
        Some(error) if error.contains("EOF") => Failure::Closed,
        Some(error) if error.contains("deadline") => Failure::Timeout,
        Some(error) if error.contains("canceled") => Failure::ClientGone,
        Some(error) => panic!("{error}"),
    };
    let refusal = router.fail(failure, &endpoint);
    router.refuse(refusal, &mut bytes);
}

fn again(line: &str, more: &str, traced: bool) {
    let quoted: Vec<&str> = line.split('"').collect();
    let (host, rest) = line.split_once(" - [").unwrap();
    let (date, _) = rest.split_once(']').unwrap();
    let request = quoted[1];
    let sizes: Vec<&str> = quoted[2].split_whitespace().collect();
    let mut router = Router::recorded(traced);
    let endpoint = quoted[9];
    if endpoint != "-" {
        router.table = Table::new(TableSettings::default());
        let port = endpoint.rsplit(':').next().unwrap().parse().unwrap();
        let instance = value(line, "instance_id").unwrap_or_default();
        let name = host.split(':').next().unwrap();
        router.route(name, port, instance, &PoolSettings::default());
        router.route(
            "sticky.ex.com/ctx",
            9103,
            "inst-9103",
            &PoolSettings::default(),
        );
    }
    router.client = Client::new(quoted[7].parse().unwrap(), None);
    let host_line = if host.is_empty() {
        String::new()
    } else {
        format!("Host: {host}\r\n")
    };
    let start = 1_000_000_000;
    let date: jiff::Timestamp = date.parse().unwrap();
    let wall = date.as_nanosecond() as u64;
    router.now = Times { mono: start, wall };
    let admission = router.admit(&format!("{request}\r\n{host_line}{more}\r\n"));
    end_as(
        &mut router,
        admission,
        sizes[0].parse().unwrap(),
        value(line, "x_cf_routererror"),
    );
    let response = nanos(value(line, "response_time").unwrap());
    let own = nanos(value(line, "gorouter_time").unwrap());
    let failed: u32 = value(line, "failed_attempts").unwrap().parse().unwrap();
    let succeeded = value(line, "backend_time").map(nanos);
    let all = match succeeded {
        Some(time) if failed == 0 => time,
        _ => response - own,
    };
    let (response, all) = unrounded(response, own, all);
    let progress = &mut router.exchange.progress;
    progress.request_body = sizes[1].parse().unwrap();
    progress.answer_body = sizes[2].parse().unwrap();
    progress.failed_attempts = failed;
    if endpoint != "-" {
        progress.backend_started = start + 1;
        progress.backend_finished = start + 1 + all as u64;
        if failed > 0 {
            let last = succeeded.unwrap_or(0) as u64;
            progress.failed_finished = progress.backend_finished - last;
        }
        progress.local = value(line, "local_address").map(|local| local.parse().unwrap());
    }
    let now = Times {
        mono: start + response as u64,
        wall,
    };
    assert_eq!(
        without_ids(router.log_line(now).trim_end()),
        without_ids(line)
    );
}

#[test]
fn lines_of_the_recorded_log() {
    let mut seen = 0;
    for line in LINES.lines() {
        // No HTTP/1 parser gives this request to a pipeline.
        if line.contains("PRI * HTTP/2.0") {
            continue;
        }
        again(line, "", false);
        seen += 1;
    }
    assert_eq!(seen, 30);
}

#[test]
fn lines_of_the_transcripts() {
    again(
        log_behind(FIRST, "GET echo.ex.com (body = request as backend saw it)"),
        "X-My-Log: hello\r\n",
        false,
    );
    for title in [
        "404",
        "empty host 1.0",
        "dead backend",
        "mix 1",
        "backend closes, GET",
    ] {
        again(log_behind(FIRST, title), "", false);
    }
    for title in [
        "overloaded (max_conns 2)",
        "semicolon",
        "hang>endpoint_timeout 3s",
    ] {
        again(log_behind(FIRST, title), "", false);
    }
    for title in ["zipkin/w3c new", "HEAD"] {
        again(log_behind(SECOND, title), "", true);
    }
    let upgrade = "Connection: Upgrade\r\nUpgrade: WebSocket\r\n";
    again(log_behind(SECOND, "ws ok"), upgrade, true);
    again(log_behind(SECOND, "ws to dead"), upgrade, true);
}
