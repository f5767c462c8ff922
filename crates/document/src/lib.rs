//! Settings files: TOML or YAML as one tree that knows where each value stands, and one
//! description of the settings that both reads and prints them.
//!
//! ```text
//! text ──parse──▶ Node (with places) ──┐
//!                                      ├─ Form ◀── describe(&mut Form, &mut Settings)
//! defaults ────────────────────────────┘    └──▶ settings, problems, or a printed file
//! ```

#[cfg(any(test, feature = "every-key"))]
pub mod every_key;
mod form;
mod kind;
mod node;
mod secret;
mod set;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;

pub use form::Form;
pub use kind::{Kind, parse_go_duration};
pub use node::{Entry, Node, Value, parse_toml, parse_yaml};
pub use secret::Secret;
pub use set::SetError;

/// Bytes of a settings file; a larger one is refused.
pub const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Problems that are shown at once; later ones are left out.
const MOST_PROBLEMS: usize = 20;

/// Characters of a source line that are shown.
const LINE_SHOWN: usize = 120;

/// Characters of a message or an advice that are shown.
const MESSAGE_SHOWN: usize = 4000;

/// A stretch of the text, in bytes.
pub type Span = Range<usize>;

/// The text of a settings file and the name it is known by.
#[derive(Debug, Clone)]
pub struct Source {
    /// As it was given on the command line.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// One thing that is wrong, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where in the text.
    pub span: Span,
    /// What was found, and what was expected instead.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
}

impl Problem {
    /// A problem without advice.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            help: None,
        }
    }

    /// Says what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
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

    /// A problem as text of several lines, without an end of line behind the last:
    ///
    /// ```text
    /// router.toml:12:1: unknown key "lisen"
    ///   12 | lisen = "127.0.0.1:80"
    ///      | ^^^^^
    ///      help: did you mean "listen"?
    /// ```
    pub fn show(&self, problem: &Problem) -> String {
        let at = self
            .text
            .floor_char_boundary(problem.span.start.min(self.text.len()));
        let line_start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line_end = self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |end| at + end);
        let number = self.text[..line_start].matches('\n').count() + 1;
        let line = self.text[line_start..line_end].trim_end_matches('\r');
        let before = self.text[line_start..at].chars().count();
        let end = self.text.floor_char_boundary(
            problem
                .span
                .end
                .clamp(at, line_start + line.len().max(at - line_start)),
        );
        let marked = self.text[at..end].chars().count();
        let from = before.saturating_sub(LINE_SHOWN / 2);
        let shown: String = line.chars().skip(from).take(LINE_SHOWN).collect();
        let room = LINE_SHOWN - (before - from).min(LINE_SHOWN - 1);
        let number_shown = format!("{number:>4}");
        let margin = " ".repeat(number_shown.len());
        let mut text = format!(
            "{}:{number}:{}: {}\n{number_shown} | {}\n{margin} | {}{}",
            self.name,
            before + 1,
            printable(&bounded(&problem.message)),
            printable(&shown),
            " ".repeat(before - from),
            "^".repeat(marked.clamp(1, room)),
        );
        if let Some(help) = &problem.help {
            text += &format!("\n{margin} help: {}", printable(&bounded(help)));
        }
        text
    }
}

/// The line and the column, counted from 1, of what stands behind a text.
fn place(before: &str) -> (usize, usize) {
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or(before);
    (line, last.chars().count() + 1)
}

/// Text without its middle, if it is long: what was found may be of any length.
fn bounded(text: &str) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= MESSAGE_SHOWN {
        return Cow::Borrowed(text);
    }
    let half = MESSAGE_SHOWN / 2;
    let begin = text.chars().take(half);
    let end = text.chars().skip(length - half);
    Cow::Owned(begin.chain(['…']).chain(end).collect())
}

/// Text that cannot move the cursor of a terminal or change its colours.
fn printable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\t' => ' ',
            other if other.is_control() => '\u{fffd}',
            other => other,
        })
        .collect()
}
