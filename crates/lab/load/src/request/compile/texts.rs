//! Templates and where they stand.

use std::ops::Range;

use units::UnitError;

use super::Compiler;
use crate::request::compiled::{Escape, Piece, Template};
use crate::request::field;
use crate::request::template::{self, Part};
use crate::request::variable::Variable;

impl Compiler<'_> {
    pub(super) fn template(&mut self, text: &str, escape: Escape) -> Result<Template, UnitError> {
        let mut template = Template::default();
        for part in template::split(text)? {
            match part {
                Part::Text(literal, at) => {
                    if escape == Escape::Field {
                        field::check_value(&literal)
                            .map_err(|fault| placed(fault, &literal, at))?;
                    }
                    template.push(Piece::Text(literal.into_bytes()));
                }
                Part::Variable(at) => template.push(self.variable(text, at, escape)?),
            }
        }
        Ok(template)
    }

    pub(super) fn path(&mut self, text: &str) -> Result<Template, UnitError> {
        let parts = template::split(text)?;
        let mut template = Template::default();
        for (index, part) in parts.into_iter().enumerate() {
            match part {
                Part::Text(literal, at) => {
                    if index == 0 && !literal.starts_with(['/', '?']) && literal != "*" {
                        // All of the first name, so that the suggestion is a path as it was meant;
                        // of the text, since doubled braces are one in the literal.
                        let source = &text[at.clone()];
                        let end = source.find(['/', '?', ' ']).unwrap_or(source.len());
                        let least = source.chars().next().map_or(0, char::len_utf8);
                        let first = &source[..end.max(least)];
                        let at = at.start..at.start + first.len();
                        let fault = UnitError::new(at, "a path begins with /");
                        return Err(fault.suggest(format!("/{first}")));
                    }
                    if index == 0 && literal.starts_with('?') {
                        template.push_text("/");
                    }
                    let literal = field::literal_path(&literal)
                        .map_err(|fault| placed(fault, &literal, at))?;
                    template.push(Piece::Text(literal.into_bytes()));
                }
                Part::Variable(at) => {
                    let escape = if index == 0 {
                        Escape::Link
                    } else {
                        Escape::Path
                    };
                    template.push(self.variable(text, at, escape)?);
                }
            }
        }
        if text.is_empty() {
            template.push_text("/");
        }
        Ok(template)
    }

    pub(in crate::request) fn variable(
        &mut self,
        text: &str,
        at: std::ops::Range<usize>,
        escape: Escape,
    ) -> Result<Piece, UnitError> {
        let variable = Variable::parse(&text[at.clone()], &mut self.scope)
            .map_err(|fault| fault.shifted(at.start))?;
        let fault = |message: String| Err(UnitError::new(at.clone(), message));
        match (&variable, escape) {
            (Variable::Line { column, .. }, Escape::Field) => {
                if let Some((row, _)) = column.find(|value| !field::may_be_value(value)) {
                    return fault(format!(
                        "row {row} of this column has a line break or control character, \
                         which cannot stand in a header field"
                    ));
                }
            }
            (Variable::Line { column, .. }, Escape::Link) => {
                if let Some((row, _)) =
                    column.find(|value| !field::write_link(value, &mut Vec::new()))
                {
                    return fault(format!(
                        "a path begins with /, but row {row} of this column does not"
                    ));
                }
            }
            (Variable::Taken(_), Escape::Link)
            | (_, Escape::None | Escape::Path | Escape::Field) => {}
            (_, Escape::Link) => {
                return fault("a path begins with /, not with this variable".to_owned());
            }
        }
        self.position += 1;
        Ok(Piece::Variable {
            variable,
            position: self.position,
            escape,
        })
    }
}

/// A fault in a literal, told at its place in the text that the literal stands for.
fn placed(fault: UnitError, literal: &str, at: Range<usize>) -> UnitError {
    match literal.len() == at.len() {
        true => fault.shifted(at.start),
        // Doubled braces shift places; the whole part is near enough.
        false => UnitError { at, ..fault },
    }
}
