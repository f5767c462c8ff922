//! What references are by their words, what stands for them until a run begins, and values
//! that steps keep.

use document::{Problem, Span};

use super::{Part, Place, Scope};
use crate::plan::{Form, Reference};
use crate::text::Text;

impl Scope {
    /// A value that a step keeps.
    pub(super) fn kept_by(
        &self,
        step: &str,
        name: &Text,
        span: &Span,
        place: Place,
    ) -> Result<Part, Problem> {
        let word = name.as_str();
        let is_known = self.kept_so_far.iter().any(|known| known == word);
        match place {
            Place::Command | Place::Request if is_known => {
                let reference = Reference::Kept(word.to_owned());
                Ok(Part::Reference(reference, span.clone()))
            }
            Place::Plain if is_known => {
                let message =
                    format!("{{{word}}} is not known before the run, which this has to be");
                Err(Problem::new(name.whole(), message).help(
                    "it can stand in http, in run, and in `count` and options that are texts of make",
                ))
            }
            _ => {
                let message = format!("{{{word}}} is known once the step {step:?} has kept it");
                Err(Problem::new(name.whole(), message)
                    .help("it can stand in what a step does after that: http, run, make"))
            }
        }
    }
}

/// The reference to a system's own matters, or to the run's.
pub(super) fn own(word: &str) -> Option<Reference> {
    match word {
        "port" => Some(Reference::OwnPort),
        "addr" => Some(Reference::OwnAddr),
        "work" => Some(Reference::Work),
        "disk" => Some(Reference::OwnDisk),
        "index" => Some(Reference::Index),
        _ => None,
    }
}

/// How a port is written, by its word.
pub(super) fn form(word: &str) -> Option<Form> {
    [Form::Port, Form::Addr]
        .into_iter()
        .find(|form| form.word() == word)
}

/// Something of the form that a reference will have.
pub(crate) fn stand_in(reference: &Reference) -> String {
    let text = match reference {
        Reference::OwnPort
        | Reference::Port(_)
        | Reference::OwnFurther(Form::Port, _)
        | Reference::Further(Form::Port, ..)
        | Reference::Copy {
            form: Form::Port, ..
        } => "1",
        Reference::OwnAddr
        | Reference::Addr(_)
        | Reference::OwnFurther(Form::Addr, _)
        | Reference::Further(Form::Addr, ..)
        | Reference::Copy {
            form: Form::Addr, ..
        } => "127.0.0.1:1",
        Reference::Work => "/work",
        Reference::OwnDisk => "/disk",
        Reference::Index => "0",
        Reference::Kept(_) => "1",
        Reference::All { piece, .. } => return piece.render(stand_in),
    };
    text.to_owned()
}
