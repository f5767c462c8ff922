//! The truths: what was planted, what was said of it, and how often that was wrong.
//!
//! Servers with a planted fault are started, the real binary measures them as a user would have it
//! (`headroom load`, `headroom run`), and what it says is held against what is known. One statement out of place
//! is an error of the instrument: a load called VALID whose numbers are wrong, a load called INVALID
//! although nothing disturbed it, a number beyond the truth, an accusation of nobody's doing, a limit that is
//! not named.
//!
//! ```text
//! truth [--times N] [--beside N] [--markdown FILE] [WORD…]     cases whose names have one of the words
//! truth serve ADDRESS DIARY FILE                               a planted server
//! ```

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod cases;
mod claims;
#[path = "../end_to_end/free_port.rs"]
mod free_port;
mod measured;
mod server;
mod strangers;
mod table;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError, RwLock};

use cases::{Case, Needs};
use table::{Row, Table};

/// How often each truth is planted, unless told otherwise: enough to run with every other test.
/// `make truth` plants each 20 times.
const TIMES: usize = 1;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("serve") => server::serve(&words[1..]),
        Some("burn") => server::burn(&words[1..]),
        // What a runner of tests asks before it runs anything.
        Some("--list") => {}
        _ => return run(&Options::of(words)),
    }
    ExitCode::SUCCESS
}

struct Options {
    times: usize,
    /// Cases that run at the same time.
    beside: usize,
    markdown: Option<String>,
    filters: Vec<String>,
}

impl Options {
    fn of(words: Vec<String>) -> Self {
        let mut options = Self {
            times: TIMES,
            beside: 2,
            markdown: None,
            filters: Vec::new(),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut number = |what: &str| {
                let value = words.next().and_then(|value| value.parse().ok());
                value.unwrap_or_else(|| panic!("{what} needs a number"))
            };
            match word.as_str() {
                "--times" => options.times = number("--times"),
                "--beside" => options.beside = number("--beside"),
                "--markdown" => options.markdown = words.next(),
                // Flags of cargo's own runner say nothing here.
                word if word.starts_with('-') => {}
                _ => options.filters.push(word),
            }
        }
        options
    }

    fn wants(&self, case: &Case) -> bool {
        self.filters.is_empty()
            || self
                .filters
                .iter()
                .any(|word| case.name.contains(word.as_str()))
    }
}

/// Plants a truth. Where only rates count, because it is planted many times, a miss is one.
fn planted(case: &Case, machine: &RwLock<()>, counts: bool) -> Row {
    let (_beside, _alone);
    match case.needs {
        Needs::Nothing => _beside = machine.read().unwrap_or_else(PoisonError::into_inner),
        Needs::Itself | Needs::Calm => {
            _alone = machine.write().unwrap_or_else(PoisonError::into_inner);
        }
    }
    let mut row = Row::of(case);
    for _ in 0..2 {
        let may_be_hidden = case.needs == Needs::Calm || row.is_disturbed();
        if row.is_right() || counts || !may_be_hidden {
            break;
        }
        eprintln!("{row}    planted once more");
        row = Row::of(case);
    }
    let row = row.disturbed_by_strangers();
    if case.needs == Needs::Calm {
        row.hidden_by_strangers()
    } else {
        row
    }
}

fn run(options: &Options) -> ExitCode {
    let cases: Vec<Case> = cases::all()
        .into_iter()
        .filter(|case| options.wants(case))
        .collect();
    let rounds = (0..options.times).flat_map(|_| 0..cases.len());
    let todo: Mutex<VecDeque<usize>> = Mutex::new(rounds.collect());
    let table = Mutex::new(Table::default());
    let next = || {
        todo.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    let machine = RwLock::new(());
    std::thread::scope(|scope| {
        for _ in 0..options.beside.max(1) {
            scope.spawn(|| {
                while let Some(index) = next() {
                    let case = &cases[index];
                    let row = planted(case, &machine, options.times > 1);
                    eprint!("{row}");
                    table
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .add(row);
                }
            });
        }
    });
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{table}");
    if let Some(file) = &options.markdown {
        std::fs::write(file, table.markdown()).expect("the table written");
    }
    if table.within_limits() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
