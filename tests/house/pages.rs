//! A checkout builds with cargo alone: the build scripts provide the pages.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

#[path = "../../web/pages.rs"]
#[allow(
    dead_code,
    reason = "only cargo asks for pages from within a build script"
)]
mod build_script;

const FILES: [&str; 5] = [
    "page.html",
    "graph.html",
    "graph.policy",
    "compliance.html",
    "compliance.policy",
];

#[test]
fn the_build_provides_the_pages_when_they_are_missing() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let web = web.canonicalize().expect("the folder web");
    let fresh = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(&web).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        if name == "node_modules" {
            symlink(&path, fresh.path().join(name)).expect("a link");
        } else if name != "dist" {
            let copy = Command::new("cp")
                .arg("-r")
                .args([&path, fresh.path()])
                .status();
            assert!(copy.expect("cp runs").success());
        }
    }
    build_script::provide(fresh.path(), &FILES).expect("pages");
    let page = fresh.path().join("dist/page.html");
    let built = fs::read_to_string(&page).expect("the page");
    assert!(built.contains("<script"), "{built}");

    // What is there stays.
    fs::write(&page, "kept").expect("a file");
    build_script::provide(fresh.path(), &FILES).expect("pages");
    assert_eq!(fs::read_to_string(&page).expect("the page"), "kept");
}

#[test]
fn pages_that_cannot_be_built_are_an_error_that_names_the_command() {
    let fresh = tempfile::tempdir().expect("a folder");
    let error = build_script::provide(fresh.path(), &FILES).expect_err("no sources");
    assert!(error.starts_with("lock "), "{error}");
    fs::write(fresh.path().join("package.json"), "{}").expect("a file");
    let error = build_script::provide(fresh.path(), &FILES).expect_err("no packages");
    assert!(error.starts_with("npm ci "), "{error}");
}
