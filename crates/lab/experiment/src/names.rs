//! `{name}` in the strings of a file: constants are filled in, references to the
//! running system stay, and so do the variables of requests.

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
    /// Values that the request being read can use, because a request before it in the
    /// same journey takes them from its answer.
    pub(crate) taken: Vec<String>,
}

/// Variables of requests that are a single word.
pub(crate) const VARIABLES: [&str; 2] = ["seq", "uuid"];

/// Where a string is used, which decides what it may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Known before the run: constants only.
    Plain,
    /// The command or environment of a system: also its own port, and others'.
    System,
    /// A command of a driver or a step, which has no port of its own.
    Command,
    /// What a request says, where variables stand for another value each time.
    Request,
}

/// A part of a string that was filled in.
enum Part {
    Text(Text),
    /// With its place.
    Reference(Reference, Span),
    /// What stands between the braces of a variable.
    Variable(Text),
}

/// A text of the request language, in two forms.
pub(crate) struct Request {
    /// With the references that are filled in when the run starts.
    pub(crate) template: Template,
    /// As the request language will see it, with something in place of each
    /// reference, so that its problems can be shown in the file.
    pub(crate) text: Text,
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
                (Part::Reference(reference, _), _) => segments.push(Segment::Reference(reference)),
                (Part::Variable(inner), _) => {
                    segments.push(Segment::Variable(inner.as_str().to_owned()));
                }
            }
        }
        Some(Template(segments))
    }

    /// Fills in constants and keeps references and the variables of requests.
    pub(crate) fn request(&self, text: &Text, problems: &mut Vec<Problem>) -> Option<Request> {
        let template = self.template(text, Place::Request, problems)?;
        let stands = |reference: &Reference| stand_in(reference).to_owned();
        Some(Request {
            template,
            text: self.language(text, &stands, &mut Vec::new())?,
        })
    }

    /// Text for [`Scope::request`] in which constants are filled in already, so that
    /// it can be taken apart first.
    pub(crate) fn written(&self, text: &Text, problems: &mut Vec<Problem>) -> Option<Text> {
        self.language(text, &|reference| format!("{{{reference}}}"), problems)
    }

    /// Text in the language of requests, with `stands` in place of references.
    fn language(
        &self,
        text: &Text,
        stands: &dyn Fn(&Reference) -> String,
        problems: &mut Vec<Problem>,
    ) -> Option<Text> {
        let mut written = text.slice(0..0);
        let mut braces = Braces::default();
        for part in self.parts(text, Place::Request, problems)? {
            match part {
                Part::Text(text) => {
                    for (at, c) in text.as_str().char_indices() {
                        let place = text.span(at..at + c.len_utf8());
                        let mut bytes = [0; 4];
                        let c = braces.write(c).unwrap_or(c.encode_utf8(&mut bytes));
                        written.push_at(c, &place);
                    }
                }
                Part::Reference(reference, span) => written.push_at(&stands(&reference), &span),
                Part::Variable(inner) => {
                    written.push_at("{", &inner.span(0..0));
                    written.push(&inner);
                    written.push_at("}", &inner.span(inner.len()..inner.len()));
                }
            }
        }
        Some(written)
    }

    fn parts(&self, text: &Text, place: Place, problems: &mut Vec<Problem>) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let mut length = 0;
        let mut good = true;
        for piece in pieces(text, place) {
            match piece {
                Ok(Piece::Literal(literal)) => {
                    length += literal.len();
                    parts.push(Part::Text(literal));
                }
                Ok(Piece::Variable(inner)) => match self.text(&inner, problems) {
                    Some(inner) => {
                        length += inner.len();
                        parts.push(Part::Variable(inner));
                    }
                    None => good = false,
                },
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
        let taken = self.taken.iter().map(String::as_str);
        let variables: Vec<&str> = match place {
            Place::Request => taken.chain(VARIABLES).collect(),
            _ => Vec::new(),
        };
        if variables.contains(&word) {
            return Ok(Some(Part::Variable(name.clone())));
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
            Place::Command | Place::Request => &["work"],
        };
        Err(
            Problem::new(name.whole(), format!("unknown name {{{word}}}")).suggest_from(
                word,
                "names that can be used here",
                constants.chain(runtime.iter().copied()).chain(variables),
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
            Place::System => Ok(Part::Reference(reference, span.clone())),
            Place::Command | Place::Request if !is_own => {
                Ok(Part::Reference(reference, span.clone()))
            }
            Place::Command | Place::Request if reference == Reference::Index => {
                problem("{index} belongs to a system; there is none here".to_owned())
            }
            Place::Command | Place::Request => problem(format!("{{{reference}}} belongs to a system; which one?"))
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
    /// What stands between the braces of a variable.
    Variable(Text),
}

/// Splits a string at its braces; stops at the first problem.
fn pieces(text: &Text, place: Place) -> impl Iterator<Item = Result<Piece, Problem>> {
    let mut at = 0;
    let mut braces = Braces::default();
    std::iter::from_fn(move || {
        let rest = text.as_str().get(at..).filter(|rest| !rest.is_empty())?;
        let (piece, used) = match place {
            Place::Request => braces.piece(text, at, rest),
            _ => piece(text, at, rest),
        };
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

/// Braces of the language of requests. A brace begins a name only before a letter or
/// `_`, so JSON needs no escapes; `{{` stands for one brace, and so does the `}}` that
/// closes it.
#[derive(Debug, Default)]
struct Braces {
    /// Those that are open; whether each is written twice.
    open: Vec<bool>,
}

impl Braces {
    /// How a character of plain text is written, if not as itself.
    fn write(&mut self, c: char) -> Option<&'static str> {
        match c {
            '{' => {
                self.open.push(true);
                Some("{{")
            }
            '}' => self.open.pop().map(|_| "}}"),
            _ => None,
        }
    }

    /// The next part of a text, and its length.
    fn piece(&mut self, text: &Text, at: usize, rest: &str) -> (Result<Piece, Problem>, usize) {
        let literal = |length: usize| (Ok(Piece::Literal(text.slice(at..at + length))), length);
        let doubled = |brace: &str| {
            let mut literal = text.slice(at..at);
            literal.push_at(brace, &text.span(at..at + 2));
            (Ok(Piece::Literal(literal)), 2)
        };
        let begins_a_name = |c: char| c.is_alphabetic() || c == '_';
        match (rest.strip_prefix('{'), rest.strip_prefix('}')) {
            (Some(inner), _) if inner.starts_with('{') => {
                self.open.push(true);
                doubled("{")
            }
            (Some(inner), _) if inner.starts_with(begins_a_name) => name_or_variable(text, at, inner),
            (Some(_), _) => {
                self.open.push(false);
                literal(1)
            }
            (_, Some(inner)) => match self.open.pop() {
                Some(true) if inner.starts_with('}') => doubled("}"),
                _ => literal(1),
            },
            _ => literal(rest.find(['{', '}']).unwrap_or(rest.len())),
        }
    }
}

/// What begins with a brace at `at`, which `inner` follows. Braces within a variable
/// belong to constants.
fn name_or_variable(text: &Text, at: usize, inner: &str) -> (Result<Piece, Problem>, usize) {
    let mut depth = 0_usize;
    let end = inner.char_indices().find_map(|(end, c)| {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(end),
            '}' => depth -= 1,
            _ => {}
        }
        None
    });
    let Some(length) = end else {
        let problem = Problem::new(text.span(at..at + 1), "this brace is not closed")
            .help("write {{ for a brace that is sent");
        return (Err(problem), 1);
    };
    let name = text.slice(at + 1..at + 1 + length);
    let used = length + 2;
    let piece = match name.as_str().chars().all(in_reference) {
        true => Piece::Name {
            name,
            span: text.span(at..at + used),
        },
        false => Piece::Variable(name),
    };
    (Ok(piece), used)
}

/// Something of the form that a reference will have.
pub(crate) fn stand_in(reference: &Reference) -> &'static str {
    match reference {
        Reference::OwnPort | Reference::Port(_) => "1",
        Reference::OwnAddr | Reference::Addr(_) => "127.0.0.1:1",
        Reference::Work => "/work",
        Reference::Index => "0",
    }
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
    fn variables_of_requests_stay_and_constants_within_them_are_filled_in() {
        let request = |text: &str| {
            let mut scope = scope();
            scope.taken = vec!["token".to_owned()];
            let mut problems = Vec::new();
            let request = scope.request(&Text::at(text, 0..1), &mut problems);
            match request {
                Some(request) => Ok((
                    request.template.to_string(),
                    request.text.as_str().to_owned(),
                )),
                None => Err(problems.remove(0).message),
            }
        };
        let text = "{bbs.addr}/{zipf 1.1 {cells}}/{seq}/{token}?{{{uuid}}}";
        let both = |written: &str, shown: &str| Ok((written.to_owned(), shown.to_owned()));
        assert_eq!(
            request(text),
            both(
                "{bbs.addr}/{zipf 1.1 100}/{seq}/{token}?{{{uuid}}}",
                "127.0.0.1:1/{zipf 1.1 100}/{seq}/{token}?{{{uuid}}}"
            )
        );
        assert_eq!(request("{dir}"), both("a b{{", "a b{{"));
        let json = "{\"a\": {\"b\": {seq}}, \"c\": {}}";
        let written = "{{\"a\": {{\"b\": {seq}}}, \"c\": {{}}}}";
        assert_eq!(request(json), both(written, written));
        assert_eq!(request(written), both(written, written));
        assert_eq!(request("}a}}"), both("}}a}}}}", "}a}}"));
        assert_eq!(
            request("{tokn}").unwrap_err(),
            "unknown name {tokn}".to_owned()
        );
        assert_eq!(
            request("{zipf 1.1 {cels}}").unwrap_err(),
            "unknown name {cels}".to_owned()
        );
        assert_eq!(
            request("{zipf 1.1 5").unwrap_err(),
            "this brace is not closed".to_owned()
        );
        assert!(template("{seq}", Place::Command).is_err());
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
