//! Settings files: TOML or YAML as one tree that knows where each value stands, and one
//! description of the settings that both reads and prints them.
//!
//! ```text
//! text ──parse──▶ Node (with places) ──┐
//!                                      ├─ Form ◀── describe(&mut Form, &mut Settings)
//! defaults ────────────────────────────┘    └──▶ settings, problems, or a printed file
//! ```

mod diagnostic;
#[cfg(any(test, feature = "every-key"))]
pub mod every_key;
mod form;
mod kind;
mod node;
mod secret;
mod set;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;

pub use diagnostic::{Diagnostic, Lines, Problem, listed};
pub use form::Form;
pub use kind::{Kind, parse_go_duration};
pub use node::{Entry, Node, Value, parse_toml, parse_yaml};
pub use secret::Secret;
pub use set::SetError;

/// Bytes of a settings file; a larger one is refused.
pub const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Problems that are shown at once; later ones are left out.
const MOST_PROBLEMS: usize = 20;

/// A stretch of the text, in bytes.
pub type Span = Range<usize>;

/// The text of a settings file and the name it is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As it was given on the command line.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// Why a settings file could not be used: every problem at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    /// The problems of a source, in the order of their places.
    pub fn of(source: &Source, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        problems.dedup();
        let left_out = problems.len().saturating_sub(MOST_PROBLEMS);
        let mut shown: Vec<String> = problems
            .iter()
            .take(MOST_PROBLEMS)
            .map(|problem| source.show(problem))
            .collect();
        if left_out > 0 {
            shown.push(format!("{}: {left_out} more problems", source.name));
        }
        Self(shown)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Problems {}

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is no text, or is larger than [`MOST_BYTES`].
    pub fn read(path: &Path) -> Result<Self, Problems> {
        let name = path.display().to_string();
        let refused = |why: String| Problems(vec![format!("{name}: {why}")]);
        let unread = |error: io::Error| refused(format!("cannot read the settings: {error}"));
        let file = File::open(path).map_err(unread)?;
        // What a device or a pipe holds is known only by reading it.
        let mut bytes = Vec::new();
        file.take(MOST_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(unread)?;
        if bytes.len() > MOST_BYTES {
            let why = format!("the file is larger than {MOST_BYTES} bytes, the most that is read");
            return Err(refused(why));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let known = error.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&error.as_bytes()[..known]);
            let (line, column) = place(&before);
            Problems(vec![format!(
                "{name}:{line}:{column}: what stands here is not UTF-8; save the file as UTF-8"
            )])
        })?;
        Ok(Self { name, text })
    }

    /// A problem as text of several lines, as [`Diagnostic::render`] has it.
    pub fn show(&self, problem: &Problem) -> String {
        let lines = Lines::of(&self.name, &self.text);
        lines.diagnostic(problem.clone()).to_string()
    }
}

/// The line and the column, counted from 1, of what stands behind a text.
fn place(before: &str) -> (usize, usize) {
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or(before);
    (line, last.chars().count() + 1)
}
