//! What a plan names that this machine does not have, before anything is started.

use std::path::{Path, PathBuf};

use lab_experiment::plan::{Plan, Program, Segment, System, Template};
use nix::unistd::{AccessFlags, access};

use crate::run::is_installed;

/// What the systems of a plan need and this machine lacks, in a line each: programs, also such as
/// start from the folder `base` of the file, and processors. Only those are told whose names hold
/// nothing to be filled in; another machine, or what happens before the run, may have them.
#[must_use]
pub fn lacking(plan: &Plan, base: &Path) -> Vec<String> {
    let makes = plan.steps.iter().any(|step| step.run.is_some());
    let systems = plan.systems.iter().filter(|system| system.needs.is_none());
    systems
        .flat_map(|system| {
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
        })
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
