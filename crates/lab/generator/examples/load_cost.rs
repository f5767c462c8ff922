//! What one thread of the generator costs for each request, without the command around
//! it; for profiles and for counting system calls.
//!
//! `load_cost ADDRESS CONNECTIONS SECONDS [exact|coalesce|spin] [RATE]`: a closed loop, or
//! evenly spaced requests at a rate.

#[path = "../tests/workload/mod.rs"]
mod workload;

use std::error::Error;

use lab_load::Pace;
use lab_load::arrivals::Process;
use workload::{closed, open, plain, run};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |index: usize| arguments.get(index).map_or("", String::as_str);
    let mut workload = plain(text(0).parse()?, text(1).parse()?);
    let seconds: f64 = text(2).parse()?;
    workload.pace = match text(3) {
        "coalesce" => Pace::Coalesce,
        "spin" => Pace::Spin,
        _ => Pace::Exact,
    };
    let segment = match text(4).parse() {
        Ok(rate) => open(Process::Constant, rate, seconds),
        Err(_) => {
            let mut segment = closed(0);
            segment.length.requests = None;
            segment.length.duration = Some(std::time::Duration::from_secs_f64(seconds));
            segment
        }
    };
    let total = run(workload, &segment).total;
    let seen = total.requests();
    let cpu: f64 = total.threads_cpu.iter().map(|cpu| cpu.as_secs_f64()).sum();
    let quantile = |q| seen.actual.quantile(q).unwrap_or_default().as_secs_f64() * 1e6;
    let late = |q| seen.lateness.quantile(q).unwrap_or_default().as_micros();
    println!(
        "{:.0}/s  {:.2} us CPU a request  p50 {:.0} us  p99 {:.0} us  late p50 {} us  p99 {} us  \
         failed {}",
        seen.answered as f64 / total.length.as_secs_f64(),
        cpu * 1e6 / seen.answered.max(1) as f64,
        quantile(0.5),
        quantile(0.99),
        late(0.5),
        late(0.99),
        seen.failed()
    );
    Ok(())
}
