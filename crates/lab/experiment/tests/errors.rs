//! What is wrong with bad files, as people see it.
//!
//! Each file in `tests/data/errors` holds cases: a title, a part of an experiment
//! file, and the problems it must have. What stands before the first case is added
//! below each part; `lab` and `name` stand above it, so a part begins on line 3.
//! `BLESS=1 cargo test` writes what was found into the files, to be read and judged.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use lab_experiment::catalogue::{Catalogue, OwnNetwork};
use lab_experiment::{Source, check};

use crate::support::{catalogue, check_error, checked};

const HEAD: &str = "lab = 1\nname = \"t\"\n";
const STEP: &str = "[[step]]\nname = \"s\"\nhold = \"1s\"\n";

#[track_caller]
fn golden(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/errors")
        .join(name);
    let text = fs::read_to_string(&path).unwrap();
    let (below, cases) = text.split_once("=== ").unwrap();
    let mut found = below.to_owned();
    let mut wrong = Vec::new();
    for case in cases.split("\n=== ") {
        let (title, rest) = case.split_once('\n').unwrap();
        let (part, expected) = rest.split_once("---\n").unwrap_or((rest, ""));
        let part = format!("{}\n", part.trim_end());
        let step = if part.contains("[[step]]") || below.contains("[[step]]") {
            ""
        } else {
            STEP
        };
        let file = format!("{HEAD}{part}{below}{step}");
        let rendered = checked(&file, &[])
            .err()
            .unwrap_or_else(|| "no problem".to_owned());
        if rendered.trim() != expected.trim() {
            wrong.push(format!(
                "{title}\n{rendered}\ninstead of\n{}",
                expected.trim()
            ));
        }
        found += &format!("=== {title}\n{part}---\n{rendered}\n\n");
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, found.trim_end().to_owned() + "\n").unwrap();
    } else {
        assert!(
            wrong.is_empty(),
            "{name}: {} cases differ\n\n{}",
            wrong.len(),
            wrong.join("\n\n")
        );
    }
}

#[test]
fn constants_and_names_in_braces() {
    golden("constants.txt");
}

#[test]
fn drivers() {
    golden("drivers.txt");
}

#[test]
fn expectations() {
    golden("expectations.txt");
}

#[test]
fn conditions() {
    golden("conditions.txt");
}

#[test]
fn faults() {
    golden("faults.txt");
}

#[test]
fn file() {
    golden("file.txt");
}

#[test]
fn fleets() {
    golden("fleets.txt");
}

#[test]
fn requests_of_steps_and_kept_values() {
    golden("kept.txt");
}

#[test]
fn gates_and_variants() {
    golden("gates.txt");
}

#[test]
fn lifecycles() {
    golden("lifecycles.txt");
}

#[test]
fn loads() {
    golden("loads.txt");
}

#[test]
fn probes() {
    golden("probes.txt");
}

#[test]
fn searches_and_loads_of_steps() {
    golden("searches.txt");
}

#[test]
fn steps() {
    golden("steps.txt");
}

#[test]
fn sweeps() {
    golden("sweeps.txt");
}

#[test]
fn systems() {
    golden("systems.txt");
}

#[test]
fn the_version_comes_first() {
    check_error(
        "lab = 2\nnaem = \"x\"\n",
        "x.toml:1:7: this version reads lab = 1 only\n   1 | lab = 2\n     |       ^",
    );
}

#[test]
fn an_empty_file_says_what_it_needs() {
    let rendered = checked("", &[]).unwrap_err();
    assert!(rendered.contains("the file needs \"lab\""), "{rendered}");
    assert!(rendered.contains("the file has no [[step]]"), "{rendered}");
}

#[test]
fn a_file_has_a_largest_size() {
    let rendered = checked(&"#".repeat(1024 * 1024 + 1), &[]).unwrap_err();
    assert!(
        rendered.contains("the file has 1048577 bytes, 1048576 at most"),
        "{rendered}"
    );
}

#[test]
fn problems_have_a_largest_number() {
    let keys: String = (0..500).map(|n| format!("wrong{n} = 1\n")).collect();
    let rendered = checked(&format!("{HEAD}{keys}{STEP}"), &[]).unwrap_err();
    assert_eq!(rendered.matches("x.toml:").count(), 100);
}

#[test]
fn constants_cannot_grow_without_bound() {
    let mut file = format!("{HEAD}[let]\na0 = \"0123456789\"\n");
    for n in 1..40 {
        let before = n - 1;
        file += &format!("a{n} = \"{{a{before}}}{{a{before}}}{{a{before}}}{{a{before}}}\"\n");
    }
    let rendered = checked(&(file + STEP), &[]).unwrap_err();
    assert_eq!(
        rendered.matches("has more than 65536 bytes").count(),
        1,
        "{rendered}"
    );
}

#[test]
fn windows_line_ends_do_not_move_the_mark() {
    check_error(
        "lab = 1\r\nname = \"t\"\r\n[[step]]\r\nname = \"s\"\r\nhold = \"1x\"\r\n",
        "x.toml:5:10: unknown unit of time \"x\"; units are ns, us, ms, s, m, h\n   \
         5 | hold = \"1x\"\n     |          ^",
    );
}

#[test]
fn overrides_are_checked_too() {
    let file = format!("{HEAD}[let]\ncells = 10\nrate = 1.5\nquick = true\ndir = \"x\"\n{STEP}");
    let rendered = |overrides: &[(&str, &str)]| checked(&file, overrides).unwrap_err();
    assert_eq!(
        rendered(&[("cell", "5")]),
        "command line:1:7: [let] has no \"cell\"\n   1 | --set cell=5\n     |       ^^^^\n     \
         help: did you mean \"cells\"?"
    );
    assert_eq!(
        rendered(&[("cells", "many")]),
        "command line:1:13: expected a whole number, found \"many\"\n   1 | --set cells=many\n     \
         |             ^^^^"
    );
    let bad = rendered(&[
        ("rate", "x"),
        ("quick", "yes"),
        ("cells", "1.5"),
        ("dir", "a\0"),
    ]);
    assert_eq!(bad.matches("command line:1:").count(), 4, "{bad}");
    let good = [
        ("rate", "-2"),
        ("quick", "false"),
        ("cells", "-1_0"),
        ("dir", "{not a name}"),
    ];
    assert!(checked(&file, &good).is_ok());
}

#[test]
fn lists_have_a_largest_length() {
    let items = "\"x\", ".repeat(1001);
    let file = format!("{HEAD}[[system]]\nname = \"a\"\nrun = \"x\"\nafter = [{items}]\n{STEP}");
    let rendered = checked(&file, &[]).unwrap_err();
    assert_eq!(rendered.matches("x.toml:").count(), 1, "{rendered}");
    assert!(
        rendered.contains("\"after\" has more than 1000 items"),
        "{rendered}"
    );
}

#[test]
fn matchers_have_a_largest_length() {
    let file = |bytes: usize| {
        let start = "x".repeat(bytes);
        format!("{HEAD}[[loop]]\nname = \"l\"\nstart = \"{start}\"\nend = \"y\"\n{STEP}")
    };
    assert!(checked(&file(4096), &[]).is_ok());
    let rendered = checked(&file(4097), &[]).unwrap_err();
    assert!(
        rendered.contains("the matcher has 4097 bytes; at most 4096 are allowed"),
        "{rendered}"
    );
}

#[test]
fn a_command_of_many_words_is_read_in_one_go() {
    let words = "x ".repeat(400_000);
    let file = format!("{HEAD}[[system]]\nname = \"a\"\nrun = \"{words}\"\n{STEP}");
    let plan = checked(&file, &[]).unwrap();
    assert_eq!(plan.systems[0].args.len(), 399_999);
}

#[test]
fn a_disk_that_may_not_be_mounted_is_one_mistake() {
    let source = Source {
        name: "x.toml".to_owned(),
        text: r#"lab = 1
name = "x"
[[system]]
name = "db"
run = "db --data {disk}"
disk = "1MiB"
[[step]]
name = "s"
fault = { exhaust = "db", disk = "0B", for = "1s" }
"#
        .to_owned(),
    };
    assert!(check(&source, &[], &catalogue()).is_ok());
    let without = Catalogue {
        may_mount: false,
        ..catalogue()
    };
    let found = check(&source, &[], &without).unwrap_err();
    let found: Vec<String> = found.iter().map(|one| one.render(false)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("x.toml:6:8: a disk is"), "{found:?}");
    assert!(found[0].contains("CAP_SYS_ADMIN"), "{found:?}");
}

#[test]
fn what_is_wrong_in_a_lifecycle_or_loop_is_said_once() {
    let source = Source {
        name: "x.toml".to_owned(),
        text: r#"lab = 1
name = "x"
[[lifecycle]]
name = "order"
kee = ["id"]
points = [["placed", "order.placed"], ["paid", "order.paid"]]
[[loop]]
name = "sync"
[[step]]
name = "s"
hold = "1s"
[[expect]]
that = "order.placed..paid p99 < 5s and order.complete == 100% and loop.sync p99 < 1s"
"#
        .to_owned(),
    };
    let found = check(&source, &[], &catalogue()).unwrap_err();
    let found: Vec<String> = found.iter().map(|one| one.render(false)).collect();
    assert!(
        found
            .iter()
            .any(|one| one.contains("did you mean \"key\"?"))
    );
    let of_expect = found.iter().filter(|one| one.starts_with("x.toml:13:"));
    assert_eq!(of_expect.count(), 0, "{found:#?}");
}

#[test]
fn a_network_that_cannot_be_made_is_refused_with_why_and_what_would_do() {
    let source = Source {
        name: "x.toml".to_owned(),
        text: "lab = 1\nname = \"x\"\nnetwork = \"own\"\n[[step]]\nname = \"s\"\nhold = \"1s\"\n"
            .to_owned(),
    };
    let without = Catalogue {
        own_network: OwnNetwork(|| Err("the kernel says no".to_owned())),
        ..catalogue()
    };
    let found = check(&source, &[], &without).unwrap_err();
    let found: Vec<String> = found.iter().map(|one| one.render(false)).collect();
    assert_eq!(
        found,
        [
            "x.toml:3:11: a run cannot have a network of its own here: the kernel says no\n   \
          3 | network = \"own\"\n     |           ^^^^^\n     \
          help: leave out `network`: faults of connections are then made by the proxy, for which nothing is needed"
        ]
    );
    let machine = Source {
        text: source.text.replace("own", "machine"),
        ..source
    };
    assert!(check(&machine, &[], &without).is_ok(), "nothing is tried");
}
