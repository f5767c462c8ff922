//! `{name}` in the strings of a file: constants are filled in, references to the
//! running system stay.

use std::collections::BTreeMap;

use crate::diagnostic::Problem;
use crate::plan::{Reference, Segment, Template};
use crate::text::{Span, Text};

/// Longest string after names were filled in, in bytes. Constants may hold
/// constants, so a small file could otherwise ask for any amount of memory.
const LONGEST: usize = 64 * 1024;

/// Names that mean something else than a constant.
pub(crate) const RUNTIME: [&str; 4] = ["port", "addr", "work", "index"];

/// The value of a constant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Constant {
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Text(String),
    /// It has a problem of its own; its uses are not reported again.
    Broken,
}

impl Constant {
    fn text(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Text(text) => text.clone(),
            Self::Broken => String::new(),
        }
    }
}

/// Everything that may stand in braces.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) constants: BTreeMap<String, Constant>,
    /// Constants that are not read yet, because they stand further down.
    pub(crate) later: Vec<String>,
    /// Names of systems and fleets.
    pub(crate) systems: Vec<String>,
}

/// Where a string is used, which decides what it may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Known before the run: constants only.
    Plain,
    /// The command or environment of a system: also its own port, and others'.
    System,
    /// A command of a driver or a step, which has no port of its own.
    Command,
}

/// A part of a string that was filled in.
enum Part {
    Text(Text),
    Reference(Reference),
}

impl Scope {
    /// Fills in constants. Anything else in braces is a problem.
    pub(crate) fn text(&self, text: &Text, problems: &mut Vec<Problem>) -> Option<Text> {
        let parts = self.parts(text, Place::Plain, problems)?;
        let mut filled = text.slice(0..0);
        for part in &parts {
            if let Part::Text(part) = part {
                filled.push(part);
            }
        }
        Some(filled)
    }

    /// Fills in constants and keeps references that the place allows.
    pub(crate) fn template(
        &self,
        text: &Text,
        place: Place,
        problems: &mut Vec<Problem>,
    ) -> Option<Template> {
        let mut segments: Vec<Segment> = Vec::new();
        for part in self.parts(text, place, problems)? {
            match (part, segments.last_mut()) {
                (Part::Text(text), Some(Segment::Text(last))) => last.push_str(text.as_str()),
                (Part::Text(text), _) => segments.push(Segment::Text(text.as_str().to_owned())),
                (Part::Reference(reference), _) => segments.push(Segment::Reference(reference)),
            }
        }
        Some(Template(segments))
    }

    fn parts(&self, text: &Text, place: Place, problems: &mut Vec<Problem>) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let mut length = 0;
        let mut good = true;
        for piece in pieces(text) {
            match piece {
                Ok(Piece::Literal(literal)) => {
                    length += literal.len();
                    parts.push(Part::Text(literal));
                }
                Ok(Piece::Name { name, span }) => match self.resolve(&name, &span, place) {
                    Ok(Some(part)) => {
                        if let Part::Text(text) = &part {
                            length += text.len();
                        }
                        parts.push(part);
                    }
                    Ok(None) => good = false,
                    Err(problem) => {
                        problems.push(problem);
                        good = false;
                    }
                },
                Err(problem) => {
                    problems.push(problem);
                    return None;
                }
            }
            if length > LONGEST {
                let message =
                    format!("with its names filled in, this has more than {LONGEST} bytes");
                problems.push(Problem::new(text.whole(), message));
                return None;
            }
        }
        good.then_some(parts)
    }

    /// What stands for `{name}`; `None` for a constant that is broken.
    fn resolve(&self, name: &Text, span: &Span, place: Place) -> Result<Option<Part>, Problem> {
        let word = name.as_str();
        match self.constants.get(word) {
            Some(Constant::Broken) => return Ok(None),
            Some(constant) => {
                return Ok(Some(Part::Text(Text::at(&constant.text(), span.clone()))));
            }
            None => {}
        }
        if let Some(reference) = own(word) {
            return self.allowed(reference, span, place).map(Some);
        }
        if let Some((system, what)) = word.split_once('.') {
            return self.of_system(name, system, what, span, place).map(Some);
        }
        if self.later.iter().any(|later| later == word) {
            let message = format!("{{{word}}} is defined further down");
            return Err(Problem::new(name.whole(), message)
                .help("a constant can use those above it; move its line up"));
        }
        let constants = self.constants.keys().map(String::as_str);
        let runtime: &[&str] = match place {
            Place::Plain => &[],
            Place::System => &RUNTIME,
            Place::Command => &["work"],
        };
        Err(
            Problem::new(name.whole(), format!("unknown name {{{word}}}")).suggest_from(
                word,
                "names that can be used here",
                constants.chain(runtime.iter().copied()),
            ),
        )
    }

    fn of_system(
        &self,
        name: &Text,
        system: &str,
        what: &str,
        span: &Span,
        place: Place,
    ) -> Result<Part, Problem> {
        if !self.systems.iter().any(|known| known == system) {
            let message = format!("unknown system \"{system}\"");
            let known = self.systems.iter().map(String::as_str);
            return Err(Problem::new(name.span(0..system.len()), message)
                .suggest_from(system, "systems", known));
        }
        let reference = match what {
            "addr" => Reference::Addr(system.to_owned()),
            "port" => Reference::Port(system.to_owned()),
            _ => {
                let at = name.span(system.len() + 1..name.len());
                let message = format!("a system has no \"{what}\" to refer to");
                return Err(Problem::new(at, message).suggest_from(
                    what,
                    "a system has",
                    ["addr", "port"],
                ));
            }
        };
        self.allowed(reference, span, place)
    }

    fn allowed(&self, reference: Reference, span: &Span, place: Place) -> Result<Part, Problem> {
        let is_own = matches!(
            reference,
            Reference::OwnPort | Reference::OwnAddr | Reference::Index
        );
        let problem = |message: String| Err(Problem::new(span.clone(), message));
        match place {
            Place::System => Ok(Part::Reference(reference)),
            Place::Command if !is_own => Ok(Part::Reference(reference)),
            Place::Command if reference == Reference::Index => {
                problem("{index} belongs to a system; there is none here".to_owned())
            }
            Place::Command => problem(format!("{{{reference}}} belongs to a system; which one?"))
                .map_err(|problem| problem.help(format!("write {{NAME.{reference}}}"))),
            Place::Plain => problem(format!(
                "{{{reference}}} is known only when the run has started"
            ))
            .map_err(|problem| {
                problem.help("it can stand in run, args and env, which are read then")
            }),
        }
    }
}

/// The reference to a system's own matters, or to the run's.
fn own(word: &str) -> Option<Reference> {
    match word {
        "port" => Some(Reference::OwnPort),
        "addr" => Some(Reference::OwnAddr),
        "work" => Some(Reference::Work),
        "index" => Some(Reference::Index),
        _ => None,
    }
}

/// A part of a string as it is written.
enum Piece {
    Literal(Text),
    /// A name in braces; `span` includes the braces.
    Name {
        name: Text,
        span: Span,
    },
}

/// Splits a string at its braces; stops at the first problem.
fn pieces(text: &Text) -> impl Iterator<Item = Result<Piece, Problem>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.as_str().get(at..).filter(|rest| !rest.is_empty())?;
        let (piece, used) = piece(text, at, rest);
        at = if piece.is_ok() { at + used } else { text.len() };
        Some(piece)
    })
}

fn piece(text: &Text, at: usize, rest: &str) -> (Result<Piece, Problem>, usize) {
    let doubled = |brace: &str| {
        let mut literal = text.slice(at..at);
        literal.push_at(brace, &text.span(at..at + 2));
        (Ok(Piece::Literal(literal)), 2)
    };
    let stray = |message: &str, brace: char| {
        let problem = Problem::new(text.span(at..at + 1), message).help(format!(
            "write {brace}{brace} for a brace that is no reference"
        ));
        (Err(problem), 1)
    };
    if rest.starts_with("{{") {
        return doubled("{");
    }
    if rest.starts_with("}}") {
        return doubled("}");
    }
    if rest.starts_with('}') {
        return stray("this brace closes nothing", '}');
    }
    if let Some(inner) = rest.strip_prefix('{') {
        let Some(length) = inner
            .find(['{', '}'])
            .filter(|&end| inner[end..].starts_with('}'))
        else {
            return stray("this brace is not closed", '{');
        };
        let used = length + 2;
        let name = text.slice(at + 1..at + 1 + length);
        if name.is_empty() || !name.as_str().chars().all(in_reference) {
            return stray("there is no name in these braces", '{');
        }
        return (
            Ok(Piece::Name {
                name,
                span: text.span(at..at + used),
            }),
            used,
        );
    }
    let used = rest.find(['{', '}']).unwrap_or(rest.len());
    (Ok(Piece::Literal(text.slice(at..at + used))), used)
}

fn in_reference(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope() -> Scope {
        let constants = [
            ("cells".to_owned(), Constant::Integer(100)),
            ("dir".to_owned(), Constant::Text("a b{".to_owned())),
            ("bad".to_owned(), Constant::Broken),
        ];
        Scope {
            constants: constants.into(),
            systems: vec!["bbs".to_owned()],
            ..Scope::default()
        }
    }

    fn template(text: &str, place: Place) -> Result<String, Vec<String>> {
        let mut problems = Vec::new();
        let filled = scope().template(&Text::at(text, 0..1), place, &mut problems);
        match filled {
            Some(template) if problems.is_empty() => Ok(template.to_string()),
            _ => Err(problems
                .into_iter()
                .map(|problem| problem.message)
                .collect()),
        }
    }

    #[test]
    fn constants_are_filled_in_and_references_stay() {
        let filled = template("{dir}/{work} -n {cells} {bbs.addr} {{x}}", Place::System).unwrap();
        assert_eq!(filled, "a b{{/{work} -n 100 {bbs.addr} {{x}}");
    }

    #[test]
    fn each_place_allows_its_own_references() {
        assert!(template("{port} {addr} {index} {work} {bbs.port}", Place::System).is_ok());
        assert!(template("{work} {bbs.port}", Place::Command).is_ok());
        for text in ["{port}", "{addr}", "{index}"] {
            assert!(template(text, Place::Command).is_err(), "{text}");
        }
        for text in ["{port}", "{work}", "{bbs.addr}"] {
            assert!(template(text, Place::Plain).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let message = |text| template(text, Place::System).unwrap_err().join("; ");
        assert_eq!(message("{cell}"), "unknown name {cell}");
        assert_eq!(
            message("{bsb.addr} {bbs.adr}"),
            "unknown system \"bsb\"; a system has no \"adr\" to refer to"
        );
        assert_eq!(message("a { b"), "this brace is not closed");
        assert_eq!(message("a } b"), "this brace closes nothing");
        assert_eq!(message("{}"), "there is no name in these braces");
        assert_eq!(message("{bad}"), "");
    }

    #[test]
    fn the_filled_text_has_a_bound() {
        let mut scope = Scope::default();
        scope
            .constants
            .insert("big".to_owned(), Constant::Text("x".repeat(LONGEST)));
        let mut problems = Vec::new();
        assert!(
            scope
                .text(&Text::at("{big}{big}", 0..1), &mut problems)
                .is_none()
        );
        assert_eq!(problems.len(), 1);
    }

    proptest! {
        #[test]
        fn a_template_reads_back_as_it_is_written(text in "([a-z {}]|\\{work\\}|\\{bbs\\.addr\\}|\\{\\{){0,12}") {
            if let Ok(written) = template(&text, Place::System) {
                prop_assert_eq!(template(&written, Place::System), Ok(written.clone()));
            }
        }

        #[test]
        fn text_without_braces_is_itself(text in "[^{}]{0,40}") {
            prop_assert_eq!(template(&text, Place::Plain), Ok(text));
        }

        #[test]
        fn no_text_breaks_it(text in "\\PC{0,40}") {
            let _ = template(&text, Place::Command);
        }
    }
}
