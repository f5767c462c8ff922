//! A target for benchmarks: answers every request at once or after a fixed time, stops
//! at planned times, and writes down when requests came in.
//!
//! `answer_server PORT [BODY_BYTES] [DELAY_US] [STOP_FIRST_S STOP_EVERY_S STOP_S] [LOG]`
//! Stops count from the first request. With a log (a file name behind the six numbers)
//! the arrival times, in nanoseconds of the monotonic clock, are written when standard
//! input ends; then it exits.

#[path = "../tests/target/mod.rs"]
mod target;

use std::io::{Read as _, Write as _};
use std::time::Duration;

use target::{Behaviour, Target};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> f64 {
        let given = arguments.get(index).map(|text| text.parse().ok());
        given.flatten().unwrap_or(0.0)
    };
    let log = arguments.get(6);
    let (first, every, length) = (number(3), number(4), number(5));
    let stops = (0..1000).map(|index| {
        let begin = first + every * f64::from(index);
        let end = begin + length;
        (Duration::from_secs_f64(begin), Duration::from_secs_f64(end))
    });
    let behaviour = Behaviour {
        body: number(1) as usize,
        delay: Duration::from_micros(number(2) as u64),
        stops: stops.filter(|_| length > 0.0).collect(),
        log: log.is_some(),
        ..Behaviour::default()
    };
    let target = Target::start(number(0) as u16, behaviour)?;
    println!("{}", target.address);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let seen = target.end();
    if let Some(path) = log {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        for time in seen {
            writeln!(file, "{time}")?;
        }
    }
    Ok(())
}
