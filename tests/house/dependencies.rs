//! A room uses only rooms below it; systems and laboratory do not know each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Every crate with its floor.
const FLOORS: &[(&str, u32)] = &[
    ("stats", 0),
    ("measure", 0),
    ("units", 0),
    ("csv", 0),
    ("processes", 1),
    ("telemetry", 1),
    ("net", 1),
    ("document", 1),
    ("kubernetes", 1),
    ("fleet", 1),
    ("wire", 1),
    ("nats", 1),
    ("commit", 2),
    ("diego", 2),
    ("traces", 2),
    ("lab-load", 2),
    ("lab-judgement", 2),
    ("lab-lifecycle", 2),
    ("lab-findings", 2),
    ("lab-faults", 2),
    ("cells", 3),
    ("routing-api", 3),
    ("backend", 3),
    ("collector", 3),
    ("compliance", 3),
    ("lab-generator", 3),
    ("lab-experiment", 3),
    ("lab-store", 3),
    ("graph", 4),
    ("routing", 4),
    ("lab-report", 4),
    ("lab-runner", 4),
    ("headroom", 5),
];

/// What the laboratory meets over the wire alone.
const SYSTEMS: &[&str] = &[
    "diego",
    "cells",
    "routing-api",
    "backend",
    "graph",
    "compliance",
    "routing",
];

/// Crates that only tests may use, with the reason.
const TESTS_ONLY: &[(&str, &str)] = &[("async-nats", "crate nats is the client")];

/// What cargo says of this machine's packages, without the network. `home` is cargo's home,
/// if not the user's.
///
/// Cargo wants the source of each package that it tells of. A build has fetched those of this
/// machine's platform and no others, so nothing is asked about others.
fn cargo(arguments: &[&str], home: Option<&Path>) -> String {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(arguments)
        .args(["--locked", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    if let Some(home) = home {
        command.env("CARGO_HOME", home);
    }
    let output = command.output().expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// The platform that cargo builds for, e.g. `x86_64-unknown-linux-gnu`.
fn host() -> String {
    let version = Command::new(env!("CARGO"))
        .arg("-vV")
        .output()
        .expect("cargo runs");
    let version = String::from_utf8(version.stdout).expect("text");
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("cargo -vV names its host").to_owned()
}

fn metadata_in(home: Option<&Path>) -> Value {
    let host = host();
    let arguments = ["metadata", "--format-version=1", "--filter-platform", &host];
    serde_json::from_str(&cargo(&arguments, home)).expect("cargo metadata prints JSON")
}

fn metadata() -> Value {
    metadata_in(None)
}

/// Everything that is built on this machine, tests included: a name and a version a line.
fn tree_in(home: Option<&Path>) -> String {
    let tree = cargo(&["tree", "--workspace", "--prefix", "none"], home);
    assert!(tree.contains("tokio v"), "cargo tree printed no tree");
    tree
}

/// What `cargo deny` is told, which stands there once.
fn deny() -> toml::Table {
    toml::from_str(include_str!("../../deny.toml")).expect("deny.toml")
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().expect("packages")
}

/// What stands beside the house.
const BESIDE: [&str; 2] = ["xtask", "fuzz"];

#[test]
fn a_room_uses_only_rooms_below_it() {
    let floors: BTreeMap<_, _> = FLOORS.iter().copied().collect();
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in packages(&metadata) {
        let ours = package["source"].is_null();
        let name = package["name"].as_str().expect("a name");
        if !ours || BESIDE.contains(&name) {
            continue;
        }
        let Some(floor) = floors.get(name) else {
            wrong.push(format!(
                "{name} has no floor: give it one here and in ARCHITECTURE.md"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = dependency["name"].as_str().expect("a name");
            let in_tests = dependency["kind"] == "dev";
            if let Some((_, reason)) = TESTS_ONLY.iter().find(|(only, _)| *only == used)
                && !in_tests
            {
                wrong.push(format!(
                    "{name} must not use {used} outside tests: {reason}"
                ));
            }
            let Some(below) = floors.get(used) else {
                continue;
            };
            if below >= floor {
                wrong.push(format!(
                    "{name} (floor {floor}) must not use {used} (floor {below})"
                ));
            }
            let is_lab = |name: &str| name.starts_with("lab-");
            let is_system = |name: &str| SYSTEMS.contains(&name);
            if is_lab(name) && is_system(used) || is_system(name) && is_lab(used) {
                wrong.push(format!(
                    "{name} must not use {used}: the laboratory and a system meet over the wire"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_banned_comes_in() {
    // The lock file also names crates behind features that nobody turned on; the
    // tree has what is built.
    let tree = tree_in(None);
    let denied = deny();
    let banned = denied["bans"]["deny"].as_array().expect("a list");
    assert!(!banned.is_empty());
    for one in banned {
        let word = |key: &str| one[key].as_str().expect("a text");
        let (banned, reason) = (word("crate"), word("reason"));
        let built = tree
            .lines()
            .any(|line| line.starts_with(&format!("{banned} v")));
        assert!(!built, "{banned} came in: {reason}");
    }
}

#[test]
fn every_dependency_comes_from_a_registry() {
    // Of all platforms: the lock file names them all.
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"))
        .expect("the lock file");
    let sources: Vec<_> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = "))
        .collect();
    assert!(sources.len() > 100, "the lock file names its sources");
    for source in sources {
        assert!(
            source.starts_with("\"registry+"),
            "a dependency comes from {source}, not from a registry"
        );
    }
}

#[test]
fn every_licence_is_permissive() {
    let denied = deny();
    let allowed = denied["licenses"]["allow"].as_array().expect("a list");
    let allowed: BTreeSet<_> = allowed.iter().filter_map(toml::Value::as_str).collect();
    let metadata = metadata();
    for package in packages(&metadata) {
        let licence = package["license"].as_str().unwrap_or("(none)");
        let permitted = licence
            .split(['/', ' ', '(', ')'])
            .any(|word| allowed.contains(word));
        assert!(permitted, "{} is under {licence}", package["name"]);
    }
}

/// A fresh machine's first build fetches only what its own platform needs.
#[test]
fn these_tests_need_only_what_a_build_has_fetched() {
    // What cargo fetches, whatever the other tests ask for.
    let fetched = [
        "metadata",
        "--format-version=1",
        "--filter-platform",
        &host(),
    ];
    let fetched: Value = serde_json::from_str(&cargo(&fetched, None)).expect("JSON");
    let wanted: BTreeSet<_> = packages(&fetched)
        .iter()
        .map(|package| {
            let word = |key: &str| package[key].as_str().expect("a text").to_owned();
            format!("{}-{}", word("name"), word("version"))
        })
        .collect();
    let home = cargo_home();
    let fresh = tempfile::tempdir().expect("a folder");
    link_registry(&home, fresh.path(), &wanted);
    metadata_in(Some(fresh.path()));
    tree_in(Some(fresh.path()));

    // The twin: there is something to miss.
    let all = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_HOME", fresh.path())
        .output()
        .expect("cargo runs");
    assert!(!all.status.success(), "the folder was not a fresh one");
}

fn cargo_home() -> PathBuf {
    std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cargo"),
        PathBuf::from,
    )
}

/// Links the index and the wanted packages of one cargo home into another.
fn link_registry(from: &Path, to: &Path, wanted: &BTreeSet<String>) {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("an entry").path())
            .collect()
    };
    let registry = to.join("registry");
    fs::create_dir_all(&registry).expect("a folder");
    // It may name a mirror.
    if from.join("config.toml").exists() {
        symlink(from.join("config.toml"), to.join("config.toml")).expect("a link");
    }
    symlink(from.join("registry/index"), registry.join("index")).expect("a link");
    for kind in ["cache", "src"] {
        for source in entries(&from.join("registry").join(kind)) {
            let into = registry
                .join(kind)
                .join(source.file_name().expect("a name"));
            fs::create_dir_all(&into).expect("a folder");
            for package in entries(&source) {
                let name = package.file_name().expect("a name").to_string_lossy();
                let plain = name.strip_suffix(".crate").unwrap_or(&name);
                if wanted.contains(plain) {
                    symlink(&package, into.join(&*name)).expect("a link");
                }
            }
        }
    }
}
