//! A worker whose load is simulated, as a process that tests can kill.
//! Arguments: NATS URL, session, name, milliseconds that a second takes.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab_generator::workers::{Nats, ServeSettings, serve};
use simulated::Simulated;

#[path = "../tests/support/simulated.rs"]
#[allow(dead_code, unreachable_pub)]
mod simulated;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, session, name, second_ms] = arguments.as_slice() else {
        eprintln!("usage: simulated_worker NATS_URL SESSION NAME SECOND_MS");
        return ExitCode::FAILURE;
    };
    let Ok(second_ms) = second_ms.parse() else {
        eprintln!("SECOND_MS is no number");
        return ExitCode::FAILURE;
    };
    let second = Duration::from_millis(second_ms);
    let served = Nats::new(Some(url), |_| None).and_then(|nats| {
        let settings = ServeSettings {
            nats,
            session: session.clone(),
            name: name.clone(),
            within: Duration::from_secs(60),
            interrupted: Arc::new(AtomicBool::new(false)),
        };
        serve(&settings, |workload| {
            Ok(Box::new(Simulated { workload, second }))
        })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulated_worker {name}: {error}");
            ExitCode::FAILURE
        }
    }
}
