//! What is said of calls.

use super::*;
use crate::TraceId;
use crate::analysis::{Analysis, analyse};

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
