//! Any text as a settings file: it is read or refused, and every problem can be shown.

#![no_main]

use document::{Node, Problem, Problems, Source, parse_toml, parse_yaml};
use libfuzzer_sys::fuzz_target;

type Read = fn(&Source) -> Result<Node, Vec<Problem>>;

fuzz_target!(|text: &str| {
    let source = Source {
        name: "router".to_owned(),
        text: text.to_owned(),
    };
    for read in [parse_toml as Read, parse_yaml] {
        if let Err(problems) = read(&source) {
            assert!(!Problems::of(&source, problems).to_string().is_empty());
        }
    }
});
