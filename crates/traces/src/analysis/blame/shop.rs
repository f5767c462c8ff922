//! A shop into which truths are planted: `front` calls `stock` and `cart` one after the other, and in one
//! request of 25 also `order`, which calls `stock` and `pay`.

use stats::SplitMix;

use crate::{Nanos, Span, SpanId, SpanKind, TraceId};

/// A microsecond.
pub(crate) const US: Nanos = 1_000;

/// What is wrong with a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fault {
    /// A service that takes so much longer.
    pub(crate) own: Option<(&'static str, Nanos)>,
    /// A service, all of whose calls in and out take so much longer.
    pub(crate) network: Option<(&'static str, Nanos)>,
    /// A service whose callers stop after it.
    pub(crate) refuses: Option<&'static str>,
    /// A service that makes no calls any more.
    pub(crate) returns: Option<&'static str>,
    /// A service that fails in half of its visits.
    pub(crate) fails: Option<&'static str>,
    /// A service that calls another one, once more.
    pub(crate) calls: Option<(&'static str, &'static str)>,
    /// A service that does not answer such a share of calls: they fail, and are made again.
    pub(crate) drops: Option<(&'static str, f64)>,
    /// A service that takes so much longer in such a share of its visits.
    pub(crate) seldom: Option<(&'static str, Nanos, f64)>,
    /// Each visit has a span more, of its own service, around its calls.
    pub(crate) inner: bool,
}

/// The same without some spans: each is lost in such a share of all cases, those of `silent` all
/// in the last fifth of the requests.
pub(crate) fn lost(spans: Vec<Span>, seed: u64, share: f64, silent: Option<&str>) -> Vec<Span> {
    let mut random = SplitMix::new(seed);
    let last = spans.iter().map(|span| span.start).max().unwrap_or(0);
    let mut kept = spans;
    kept.retain(|span| {
        let is_silent = silent == Some(&*span.service) && span.start > last / 5 * 4;
        random.uniform() >= share && !is_silent
    });
    kept
}

struct Shop {
    random: SplitMix,
    fault: Fault,
    spans: Vec<Span>,
    trace: u128,
    next: u64,
}

/// The spans of so many requests, one every 20 ms.
pub(crate) fn run(seed: u64, requests: u64, fault: Fault) -> Vec<Span> {
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

impl Shop {
    /// A length about `mean`, with the scatter of a machine that is in use.
    fn about(&mut self, mean: Nanos) -> Nanos {
        (mean as f64 * (0.7 + 0.3 * self.random.exponential())) as Nanos
    }

    fn span(&mut self, kind: SpanKind, parent: u64, (service, peer): (&str, &str)) -> usize {
        self.next += 1;
        self.spans.push(Span {
            parent: SpanId(parent),
            id: SpanId(self.next),
            ..Span::blank(
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
        if let Some((_, more, share)) = self.fault.seldom.filter(|(slow, ..)| *slow == service)
            && self.random.uniform() < share
        {
            now += more;
        }
        let begun = now;
        let parent = match self.fault.inner {
            true => {
                let at = self.span(SpanKind::Internal, id, (service, ""));
                self.spans[at].name = "inner".into();
                Some(at)
            }
            false => None,
        };
        let id = parent.map_or(id, |at| self.spans[at].id.0);
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
            while let Some((_, share)) = self.fault.drops.filter(|(to, _)| *to == callee)
                && self.random.uniform() < share
            {
                now = self.dropped(service, callee, id, now);
            }
            let ended = self.call(service, callee, id, now);
            now = ended + self.about(50 * US);
            if self.fault.refuses == Some(callee) && self.random.uniform() < 0.7 {
                break;
            }
        }
        if let Some(at) = parent {
            (self.spans[at].start, self.spans[at].end) = (begun, now);
        }
        let fails = self.fault.fails == Some(service) && self.random.uniform() < 0.5;
        let span = &mut self.spans[at];
        (span.start, span.end) = (begin, now);
        span.status = if fails { 500 } else { 200 };
        (now, !fails)
    }

    /// A call that nobody answers; when it ended.
    fn dropped(&mut self, from: &'static str, to: &'static str, parent: u64, now: Nanos) -> Nanos {
        let at = self.span(SpanKind::Client, parent, (from, to));
        let span = &mut self.spans[at];
        (span.start, span.end, span.cause) = (now, now + 200 * US, "reset");
        // Clients name calls in their own way.
        span.name = format!("call {to}").into();
        span.end
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
        self.spans[at].name = format!("call {to}").into();
        let (answered, well) = self.visit(to, id, arrived, false);
        let end = answered + self.about(way);
        let span = &mut self.spans[at];
        (span.start, span.end) = (now, end);
        span.status = if well { 200 } else { 500 };
        end
    }
}
