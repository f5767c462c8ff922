//! Provides the page, since it becomes part of this crate.

use std::path::Path;

#[path = "../../web/pages.rs"]
mod pages;

const FILES: [&str; 2] = ["compliance.html", "compliance.policy"];

fn main() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    for file in FILES {
        let file = web.join("dist").join(file);
        println!("cargo::rerun-if-changed={}", file.display());
    }
    if let Err(error) = pages::provide(&web, &FILES) {
        println!("cargo::error=the pages are not built: {error}");
    }
}
