use std::time::Duration;

use console::measure_text_width;
use lab_load::arrivals::{Arrivals, Process, Shape};
use lab_load::knee::{Capacity, Estimate, Point, Usl};
use lab_load::recording::{Phase, Recorded, Timeline};
use lab_load::request::{AnswerEnd, Body, Journey, Mix, Step};
use lab_load::summary::{Distribution, Floor};
use lab_load::{
    Connections, GuardLimits, Length, Model, Pace, Protocol, Segment, Share, Span, Target,
    TlsSettings, Workload,
};

use super::*;

const PLAIN: Style = Style {
    width: 100,
    color: false,
};

fn workload(kinds: &[&str]) -> Workload {
    let step = |name: &&str| Step {
        name: (*name).into(),
        method: "GET".into(),
        path: "/".into(),
        headers: Vec::new(),
        body: Body::Empty,
        think: Duration::ZERO,
        take: Vec::new(),
        assertions: Vec::new(),
        answer: AnswerEnd::Close,
    };
    let journeys = kinds.iter().map(|name| Journey {
        name: (*name).into(),
        weight: 1.0,
        steps: vec![step(name)],
    });
    Workload {
        target: Target {
            protocol: Protocol::Http1,
            tls: false,
            host: "127.0.0.1".into(),
            port: 8080,
            authority: "127.0.0.1:8080".into(),
            login: Default::default(),
        },
        mix: Mix {
            journeys: journeys.collect(),
            ..Mix::default()
        },
        connections: Connections {
            held: 16,
            most: 256,
            requests_each: None,
            streams: 1,
            connect_within: Duration::from_secs(5),
        },
        timeout: Duration::from_secs(5),
        pace: Pace::Exact,
        threads: 2,
        share: Share {
            first: 0,
            threads: 2,
        },
        cpus: Vec::new(),
        seed: 1,
        tls: TlsSettings::default(),
        guard: GuardLimits::default(),
    }
}

/// A second of 1,000 answers, exponential around 3 ms; in a stall every request waits a
/// part of the second before it is sent.
fn second(at: u64, stalled: bool, kinds: usize) -> Span {
    const EACH: u64 = 1_000;
    let mut span = Span::empty(kinds);
    span.start = Duration::from_secs(at);
    span.length = Duration::from_secs(1);
    span.planned = EACH * kinds as u64;
    for kind in &mut span.kinds {
        for rank in 0..EACH {
            let share = (rank as f64 + 0.5) / EACH as f64;
            let took = Duration::from_secs_f64(-0.003 * (1.0 - share).ln());
            let waited = if stalled { 0.9 * share } else { 0.0 };
            kind.actual.record(took);
            kind.intended.record(took + Duration::from_secs_f64(waited));
            match stalled {
                true => kind.waited += 1,
                false => kind.lateness.record(Duration::from_micros(20 + rank / 20)),
            }
            span.in_flight_seconds += took.as_secs_f64();
        }
        kind.sent = EACH;
        kind.answered = EACH;
        kind.statuses.insert(200, EACH);
        kind.bytes_sent = EACH * 90;
        kind.bytes_received = EACH * 1_240;
    }
    span.connections.opened = if at == 0 { 16 } else { 0 };
    span.connections.reused = span.planned - span.connections.opened;
    span.connections.open = 16;
    span.in_flight = 11;
    span.backlog = if stalled { 900 } else { 0 };
    span.threads_cpu = vec![Duration::from_millis(110), Duration::from_millis(97)];
    span
}

fn recorded(spans: Vec<Span>) -> Recorded {
    let seconds = spans.len() as u64;
    let mut timeline = Timeline::default();
    let mut total = Span::empty(spans.first().map_or(1, |span| span.kinds.len()));
    for span in spans {
        total.append(&span);
        timeline.push(span);
    }
    Recorded {
        segment: Segment {
            model: Model::Open(Arrivals::Rate {
                process: Process::Poisson,
                shape: Shape::Constant(1_000.0),
            }),
            length: Length {
                duration: Some(Duration::from_secs(seconds)),
                requests: None,
            },
            first: 0,
        },
        began_unix_ns: 1_700_000_000_000_000_000,
        total,
        timeline,
        cut: None,
        lost: Vec::new(),
        notes: Vec::new(),
    }
}

fn summary(workload: &Workload, recorded: &Recorded) -> Summary {
    Summary::of(
        lab_load::summary::WarmUp::Auto,
        "load",
        "http://127.0.0.1:8080/",
        workload,
        recorded,
    )
    .unwrap()
}

/// Compares with a stored text; with BLESS=1 in the environment it is stored anew.
fn matches(text: &str, name: &str) {
    let path = format!("{}/src/load/tests/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, stored, "{name} differs; BLESS=1 stores it anew");
}

fn fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(
            measure_text_width(line) <= width,
            "{} > {width}: {line}",
            line.len()
        );
    }
}

#[test]
fn a_load_that_held() {
    let recorded = recorded((0..20).map(|at| second(at, false, 1)).collect());
    let text = load_text(&summary(&workload(&["a"]), &recorded), PLAIN);
    matches(&text, "valid");
}

#[test]
fn a_load_with_stalls_shows_what_users_felt() {
    let spans = (0..20).map(|at| second(at, at % 5 == 2, 1)).collect();
    let text = load_text(&summary(&workload(&["a"]), &recorded(spans)), PLAIN);
    matches(&text, "stalls");
}

/// Its last answers came three seconds after its end.
#[test]
fn a_load_is_as_long_as_it_was_asked_to_be() {
    let workload = workload(&["get"]);
    let mut summary = summary(&workload, &recorded(vec![second(0, false, 1)]));
    let first = |summary: &Summary| {
        let text = load_text(summary, PLAIN);
        text.lines().nth(1).unwrap_or_default().to_owned()
    };
    for (sending_s, duration_s, expected) in [
        (3.0, 6.0, ", 3 s"),
        (0.03, 0.05, ", 30 ms"),
        // An older version did not tell.
        (0.0, 6.0, ", 6 s"),
    ] {
        (summary.sending_s, summary.duration_s) = (sending_s, duration_s);
        let line = first(&summary);
        assert!(line.ends_with(expected), "{line}");
    }
}

#[test]
fn an_invalid_load_says_why_and_what_to_do_first() {
    let mut recorded = recorded((0..20).map(|at| second(at, false, 2)).collect());
    let kind = &mut recorded.total.kinds[1];
    // The slowest tenth may have been slow because the generator was.
    let slow = kind.intended.quantile(0.9).unwrap();
    let slow: Vec<_> = kind
        .intended
        .bins()
        .filter(|bin| bin.highest > slow)
        .collect();
    for bin in slow {
        let nanos = bin.highest.as_nanos() as u64;
        (0..bin.count).for_each(|_| kind.intended_doubt.record_ns(nanos, nanos * 9 / 10));
    }
    kind.retried = 12;
    for _ in 0..120 {
        kind.fail(Phase::Timeout, "timeout");
        kind.fail(Phase::Read, "reset");
    }
    kind.refuse("status 200..299");
    recorded.total.machine.steal = 0.08;
    recorded.cut = Some("interrupted".into());
    let mut workload = workload(&["GET /", "POST /a-long-name"]);
    workload.guard.late_after = Duration::from_millis(2);
    let mut summary = summary(&workload, &recorded);
    summary
        .notes
        .push("certificates were not checked (--insecure)".into());
    matches(&load_text(&summary, PLAIN), "invalid");
}

#[test]
fn one_request_that_was_sent_once_more_is_one() {
    let recorded = recorded((0..20).map(|at| second(at, false, 1)).collect());
    let mut summary = summary(&workload(&["a"]), &recorded);
    summary.requests.retried = 1;
    let text = load_text(&summary, PLAIN);
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = words.join(" ");
    assert!(said.contains(", 1 request sent once more because the target let it go; "));
}

#[test]
fn waiting_is_named_only_where_enough_requests_waited() {
    let recorded = recorded((0..20).map(|at| second(at, false, 1)).collect());
    let mut summary = summary(&workload(&["a"]), &recorded);
    let latency = &mut summary.latency;
    latency.actual = latency.intended.clone();
    latency.intended.p50 = latency.actual.p50.map(|p50| p50 * 100.0);
    for (waited, named) in [(0.3, false), (0.6, true)] {
        let sent = summary.requests.sent as f64;
        summary.lateness.count = (sent * (1.0 - waited)) as u64;
        let gap = super::latency::gap(&summary).unwrap_or_default();
        assert_eq!(gap.contains("no connection was free"), named, "{gap}");
        assert_eq!(gap.is_empty(), !named, "{gap}");
    }
}

#[test]
fn a_closed_loop_says_what_it_cannot_see() {
    let mut recorded = recorded((0..20).map(|at| second(at, false, 1)).collect());
    recorded.segment.model = Model::Closed {
        think: Duration::ZERO,
    };
    let mut summary = summary(&workload(&["a"]), &recorded);
    summary.floor = Some(Floor {
        measured_unix_ns: 0,
        ping_pong_p50: 24e-6,
        ping_pong_p99: 61e-6,
        ping_pong_spin_p50: 11e-6,
        timer_p50: 55e-6,
        timer_p99: 90e-6,
        longest_gap: 1.2e-3,
        gap_share: 0.001,
        steal: 0.0,
        clock: 21e-9,
    });
    matches(&load_text(&summary, PLAIN), "closed");
}

#[test]
fn a_search_shows_every_hold() {
    let point = |rate: f64, good, purpose: &str| Point {
        rate,
        sent: rate,
        good_rate: rate * if good { 1.0 } else { 0.9 },
        p50: Some(0.002),
        p99: Some(if good { 0.008 } else { 0.3 }),
        errors: 0.0,
        in_flight: rate * 0.002,
        length_s: 5.0,
        good,
        invalid: Vec::new(),
        purpose: purpose.into(),
    };
    let recorded = recorded((0..20).map(|at| second(at, false, 1)).collect());
    let mut summary = summary(&workload(&["a"]), &recorded);
    let estimate = |rate: f64| Estimate {
        rate,
        low: rate * 0.98,
        high: rate * 1.02,
        confidence: 0.9,
    };
    let mut spoiled = point(4_200.0, false, "confirm");
    spoiled.invalid = vec!["steal".into()];
    summary.capacity = Some(Capacity {
        slo: "p99 < 20ms, errors < 0.1%".into(),
        points: vec![
            point(1_000.0, true, "bracket"),
            point(5_000.0, false, "bracket"),
            point(4_100.0, true, "bisect"),
            spoiled,
        ],
        knee: Some(estimate(4_160.0)),
        physical: Some(estimate(4_900.0)),
        limit: "target".into(),
        note: "confirmed by two longer holds".into(),
        usl: Usl::Refused("no hold beyond 70 % of the peak".into()),
    });
    matches(&load_text(&summary, PLAIN), "knee");
}

/// What is believed of a knee is cut where a rate failed: then it is at most that, and not at least.
#[test]
fn only_what_nothing_failed_above_is_at_least() {
    let recorded = recorded((0..20).map(|at| second(at, false, 1)).collect());
    let mut summary = summary(&workload(&["a"]), &recorded);
    let mut told = |limit: &str| {
        summary.capacity = Some(Capacity {
            slo: "p99 < 20ms".into(),
            points: Vec::new(),
            knee: Some(Estimate {
                rate: 500.0,
                low: 500.0,
                high: 500.0,
                confidence: 0.9,
            }),
            physical: None,
            limit: limit.into(),
            note: String::new(),
            usl: Usl::Refused("too few holds".into()),
        });
        load_text(&summary, PLAIN)
    };
    let cut = told("target");
    assert!(
        cut.contains("knee        500 /s (90 % between 500 /s and 500 /s), where"),
        "{cut}"
    );
    // A search that was ended before a rate failed: nobody asked for no more than this.
    let ended = told("range");
    assert!(
        ended.contains("knee        at least 500 /s, where"),
        "{ended}"
    );
    assert!(
        ended.contains("the highest rate that was tried held"),
        "{ended}"
    );
}

#[test]
fn nothing_answered() {
    let mut recorded = recorded((0..3).map(|at| second(at, false, 1)).collect());
    recorded.total = Span::empty(1);
    recorded.total.kinds[0].errors = [(
        lab_load::recording::Failure {
            phase: Phase::Connect,
            cause: "refused".into(),
        },
        3_000,
    )]
    .into();
    recorded.timeline = Timeline::default();
    matches(
        &load_text(&summary(&workload(&["a"]), &recorded), PLAIN),
        "nothing",
    );
}

#[test]
fn text_fits_its_width_and_holds_nothing_that_steers_the_terminal() {
    let spans = (0..700).map(|at| second(at, at % 5 == 2, 2)).collect();
    let mut workload = workload(&[
        "\u{1b}[31mred",
        "a name that is much too long for its column",
    ]);
    workload.guard.steal_share = 0.5;
    let mut summary = summary(&workload, &recorded(spans));
    summary.target = "http://host/\u{1b}]0;x\u{7}".into();
    summary.refusals.insert("body \u{1b}[2J".into(), 3);
    for width in [1, 80, 93, 100, 300] {
        let text = load_text(&summary, Style { width, ..PLAIN });
        assert!(!text.contains('\u{1b}'), "{text}");
        fits(&text, width.clamp(WIDTH.0, WIDTH.1));
    }
}

#[test]
fn the_live_view() {
    let mut live = Live::new(
        "http://127.0.0.1:8080/  poisson 1000/s",
        Some(Duration::from_secs(20)),
    );
    for at in 0..15 {
        live.add(&second(at, at == 12, 1));
    }
    let block = live_block(&live, PLAIN);
    fits(&block.join("\n"), 100);
    matches(
        &format!("{}\n\n{}\n", block.join("\n"), live_line(&live)),
        "live",
    );
    let narrow = live_block(&live, Style { width: 40, ..PLAIN });
    fits(&narrow.join("\n"), 40);
    assert!(block.len() < 24, "a small terminal must hold it");
}

#[test]
fn the_live_view_says_what_would_be_withheld() {
    let mut live = Live::new("http://127.0.0.1:8080/", None);
    live.add(&second(0, false, 1));
    assert!(!live_line(&live).contains("withheld"));
    // The generator was stopped for 50 ms.
    let mut stopped = second(1, false, 1);
    for late in (0..50).map(|ms| ms * 1_000_000) {
        let kind = &mut stopped.kinds[0];
        kind.intended.record_ns(late + 3_000_000);
        kind.intended_doubt.record_ns(late + 3_000_000, late);
    }
    live.add(&stopped);
    let line = live_line(&live);
    let expected = "(the generator was late: withheld p99, p99.9, max)";
    assert!(line.ends_with(expected), "{line}");
    let block = live_block(&live, PLAIN).join("\n");
    assert!(block.contains("withheld p99, p99.9, max"), "{block}");
}

/// A load of 1,000 requests of 2 ms, whose p90 was 1 ms more from the intended send: so many
/// of them waited for a connection, and the others were sent so late at p90.
fn told(held: u64, late_s: f64) -> String {
    let recorded = recorded(vec![second(0, false, 1)]);
    let mut summary = summary(&workload(&["a"]), &recorded);
    summary.requests.sent = 1_000;
    summary.lateness = Distribution {
        count: 1_000 - held,
        p90: Some(late_s),
        max: Some(late_s),
        ..Distribution::default()
    };
    let at = |p90| Distribution {
        count: 1_000,
        p50: Some(0.002),
        p90: Some(p90),
        ..Distribution::default()
    };
    summary.latency.intended = at(0.003);
    summary.latency.actual = at(0.002);
    latency::gap(&summary).unwrap_or_default()
}

#[test]
fn what_passed_before_a_send_is_told_by_its_cause() {
    assert!(told(0, 0.001).contains("it was late itself"));
    assert!(told(5, 0.001).contains("it was late itself"));
    assert!(told(300, 0.000_02).contains("no connection was free: intended"));
    assert!(told(300, 0.001).contains("for some no connection was free, and"));
}
