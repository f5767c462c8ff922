//! Settings whose values stand in files of their own.

use std::path::{Path, PathBuf};

use super::{Form, Found, Mode};
use crate::{Kind, Node, Problem, Value};

impl Form<'_> {
    /// A setting whose value stands in a file of its own: the key names the file, `into`
    /// becomes its text. Never printed.
    pub fn file(&mut self, key: &'static str, about: &str, into: &mut String) {
        if let Mode::Print { .. } = &self.mode {
            return self.print(key, about, "", PathBuf::EXAMPLE);
        }
        let mut path: Option<PathBuf> = None;
        self.value(key, about, &mut path);
        let Some(path) = path else { return };
        let path = self.folder.join(path);
        match read_bounded(&path) {
            Ok(text) => *into = text,
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                self.problems
                    .push(Problem::new(self.span(key).unwrap_or_default(), message));
            }
        }
    }

    /// A text in PEM, or the path of a file with one; `into` becomes the text. Never printed.
    pub fn pem_or_file(&mut self, key: &'static str, about: &str, into: &mut String) {
        match self.find(key) {
            Found::Node(node) if is_pem(node) => self.value(key, about, into),
            _ => self.file(key, about, into),
        }
    }

    /// A secret in a file of its own, without the line end behind it.
    pub fn secret_file(&mut self, key: &'static str, about: &str, into: &mut String) {
        self.file(key, about, into);
        if self.span(key).is_some() {
            into.truncate(into.trim_end_matches(['\n', '\r']).len());
        }
    }
}

/// Whether a text is PEM (RFC 7468 section 2): no path has its beginning.
fn is_pem(node: &Node) -> bool {
    matches!(&node.value, Value::Text(text) if text.contains("-----BEGIN "))
}

/// Reads a file that a setting names.
fn read_bounded(path: &Path) -> std::io::Result<String> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > crate::MOST_BYTES as u64 {
        let most = crate::MOST_BYTES;
        let message = format!("it has {bytes} bytes; expected at most {most}");
        return Err(std::io::Error::other(message));
    }
    std::fs::read_to_string(path)
}
