//! What a plan names that this machine does not have, before anything is started.

use std::path::{Path, PathBuf};

use lab_experiment::plan::{Plan, Program, Segment, System, Template};
use nix::unistd::{AccessFlags, access};

use crate::installed::is_installed;
use crate::loads::Files;
use crate::run::leave_out;

/// What the systems of a plan need and this machine lacks, in a line each: programs, with what is
/// left out without them, also such as start from the folder `base` of the file, processors, and
/// files that requests are made of. Only those are told whose names hold nothing to be filled in;
/// another machine, or what happens before the run, may have them.
#[must_use]
pub fn lacking(plan: &Plan, base: &Path) -> Vec<String> {
    let mut plan = plan.clone();
    let left_out = leave_out(&mut plan);
    let makes = plan.steps.iter().any(|step| step.run.is_some());
    // What is needed by name is there: the rest was left out.
    let systems = plan.systems.iter().filter(|system| system.needs.is_none());
    let lacking = systems.flat_map(|system| {
        let program = program(system, base).map(|program| match makes {
            true => format!(
                "{program}; a command of a step may make it, but systems start before steps"
            ),
            false => program,
        });
        let cpus = system.cpus.as_deref().unwrap_or_default();
        let processor = processes::lacking_processor(cpus);
        let processor = processor.map(|why| format!("system {}: {why}", system.name));
        program.into_iter().chain(processor)
    });
    let files = Files::read(&plan, base);
    let files = files.err().map(|error| error.to_string());
    left_out
        .lines
        .into_iter()
        .chain(lacking)
        .chain(files)
        .collect()
}

fn program(system: &System, base: &Path) -> Option<String> {
    let Program::Path(Template(parts)) = &system.program else {
        return None;
    };
    let mut name = String::new();
    for part in parts {
        match part {
            Segment::Text(text) => name += text,
            Segment::Reference(_) | Segment::Variable(_) => return None,
        }
    }
    let of = format!("system {}: the program", system.name);
    if !name.contains('/') {
        return (!is_installed(&name)).then(|| format!("{of} {name} is not found in PATH"));
    }
    let path: PathBuf = base.join(&name);
    match path.metadata() {
        Ok(about) if about.is_file() => access(&path, AccessFlags::X_OK)
            .is_err()
            .then(|| format!("{of} {name} is not executable")),
        Ok(_) => Some(format!("{of} {name} is no file")),
        Err(error) => Some(format!("{of} {name}: {error}")),
    }
}
