//! Truths planted into a shop.

use super::shop::{self, Fault, US};
use crate::analysis::{Comparison, Run, Verdict, compare, shared_path};

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
