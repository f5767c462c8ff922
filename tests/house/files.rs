//! What every file of the project keeps to.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines that a source file may have; a longer one holds more than one idea.
const LINES_MAX: usize = 700;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files_under(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if !["target", "node_modules", "dist", "proto", "data"].contains(&name) {
                files_under(&path, extensions, found);
            }
        } else if path
            .extension()
            .is_some_and(|e| extensions.iter().any(|x| e == *x))
        {
            found.push(path);
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["crates", "tests", "xtask", "web"] {
        files_under(&root().join(folder), &["rs", "ts", "svelte"], &mut found);
    }
    assert!(found.len() > 30, "the sources were not found");
    found
}

#[test]
fn source_files_stay_short() {
    let long: Vec<_> = sources()
        .into_iter()
        .filter_map(|path| {
            let lines = fs::read_to_string(&path)
                .expect("a source file")
                .lines()
                .count();
            (lines > LINES_MAX).then(|| format!("{} has {lines} lines", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn modules_are_named_for_what_they_hold() {
    for path in sources() {
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        assert!(
            ![
                "utils", "util", "common", "helpers", "helper", "misc", "manager"
            ]
            .contains(&name),
            "{} says nothing about what it holds",
            path.display()
        );
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = root();
    let mut documents = Vec::new();
    files_under(&root.join("docs"), &["md"], &mut documents);
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ] {
        documents.push(root.join(name));
    }
    let mut broken = Vec::new();
    for document in documents {
        let text = without_code(&fs::read_to_string(&document).expect("a document"));
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            if !document.parent().expect("a folder").join(file).exists() {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The text outside backticks; a fence of three is an odd number of them as well.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

#[test]
fn commands_of_the_readme_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let targets: Vec<_> = readme
        .lines()
        .filter_map(|line| line.trim_start_matches("$ ").strip_prefix("make "))
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    assert!(targets.contains(&"demo") && targets.contains(&"test"));
    for target in targets {
        assert!(
            makefile.contains(&format!("\n{target}:")),
            "make {target} does not exist"
        );
    }
}
