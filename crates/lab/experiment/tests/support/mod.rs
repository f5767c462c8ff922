//! A catalogue and short ways to check files.
#![allow(dead_code, unreachable_pub)]

use lab_experiment::catalogue::{
    Builtin, Catalogue, DriverSpec, EntityKind, Flag, FleetKind, Setting, SettingValue,
};
use lab_experiment::plan::{Plan, Ready};
use lab_experiment::{Source, check};

/// A catalogue like that of the binary.
pub fn catalogue() -> Catalogue {
    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let values = |names: &[&str]| {
        names
            .iter()
            .copied()
            .map(Flag::value)
            .collect::<Vec<Flag>>()
    };
    let mut bbs = values(&["--listen", "--data", "--auctioneer"]);
    bbs.push(Flag::switch("--verbose"));
    Catalogue {
        builtins: vec![
            Builtin {
                command: "target".to_owned(),
                about: String::new(),
                flags: ["--listen", "--latency", "--pool"]
                    .map(Flag::value)
                    .to_vec(),
            },
            Builtin {
                command: "cells bbs".to_owned(),
                about: "The database of desired and actual work.".to_owned(),
                flags: bbs,
            },
            Builtin {
                command: "cells auctioneer".to_owned(),
                about: "Places work on cells.".to_owned(),
                flags: values(&["--listen", "--bbs"]),
            },
            Builtin {
                command: "cells rep".to_owned(),
                about: "Simulated cells.".to_owned(),
                flags: values(&["--listen", "--bbs", "--count", "--zone"]),
            },
        ],
        fleets: vec![
            FleetKind {
                kind: "cell".to_owned(),
                about: "Cells with simulated containers.".to_owned(),
                builtin: "cells rep".to_owned(),
                args: "--listen {addr}".to_owned(),
                talk_to_flag: Some("--bbs http://{addr}".to_owned()),
                seed_flag: Some("--seed".to_owned()),
                ready: Some(Ready::Tcp),
                settings: vec![
                    Setting::new("heartbeat", SettingValue::Distribution),
                    Setting::new("capacity.containers", SettingValue::Count),
                    Setting::new("capacity.memory", SettingValue::Bytes),
                    Setting::new("capacity.disk", SettingValue::Bytes),
                    Setting::new("delays.create", SettingValue::Distribution),
                    Setting::new("delays.start", SettingValue::Distribution),
                    Setting::new("delays.stop", SettingValue::Distribution),
                    Setting::new("fail.create", SettingValue::Share),
                    Setting::new("evacuate_within", SettingValue::Duration),
                    Setting::new(
                        "stack",
                        SettingValue::Choice(strings(&["linux", "windows"])),
                    ),
                    Setting::new("zone", SettingValue::Text),
                    Setting::new("optional", SettingValue::Flag),
                ],
            },
            FleetKind {
                kind: "lone".to_owned(),
                builtin: "cells lone".to_owned(),
                ..FleetKind::default()
            },
        ],
        drivers: vec![DriverSpec {
            kind: "cells".to_owned(),
            builtin: "cells driver".into(),
            about: "Tasks and long-running processes.".to_owned(),
            entities: vec![
                EntityKind {
                    what: "task".to_owned(),
                    states: strings(&["pending", "running", "completed", "resolved"]),
                    shapes: Vec::new(),
                    options: vec![
                        Setting::new("path", SettingValue::Text),
                        Setting::new("memory", SettingValue::Bytes),
                    ],
                },
                EntityKind {
                    what: "lrp".to_owned(),
                    states: strings(&["unclaimed", "claimed", "running", "crashed", "alive"]),
                    shapes: strings(&["one desired", "many desired"]),
                    options: Vec::new(),
                },
            ],
        }],
        may_mount: true,
        ..Catalogue::default()
    }
}

/// Checks a file called `x.toml`.
pub fn checked(text: &str, overrides: &[(&str, &str)]) -> Result<Plan, String> {
    let source = Source {
        name: "x.toml".to_owned(),
        text: text.to_owned(),
    };
    let overrides: Vec<(String, String)> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    check(&source, &overrides, &catalogue()).map_err(|diagnostics| {
        diagnostics
            .iter()
            .map(|d| d.render(false))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

/// The plan of a file that must be good.
#[track_caller]
pub fn plan_of(text: &str) -> Plan {
    checked(text, &[]).unwrap_or_else(|rendered| panic!("the file is not good:\n{rendered}"))
}

/// Checks that a file has exactly these problems, as they are shown.
#[track_caller]
pub fn check_error(text: &str, expected: &str) {
    match checked(text, &[]) {
        Ok(_) => panic!("the file is good, but should have:\n{expected}"),
        Err(rendered) => assert_eq!(rendered.trim(), expected.trim(), "\n{rendered}\n"),
    }
}

/// The experiment of the demonstration.
pub const DEMO: &str = include_str!("../data/demo.toml");
