//! What is said of calls.

use super::*;
use crate::TraceId;
use crate::analysis::{Analysis, SuspectKind, analyse};

const US: u64 = 1_000;

/// Requests of `web`, each with so many calls of `db`, 500 µs apart: 100 µs both ways, 200 µs there.
/// The last of every `fails`-th fails, and `web` goes on.
fn analysed(calls: u64, fails: Option<u64>) -> Analysis {
    let requests = 1..=200;
    let spans = requests.flat_map(|number| {
        let begin = number * 1_000_000 * US;
        let length = (calls * 500 + 100) * US;
        let mut spans = vec![server((1, 0), "web", (begin, begin + length))];
        for call in 0..calls {
            let ids = (2 * call + 2, 2 * call + 3);
            let start = begin + call * 500 * US;
            spans.push(client((ids.0, 1), "web>db", (start, start + 400 * US)));
            let times = (start + 100 * US, start + 300 * US);
            spans.push(server((ids.1, ids.0), "db", times));
        }
        if fails.is_some_and(|every| number.is_multiple_of(every)) {
            for span in spans.iter_mut().rev().take(2) {
                span.status = 500;
            }
        }
        let trace = TraceId(number.into());
        spans.into_iter().map(move |span| Span { trace, ..span })
    });
    analyse(&spans.collect::<Vec<_>>())
}

#[test]
fn every_call_on_the_path_is_a_hop() {
    for (calls, said) in [
        (1, "200 µs in one hop"),
        (4, "800 µs in 4 hops (200 µs each)"),
        (12, "2.4 ms in 12 hops (200 µs each)"),
    ] {
        let typical = &analysed(calls, None).sentences[0];
        assert!(typical.contains(said), "{typical}");
    }
}

#[test]
fn what_nobody_makes_again_has_no_pauses() {
    let failing = analysed(2, Some(4)).sentences.concat();
    assert!(
        failing.contains(
            "Of the calls from `web` to `db` 12.5 % (50) failed and were not made again."
        ),
        "{failing}"
    );
    assert!(!failing.contains("pauses"), "{failing}");
    let well = analysed(2, None).sentences.concat();
    assert!(!well.contains("failed"), "{well}");
}

/// Requests whose calls take 20 ms each way, to a service whose clock is so many µs behind.
fn far(behind: u64) -> Analysis {
    let spans = (2..202_u64).flat_map(|number| {
        let at = |time: u64| (number * 1_000_000 + time) * US;
        let spans = [
            server((1, 0), "web", (at(0), at(46_000))),
            client((2, 1), "web>db", (at(0), at(45_000))),
            server(
                (3, 2),
                "db",
                (at(20_000) - behind * US, at(25_000) - behind * US),
            ),
        ];
        let trace = TraceId(number.into());
        spans.into_iter().map(move |span| Span { trace, ..span })
    });
    analyse(&spans.collect::<Vec<_>>())
}

#[test]
fn which_way_is_slow_is_not_said_where_clocks_do_not_tell() {
    let said = |found: &Analysis| -> String {
        let mut suspects = found.suspects.iter();
        let network = suspects.find(|one| one.kind == SuspectKind::Network);
        network.map_or_else(String::new, |one| one.sentence.clone())
    };
    let same = said(&far(0));
    assert!(
        same.starts_with("Both ways between `web` and `db` take "),
        "{same}"
    );
    let other = said(&far(1_000_000));
    assert!(
        other.starts_with("The ways between `web` and `db` take "),
        "{other}"
    );
    assert!(other.contains("Their clocks differ"), "{other}");
}
