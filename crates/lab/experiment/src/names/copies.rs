//! `{NAME[1].addr}`, `{NAME[*].addr}`, `{NAME[*]:n{index}=http://{addr}}`: copies of a
//! system, one or all of them.

use document::{Problem, Span};

use super::{LONGEST, Part, Place, Scope, form, stand_in};
use crate::plan::{Form, Reference, Segment, Template};
use crate::text::Text;

/// What stands between two copies when a file does not say.
const COMMA: &str = ",";
/// Longest text between two copies, in bytes.
const LONGEST_SEPARATOR: usize = 16;

/// Which copies stand in brackets.
enum CopyList {
    One(u32),
    /// All, with what stands between them.
    All(String),
}

impl Scope {
    /// What stands for a name with brackets. `None`: a constant in it is broken.
    pub(super) fn of_copies(
        &self,
        name: &Text,
        span: &Span,
        place: Place,
    ) -> Result<Option<Part>, Problem> {
        let word = name.as_str();
        let open = word.find('[').unwrap_or(word.len());
        let close = word.find(']').filter(|close| *close > open);
        let close = close.ok_or_else(|| {
            let message = "this bracket is not closed";
            Problem::new(name.span(open..open + 1), message)
                .help("write for instance {NAME[0].addr} or {NAME[*].addr}")
        })?;
        let system = &word[..open];
        self.known_system(name, system)?;
        let which = self.which(name, system, open + 1..close)?;
        let rest = name.slice(close + 1..name.len());
        match (which, rest.as_str().get(..1)) {
            (CopyList::One(index), Some(".")) => {
                let (form, port) = self.address(&rest, system)?;
                let reference = one(system, index, form, port);
                self.allowed(reference, span, place).map(Some)
            }
            (CopyList::All(separator), Some(".")) => {
                let (form, port) = self.address(&rest, system)?;
                let piece = Template(vec![Segment::Reference(own_port(form, port))]);
                self.all(system, separator, piece, span, place).map(Some)
            }
            (CopyList::All(separator), Some(":")) => {
                let piece = rest.slice(1..rest.len());
                let Some(piece) = self.piece(&piece, system)? else {
                    return Ok(None);
                };
                self.all(system, separator, piece, span, place).map(Some)
            }
            (which, _) => {
                let at = match rest.is_empty() {
                    true => name.whole(),
                    false => rest.whole(),
                };
                Err(Problem::new(at, "what of it?").help(match which {
                    CopyList::One(index) => {
                        format!("write {{{system}[{index}].addr}} or {{{system}[{index}].port}}")
                    }
                    CopyList::All(_) => format!(
                        "write {{{system}[*].addr}}, or what is repeated for each copy: \
                         {{{system}[*]:n{{index}}={{addr}}}}"
                    ),
                }))
            }
        }
    }

    pub(super) fn known_system(&self, name: &Text, system: &str) -> Result<(), Problem> {
        if self.systems.iter().any(|known| known == system) {
            return Ok(());
        }
        let message = format!("unknown system \"{system}\"");
        let known = self.systems.iter().map(String::as_str);
        let problem = Problem::new(name.span(0..system.len()), message);
        Err(problem.suggest_from(system, "systems", known))
    }

    fn which(
        &self,
        name: &Text,
        system: &str,
        range: std::ops::Range<usize>,
    ) -> Result<CopyList, Problem> {
        let inner = name.slice(range.clone());
        if let Some(separator) = inner.as_str().strip_prefix('*') {
            return match separator {
                "" => Ok(CopyList::All(COMMA.to_owned())),
                long if long.len() > LONGEST_SEPARATOR => {
                    let at = inner.span(1..inner.len());
                    let message =
                        format!("what stands between copies has at most {LONGEST_SEPARATOR} bytes");
                    Err(Problem::new(at, message))
                }
                separator => Ok(CopyList::All(separator.to_owned())),
            };
        }
        // Where nothing stands in it the bracket is marked.
        let at = name.span(range.start..range.end.max(range.start + 1));
        let Ok(index) = inner.as_str().parse::<u32>() else {
            let message = format!("\"{}\" is no number of a copy", inner.as_str());
            return Err(Problem::new(at, message)
                .help("write a number from 0, or * for all copies: {NAME[*].addr}"));
        };
        match self.copies.get(system).copied().flatten() {
            Some(1) if index > 0 => {
                let message = format!("{system} has one copy, {system}[0]");
                Err(Problem::new(at, message).help(format!("give {system} a count")))
            }
            Some(count) if index >= count => {
                let last = count.saturating_sub(1);
                let message =
                    format!("{system} has {count} copies, {system}[0] to {system}[{last}]");
                Err(Problem::new(at, message))
            }
            _ => Ok(CopyList::One(index)),
        }
    }

    /// `.addr`, `.port`, `.addr.EXTRA`, of a copy of a system.
    fn address(&self, rest: &Text, system: &str) -> Result<(Form, Option<String>), Problem> {
        let what = rest.slice(1..rest.len());
        let (word, port) = match what.as_str().split_once('.') {
            Some((word, port)) => (word, Some(port)),
            None => (what.as_str(), None),
        };
        let Some(form) = form(word) else {
            let message = format!("a copy has no \"{}\" to refer to", what.as_str());
            let problem = Problem::new(what.whole(), message);
            return Err(problem.suggest_from(word, "a copy has", ["addr", "port"]));
        };
        let port = port.map(|port| self.further(rest, system, port));
        Ok((form, port.transpose()?))
    }

    /// What is repeated for each copy; in it a copy's own references are those of that one.
    fn piece(&self, text: &Text, system: &str) -> Result<Option<Template>, Problem> {
        if text.is_empty() {
            let message = "nothing is repeated here";
            return Err(Problem::new(text.whole(), message)
                .help("write what stands for each copy: {NAME[*]:n{index}={addr}}"));
        }
        let inner = Self {
            own: Some(system.to_owned()),
            ..self.clone()
        };
        let mut problems = Vec::new();
        let piece = inner.template(text, Place::System, &mut problems);
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem);
        }
        let repeats = |reference: &Reference| matches!(reference, Reference::All { .. });
        match piece {
            Some(piece) if piece.references().any(repeats) => {
                let message = "all copies within what is repeated for each copy";
                let problem = Problem::new(text.whole(), message);
                Err(problem.help("name one copy there: {NAME[0].addr}"))
            }
            piece => Ok(piece),
        }
    }

    fn all(
        &self,
        system: &str,
        separator: String,
        piece: Template,
        span: &Span,
        place: Place,
    ) -> Result<Part, Problem> {
        let copies = self.copies.get(system).copied().flatten().unwrap_or(1);
        let once = piece.render(stand_in).len() + separator.len();
        if once.saturating_mul(copies as usize) > LONGEST {
            let message =
                format!("repeated for {copies} copies, this has more than {LONGEST} bytes");
            return Err(Problem::new(span.clone(), message));
        }
        let reference = Reference::All {
            system: system.to_owned(),
            separator,
            piece,
        };
        self.allowed(reference, span, place)
    }
}

/// A reference to one copy. That to the first is the one without a number, so that both are
/// led through the same proxy.
fn one(system: &str, index: u32, form: Form, port: Option<String>) -> Reference {
    let system = system.to_owned();
    match (index, form, port) {
        (0, Form::Port, None) => Reference::Port(system),
        (0, Form::Addr, None) => Reference::Addr(system),
        (0, form, Some(port)) => Reference::Further(form, system, port),
        (index, form, port) => Reference::Copy {
            system,
            index,
            form,
            port,
        },
    }
}

/// What a copy calls its own.
fn own_port(form: Form, port: Option<String>) -> Reference {
    match (form, port) {
        (Form::Port, None) => Reference::OwnPort,
        (Form::Addr, None) => Reference::OwnAddr,
        (form, Some(port)) => Reference::OwnFurther(form, port),
    }
}
