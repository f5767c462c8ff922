//! Truths that look like somebody else's: those who are asked more often, who pass on what another
//! one began, and who only meet other requests.

use std::collections::BTreeMap;

use stats::SplitMix;

use super::shop::US;
use crate::analysis::{Comparison, Run, Verdict, compare, shared_path};
use crate::{Nanos, Span, SpanId, SpanKind, TraceId};

/// A visit: who does what, for how long, and whom it calls, one after the other.
#[derive(Debug, Clone)]
struct Plan {
    service: &'static str,
    name: &'static str,
    own: Nanos,
    calls: Vec<Plan>,
    fails: bool,
}

fn visit(service: &'static str, name: &'static str, own: Nanos, calls: Vec<Plan>) -> Plan {
    Plan {
        service,
        name,
        own,
        calls,
        fails: false,
    }
}

struct Writer {
    random: SplitMix,
    trace: u128,
    next: u64,
    spans: Vec<Span>,
}

impl Writer {
    fn span(&mut self, kind: SpanKind, parent: u64, names: [&str; 3]) -> usize {
        self.next += 1;
        self.spans.push(Span {
            parent: SpanId(parent),
            id: SpanId(self.next),
            status: 200,
            ..Span::blank(TraceId(self.trace), kind, names.map(Into::into))
        });
        self.spans.len() - 1
    }

    /// When it ended, and whether well. Who calls somebody that fails stops there and fails, too.
    fn visit(&mut self, plan: &Plan, parent: u64, begin: Nanos) -> (Nanos, bool) {
        let at = self.span(SpanKind::Server, parent, [plan.service, plan.name, ""]);
        let id = self.spans[at].id.0;
        let mut well = !plan.fails;
        let mut now = begin + (plan.own as f64 * (0.8 + 0.2 * self.random.exponential())) as Nanos;
        for called in &plan.calls {
            let names = [plan.service, called.name, called.service];
            let call = self.span(SpanKind::Client, id, names);
            let (ended, answered) = self.visit(called, self.spans[call].id.0, now + 100 * US);
            let span = &mut self.spans[call];
            (span.start, span.end) = (now, ended + 100 * US);
            span.status = if answered { 200 } else { 500 };
            now = span.end;
            well &= answered;
            if !answered {
                break;
            }
        }
        let span = &mut self.spans[at];
        (span.start, span.end) = (begin, now);
        span.status = if well { 200 } else { 500 };
        (now, well)
    }
}

/// The spans of so many requests, one every 20 ms, each as `plan` says of its number and a random
/// number from 0 to 1.
fn run(seed: u64, requests: u64, plan: impl Fn(u64, f64) -> Plan) -> Vec<Span> {
    let mut writer = Writer {
        random: SplitMix::new(seed),
        trace: u128::from(seed) << 64,
        next: 0,
        spans: Vec::new(),
    };
    for number in 0..requests {
        writer.trace += 1;
        let plan = plan(number, writer.random.uniform());
        writer.visit(&plan, 0, number * 20_000 * US);
    }
    writer.spans
}

fn compared(a: Vec<Span>, b: Vec<Span>) -> Comparison {
    let all = [a, b];
    let path = shared_path(&all, None);
    let [a, b] = all.map(|spans| Run::of_spans(&spans, None, path.as_deref()));
    compare(&[a], &[b])
}

fn named(found: &Comparison) -> Vec<&str> {
    found.culprits.iter().map(|one| &*one.service).collect()
}

fn queries(count: usize, each: Nanos) -> Vec<Plan> {
    vec![visit("db", "SELECT", each, Vec::new()); count]
}

fn shop(count: usize, each: Nanos) -> Plan {
    let web = visit("web", "/web", 1_000 * US, queries(count, each));
    visit("gate", "/", 500 * US, vec![web])
}

#[test]
fn who_asks_more_often_is_named_and_not_who_answers_as_fast_as_before() {
    for seed in 1..=3 {
        let usual = || run(2 * seed, 400, |_, _| shop(2, 500 * US));
        let loops = run(2 * seed + 1, 400, |_, _| shop(12, 500 * US));
        let found = compared(usual(), loops);
        assert_eq!(named(&found), ["web"], "{found}");
        let reason = &found.culprits[0].reasons[0];
        assert!(
            reason.starts_with(
                "`/web` in `web` leads to more visits of `SELECT` in `db`: 12 a request (2 before)"
            ),
            "{reason}"
        );
        // Of those who answer slowly it is said, however often they are asked.
        let slow = run(2 * seed + 1, 400, |_, _| shop(2, 1_500 * US));
        let found = compared(usual(), slow);
        assert_eq!(named(&found), ["db"], "{found}");
        // Nothing to find.
        let same = run(2 * seed + 1, 400, |_, _| shop(2, 500 * US));
        let found = compared(usual(), same);
        assert!(found.culprits.is_empty(), "{found}");
    }
}

#[test]
fn who_asks_more_often_in_a_few_requests_is_named() {
    let few =
        |share: f64| move |_, chance: f64| shop(if chance < share { 60 } else { 2 }, 500 * US);
    for seed in 1..=3 {
        let found = compared(
            run(2 * seed, 600, few(0.0)),
            run(2 * seed + 1, 600, few(0.06)),
        );
        assert_eq!(named(&found), ["web"], "{found}");
    }
}

/// Each calls the next one, and something else after it.
fn chain(names: &[&'static str], fails: bool) -> Plan {
    let calls = match names {
        [_] | [] => Vec::new(),
        [_, rest @ ..] => vec![
            chain(rest, fails),
            visit("audit", names[0], 200 * US, Vec::new()),
        ],
    };
    Plan {
        fails: fails && calls.is_empty(),
        ..visit(names[0], names[0], 1_000 * US, calls)
    }
}

#[test]
fn who_passes_a_failure_on_is_not_named_however_far() {
    let names = ["s0", "s1", "s2", "s3", "s4", "s5"];
    for seed in 1..=3 {
        let fails = |share: f64| move |_, chance: f64| chain(&names, chance < share);
        let found = compared(
            run(2 * seed, 500, fails(0.0)),
            run(2 * seed + 1, 500, fails(0.06)),
        );
        assert_eq!(named(&found), ["s5"], "{found}");
        assert!(
            found.culprits[0].reasons[1].contains("after their call to `s5` of `s5`"),
            "{found}"
        );
        let whole = compared(
            run(2 * seed, 500, fails(0.0)),
            run(2 * seed + 1, 500, fails(0.0)),
        );
        assert!(whole.culprits.is_empty(), "{whole}");
    }
}

/// Orders and looks: of `price`, orders ask for more. Both enter at `names` of the gate.
fn mixed(names: [&'static str; 2], orders: f64, slower: Nanos) -> impl Fn(u64, f64) -> Plan {
    move |_, chance| {
        let tax = || vec![visit("tax", "/tax", 2_000 * US, Vec::new())];
        let price = |own, calls| visit("price", "/quote", own + slower, calls);
        match chance < orders {
            true => {
                let order = vec![price(3_000 * US, tax())];
                let order = visit("order", "/order", 2_000 * US, order);
                visit("gate", names[0], 1_000 * US, vec![order])
            }
            false => {
                let item = vec![price(1_000 * US, Vec::new())];
                let item = visit("item", "/item", 1_000 * US, item);
                visit("gate", names[1], 1_000 * US, vec![item])
            }
        }
    }
}

#[test]
fn another_mix_of_the_same_requests_accuses_nobody() {
    let names = ["POST /order", "GET /item"];
    for (seed, a, b) in [(1, 0.1, 0.45), (2, 0.9, 0.5), (3, 0.95, 0.85)] {
        let found = compared(
            run(2 * seed, 600, mixed(names, a, 0)),
            run(2 * seed + 1, 600, mixed(names, b, 0)),
        );
        assert!(found.culprits.is_empty(), "{a} to {b}: {found}");
        assert_ne!(found.verdict, Verdict::Worse, "{a} to {b}: {found}");
        // Who is slower is found among them as ever.
        let slower = compared(
            run(2 * seed, 600, mixed(names, a, 0)),
            run(2 * seed + 1, 600, mixed(names, b, 1_500 * US)),
        );
        assert_eq!(named(&slower), ["price"], "{a} to {b}: {slower}");
    }
}

#[test]
fn another_mix_behind_a_gateway_that_names_all_alike_accuses_nobody() {
    for (seed, a, b) in [(1, 0.1, 0.45), (2, 0.9, 0.5), (3, 0.95, 0.85)] {
        let mixed = |share, slower| mixed(["/*"; 2], share, slower);
        let found = compared(
            run(2 * seed, 600, mixed(a, 0)),
            run(2 * seed + 1, 600, mixed(b, 0)),
        );
        assert!(found.culprits.is_empty(), "{a} to {b}: {found}");
        let slower = compared(
            run(2 * seed, 600, mixed(a, 0)),
            run(2 * seed + 1, 600, mixed(b, 1_500 * US)),
        );
        assert_eq!(named(&slower), ["price"], "{a} to {b}: {slower}");
    }
}

/// As if `web` gave up its calls after so long, in each tenth request.
fn given_up(mut spans: Vec<Span>, after: Nanos) -> Vec<Span> {
    let calls = spans.iter().filter(|span| &*span.peer == "db");
    let calls = calls.filter(|call| call.trace.0.is_multiple_of(10));
    let cut = |call: &Span| (call.trace, call.length().saturating_sub(after));
    let cuts: BTreeMap<TraceId, Nanos> = calls.map(cut).collect();
    for span in spans.iter_mut().filter(|span| &*span.service != "db") {
        let cut = cuts.get(&span.trace).copied().unwrap_or(0);
        if cut > 0 {
            span.end -= cut;
            (span.status, span.cause) = match &*span.peer {
                "db" => (0, "timeout"),
                _ => (500, ""),
            };
        }
    }
    spans
}

#[test]
fn who_gives_up_sooner_is_named_and_not_who_answers_as_fast_as_before() {
    for seed in 1..=3 {
        let run = |more: u64, each| run(2 * seed + more, 400, move |_, _| shop(1, each));
        let usual = || run(0, 2_000 * US);
        let found = compared(usual(), given_up(run(1, 2_000 * US), 1_000 * US));
        assert_eq!(named(&found), ["web"], "{found}");
        let reason = &found.culprits[0].reasons[0];
        assert!(
            reason.starts_with("calls from `web` to `SELECT` are given up in "),
            "{reason}"
        );
        // It is who answers, if that takes longer.
        let found = compared(usual(), given_up(run(1, 8_000 * US), 5_000 * US));
        assert_eq!(named(&found), ["db"], "{found}");
    }
}

/// Each request also sends a message, which is taken up `later` than that, for so long, in the
/// first `taken` of the requests.
fn with_messages(mut spans: Vec<Span>, later: Nanos, length: Nanos, taken: usize) -> Vec<Span> {
    let mut messages = Vec::new();
    let webs = spans.iter().filter(|span| &*span.service == "web");
    let webs = webs.filter(|span| span.kind == SpanKind::Server);
    for (number, web) in webs.enumerate() {
        let id = 1_000_000 + 2 * number as u64;
        let names = |names: [&str; 3]| names.map(Into::into);
        messages.push(Span {
            id: SpanId(id),
            parent: web.id,
            start: web.start + 100 * US,
            end: web.start + 600 * US,
            ..Span::blank(web.trace, SpanKind::Internal, names(["web", "send", ""]))
        });
        if number < taken {
            messages.push(Span {
                id: SpanId(id + 1),
                parent: SpanId(id),
                start: web.start + later,
                end: web.start + later + length,
                ..Span::blank(web.trace, SpanKind::Server, names(["mail", "take", ""]))
            });
        }
    }
    spans.extend(messages);
    spans
}

#[test]
fn messages_that_are_taken_up_late_never_or_faster_accuse_nobody_who_sent_them() {
    for seed in 1..=3 {
        let run = |more: u64, each| run(2 * seed + more, 400, move |_, _| shop(2, each));
        let usual = |more| run(more, 500 * US);
        let a = with_messages(usual(0), 50_000 * US, 400 * US, 400);
        for b in [
            // The last are still in the queue when the recording ends.
            with_messages(usual(1), 8_000_000 * US, 400 * US, 300),
            with_messages(usual(1), 50_000 * US, 10 * US, 400),
        ] {
            let found = compared(a.clone(), b);
            assert!(found.culprits.is_empty(), "seed {seed}: {found}");
        }
        // Who is behind a fault is named beside them.
        let slow = with_messages(run(1, 1_500 * US), 50_000 * US, 400 * US, 400);
        let found = compared(a.clone(), slow);
        assert_eq!(named(&found), ["db"], "seed {seed}: {found}");
    }
}

/// As a system records them that has no spans of calls.
fn without_calls(mut spans: Vec<Span>) -> Vec<Span> {
    let calls = spans.iter().filter(|span| span.kind == SpanKind::Client);
    let callers: BTreeMap<SpanId, SpanId> = calls.map(|span| (span.id, span.parent)).collect();
    spans.retain(|span| span.kind != SpanKind::Client);
    for span in &mut spans {
        span.parent = callers.get(&span.parent).copied().unwrap_or(span.parent);
    }
    spans
}

/// As they are if the clock of `db` is behind those of the others.
fn skewed(mut spans: Vec<Span>) -> Vec<Span> {
    for span in spans.iter_mut().filter(|span| &*span.service != "db") {
        (span.start, span.end) = (span.start + 50_000 * US, span.end + 50_000 * US);
    }
    spans
}

#[test]
fn another_clock_of_a_callee_whose_calls_have_no_spans_accuses_nobody() {
    for seed in 1..=3 {
        let run =
            |more: u64, each| without_calls(run(2 * seed + more, 400, move |_, _| shop(2, each)));
        let (a, b) = (run(0, 500 * US), run(1, 500 * US));
        for (a, b) in [
            (a.clone(), skewed(b.clone())),
            (skewed(a.clone()), b.clone()),
        ] {
            let found = compared(a, b);
            assert!(found.culprits.is_empty(), "seed {seed}: {found}");
        }
        let found = compared(a, skewed(run(1, 3_000 * US)));
        assert_eq!(named(&found).first(), Some(&"db"), "seed {seed}: {found}");
    }
}

#[test]
fn a_call_that_is_left_out_while_all_goes_on_is_told_and_accuses_nobody() {
    let web = |asks: bool| {
        move |_, _| {
            let mut calls = vec![visit("cache", "GET", 300 * US, Vec::new())];
            calls.extend(queries(usize::from(asks), 20_000 * US));
            calls.push(visit("mail", "/mail", 1_000 * US, Vec::new()));
            visit("web", "/web", 1_000 * US, calls)
        }
    };
    let found = compared(run(1, 400, web(true)), run(2, 400, web(false)));
    assert!(found.culprits.is_empty(), "{found}");
    assert_eq!(found.verdict, Verdict::Better, "{found}");
    let said = found.sentences.concat();
    assert!(
        said.contains("Of the visits of `/web` in `web`, 100 % in B and 0 % in A leave out `SELECT` of `db` and go on to the same end"),
        "{said}"
    );
    let same = compared(run(1, 400, web(true)), run(2, 400, web(true)));
    assert!(!same.sentences.concat().contains("leave out"), "{same}");
}

#[test]
fn what_some_did_before_is_not_what_none_did() {
    let asks = |share: f64| {
        move |_, chance: f64| {
            let calls = queries(usize::from(chance < share), 20_000 * US);
            visit("web", "/web", 1_000 * US, calls)
        }
    };
    let found = compared(run(1, 600, asks(0.05)), run(2, 600, asks(0.5)));
    let said = found.sentences.concat();
    assert!(said.contains("do what few did before: `SELECT`"), "{said}");
    let found = compared(run(1, 600, asks(0.0)), run(2, 600, asks(0.5)));
    let said = found.sentences.concat();
    assert!(said.contains("do what none did before: `SELECT`"), "{said}");
}

#[test]
fn a_callee_with_another_name_accuses_nobody() {
    let asks = |service, name, took: Nanos| {
        move |_, _| {
            let calls = vec![visit(service, name, took * US, Vec::new())];
            visit("web", "/web", 1_000 * US, calls)
        }
    };
    let usual = || run(1, 400, asks("db", "/q", 2_000));
    for (service, name, told) in [
        (
            "db-v2",
            "/q",
            "call `/q` of `db-v2` in place of `/q` of `db`",
        ),
        (
            "db",
            "GET /q",
            "call `GET /q` of `db` in place of `/q` of `db`",
        ),
    ] {
        let found = compared(usual(), run(2, 400, asks(service, name, 2_000)));
        assert!(found.culprits.is_empty(), "{found}");
        let said = found.sentences.concat();
        assert!(said.contains(told), "{said}");
    }
    // What takes longer is no other name alone.
    let found = compared(usual(), run(2, 400, asks("db", "GET /q", 6_000)));
    assert_eq!(named(&found), ["web"], "{found}");
}

#[test]
fn calls_that_are_no_longer_recorded_are_missing_and_accuse_nobody() {
    let spans = |seed, is_whole: bool| {
        let mut spans = run(seed, 400, |_, _| shop(1, 2_000 * US));
        spans.retain(|span| is_whole || span.kind != SpanKind::Client || &*span.service != "web");
        spans
    };
    for (a, b) in [(true, false), (false, true)] {
        let found = compared(spans(1, a), spans(2, b));
        assert!(found.culprits.is_empty(), "{found}");
        let notes = found.notes.concat();
        assert!(
            notes.contains("Spans are missing: about ") && notes.contains("the most of `web`"),
            "{notes}"
        );
    }
    let whole = compared(spans(1, true), spans(2, true));
    assert!(!whole.notes.concat().contains("missing"), "{whole}");
}

#[test]
fn many_slow_requests_in_few_groups_are_told_and_are_no_pass() {
    let cold = |slow: std::ops::Range<u64>| {
        move |number, _: f64| {
            let own = if slow.contains(&number) {
                400_000
            } else {
                1_000
            };
            visit("web", "/web", 1_000 * US, queries(1, own * US))
        }
    };
    let found = compared(run(1, 400, cold(0..0)), run(2, 400, cold(0..40)));
    assert_eq!(found.verdict, Verdict::PossiblyWorse, "{found}");
    assert!(found.culprits.is_empty(), "{found}");
    let said = &found.sentences[0];
    assert!(
        said.starts_with("B may be slower: 40 of the 400 requests to `/web` of `web` (10 %)")
            && said.contains("They came in one group")
            && said.contains("`db` has "),
        "{said}"
    );
    // As few as could come by chance, one by one, say nothing.
    let few = compared(run(1, 400, cold(0..0)), run(2, 400, cold(0..3)));
    assert_eq!(few.verdict, Verdict::NoDifferenceResolvable, "{few}");
    assert!(!few.sentences.concat().contains("may be slower"), "{few}");
}
