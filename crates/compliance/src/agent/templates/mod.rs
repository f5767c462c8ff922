//! Templates of files, in two languages. Both are filled with JSON, read nothing else, and end within a
//! number of bytes and steps.

pub(super) mod jinja;
pub(super) mod mustache;

/// Bytes of what a template is filled to.
const FILLED: usize = 16 << 20;

/// The beginning of a text, to tell a place by.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(32)]
}
