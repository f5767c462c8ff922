//! What every file of the project keeps to.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines that a source file may have; a longer one holds more than one idea.
const LINES_MAX: usize = 700;

pub(crate) fn root() -> PathBuf {
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
fn a_folder_of_modules_has_its_mod_rs() {
    let mut files = Vec::new();
    for folder in ["crates", "tests"] {
        files_under(&root().join(folder), &["rs"], &mut files);
    }
    for file in files {
        assert!(
            !file.with_extension("").is_dir() || file.ends_with("tests/main.rs"),
            "{} stands beside a folder of its name: move it there as mod.rs",
            file.display()
        );
    }
}

#[test]
fn every_test_file_is_in_a_test_program() {
    let mut manifests = Vec::new();
    files_under(&root().join("crates"), &["toml"], &mut manifests);
    manifests.retain(|path| path.ends_with("Cargo.toml"));
    let mut alone = Vec::new();
    for manifest in manifests {
        let tests = manifest.with_file_name("tests");
        let manifest = fs::read_to_string(&manifest).expect("a manifest");
        // Cargo finds them itself.
        if !manifest.contains("autotests = false") {
            continue;
        }
        // One without tests of its own has none, or a folder of recordings.
        let main = fs::read_to_string(tests.join("main.rs")).unwrap_or_default();
        let entries = fs::read_dir(&tests).into_iter().flatten();
        for entry in entries {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let name = name.expect("a name");
            let holds_tests = path.extension().is_some_and(|kind| kind == "rs") && name != "main";
            if holds_tests
                && !main.contains(&format!("mod {name};"))
                && !manifest.contains(&format!("name = \"{name}\""))
            {
                alone.push(path.display().to_string());
            }
        }
    }
    assert!(
        alone.is_empty(),
        "never run: {}; make it a module of tests/main.rs",
        alone.join(", ")
    );
}

#[test]
fn no_example_hides_in_a_comment() {
    let mut hidden = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).expect("a source file");
        let mut inside = false;
        for (line, number) in text.lines().zip(1..) {
            let comment = line.trim_start().strip_prefix("//");
            let Some(fence) = comment.and_then(|rest| rest.get(1..)?.trim().strip_prefix("```"))
            else {
                continue;
            };
            if !inside && fence.is_empty() {
                hidden.push(format!("{}:{number}", path.display()));
            }
            inside = !inside;
        }
    }
    // `make test` runs no doctests: each crate's would be a program of its own.
    assert!(
        hidden.is_empty(),
        "{}: make it a test, or text",
        hidden.join(", ")
    );
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

#[test]
fn places_that_the_architecture_names_are_there() {
    let root = root();
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the document");
    let tables = text.lines().filter(|line| line.starts_with('|'));
    let names = tables.flat_map(|line| line.split('`').skip(1).step_by(2));
    let places: Vec<_> = names.filter(|name| name.contains('/')).collect();
    assert!(places.len() > 30, "{places:?}");
    for place in places {
        let found = root.join(place).exists() || root.join("crates").join(place).exists();
        assert!(found, "ARCHITECTURE.md names {place}, which is not there");
    }
}
