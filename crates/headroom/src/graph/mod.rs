//! `headroom graph`: service graphs, from their file to the sentence about their latency.

mod analyse;
mod args;
mod background;
mod check;
mod deployment;
mod family;
mod file;
mod kubernetes;
mod local;
mod make;
mod noise;
mod profile;
mod service;
mod serving;
mod spans;
mod up;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
pub(crate) use args::GraphCommand;
use document::{Problems, Source};
use graph::Nanos;
use graph::topology::budget::Costs;
use graph::topology::{self, Checked, Machine, Topology};
use graph::work::Calibration;
use lab_store::Outcome;
pub(crate) use make::whole;

use crate::output::eprint;

/// Does what was asked for; the services of `up` and `service` run until a signal.
pub(crate) fn run(command: GraphCommand) -> Result<Outcome> {
    match done(command) {
        Err(error) if error.is::<Problems>() => {
            // They have places: each begins a line, as editors expect.
            eprint(error);
            Ok(Outcome::Error)
        }
        done => done,
    }
}

fn done(command: GraphCommand) -> Result<Outcome> {
    match command {
        GraphCommand::Check(args) => check::check(&args)?,
        GraphCommand::Up(args) => up::up(&args)?,
        GraphCommand::Service(args) => service::service(&args)?,
        GraphCommand::Import(args) => make::import(&args)?,
        GraphCommand::Generate(command) => make::generate(&command)?,
        GraphCommand::Kubernetes(args) => kubernetes::kubernetes(&args)?,
        GraphCommand::Analyse(args) => analyse::analyse(&args)?,
        GraphCommand::Compare(args) => return crate::traces::compare(&args.a, &args.b, args.json),
        GraphCommand::Noise(args) => return noise::noise(&args),
    }
    Ok(Outcome::Pass)
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        eprint(format_args!("warning: {warning}"));
    }
}

/// Checks a topology for a machine, and tells what is doubtful; everything that is wrong with
/// it becomes the error.
fn read(source: &Source, machine: &Machine) -> Result<Topology> {
    let checked = checked(source, Some(machine))?;
    warn(&checked.warnings);
    Ok(checked.topology)
}

/// Checks a topology; files that it names stand in the folder of its own.
fn checked(source: &Source, machine: Option<&Machine>) -> Result<Checked, Problems> {
    let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    // Another process may start elsewhere; without a current folder there is no other.
    let folder = std::path::absolute(folder.join("x")).ok();
    let folder = folder.as_deref().and_then(Path::parent);
    topology::check(source, folder.unwrap_or(Path::new("")), machine)
}

/// The processors that a topology may name.
fn machine() -> Machine {
    // Numbers of processors, not how many this process may use: one of those with a high
    // number may be among the few that it may.
    let highest = rustix::thread::sched_getaffinity(None)
        .ok()
        .and_then(|set| {
            let numbers = 0..rustix::thread::CpuSet::MAX_CPU;
            numbers.rev().find(|number| set.is_set(*number))
        });
    let cpus = highest.map_or(1, |highest| highest + 1);
    Machine {
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        rate: None,
    }
}

fn nanos(length: Duration) -> Nanos {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// What work and hops take on this machine.
fn costs(hop: Nanos) -> Costs {
    Costs {
        hop,
        op: Calibration::measure().op_ns,
        ..Costs::default()
    }
}
