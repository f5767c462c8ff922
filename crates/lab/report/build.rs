//! Checks that the page was built, since it becomes part of this crate.

use std::path::Path;

fn main() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../web/dist/page.html");
    println!("cargo::rerun-if-changed={}", page.display());
    if !page.is_file() {
        println!("cargo::error=the page is not built (no web/dist/page.html): run `make web`");
    }
}
