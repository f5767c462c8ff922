//! Who is accused, over many runs of a machine that has other things to do: nobody, unless
//! something was planted.

use stats::SplitMix;

use super::runs::{graph, simulated};
use super::*;
use crate::topology::Topology;
use traces::analysis::SuspectKind;

const CHAIN: &str = "[services.front]\nentry = true\nsteps = [{ cpu = \"500us\" }, { call = \"mid\" }]\n\
     [services.mid]\nsteps = [{ cpu = \"1ms\" }, { call = \"leaf\" }]\n\
     [services.leaf]\nsteps = [{ cpu = \"1ms\" }]\n";

const NAMES: [&str; 3] = ["front", "mid", "leaf"];

const WORK: [u64; 3] = [500_000, MS, MS];

/// What is wrong with a run.
#[derive(Clone, Copy, PartialEq)]
enum Planted {
    Nothing,
    /// Work of the middle takes 2 ms more.
    Work,
    /// Whatever the middle does, it does 2 ms later, one time in three.
    Stall,
    /// Both ways between the last two take 1 ms more.
    Edge,
}

/// A run of 600 requests in 6 s, on a machine that keeps threads waiting: now and then, and
/// much of the time in some seconds.
struct Machine {
    random: SplitMix,
    planted: Planted,
    busy: [bool; 6],
}

impl Machine {
    fn new(seed: u64, planted: Planted) -> Self {
        let mut random = SplitMix::new(seed);
        let busy = [(); 6].map(|()| random.below(3) == 0);
        Self {
            random,
            planted,
            busy,
        }
    }

    /// How late a thread of a service runs that is ready at a time.
    fn late(&mut self, service: usize, time: u64) -> u64 {
        let busy = self.busy[(time / 1_000_000_000 % 6) as usize];
        let chance = if busy { 30 } else { 5 };
        let mut late = 30_000.0 * self.random.exponential();
        if self.random.below(100) < chance {
            late += 1e6 * self.random.exponential();
        }
        if self.planted == Planted::Stall && service == 1 && self.random.below(3) == 0 {
            late += 2e6;
        }
        late as u64
    }

    fn spans(&mut self) -> Vec<Span> {
        (0..600).flat_map(|at| self.request(at)).collect()
    }

    fn request(&mut self, at: u64) -> Vec<Span> {
        let mut now = at * 10 * MS + self.random.below(1_000_000) as u64;
        let mut spans = Vec::new();
        let mut began = [0; 3];
        let mut sent = [0; 3];
        for (service, name) in NAMES.into_iter().enumerate() {
            let id = service as u64 * 10 + 1;
            if service > 0 {
                sent[service] = now;
                now += 40_000 + self.late(service, now) + self.slow(service);
            }
            began[service] = now;
            let queue = 10_000 + self.late(service, now);
            let planted = self.planted == Planted::Work && service == 1;
            let cpu = WORK[service] + if planted { 2 * MS } else { 0 };
            let ready = now + queue;
            let end = ready + cpu + self.late(service, ready);
            let mut span = work((id + 1, id), &format!("{name} cpu"), (now, end), cpu);
            span.queue = queue;
            spans.push(span);
            now = end + 20_000;
        }
        for service in (0..NAMES.len()).rev() {
            let id = service as u64 * 10 + 1;
            now += 10_000 + self.late(service, now);
            let caller = if service > 0 { id - 8 } else { 0 };
            spans.push(server((id, caller), NAMES[service], (began[service], now)));
            if service > 0 {
                let who = format!("{}>{}", NAMES[service - 1], NAMES[service]);
                now += 40_000 + self.late(service - 1, now) + self.slow(service);
                let of = caller - 2;
                spans.push(client((caller, of), &who, (sent[service], now)));
            }
        }
        for span in &mut spans {
            span.trace = TraceId(u128::from(at) + 1);
        }
        spans
    }

    fn slow(&self, callee: usize) -> u64 {
        match self.planted == Planted::Edge && callee == 2 {
            true => MS,
            false => 0,
        }
    }
}

/// Those that are accused; the machine is nobody.
fn accused(analysis: &Analysis) -> Vec<(SuspectKind, &str)> {
    let suspects = analysis.suspects.iter();
    let suspects = suspects.filter(|one| one.kind != SuspectKind::Machine);
    suspects.map(|one| (one.kind, one.place.as_str())).collect()
}

fn count(seeds: u64, planted: Planted, is: impl Fn(&[(SuspectKind, &str)]) -> bool) -> usize {
    let topology = graph(CHAIN);
    let of = |seed| {
        let spans = Machine::new(seed, planted).spans();
        let analysis = analyse(&spans, Some(&topology), None);
        let found = is(&accused(&analysis));
        usize::from(found)
    };
    (0..seeds).map(of).sum()
}

#[test]
fn a_machine_with_other_work_makes_no_suspects() {
    let accused = count(40, Planted::Nothing, |all| !all.is_empty());
    assert!(accused <= 2, "{accused} of 40 runs");
}

#[test]
fn what_was_planted_on_such_a_machine_is_named_and_nobody_else() {
    for (planted, kind, place) in [
        (Planted::Work, SuspectKind::Work, "mid cpu"),
        (Planted::Stall, SuspectKind::Stall, "mid"),
        (Planted::Edge, SuspectKind::Network, "mid>leaf"),
    ] {
        let named = count(10, planted, |all| all.contains(&(kind, place)));
        assert!(named >= 9, "{place}: {named} of 10");
        let others = count(10, planted, |all| all.iter().any(|one| one.1 != place));
        assert!(others <= 1, "{place}: others in {others} of 10");
    }
}

#[test]
fn a_run_on_a_busy_machine_says_that_no_single_place_stands_out() {
    let topology = graph(CHAIN);
    let spans = Machine::new(3, Planted::Nothing).spans();
    let said = analyse(&spans, Some(&topology), None).sentences.join("\n");
    assert!(said.contains("no single place stands out"), "{said}");
}

#[test]
fn the_same_spans_give_the_same_answer() {
    let topology = graph(CHAIN);
    let spans = Machine::new(9, Planted::Stall).spans();
    let one = analyse(&spans, Some(&topology), None);
    assert_eq!(one, analyse(&spans, Some(&topology), None));
}

/// Both branches take the same time as asked; which of them is waited for is up to
/// `slower`, that takes `by` more.
fn branches(asked: (u64, u64), done: (u64, u64)) -> (Topology, Vec<Span>) {
    let text = |(price, stock): (u64, u64)| {
        format!(
            "[services.root]\nentry = true\nsteps = [{{ parallel = [{{ call = \"price\" }}, {{ call = \"stock\" }}] }}]\n\
             [services.price]\nsteps = [{{ cpu = \"{price}us\" }}]\n\
             [services.stock]\nsteps = [{{ cpu = \"{stock}us\" }}]\n"
        )
    };
    let mut spans = simulated(&graph(&text(done)), 300);
    for span in &mut spans {
        // One after the other.
        let later = span.trace.0 as u64 % 1_000 * MS;
        span.start += later;
        span.end += later;
    }
    (graph(&text(asked)), spans)
}

#[test]
fn work_that_only_moved_onto_the_critical_path_is_not_said_to_have_grown() {
    let said = |asked, done| {
        let (topology, spans) = branches(asked, done);
        let analysis = analyse(&spans, Some(&topology), None);
        let names: Vec<String> = accused(&analysis)
            .iter()
            .map(|one| one.1.to_owned())
            .collect();
        (names, analysis.sentences.join("\n"))
    };
    // It grew.
    let (names, text) = said((8_000, 4_000), (12_000, 4_000));
    assert_eq!(names, ["price cpu"], "{text}");
    assert!(
        text.contains("of it 4 ms `price`'s cpu work itself"),
        "{text}"
    );
    // It grew, and nobody waits for it.
    let (names, text) = said((8_000, 4_000), (8_000, 6_000));
    assert_eq!(names, [""; 0], "{text}");
    let off = "Off the critical path, `stock`'s cpu work takes 2 ms more than asked: nobody waits";
    assert!(text.contains(off), "{text}");
    // The other one shrank: this one takes what it took.
    let (names, text) = said((8_000, 6_000), (1_000, 6_000));
    assert_eq!(names, [""; 0], "{text}");
    let moved = "6 ms of a request is `stock`'s cpu work that moved onto the critical path";
    assert!(text.contains(moved), "{text}");
    // Nothing changed.
    let (names, text) = said((8_000, 6_000), (8_000, 6_000));
    assert_eq!(names, [""; 0], "{text}");
    assert!(text.contains("the budget is kept"), "{text}");
    assert!(!text.contains("critical path"), "{text}");
}

fn retried(price: &str, call: &str) -> (Topology, Vec<Span>) {
    let topology = graph(&format!(
        "[services.front]\nentry = true\nsteps = [{{ parallel = [{{ call = \"price\", {call} }}, {{ call = \"stock\" }}] }}]\n\
         [services.price]\n{price}\nsteps = [{{ cpu = \"500us\" }}]\n\
         [services.stock]\nsteps = [{{ sleep = \"5ms\" }}]\n"
    ));
    let spans = simulated(&topology, 2_000);
    (topology, spans)
}

#[test]
fn retries_time_outs_and_drops_are_causes_with_their_share_and_cost() {
    let first = |price: &str, call: &str| {
        let (topology, spans) = retried(price, call);
        let analysis = analyse(&spans, Some(&topology), None);
        let handling = analysis
            .components
            .iter()
            .find(|one| one.cause == traces::analysis::Cause::Own && one.service == "front");
        // What it waits for is not its own.
        assert!(
            handling.is_none_or(|own| own.figures.mean_ns < 1_000.0),
            "{analysis}"
        );
        assert_eq!(analysis.conservation.worst_ns, 0);
        let one = analysis.suspects.first().cloned();
        (one, analysis.sentences.join("\n"))
    };
    let pauses = "retries = 3, backoff = \"20ms\"";
    let (one, text) = first("faults = { error = \"20%\" }", pauses);
    let one = one.unwrap();
    assert_eq!(
        (one.kind, &*one.place),
        (SuspectKind::Retries, "front>price")
    );
    // One in five fails once, and so on: at least 0.2 of 20 ms less what `stock` takes.
    assert!((3e6..6e6).contains(&one.effect_ns), "{one:?}");
    assert!(
        text.contains("Of the calls from `front` to `price` 19"),
        "{text}"
    );
    assert!(text.contains("failed and were made again"), "{text}");

    let slow = "faults = { delay = { rate = \"5%\", by = \"200ms\" } }";
    let (one, text) = first(slow, "retries = 3, timeout = \"40ms\"");
    let one = one.unwrap();
    assert_eq!(
        (one.kind, &*one.place),
        (SuspectKind::Timeouts, "front>price")
    );
    assert!(
        text.contains("ran out of time and were made again"),
        "{text}"
    );

    let (one, text) = first("faults = { drop = \"5%\" }", "retries = 3");
    let one = one.unwrap();
    assert_eq!((one.kind, &*one.place), (SuspectKind::Drops, "front>price"));
    assert!(
        text.contains("lost their connection without an answer and were made again"),
        "{text}"
    );

    let (one, text) = first("", pauses);
    assert_eq!(one, None, "{text}");
    assert!(!text.contains("made again"), "{text}");
}

/// Requests under one profile, then under another.
fn changed(second: &str) -> (Topology, Vec<Span>) {
    let run = |text: &str, revision: u32| {
        let mut spans = simulated(&graph(text), 400);
        for span in &mut spans {
            let number = span.trace.0 as u64 % 1_000 + u64::from(revision) * 1_000;
            span.revision = revision;
            // The n-th request is the n-th under each profile.
            span.trace = TraceId(span.trace.0 ^ u128::from(revision));
            span.start += number * MS;
            span.end += number * MS;
        }
        spans
    };
    let mut spans = run(CHAIN, 1);
    spans.extend(run(second, 2));
    (graph(second), spans)
}

#[test]
fn requests_are_held_to_the_profile_that_they_ran_under() {
    let slower = CHAIN.replace(
        "[services.mid]\nsteps = [{ cpu = \"1ms\" }",
        "[services.mid]\nsteps = [{ cpu = \"16ms\" }",
    );
    let (topology, spans) = changed(&slower);
    let analysis = analyse(&spans, Some(&topology), None);
    let each: Vec<_> = analysis
        .revisions
        .iter()
        .map(|one| (one.revision, one.requests, one.chosen))
        .collect();
    assert_eq!(each, [(1, 400, false), (2, 400, true)]);
    assert_eq!(analysis.latency.count, 400);
    assert_eq!(analysis.entry.as_ref().unwrap().requests, 800);
    assert_eq!(accused(&analysis), [(SuspectKind::Profile, "mid cpu")]);
    let text = analysis.sentences.join("\n");
    for said in [
        "The profile changed while requests came: 400 under revision 1 (mean 2.5",
        "400 under revision 2 (mean 17.6",
        "Since revision 1 a request takes 15 ms more",
        "of it 15 ms `mid cpu` cpu.",
        "the budget is kept",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }

    let (topology, spans) = changed(CHAIN);
    let analysis = analyse(&spans, Some(&topology), None);
    assert_eq!(accused(&analysis), []);
    let text = analysis.sentences.join("\n");
    assert!(
        text.contains("No difference between both can be resolved."),
        "{text}"
    );

    // One profile: nothing is said of it.
    let own: Vec<Span> = spans.into_iter().filter(|one| one.revision == 2).collect();
    let one = Question {
        topology: Some(&topology),
        ..Question::default()
    };
    let one = one.analyse(&own);
    assert_eq!(one.revisions, []);
    assert!(!one.sentences.join("\n").contains("revision"));
}

#[test]
fn what_an_internal_span_of_another_system_does_is_not_called_processor_time() {
    let spans: Vec<Span> = (0..200u64)
        .flat_map(|at| {
            let start = at * 100 * MS;
            let end = start + 5 * MS + at % 7 * MS;
            let mut both = [
                server((1, 0), "shop", (start, end)),
                work((2, 1), "shop render", (start, end), 0),
            ];
            both.iter_mut()
                .for_each(|span| span.trace = TraceId(u128::from(at) + 1));
            both
        })
        .collect();
    let analysis = analyse(&spans, None, None);
    let text = analysis.sentences.join("\n");
    assert!(!text.contains("work"), "{text}");
    assert!(text.contains("`shop` in its span `render`"), "{text}");
}
