//! A worker as a process that tests can kill.
//!
//! `load_worker NATS_URL SESSION NAME local|SECOND_MS`: with real load, or with load that
//! is simulated, each of whose seconds takes so many milliseconds.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab_generator::Local;
use lab_generator::workers::{Nats, ServeSettings, serve};
use lab_load::Generate;
use simulated::Simulated;

#[path = "../tests/support/simulated.rs"]
#[allow(dead_code, unreachable_pub)]
mod simulated;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, session, name, load] = arguments.as_slice() else {
        eprintln!("usage: load_worker NATS_URL SESSION NAME local|SECOND_MS");
        return ExitCode::FAILURE;
    };
    let second = match load.as_str() {
        "local" => None,
        number => match number.parse() {
            Ok(number) => Some(Duration::from_millis(number)),
            Err(error) => {
                eprintln!("load_worker: {number}: {error}");
                return ExitCode::FAILURE;
            }
        },
    };
    let served = Nats::new(Some(url), |_| None).and_then(|nats| {
        let settings = ServeSettings {
            nats,
            session: session.clone(),
            name: name.clone(),
            within: Duration::from_secs(60),
            interrupted: Arc::new(AtomicBool::new(false)),
        };
        serve(&settings, |workload| {
            let generator: Box<dyn Generate + Send> = match second {
                Some(second) => Box::new(Simulated { workload, second }),
                None => Box::new(Local::start(workload)?),
            };
            Ok(generator)
        })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load_worker {name}: {error}");
            ExitCode::FAILURE
        }
    }
}
