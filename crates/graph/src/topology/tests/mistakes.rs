//! What is said of each mistake.

use std::fmt::Write;
use std::path::Path;

use proptest::prelude::*;

use super::super::*;
use super::reading::source;

const MACHINE: Machine = Machine {
    cpus: 2,
    rate: Some(1000.0),
};

/// What is said of a text: places and messages, and advice behind it.
fn said(text: &str) -> String {
    let said = match check(&source(text), Path::new(""), Some(&MACHINE)) {
        Ok(checked) => checked.warnings.join("\n"),
        Err(problems) => problems.to_string(),
    };
    let lines = said.lines().filter_map(|line| {
        let advice = line.trim_start().strip_prefix("help: ");
        let advice = advice.map(|advice| format!("  {advice}"));
        advice.or_else(|| line.strip_prefix("graph.toml:").map(str::to_owned))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A graph of two with a step, in line 4, and settings of the called one, from line 7 on.
fn pair(step: &str, settings: &str) -> String {
    format!(
        "[services.a]\nentry = true\nsteps = [\n  {step},\n  {{ call = \"b\" }}]\n[services.b]\n{settings}\n"
    )
}

/// Every case of a file of them: a text, and what is said of it when `whole` has made a
/// graph of it. All that differs is told at once.
fn compare(cases: &str, whole: impl Fn(&str) -> String) {
    let mut differences = String::new();
    for case in cases.split("====\n").filter(|case| !case.is_empty()) {
        let (text, expected) = case.split_once("\n----\n").unwrap();
        let found = said(&whole(text));
        if found != expected.trim_end() {
            let _ = writeln!(
                differences,
                "====\n{text}\n----\n{found}\n(expected: {expected})"
            );
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn every_mistake_of_a_step_is_named() {
    compare(include_str!("mistakes_step.txt"), |step| pair(step, ""));
}

#[test]
fn every_mistake_of_a_service_is_named() {
    compare(include_str!("mistakes_service.txt"), |settings| {
        pair("{ ops = 1 }", settings)
    });
}

#[test]
fn every_mistake_of_the_whole_is_named() {
    compare(include_str!("mistakes_whole.txt"), str::to_owned);
}

#[test]
fn a_request_that_grows_beyond_all_bounds_is_doubted() {
    let mut text =
        "[services.s0]\nentry = true\nsteps = [{ call = \"s1\", count = 10 }]\n".to_owned();
    for at in 1..9 {
        let next = at + 1;
        let _ = writeln!(
            text,
            "[services.s{at}]\nsteps = [{{ call = \"s{next}\", count = 10 }}]"
        );
    }
    text += "[services.s9]";
    assert_eq!(
        said(&text),
        "1:11: one request makes about 1111111110 calls over all services\n  \
         lower counts, probabilities or the depth"
    );
}

/// Services with calls from each to some of those behind it.
fn any_acyclic() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (2_usize..12).prop_flat_map(|services| {
        let calls: Vec<_> = (0..services)
            .map(|at| {
                // Every service is called by one before it.
                prop::collection::vec(at + 1..services.max(at + 2), 0..4)
            })
            .collect();
        calls.prop_map(move |mut calls: Vec<Vec<usize>>| {
            for (at, callees) in calls.iter_mut().enumerate() {
                callees.retain(|to| *to < services);
                if at + 1 < services {
                    callees.push(at + 1);
                }
            }
            calls
        })
    })
}

fn file(calls: &[Vec<usize>]) -> String {
    let mut text = String::new();
    for (at, callees) in calls.iter().enumerate() {
        let steps = callees.iter().map(|to| format!("{{ call = \"s{to}\" }}"));
        let steps: Vec<String> = steps.collect();
        let _ = writeln!(
            text,
            "[services.s{at}]\nentry = {}\nsteps = [{}]",
            at == 0,
            steps.join(", ")
        );
    }
    text
}

proptest! {
    #[test]
    fn a_graph_without_a_cycle_is_none(calls in any_acyclic()) {
        prop_assert_eq!(said(&file(&calls)), "");
    }

    #[test]
    fn a_call_that_leads_back_always_is_a_cycle(
        calls in any_acyclic(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(),
    ) {
        let mut calls = calls;
        let from = from.index(calls.len());
        // Every service is reached from those before it.
        let to = to.index(from + 1);
        calls[from].push(to);
        let said = said(&file(&calls));
        let shown = said.lines().find_map(|line| line.split_once("these calls form a cycle: "));
        let Some((_, shown)) = shown else { return Err(TestCaseError::fail(said)); };
        // What is shown is a cycle of calls that are there.
        let names: Vec<usize> = shown.split(" -> ").map(|name| name[1..].parse().unwrap()).collect();
        prop_assert_eq!(names.first(), names.last());
        for pair in names.windows(2) {
            prop_assert!(calls[pair[0]].contains(&pair[1]), "{} in {:?}", shown, calls);
        }
    }

    #[test]
    fn nothing_that_is_written_ends_the_program(text in "\\PC{0,200}") {
        let _ = read(&source(&text));
        let _ = read(&source(&pair(&text, &text)));
    }

    #[test]
    fn no_file_with_letters_changed_ends_the_program(at in any::<prop::sample::Index>(), with in "\\PC{0,3}") {
        let mut text = super::reading::CHECKOUT.to_owned();
        let at = at.index(text.len());
        text.replace_range(at..at + 1, &with);
        if let Ok(graph) = read(&source(&text)) {
            prop_assert_eq!(read(&source(&graph.to_toml())).unwrap(), graph);
        }
    }
}
