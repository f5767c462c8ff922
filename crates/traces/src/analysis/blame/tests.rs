//! Truths planted into a shop: `front` calls `stock` and `cart` one after the other, and in one
//! request of 25 also `order`, which calls `stock` and `pay`.

use stats::SplitMix;

use crate::analysis::{Comparison, Run, Verdict, compare};
use crate::{Nanos, Span, SpanId, SpanKind, TraceId};

const US: Nanos = 1_000;

/// What is wrong with a run.
#[derive(Debug, Clone, Copy, Default)]
struct Fault {
    /// A service that takes so much longer.
    own: Option<(&'static str, Nanos)>,
    /// A service, all of whose calls in and out take so much longer.
    network: Option<(&'static str, Nanos)>,
    /// A service whose callers stop after it.
    refuses: Option<&'static str>,
    /// A service that makes no calls any more.
    returns: Option<&'static str>,
    /// A service that fails in half of its visits.
    fails: Option<&'static str>,
    /// A service that calls another one, once more.
    calls: Option<(&'static str, &'static str)>,
}

struct Shop {
    random: SplitMix,
    fault: Fault,
    spans: Vec<Span>,
    trace: u128,
    next: u64,
}

impl Shop {
    fn run(seed: u64, requests: u64, fault: Fault) -> Vec<Span> {
        let mut shop = Shop {
            random: SplitMix::new(seed),
            fault,
            spans: Vec::new(),
            trace: u128::from(seed) << 64,
            next: 0,
        };
        for number in 0..requests {
            shop.trace += 1;
            shop.visit("front", 0, number * 20_000 * US, number % 25 == 0);
        }
        shop.spans
    }

    /// A length about `mean`, with the scatter of a machine that is in use.
    fn about(&mut self, mean: Nanos) -> Nanos {
        (mean as f64 * (0.7 + 0.3 * self.random.exponential())) as Nanos
    }

    fn span(&mut self, kind: SpanKind, parent: u64, (service, peer): (&str, &str)) -> usize {
        self.next += 1;
        self.spans.push(Span {
            parent: SpanId(parent),
            id: SpanId(self.next),
            ..Span::untold(
                TraceId(self.trace),
                kind,
                [service.into(), format!("/{service}").into(), peer.into()],
            )
        });
        self.spans.len() - 1
    }

    /// A visit that begins at a time; when it ends, and whether well.
    fn visit(
        &mut self,
        service: &'static str,
        parent: u64,
        begin: Nanos,
        orders: bool,
    ) -> (Nanos, bool) {
        let at = self.span(SpanKind::Server, parent, (service, ""));
        let id = self.spans[at].id.0;
        let mut now = begin + self.about(800 * US);
        if let Some((_, more)) = self.fault.own.filter(|(slow, _)| *slow == service) {
            now += self.about(more);
        }
        let calls: &[&'static str] = match service {
            "front" if orders => &["order", "stock", "cart"],
            "front" => &["stock", "cart"],
            "order" => &["stock", "pay"],
            _ => &[],
        };
        let mut calls = calls.to_vec();
        if self.fault.returns == Some(service) {
            calls.clear();
        }
        calls.extend(
            self.fault
                .calls
                .filter(|(from, _)| *from == service)
                .map(|(_, to)| to),
        );
        for callee in calls {
            let ended = self.call(service, callee, id, now);
            now = ended + self.about(50 * US);
            if self.fault.refuses == Some(callee) && self.random.uniform() < 0.7 {
                break;
            }
        }
        let fails = self.fault.fails == Some(service) && self.random.uniform() < 0.5;
        let span = &mut self.spans[at];
        (span.start, span.end) = (begin, now);
        span.status = if fails { 500 } else { 200 };
        (now, !fails)
    }

    fn call(&mut self, from: &'static str, to: &'static str, parent: u64, now: Nanos) -> Nanos {
        let at = self.span(SpanKind::Client, parent, (from, to));
        let id = self.spans[at].id.0;
        let far = self
            .fault
            .network
            .filter(|(slow, _)| [from, to].contains(slow));
        let way = 200 * US + far.map_or(0, |(_, more)| more / 2);
        let arrived = now + self.about(way);
        let (answered, well) = self.visit(to, id, arrived, false);
        let end = answered + self.about(way);
        let span = &mut self.spans[at];
        (span.start, span.end) = (now, end);
        span.status = if well { 200 } else { 500 };
        end
    }
}

fn compared(seed: u64, fault: Fault) -> Comparison {
    let run = |seed, fault| Run::of_spans(&Shop::run(seed, 1_000, fault), None);
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
