//! `headroom`: a scale laboratory for distributed platforms, and the systems that
//! come with it. This crate is the command line, and the one place that joins the
//! two.

mod baseline;
mod calibrate;
mod catalogue;
mod cells;
mod cells_auction_sim;
mod cells_benchmark;
mod cells_certs;
mod cells_client;
mod cells_route_emitter;
mod cells_settings;
mod ci;
mod cli;
mod compare;
mod compare_page;
mod compliance;
#[cfg(test)]
mod documents;
mod gate;
mod git;
mod graph;
mod history;
mod init;
mod lab;
mod lifecycle;
mod load;
mod output;
mod page;
mod planted;
mod ready;
mod recorded;
mod router;
mod runs;
mod server;
mod shell;
mod target;
mod traces;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use cli::{CellsCommand, Cli, Command};
use lab_store::Outcome;

fn main() -> ExitCode {
    let words = cells_client::command_first(std::env::args_os().collect());
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Our exit codes are verdicts; clap's own 2 would read as "inconclusive".
            if let Some(code) = cells_client::refuse_words(&error) {
                return code;
            }
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => exit_code(Outcome::Error),
            };
        }
    };
    let done = match cli.command {
        Command::Run(args) => lab::run(&args),
        Command::Check(args) => lab::check(&args),
        Command::Report(args) => lab::report(&args),
        Command::Runs(args) => runs::run(&args),
        Command::List(args) => ready::list(&args),
        Command::Init(args) => init::init(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Baseline(args) => baseline::baseline(&args),
        Command::History(command) => history::run(&command),
        Command::Ci(command) => ci::run(&command),
        Command::Load(args) => load::run(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Target(args) => target::serve(&args).map(|()| Outcome::Pass),
        Command::Cells(part) => match *part {
            CellsCommand::Client(command) => return cells_client::run(&command),
            CellsCommand::Part(part) => cells::serve(part).map(|()| Outcome::Pass),
        },
        Command::Router(command) => router::serve(*command).map(|()| Outcome::Pass),
        Command::Compliance(command) => compliance::run(*command),
        Command::Graph(command) => graph::run(*command),
        Command::Lifecycle(command) => lifecycle::run(&command),
        Command::Traces(command) => traces::run(&command),
        Command::Completions { shell } => shell::completions(shell).map(|()| Outcome::Pass),
        Command::Man(args) => shell::man(&args).map(|()| Outcome::Pass),
        Command::Planted(args) => planted::serve(&args).map(|()| Outcome::Pass),
        Command::Reaper => return processes::reaper_main(),
        Command::Guardian { ledger } => return lab_runner::guardian_main(&ledger),
    };
    match done {
        Ok(outcome) => exit_code(outcome),
        Err(error) => {
            output::eprint(format_args!("headroom: {}", output::explained(&error)));
            exit_code(Outcome::Error)
        }
    }
}

fn exit_code(outcome: Outcome) -> ExitCode {
    ExitCode::from(outcome as u8)
}
