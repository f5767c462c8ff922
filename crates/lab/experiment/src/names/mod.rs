//! `{name}` in the strings of a file: constants are filled in, references to the
//! running system stay, and so do the variables of requests.

mod copies;
mod pieces;
mod references;

use std::collections::BTreeMap;

use document::{Problem, Span};

use crate::plan::{Reference, Segment, Template};
use crate::text::Text;
use pieces::{Braces, Piece, pieces};
pub(crate) use references::stand_in;
use references::{form, own};

/// Longest string after names were filled in, in bytes. Constants may hold
/// constants, so a small file could otherwise ask for any amount of memory.
const LONGEST: usize = 64 * 1024;

/// Names that a system may use, whatever its keys are.
const RUNTIME: [&str; 4] = ["port", "addr", "work", "index"];

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
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) constants: BTreeMap<String, Constant>,
    /// Constants that are not read yet, because they stand further down.
    pub(crate) later: Vec<String>,
    /// Names of systems and fleets.
    pub(crate) systems: Vec<String>,
    /// Names of their further ports.
    pub(crate) ports: BTreeMap<String, Vec<String>>,
    /// How many copies each has; `None`: its count is wrong, which is told where it stands.
    pub(crate) copies: BTreeMap<String, Option<u32>>,
    /// Values that steps keep, each with the name of its step.
    pub(crate) kept: BTreeMap<String, String>,
    /// Those of the steps that were read so far.
    pub(crate) kept_so_far: Vec<String>,
    /// The system being read.
    pub(crate) own: Option<String>,
    /// Values that the request being read can use, because a request before it in the
    /// same journey takes them from its answer.
    pub(crate) taken: Vec<String>,
}

/// Variables of requests that are a single word.
const VARIABLES: [&str; 2] = ["seq", "uuid"];

/// Whether a name has a meaning that a constant or a value would hide.
pub(crate) fn means_something(name: &str) -> bool {
    own(name).is_some() || VARIABLES.contains(&name)
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
        Some(Request {
            template,
            text: self.language(text, &stand_in, &mut Vec::new())?,
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
        if word.contains('[') {
            return self.of_copies(name, span, place);
        }
        if let Some((system, what)) = word.split_once('.') {
            if let (Some(form), Some(own)) = (form(system), &self.own) {
                let port = self.further(name, own, what)?;
                let reference = Reference::OwnFurther(form, port);
                return self.allowed(reference, span, place).map(Some);
            }
            return self.of_system(name, system, what, span, place).map(Some);
        }
        if let Some(step) = self.kept.get(word) {
            return self.kept_by(step, name, span, place).map(Some);
        }
        if self.later.iter().any(|later| later == word) {
            let message = format!("{{{word}}} is defined further down");
            return Err(Problem::new(name.whole(), message)
                .help("a constant can use those above it; move its line up"));
        }
        let kept = self.kept_so_far.iter().filter(|_| place != Place::Plain);
        let constants = self.constants.keys().chain(kept).map(String::as_str);
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
        self.known_system(name, system)?;
        let further = what.split_once('.');
        let further = further.and_then(|(word, port)| Some((form(word)?, port)));
        let reference = match (what, further) {
            ("addr", _) => Reference::Addr(system.to_owned()),
            ("port", _) => Reference::Port(system.to_owned()),
            (_, Some((form, port))) => {
                let port = self.further(name, system, port)?;
                Reference::Further(form, system.to_owned(), port)
            }
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

    /// The further port of a system that stands at the end of a name.
    fn further(&self, name: &Text, system: &str, port: &str) -> Result<String, Problem> {
        let known = self
            .ports
            .get(system)
            .map(Vec::as_slice)
            .unwrap_or_default();
        if known.iter().any(|known| known == port) {
            return Ok(port.to_owned());
        }
        let at = name.span(name.len() - port.len()..name.len());
        let message = format!("{system} has no further port \"{port}\"");
        let problem = Problem::new(at, message);
        Err(match known {
            [] => problem.help(format!("give {system} the key ports = [\"{port}\"]")),
            known => {
                problem.suggest_from(port, "its further ports", known.iter().map(String::as_str))
            }
        })
    }

    fn allowed(&self, reference: Reference, span: &Span, place: Place) -> Result<Part, Problem> {
        let is_own = matches!(
            reference,
            Reference::OwnPort
                | Reference::OwnAddr
                | Reference::OwnDisk
                | Reference::OwnFurther(..)
                | Reference::Index
        );
        let problem = |message: String| Err(Problem::new(span.clone(), message));
        match place {
            Place::System => Ok(Part::Reference(reference, span.clone())),
            Place::Command | Place::Request if !is_own => {
                Ok(Part::Reference(reference, span.clone()))
            }
            Place::Command | Place::Request
                if matches!(reference, Reference::Index | Reference::OwnDisk) =>
            {
                problem(format!(
                    "{{{reference}}} belongs to a system; there is none here"
                ))
            }
            Place::Command | Place::Request => {
                problem(format!("{{{reference}}} belongs to a system; which one?"))
                    .map_err(|problem| problem.help(format!("write {{NAME.{reference}}}")))
            }
            Place::Plain => problem(format!(
                "{{{reference}}} is known only when the run has started"
            ))
            .map_err(|problem| {
                problem.help("it can stand in run, args and env, which are read then")
            }),
        }
    }
}

#[cfg(test)]
mod tests;
