//! Truths planted into a shop.

use std::collections::BTreeMap;

use super::shop::{self, Fault, US};
use crate::analysis::{Comparison, Run, Verdict, compare, shared_path};
use crate::{Nanos, TraceId};

fn compared(seed: u64, fault: Fault) -> Comparison {
    let run = |seed, fault| Run::of_spans(&shop::run(seed, 1_000, fault), None, None);
    compare(
        &[run(2 * seed, Fault::default())],
        &[run(2 * seed + 1, fault)],
    )
}

/// A service is named first in every one of six runs.
fn is_named(service: &str, fault: Fault) {
    for seed in 1..=6 {
        let found = compared(seed, fault);
        let first = found.culprits.first().map(|one| one.service.as_str());
        assert_eq!(first, Some(service), "seed {seed}: {found}");
        assert_eq!(found.verdict, Verdict::Worse, "seed {seed}: {found}");
    }
}

#[test]
fn nobody_is_named_where_nothing_differs() {
    let named = (100..200).filter(|seed| !compared(*seed, Fault::default()).culprits.is_empty());
    // Three of a thousand by design.
    assert!(named.count() <= 2);
}

/// Runs of a shop, each with its own fault.
fn runs(first_seed: u64, faults: &[Fault]) -> Vec<Run> {
    let seeds = first_seed..;
    let spans = seeds
        .zip(faults)
        .map(|(seed, fault)| shop::run(seed, 300, *fault));
    spans
        .map(|spans| Run::of_spans(&spans, None, None))
        .collect()
}

#[test]
fn what_differs_from_run_to_run_of_a_side_is_nobodys_fault() {
    let usual = Fault::default();
    let returns = Fault {
        returns: Some("front"),
        ..usual
    };
    let slow = |by| Fault {
        own: Some(("stock", by)),
        ..usual
    };
    for seed in (0..60).step_by(10) {
        let named = |a: &[Fault], b: &[Fault]| {
            let found = compare(&runs(seed, a), &runs(seed + 5, b));
            let text = found.to_string();
            (found.culprits.first().map(|one| one.service.clone()), text)
        };
        let (service, _) = named(&[usual; 3], &[returns]);
        assert_eq!(service.as_deref(), Some("front"), "seed {seed}");
        let (service, text) = named(&[usual, returns, usual], &[returns]);
        assert_eq!(service, None, "seed {seed}: {text}");
        let (service, text) = named(&[usual; 2], &[usual, slow(2_000 * US)]);
        assert_eq!(service, None, "seed {seed}: {text}");
        assert!(text.contains("`stock` is not behind it"), "{text}");
        // One run of A is a little slower; B is slower by far.
        let (service, _) = named(&[usual, slow(1_000 * US), usual], &[slow(10_000 * US); 2]);
        assert_eq!(service.as_deref(), Some("stock"), "seed {seed}");
    }
}

#[test]
fn a_service_that_is_slow_is_named() {
    for service in ["front", "cart", "stock"] {
        is_named(
            service,
            Fault {
                own: Some((service, 1_000 * US)),
                ..Fault::default()
            },
        );
    }
}

#[test]
fn a_fault_of_four_requests_in_a_hundred_is_named() {
    for service in ["order", "pay"] {
        is_named(
            service,
            Fault {
                own: Some((service, 1_500 * US)),
                ..Fault::default()
            },
        );
        is_named(
            service,
            Fault {
                network: Some((service, 2_000 * US)),
                ..Fault::default()
            },
        );
    }
}

#[test]
fn a_service_all_of_whose_calls_are_slow_is_named_whoever_the_other_end_is() {
    for service in ["front", "cart", "stock"] {
        is_named(
            service,
            Fault {
                network: Some((service, 1_500 * US)),
                ..Fault::default()
            },
        );
    }
}

#[test]
fn who_makes_requests_end_early_is_named_though_they_are_faster() {
    is_named(
        "front",
        Fault {
            returns: Some("front"),
            ..Fault::default()
        },
    );
    is_named(
        "order",
        Fault {
            returns: Some("order"),
            ..Fault::default()
        },
    );
    // Both of its callers stop after it.
    is_named(
        "stock",
        Fault {
            refuses: Some("stock"),
            ..Fault::default()
        },
    );
}

#[test]
fn who_fails_is_named_and_not_who_passes_it_on() {
    for service in ["cart", "pay"] {
        is_named(
            service,
            Fault {
                fails: Some(service),
                ..Fault::default()
            },
        );
    }
}

#[test]
fn a_new_call_is_its_callers() {
    is_named(
        "cart",
        Fault {
            calls: Some(("cart", "pay")),
            ..Fault::default()
        },
    );
}

#[test]
fn reasons_say_where_and_by_how_much() {
    let slow = compared(
        1,
        Fault {
            own: Some(("cart", 1_000 * US)),
            ..Fault::default()
        },
    );
    let reason = &slow.culprits[0].reasons[0];
    assert!(
        reason.starts_with("`/cart` in `cart` takes 1.8"),
        "{reason}"
    );
    let far = compared(
        1,
        Fault {
            network: Some(("front", 2_000 * US)),
            ..Fault::default()
        },
    );
    let reason = &far.culprits[0].reasons[0];
    assert!(
        reason.contains("and so do 3 of its 3 ways to others"),
        "{reason}"
    );
    let early = compared(
        1,
        Fault {
            returns: Some("order"),
            ..Fault::default()
        },
    );
    let reason = &early.culprits[0].reasons[0];
    assert!(
        reason
            .contains("100 % (0 % before) do nothing below them: they leave out `/pay`, `/stock`"),
        "{reason}"
    );
}

#[test]
fn latencies_are_compared_of_requests_that_both_sides_have() {
    let named = |mut spans: Vec<crate::Span>, path: &str, other: &str, every: u128| {
        for span in &mut spans {
            if span.parent == crate::SpanId(0) {
                let often = !span.trace.0.is_multiple_of(every);
                span.name = if often { path } else { other }.into();
            }
        }
        spans
    };
    // Most of A are /buy, most of B are /list; both are as they were.
    let a = named(shop::run(1, 1_500, Fault::default()), "/buy", "/list", 3);
    let b = named(shop::run(2, 1_500, Fault::default()), "/list", "/buy", 3);
    let all = [a, b];
    let path = shared_path(&all, None);
    assert_eq!(path.as_deref(), Some("/buy"));
    let [a, b] = all
        .each_ref()
        .map(|run| Run::of_spans(run, None, path.as_deref()));
    let compared = compare(std::slice::from_ref(&a), std::slice::from_ref(&b));
    assert_eq!(compared.a_requests, (1_000, 0));
    assert_eq!(compared.b_requests, (500, 0));
    assert_ne!(compared.verdict, Verdict::Worse, "{compared}");
    assert!(
        compared
            .notes
            .iter()
            .any(|one| one.contains("entered at `front /buy`; 1,500 entered elsewhere")),
        "{:?}",
        compared.notes
    );

    // Each side's own most frequent are no pair.
    let b = Run::of_spans(&all[1], None, None);
    let apart = compare(&[a], &[b]);
    assert!(
        apart.changes.is_empty() && apart.failing.is_none(),
        "{apart}"
    );
    assert!(
        apart
            .notes
            .iter()
            .any(|one| one.contains("`front /buy`, `front /list`")),
        "{:?}",
        apart.notes
    );

    assert_eq!(shared_path(&[Vec::new(), all[0].clone()], None), None);
    assert_eq!(shared_path(&[], None), None);
}

#[test]
fn calls_that_are_dropped_and_made_again_are_a_share_of_all_calls_and_the_callees() {
    for seed in 1..=6 {
        let found = compared(
            seed,
            Fault {
                drops: Some(("cart", 0.06)),
                ..Fault::default()
            },
        );
        let named: Vec<&str> = found.culprits.iter().map(|one| &*one.service).collect();
        assert_eq!(named, ["cart"], "{found}");
        let reason = &found.culprits[0].reasons[0];
        let share = reason
            .strip_prefix("calls from `front` to `/cart` fail in ")
            .and_then(|rest| rest.split_once(" %"))
            .and_then(|(share, _)| share.parse::<f64>().ok());
        assert!(
            share.is_some_and(|share| (3.0..9.0).contains(&share)),
            "{reason}"
        );
    }
}

fn beside(a: &[crate::Span], b: &[crate::Span]) -> Comparison {
    let [a, b] = [a, b].map(|spans| Run::of_spans(spans, None, None));
    compare(&[a], &[b])
}

#[test]
fn spans_that_are_missing_accuse_nobody_and_are_told() {
    for seed in 1..=3 {
        let a = shop::run(2 * seed, 1_000, Fault::default());
        let b = || shop::run(2 * seed + 1, 1_000, Fault::default());
        let lost = [
            shop::lost(b(), seed, 0.03, None),
            shop::lost(b(), seed, 0.1, None),
            shop::lost(b(), seed, 0.0, Some("stock")),
            shop::lost(b(), seed, 0.0, Some("order")),
        ];
        for b in lost {
            for found in [beside(&a, &b), beside(&b, &a)] {
                assert!(found.culprits.is_empty(), "seed {seed}: {found}");
                let notes = found.notes.concat();
                assert!(notes.contains("Spans are missing: about "), "{notes}");
            }
        }
        let whole = beside(&a, &b());
        assert!(!whole.notes.concat().contains("missing"), "{whole}");
    }
}

/// The same on a machine that takes so many times as long for everything.
fn stretched(mut spans: Vec<crate::Span>, times: f64) -> Vec<crate::Span> {
    let roots = spans.iter().filter(|span| span.parent.0 == 0);
    let begins: BTreeMap<TraceId, Nanos> = roots.map(|span| (span.trace, span.start)).collect();
    for span in &mut spans {
        let begin = begins[&span.trace];
        let moved = |time: Nanos| begin + ((time - begin) as f64 * times) as Nanos;
        (span.start, span.end) = (moved(span.start), moved(span.end));
    }
    spans
}

#[test]
fn a_slower_machine_accuses_nobody_and_hides_nobody() {
    for seed in 1..=3 {
        let a = shop::run(2 * seed, 1_000, Fault::default());
        let b = |fault| shop::run(2 * seed + 1, 1_000, fault);
        let found = beside(&a, &stretched(b(Fault::default()), 2.0));
        assert!(found.culprits.is_empty(), "seed {seed}: {found}");
        assert_eq!(found.verdict, Verdict::Worse, "seed {seed}: {found}");
        let said = found.sentences.concat();
        assert!(said.contains("Nearly all services take "), "{said}");
        let slow = Fault {
            own: Some(("cart", 3_000 * US)),
            ..Fault::default()
        };
        let found = beside(&a, &stretched(b(slow), 1.3));
        let first = found.culprits.first().map(|one| one.service.as_str());
        assert_eq!(first, Some("cart"), "seed {seed}: {found}");
        let same = beside(&a, &b(Fault::default()));
        assert!(!same.sentences.concat().contains("Nearly all"), "{same}");
    }
}

#[test]
fn a_fault_is_found_among_missing_spans() {
    for seed in 1..=6 {
        let a = shop::run(2 * seed, 1_000, Fault::default());
        let fault = Fault {
            own: Some(("cart", 1_000 * US)),
            ..Fault::default()
        };
        let b = shop::lost(shop::run(2 * seed + 1, 1_000, fault), seed, 0.05, None);
        let found = beside(&a, &b);
        assert_eq!(
            found.culprits.first().map(|one| &*one.service),
            Some("cart"),
            "{found}"
        );
    }
}

#[test]
fn more_or_fewer_spans_of_a_service_accuse_nobody() {
    let inner = Fault {
        inner: true,
        ..Fault::default()
    };
    for seed in 1..=6 {
        let a = shop::run(2 * seed, 1_000, Fault::default());
        let b = shop::run(2 * seed + 1, 1_000, inner);
        let found = beside(&a, &b);
        assert!(found.culprits.is_empty(), "seed {seed}: {found}");
    }
}

#[test]
fn a_few_slow_requests_are_found_where_there_are_enough() {
    let seldom = |share| Fault {
        seldom: Some(("cart", 60_000 * US, share)),
        ..Fault::default()
    };
    is_named("cart", seldom(0.04));
    let found = compared(1, seldom(0.04));
    let reason = &found.culprits[0].reasons[0];
    assert!(
        reason.contains("of the requests to `/front` of `front` take longer than")
            && reason.contains("`/cart` in `cart` has "),
        "{reason}"
    );
    let clean = compared(1, Fault::default());
    let said = clean.sentences.concat();
    assert!(
        said.contains("would have been seen from this share on: 2 % of the 1,000 to `/front`"),
        "{said}"
    );
}

#[test]
fn who_holds_most_of_what_moved_is_named_though_it_is_little() {
    let mut named = 0;
    for seed in 1..=6 {
        let a = shop::run(2 * seed, 3_000, Fault::default());
        let fault = Fault {
            own: Some(("cart", 250 * US)),
            ..Fault::default()
        };
        let found = beside(&a, &shop::run(2 * seed + 1, 3_000, fault));
        let who: Vec<&str> = found.culprits.iter().map(|one| &*one.service).collect();
        match found.verdict {
            Verdict::Worse => assert_eq!(who, ["cart"], "seed {seed}: {found}"),
            _ => assert!(who.is_empty(), "seed {seed}: {found}"),
        }
        named += usize::from(!who.is_empty());
    }
    assert!(named >= 3, "{named}");
}

#[test]
fn who_fails_is_named_though_it_is_seldom_where_that_more_fail_is_proven() {
    for seed in 1..=3 {
        let mut fails = shop::run(2 * seed + 1, 3_000, Fault::default());
        // One request in 80.
        for span in &mut fails {
            let is_cart = &*span.service == "cart" || &*span.peer == "cart";
            if (is_cart || span.parent == crate::SpanId(0)) && span.trace.0 % 80 == 0 {
                span.status = 500;
            }
        }
        let a = shop::run(2 * seed, 3_000, Fault::default());
        let found = beside(&a, &fails);
        assert_eq!(found.verdict, Verdict::Worse, "{found}");
        assert!(found.sentences[0].starts_with("B fails more"), "{found}");
        let who: Vec<&str> = found.culprits.iter().map(|one| &*one.service).collect();
        assert_eq!(who, ["cart"], "seed {seed}: {found}");
    }
}
