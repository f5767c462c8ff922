//! Any text as a service graph: a file of ours, isotope's, or rows of calls. What is read can
//! be printed, and reads back to the same.

#![no_main]

use document::Source;
use graph::topology::import::{RowLimits, isotope, rows};
use graph::topology::{Topology, read};
use libfuzzer_sys::fuzz_target;

fn source(text: &str) -> Source {
    Source {
        name: "graph".to_owned(),
        text: text.to_owned(),
    }
}

fn reads_back(graph: &Topology) {
    let text = graph.to_toml();
    assert_eq!(read(&source(&text)).as_ref(), Ok(graph), "{text}");
}

fuzz_target!(|text: &str| {
    match read(&source(text)) {
        Ok(graph) => reads_back(&graph),
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
    if let Ok(imported) = isotope(&source(text)) {
        reads_back(&imported.topology);
    }
    if let Ok(imported) = rows("rows", text.as_bytes(), RowLimits::default()) {
        reads_back(&imported.topology);
    }
});
