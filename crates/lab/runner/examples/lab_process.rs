//! A laboratory as a process of its own, to be killed by tests.
//!
//! ```text
//! lab_process FILE OUT_DIR [--keep]     make the experiment in FILE
//! lab_process reaper                    be the reaper
//! lab_process guardian LEDGER           be the guardian of faults
//! ```
//!
//! It prints the verdict as JSON and exits with the code of its outcome.

use std::process::ExitCode;

use lab_experiment::{Source, catalogue::Catalogue, check};
use lab_runner::{Display, Options, guardian_main, run};
use lab_store::Outcome;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["reaper"] {
        return processes::reaper_main();
    }
    if let [word, ledger] = args.as_slice()
        && word == "guardian"
    {
        return guardian_main(std::path::Path::new(ledger));
    }
    match experiment(&args) {
        Ok(outcome) => ExitCode::from(outcome as u8),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(Outcome::Error as u8)
        }
    }
}

fn experiment(args: &[String]) -> Result<Outcome, String> {
    let [file, out_dir, rest @ ..] = args else {
        return Err("usage: lab_process FILE OUT_DIR [--keep]".to_owned());
    };
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let source = Source {
        name: file.clone(),
        text: text.clone(),
    };
    let catalogue = Catalogue {
        may_mount: true,
        ..Catalogue::default()
    };
    let plan = check(&source, &[], &catalogue).map_err(|problems| {
        let problems = problems.iter().map(|problem| problem.render(false));
        problems.collect::<Vec<_>>().join("\n")
    })?;
    let options = Options::for_this_binary(out_dir).map_err(|error| error.to_string())?;
    let options = Options {
        keep: rest.iter().any(|arg| arg == "--keep"),
        display: Display::Plain,
        base: std::path::Path::new(file)
            .parent()
            .unwrap_or(std::path::Path::new("."))
            .to_owned(),
        ..options
    };
    let finished = run(plan, &text, options).map_err(|error| error.to_string())?;
    let verdict = serde_json::to_string(&finished.verdict).map_err(|error| error.to_string())?;
    println!("{verdict}");
    for note in &finished.notes {
        eprintln!("note: {note}");
    }
    Ok(finished.verdict.outcome)
}
