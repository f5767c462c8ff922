//! Problems of a file, shown at the place that causes them.

use std::borrow::Cow;
use std::fmt;

use units::nearest;

use crate::Span;
use crate::secret::without_passwords;

/// Most characters of a source line that are shown.
const LINE_SHOWN: usize = 120;

/// Characters of a message or an advice that are shown.
const MESSAGE_SHOWN: usize = 4000;

/// One problem, with its place and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Name of the file as it was given, or `command line`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column of the first marked character, from 1, counted in characters.
    pub column: usize,
    /// How many characters of the line are marked; at least 1.
    pub length: usize,
    /// What was found, and what was expected instead.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
    /// The name that was most likely meant.
    pub suggestion: Option<String>,
    /// The line that holds the problem, without its end.
    pub source_line: String,
}

impl Diagnostic {
    /// The problem as text of several lines, without a line end at the end; with
    /// ANSI colours if `color`.
    ///
    /// ```text
    /// fezzik.toml:12:1: unknown key "redy" in [[system]]
    ///    12 | redy = "tcp"
    ///       | ^^^^
    ///       help: did you mean "ready"?
    /// ```
    pub fn render(&self, color: bool) -> String {
        let paint = |code: &str, text: &str| match color {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        };
        let (line, before, marked) = self.shown_line();
        let number = format!("{:>4}", self.line);
        let gutter = " ".repeat(number.len());
        let place = format!("{}:{}:{}:", self.file, self.line, self.column);
        let mut out = format!(
            "{} {}",
            paint("1", &place),
            paint("1;31", &printable(&bounded(&self.message)))
        );
        out += &format!(
            "\n{}",
            format!("{} {line}", paint("2", &format!("{number} |"))).trim_end()
        );
        out += &format!(
            "\n{} {}{}",
            paint("2", &format!("{gutter} |")),
            " ".repeat(before),
            paint("1;31", &"^".repeat(marked)),
        );
        let meant = self
            .suggestion
            .as_ref()
            .map(|name| format!("did you mean \"{name}\"?"));
        for help in meant.iter().chain(&self.help) {
            out += &format!(
                "\n{gutter} {} {}",
                paint("1;36", "help:"),
                printable(&bounded(help))
            );
        }
        out
    }

    /// The source line cut to a length that fits a screen, the number of characters
    /// before the mark, and the length of the mark.
    fn shown_line(&self) -> (String, usize, usize) {
        let chars: Vec<char> = self.source_line.chars().collect();
        let start = self.column.saturating_sub(1).min(chars.len());
        let from = match chars.len() > LINE_SHOWN {
            true => start.saturating_sub(LINE_SHOWN / 3),
            false => 0,
        };
        let to = chars.len().min(from + LINE_SHOWN);
        let mut line = String::new();
        let mut before = start - from;
        if from > 0 {
            line.push('…');
            before += 1;
        }
        line.extend(&chars[from..to]);
        if to < chars.len() {
            line.push('…');
        }
        let marked = self.length.min((to - start).max(1)).max(1);
        (printable(&line), before, marked)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostic {}

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

/// Text that cannot move the cursor or change colours of a terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// A problem at a stretch of the file, before its line is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where in the text.
    pub span: Span,
    /// What was found, and what was expected instead.
    pub message: String,
    help: Option<String>,
    suggestion: Option<String>,
}

impl Problem {
    /// A problem without advice.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            help: None,
            suggestion: None,
        }
    }

    /// Says what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says what to do next, after what was said before.
    #[must_use]
    pub fn help_also(mut self, help: &str) -> Self {
        self.help = Some(match self.help {
            Some(before) => format!("{before}; {help}"),
            None => help.to_owned(),
        });
        self
    }

    /// Proposes a name.
    #[must_use]
    pub fn suggest(mut self, name: impl Into<String>) -> Self {
        self.suggestion = Some(name.into());
        self
    }

    /// Proposes a name, if there is one.
    #[must_use]
    pub fn suggest_if(mut self, name: Option<String>) -> Self {
        self.suggestion = name.or(self.suggestion);
        self
    }

    /// Proposes the name nearest to `word`, if one is near.
    #[must_use]
    pub fn suggest_near<'c>(
        self,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Self {
        match nearest(word, candidates) {
            Some(name) => self.suggest(name),
            None => self,
        }
    }

    /// Proposes the name nearest to `word`; when none is near, lists them all.
    #[must_use]
    pub fn suggest_from<'c>(
        self,
        word: &str,
        what: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Self {
        let candidates: Vec<&str> = candidates.into_iter().collect();
        match nearest(word, candidates.iter().copied()) {
            Some(name) => self.suggest(name),
            None if candidates.is_empty() => self.help(format!("there are no {what}")),
            None => self.help(format!("{what}: {}", listed(&candidates))),
        }
    }
}

/// Names in a row; a long list is cut.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 100;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(AsRef::as_ref)
        .collect::<Vec<&str>>()
        .join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}

/// Where the lines of a file begin.
#[derive(Debug)]
pub struct Lines<'a> {
    file: &'a str,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Of a text, which messages know by the name `file`.
    pub fn of(file: &'a str, text: &'a str) -> Self {
        let after_ends = text
            .bytes()
            .enumerate()
            .filter(|&(_, b)| b == b'\n')
            .map(|(at, _)| at + 1);
        Self {
            file,
            text,
            starts: std::iter::once(0).chain(after_ends).collect(),
        }
    }

    /// The number of the line that holds a byte, from 1.
    pub fn number(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at)
    }

    /// A problem with its place.
    pub fn diagnostic(&self, problem: Problem) -> Diagnostic {
        let at = floor(self.text, problem.span.start);
        let line = self.number(at);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let next = self.starts.get(line).copied().unwrap_or(self.text.len());
        let whole = self.text.get(start..next).unwrap_or_default();
        let source_line = whole.trim_end_matches(['\n', '\r']);
        let at = at.min(start + source_line.len());
        let end = floor(self.text, problem.span.end).clamp(at, start + source_line.len());
        let count = |from, to| self.text.get(from..to).unwrap_or_default().chars().count();
        Diagnostic {
            file: self.file.to_owned(),
            line,
            column: count(start, at) + 1,
            length: count(at, end).max(1),
            message: without_passwords(&problem.message).into_owned(),
            help: problem.help,
            suggestion: problem.suggestion,
            source_line: without_passwords(source_line).into_owned(),
        }
    }
}

/// The nearest character boundary at or before a byte.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Span) -> Diagnostic {
        Lines::of("x.toml", text).diagnostic(Problem::new(span, "wrong").suggest("right"))
    }

    #[test]
    fn it_shows_place_line_mark_and_help() {
        let diagnostic = shown("a = 1\r\nredy = 2\r\n", 7..11);
        assert_eq!(
            diagnostic.to_string(),
            "x.toml:2:1: wrong\n   2 | redy = 2\n     | ^^^^\n     help: did you mean \"right\"?"
        );
    }

    #[test]
    fn columns_count_characters_and_the_end_has_a_place() {
        let diagnostic = shown("é = x", 5..6);
        assert_eq!((diagnostic.column, diagnostic.length), (5, 1));
        let diagnostic = shown("é", 99..100);
        assert_eq!(
            (diagnostic.line, diagnostic.column, diagnostic.length),
            (1, 2, 1)
        );
    }

    #[test]
    fn a_mark_over_several_lines_ends_with_the_first() {
        assert_eq!(shown("a = [\n1,\n]", 4..10).length, 1);
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let text = format!("{}bad{}", "x".repeat(500), "y".repeat(500));
        let diagnostic = shown(&text, 500..503);
        let rendered = diagnostic.render(false);
        let lines: Vec<&str> = rendered.lines().collect();
        let mark = lines[2]
            .find('^')
            .map(|at| lines[2][..at].chars().count())
            .unwrap();
        let under: String = lines[1].chars().skip(mark).take(3).collect();
        assert_eq!(under, "bad");
        assert!(lines[1].chars().count() < LINE_SHOWN + 12);
    }

    #[test]
    fn passwords_are_not_shown() {
        let text = "url = \"postgres://app:hunter2@db/shop\"";
        let problem = Problem::new(6..text.len(), format!("wrong: {text}"));
        let diagnostic = Lines::of("x.toml", text).diagnostic(problem);
        assert_eq!(
            diagnostic.to_string(),
            "x.toml:1:7: wrong: url = \"postgres://app:*******@db/shop\"
   1 | url = \"postgres://app:*******@db/shop\"
     |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let diagnostic = shown("a\u{1b}[31m = 1", 0..1);
        assert!(!diagnostic.render(false).contains('\u{1b}'));
        assert!(
            diagnostic
                .render(true)
                .contains("\u{1b}[1;31mwrong\u{1b}[0m")
        );
    }
}
