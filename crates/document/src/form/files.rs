//! Settings whose values stand in files of their own.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::{Form, Found, Mode};
use crate::{Kind, MOST_BYTES, Node, Problem, Value};

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
fn read_bounded(path: &Path) -> io::Result<String> {
    // What a device or a pipe holds is known only by reading it.
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES {
        let message = format!("it has more than {MOST_BYTES} bytes, the most that is read");
        return Err(io::Error::other(message));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::other(error.utf8_error()))
}
