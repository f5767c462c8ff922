//! What experiment files may name: filled from our own command line, so that a
//! flag is known in one place only.

use clap::{ArgAction, Command, CommandFactory};
use lab_experiment::catalogue::{
    Builtin, Catalogue, DriverSpec, EntityKind, Flag, FleetKind, OwnNetwork, Setting, SettingValue,
};
use lab_experiment::plan::Ready;

use crate::cli::Cli;

/// Everything that this binary can start, simulate and drive.
pub(crate) fn catalogue() -> Catalogue {
    Catalogue {
        builtins: builtins(),
        fleets: vec![cell_fleet(), agent_fleet()],
        drivers: vec![cells_driver()],
        may_mount: processes::may_mount(),
        own_network: OwnNetwork(lab_runner::may_have_own_network),
    }
}

/// Every sub-command of a system, for instance `cells bbs`, and the servers that stand alone.
fn builtins() -> Vec<Builtin> {
    let command = Cli::command();
    let parts = command.get_subcommands().flat_map(|system| {
        let name = |part: &Command| format!("{} {}", system.get_name(), part.get_name());
        system
            .get_subcommands()
            .map(move |part| builtin(name(part), part))
    });
    let alone = ["target", "planted"].into_iter().filter_map(|name| {
        let part = command.find_subcommand(name)?;
        Some(builtin(name.to_owned(), part))
    });
    parts.chain(alone).collect()
}

fn builtin(command: String, part: &Command) -> Builtin {
    let flags = part
        .get_arguments()
        .filter_map(|argument| {
            let name = format!("--{}", argument.get_long()?);
            Some(match argument.get_action() {
                ArgAction::Set | ArgAction::Append => Flag::value(name),
                _ => Flag::switch(name),
            })
        })
        .collect();
    Builtin {
        command,
        about: part
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default(),
        flags,
    }
}

/// Simulated cells: reps whose last layer is swapped.
fn cell_fleet() -> FleetKind {
    use SettingValue::{Bytes, Choice, Count, Distribution, Duration, Share};
    let executors = ["simulated", "process"].map(String::from).to_vec();
    FleetKind {
        kind: "cell".into(),
        about: "cells of the container scheduler, all in one process".into(),
        builtin: "cells rep".into(),
        // Ready once every cell is known to the BBS; each cell takes a free port. Files
        // of containers go with the run, also when the rep is killed.
        args: "--listen 127.0.0.1:0 --admin-listen {addr} --containers {work}/containers".into(),
        talk_to_flag: Some("--bbs http://{addr}".into()),
        seed_flag: Some("--seed".into()),
        ready: Some(Ready::Http("/ping".into())),
        settings: vec![
            Setting::new("executor", Choice(executors)),
            Setting::new("capacity.containers", Count),
            Setting::new("capacity.memory", Bytes),
            Setting::new("capacity.disk", Bytes),
            Setting::new("delays.create", Distribution),
            Setting::new("delays.start", Distribution),
            Setting::new("delays.run", Distribution),
            Setting::new("delays.stop", Distribution),
            Setting::new("delays.check", Distribution),
            Setting::new("fail.create", Share),
            Setting::new("fail.run", Share),
            Setting::new("fail.check", Share),
            Setting::new("heartbeat", Duration),
            Setting::new("presence_ttl", Duration),
            Setting::new("zones", Count),
        ],
    }
}

/// Hollow agents of a compliance server: only what they report is drawn.
fn agent_fleet() -> FleetKind {
    use SettingValue::{Count, Duration, Share};
    FleetKind {
        kind: "compliance-agent".into(),
        about: "agents of a compliance server, all in one process".into(),
        builtin: "compliance agent".into(),
        // Ready once every agent has a policy.
        args: "--data {work}/agents --admin-listen {addr}".into(),
        talk_to_flag: Some("--server https://{addr}".into()),
        seed_flag: Some("--seed".into()),
        ready: Some(Ready::Http("/ping".into())),
        settings: vec![
            Setting::new("interval", Duration),
            Setting::new("runs", Count),
            Setting::new("spool", Count),
            Setting::new("errors", Share),
            Setting::new("non-compliant", Share),
            Setting::new("repaired", Share),
            Setting::new("not-applicable", Share),
        ],
    }
}

/// The driver that speaks the BBS's protocol.
fn cells_driver() -> DriverSpec {
    use SettingValue::{Bytes, Text};
    let work = || {
        vec![
            Setting::new("path", Text),
            Setting::new("args", Text),
            Setting::new("memory", Bytes),
            Setting::new("disk", Bytes),
            Setting::new("rootfs", Text),
        ]
    };
    let entities = cells::driver::ENTITIES.iter().map(|(what, states)| {
        let shapes: &[&str] = match *what {
            "lrp" => &["one desired", "many desired"],
            _ => &[],
        };
        EntityKind {
            what: (*what).to_owned(),
            states: states.iter().map(ToString::to_string).collect(),
            shapes: shapes.iter().map(ToString::to_string).collect(),
            options: work(),
        }
    });
    DriverSpec {
        kind: "cells".into(),
        about: "tasks and long-running processes of a Diego BBS".into(),
        builtin: "cells driver".into(),
        entities: entities.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_cells_every_delay_and_failure_that_the_rep_has() {
        let catalogue = catalogue();
        let mut fleets = catalogue.fleets.iter();
        let cells = fleets.find(|fleet| fleet.kind == "cell").unwrap();
        let mut builtins = catalogue.builtins.iter();
        let rep = builtins.find(|known| known.command == cells.builtin);
        for flag in &rep.unwrap().flags {
            let name = flag.name.as_str();
            let is_simulated = name.starts_with("--delays-") || name.starts_with("--fail-");
            let mut settings = cells.settings.iter();
            let is_set = settings.any(|setting| setting.flag() == name);
            assert!(is_set || !is_simulated, "no setting is {name}");
        }
    }

    #[test]
    fn every_setting_of_a_fleet_is_a_flag_of_its_builtin() {
        let catalogue = catalogue();
        for fleet in &catalogue.fleets {
            let builtin = catalogue
                .builtins
                .iter()
                .find(|builtin| builtin.command == fleet.builtin)
                .unwrap();
            let known = |name: &str| builtin.flags.iter().any(|flag| flag.name == name);
            for setting in &fleet.settings {
                assert!(
                    known(&setting.flag()),
                    "{} has no {}",
                    fleet.builtin,
                    setting.flag()
                );
            }
            let said = [&fleet.talk_to_flag, &fleet.seed_flag];
            let said = said.into_iter().flatten().chain([&fleet.args]);
            let said = said.flat_map(|text| text.split(' '));
            let flags = said.filter(|word| word.starts_with("--"));
            for word in flags.chain(["--count"]) {
                assert!(known(word), "{} has no {word}", fleet.builtin);
            }
        }
    }
}
