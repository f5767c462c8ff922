//! What is said of who is behind it.

use stats::SplitMix;

use super::comparing::chain;
use super::runs::{graph, simulated};
use super::*;

fn said(spans: &[Span], topology: Option<&crate::topology::Topology>) -> String {
    analyse(spans, topology, None).sentences.join("\n")
}

/// 200 requests of root → leaf without work. Of one in five the ways there and back take
/// longer by so much.
fn hops(slow: (Nanos, Nanos)) -> Vec<Span> {
    let request = |at: u64| {
        let start = at * 100 * MS;
        let (out, back) = if at.is_multiple_of(5) { slow } else { (0, 0) };
        let arrived = start + 2 * MS + at * 10 + out;
        let read = arrived + 2 * MS + back;
        let mut trace = [
            server((1, 0), "root", (start, read + MS)),
            client((2, 1), "root>leaf", (start + MS, read)),
            server((3, 2), "leaf", (arrived, arrived + MS)),
        ];
        trace
            .iter_mut()
            .for_each(|span| span.trace = TraceId(u128::from(at) + 1));
        trace
    };
    (0..200).flat_map(request).collect()
}

#[test]
fn a_slow_network_and_a_service_that_stands_still_are_told_apart() {
    let network = said(&hops((20 * MS, 15 * MS)), None);
    let both = "Both ways between `root` and `leaf` take ";
    let hold = "longer than the machine needs, and hold 100 % of what is above p50";
    assert!(network.contains(hold), "{network}");
    assert!(network.contains(both), "{network}");
    assert!(!network.contains("stood still"), "{network}");

    let leaf = said(&hops((20 * MS, 0)), None);
    let still = "With what was on its way to it, `leaf` holds 100 % of what is above p50 (100 % to 100 %); what left it took no longer, so it stood still";
    assert!(leaf.contains(still), "{leaf}");
    assert!(!leaf.contains("Both ways"), "{leaf}");

    let root = said(&hops((0, 20 * MS)), None);
    assert!(root.contains(&still.replace("leaf", "root")), "{root}");
}

#[test]
fn processor_time_that_one_service_lacks_and_that_all_lack_are_told_apart() {
    let text = "[services.root]\nentry = true\nsteps = [{ cpu = \"2ms\" }, { call = \"leaf\" }]\n\
         [services.leaf]\nsteps = [{ cpu = \"5ms\" }]\n";
    let known = graph(text);
    let limited =
        graph(&text.replace("[services.leaf]", "[services.leaf]\nlimits = { cpu = 0.5 }"));
    let mut random = SplitMix::new(7);
    let leaf = chain(&mut random, 200, |_| 5 * MS);
    let alone = said(&leaf, Some(&known));
    let lacked = "Of the services `leaf` alone lacked a processor, for 50 % of its work's time: ";
    assert!(alone.contains(&format!("{lacked}a neighbour")), "{alone}");
    let limit = said(&leaf, Some(&limited));
    assert!(
        limit.contains(&format!("{lacked}its limit of 0.5 processors")),
        "{limit}"
    );

    let mut all = chain(&mut random, 200, |_| 0);
    for span in all.iter_mut().filter(|span| span.kind == SpanKind::Work) {
        span.cpu /= 2;
    }
    let all = said(&all, Some(&known));
    assert!(all.contains("processors were busy with others"), "{all}");
    assert!(!all.contains("alone"), "{all}");

    // Most of what is lost is the leaf's, and yet all wait: the root has little work.
    let mut late = leaf;
    for span in late
        .iter_mut()
        .filter(|span| span.kind == SpanKind::Server && *span.service == *"root")
    {
        span.end += 4 * MS;
    }
    let late_run = late;
    let late = said(&late_run, Some(&known));
    assert!(late.contains("processors were busy with others"), "{late}");

    // Unless it needs most of a limit of its own.
    for (limit, alone) in [("0.12", true), ("0.5", false)] {
        let limits = format!("[services.leaf]\nlimits = {{ cpu = {limit} }}");
        let limited = graph(&text.replace("[services.leaf]", &limits));
        let told = said(&late_run, Some(&limited));
        assert_eq!(
            told.contains("Of the services `leaf` alone"),
            alone,
            "{told}"
        );
        let unharmed = said(&chain(&mut random, 200, |_| 0), Some(&limited));
        assert!(!unharmed.contains("processor"), "{unharmed}");
    }

    let none = said(&chain(&mut random, 200, |_| 0), Some(&known));
    assert!(!none.contains("processors"), "{none}");
}

#[test]
fn a_worker_that_wakes_up_late_is_not_a_busy_one() {
    let topology = graph(
        "[services.root]\nentry = true\nworkers = 2\nsteps = [{ cpu = \"10ms\" }, { call = \"leaf\" }]\n[services.leaf]\n",
    );
    // One request at a time: a worker is free, and runs late.
    let request = |at: u64| {
        let start = at * 100 * MS;
        let late = 5 * MS + at * 10_000;
        let end = start + late + 10 * MS;
        let mut trace = [
            server((1, 0), "root", (start, end + MS)),
            work((2, 1), "root cpu", (start, end), 10 * MS),
            client((3, 1), "root>leaf", (end, end + MS)),
            server((4, 3), "leaf", (end + 50_000, end + MS - 50_000)),
        ];
        trace[1].queue = late;
        trace
            .iter_mut()
            .for_each(|span| span.trace = TraceId(u128::from(at) + 1));
        trace
    };
    let spans: Vec<Span> = (0..200).flat_map(request).collect();
    let text = said(&spans, Some(&topology));
    // It may have worked more than others, so its threads wait longer: that accuses nobody.
    let nobody = "no single place stands out (all together 5.";
    assert!(text.contains(nobody), "{text}");
    assert!(!text.contains("waiting for a worker"), "{text}");
}

#[test]
fn pauses_of_retries_are_told_as_such() {
    let topology = graph(
        "[services.root]\nentry = true\nsteps = [{ call = \"leaf\", retries = 3, backoff = \"30ms\" }]\n\
         [services.leaf]\nfaults = { error = \"20%\" }\nsteps = [{ sleep = \"1ms\" }]\n",
    );
    let text = said(&simulated(&topology, 2_000), Some(&topology));
    assert!(
        text.contains("of that is `root` pausing before it calls `leaf` again"),
        "{text}"
    );
    assert!(!text.contains("handling"), "{text}");
}

#[test]
fn without_traces_it_says_what_to_do() {
    let text = "[services.root]\nentry = true\n";
    let known = graph(text);
    assert_eq!(
        said(&[], Some(&known)),
        "There are no traces yet. Send requests to the entry, and ask again."
    );
    let untraced = graph(&format!("[trace]\nsample = \"0%\"\n{text}"));
    assert!(said(&[], Some(&untraced)).starts_with("No request is traced: `sample` is 0 %."));
    let elsewhere = [server((1, 9), "leaf", (0, MS))];
    assert!(said(&elsewhere, Some(&known)).starts_with("No trace is of a request to the entry"));
}

#[test]
fn a_branch_that_is_waited_for_once_is_not_said() {
    let branches = |requests: u64, with_company: u64| -> Vec<Span> {
        let request = |at: u64| {
            let mut trace = vec![
                server((1, 0), "root", (0, 10 * MS)),
                client((2, 1), "root>slow", (0, 10 * MS)),
            ];
            if at < with_company {
                trace.push(client((3, 1), "root>fast", (0, 5 * MS)));
            }
            trace
                .iter_mut()
                .for_each(|span| span.trace = TraceId(u128::from(at) + 1));
            trace
        };
        (0..requests).flat_map(request).collect()
    };
    let waits = "`root` waits for its call of `slow`";
    let always = said(&branches(100, 100), None);
    assert!(always.contains(waits), "{always}");
    let once = said(&branches(100, 1), None);
    assert!(!once.contains(waits), "{once}");
}
