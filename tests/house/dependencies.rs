//! A room uses only rooms below it; systems and laboratory do not know each other.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// Every crate with its floor. `xtask` stands beside the house.
const FLOORS: &[(&str, u32)] = &[
    ("stats", 0),
    ("measure", 0),
    ("units", 0),
    ("telemetry", 1),
    ("net", 1),
    ("document", 1),
    ("diego", 1),
    ("wire", 1),
    ("nats", 1),
    ("cells", 2),
    ("routing", 2),
    ("graph", 2),
    ("lab-load", 3),
    ("lab-generator", 3),
    ("lab-lifecycle", 3),
    ("lab-experiment", 3),
    ("lab-store", 3),
    ("lab-report", 3),
    ("lab-runner", 3),
    ("headroom", 4),
];

/// Uses within a floor; each is a decision, listed in ARCHITECTURE.md.
const SAME_FLOOR: &[(&str, &str)] = &[
    ("diego", "net"),
    ("lab-generator", "lab-load"),
    ("lab-experiment", "lab-load"),
    ("lab-store", "lab-load"),
    ("lab-store", "lab-lifecycle"),
    ("lab-report", "lab-load"),
    ("lab-report", "lab-lifecycle"),
    ("lab-report", "lab-store"),
    ("lab-runner", "lab-experiment"),
    ("lab-runner", "lab-generator"),
    ("lab-runner", "lab-load"),
    ("lab-runner", "lab-lifecycle"),
    ("lab-runner", "lab-store"),
];

/// Crates that must not come in, with the reason.
const BANNED: &[(&str, &str)] = &[
    ("openssl-sys", "rustls is the only TLS"),
    ("native-tls", "rustls is the only TLS"),
    ("ring", "aws-lc-rs is the only provider"),
    ("reqwest", "crate net is the client"),
    ("serde_yaml", "no longer maintained"),
];

/// Licences that a dependency may come under; it needs one of them.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo metadata runs");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().expect("packages")
}

#[test]
fn a_room_uses_only_rooms_below_it() {
    let floors: BTreeMap<_, _> = FLOORS.iter().copied().collect();
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in packages(&metadata) {
        let ours = package["source"].is_null();
        let name = package["name"].as_str().expect("a name");
        if !ours || name == "xtask" {
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
            let Some(below) = floors.get(used) else {
                continue;
            };
            let allowed = below < floor || SAME_FLOOR.contains(&(name, used));
            // A laboratory on floor 3 stands above the systems of floor 2, yet must
            // not know them: it meets them only over the wire.
            let joined = name.starts_with("lab-") && *below == 2;
            if !allowed || joined {
                wrong.push(format!(
                    "{name} (floor {floor}) must not use {used} (floor {below})"
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
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--workspace",
            "--locked",
            "--offline",
            "--prefix",
            "none",
        ])
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo tree runs");
    let tree = String::from_utf8(tree.stdout).expect("text");
    assert!(tree.contains("tokio v"), "cargo tree printed no tree");
    for (banned, reason) in BANNED {
        let built = tree
            .lines()
            .any(|line| line.starts_with(&format!("{banned} v")));
        assert!(!built, "{banned} came in: {reason}");
    }
}

#[test]
fn every_dependency_comes_from_a_registry() {
    let metadata = metadata();
    for package in packages(&metadata) {
        let name = package["name"].as_str().expect("a name");
        let source = package["source"].as_str().unwrap_or("registry+");
        assert!(
            source.starts_with("registry+"),
            "{name} comes from {source}, not from a registry"
        );
    }
}

#[test]
fn every_licence_is_permissive() {
    let metadata = metadata();
    for package in packages(&metadata) {
        let licence = package["license"].as_str().unwrap_or("(none)");
        let permitted = licence
            .split(['/', ' ', '(', ')'])
            .any(|word| LICENCES.contains(&word));
        assert!(permitted, "{} is under {licence}", package["name"]);
    }
}
