//! Part of the build scripts of the crates that embed a page: builds the pages if they are
//! missing, so that `cargo install --path crates/headroom` needs nothing before it.

use std::fs::File;
use std::path::Path;
use std::process::Command;

/// Has cargo build the crate again when one of `files`, in `dist` of the folder `web` as seen from the
/// crate, changes; and makes them, or tells cargo why not.
pub(crate) fn embed(web: &str, files: &[&str]) {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join(web);
    for file in files {
        let file = web.join("dist").join(file);
        println!("cargo::rerun-if-changed={}", file.display());
    }
    if let Err(error) = provide(&web, files) {
        println!("cargo::error=the pages are not built: {error}");
    }
}

/// Sees to it that `files` are in `web/dist`. Pages that are there stay as they are: `make`
/// knows when they are old.
///
/// # Errors
/// When npm is missing or fails; the text says which, and what to do.
pub(crate) fn provide(web: &Path, files: &[&str]) -> Result<(), String> {
    let dist = web.join("dist");
    let all = || files.iter().all(|file| dist.join(file).is_file());
    if all() {
        return Ok(());
    }
    // Several crates embed pages, and cargo runs their scripts at the same time.
    let lock = File::open(web.join("package.json"))
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| format!("lock {}: {error}", web.join("package.json").display()))?;
    if !all() {
        if !web.join("node_modules/.package-lock.json").is_file() {
            npm(web, &["ci", "--no-audit", "--no-fund", "--silent"])?;
        }
        npm(web, &["run", "--silent", "build"])?;
    }
    drop(lock);
    if all() {
        Ok(())
    } else {
        Err(format!("npm built no {}", files.join(" and ")))
    }
}

fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let done = Command::new("npm")
        .args(arguments)
        .current_dir(web)
        .output()
        .map_err(|error| format!("start npm: {error}; install Node 20 or newer"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.trim().lines().last().unwrap_or("it said nothing");
    Err(format!(
        "npm {} in web: {}: {last}",
        arguments.join(" "),
        done.status
    ))
}
