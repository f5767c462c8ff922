//! Provides the page, since it becomes part of this crate.

#[path = "../../web/pages.rs"]
mod pages;

fn main() {
    pages::embed("../../web", &["graph.html", "graph.policy"]);
}
