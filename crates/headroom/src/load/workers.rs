//! Load from several machines.

use std::time::Duration;

use anyhow::Result;
use lab_generator::Local;
use lab_generator::workers::{Nats, Remote, ServeSettings, Settings, serve as follow};
use lab_load::{Generate, Workload};
use lab_store::Outcome;

use super::args::WorkersArgs;
use super::interrupt::Interrupt;
use crate::output::eprint;

fn nats(args: &WorkersArgs) -> Result<Nats> {
    Ok(Nats::new(args.nats.as_deref(), |name| {
        std::env::var(name).ok()
    })?)
}

/// Waits for all workers and gives each its share.
pub(super) fn gather(
    args: &WorkersArgs,
    workers: u32,
    workload: &Workload,
    interrupt: &Interrupt,
) -> Result<Box<dyn Generate>> {
    let mut settings = Settings::new(nats(args)?, args.session.clone(), workers);
    settings.within = args.workers_within;
    interrupt.noted();
    let mut there = 0;
    let remote = Remote::start(workload, &settings, &mut |facts| {
        if facts.len() > there {
            there = facts.len();
            eprint(format_args!(
                "headroom: {there} of {workers} workers are there"
            ));
        }
        interrupt.flow()
    })?;
    Ok(Box::new(remote))
}

/// Is a worker until its coordinator says that it is over.
pub(super) fn serve(args: &WorkersArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let settings = ServeSettings {
        nats: nats(args)?,
        session: args.session.clone(),
        name: name(),
        within: args.workers_within.max(Duration::from_secs(1)),
        interrupted: interrupt.flag(),
    };
    interrupt.noted();
    follow(&settings, |workload| Ok(Box::new(Local::start(workload)?)))?;
    Ok(Outcome::Pass)
}

/// The name of this machine and the number of this process: unique among the workers.
fn name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "worker" } else { host };
    format!("{host}-{}", std::process::id())
}
