//! Checks that the page was built, since it becomes part of this crate.

use std::path::Path;

fn main() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    for file in ["graph.html", "graph.policy"] {
        let file = built.join(file);
        println!("cargo::rerun-if-changed={}", file.display());
        if !file.is_file() {
            println!("cargo::error=the page is not built (no web/dist/graph.html): run `make web`");
        }
    }
}
