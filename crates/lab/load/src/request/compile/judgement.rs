//! What the answers to a step must be, and what is taken from them.

use units::UnitError;

use super::Compiler;
use super::rules::{check_assertion, check_source, check_value_name};
use crate::request::answer::{Check, Place};
use crate::request::compiled::Compiled;
use crate::request::error::RequestError;
use crate::request::{Assertion, Source, Step, Take};
use crate::workload::Protocol;

/// Longest name of a refusal, in characters; what is longer is cut.
const LONGEST_NAME: usize = 120;

/// Where the source of a value stands in its description.
fn range_of_source(take: &Take) -> std::ops::Range<usize> {
    let (Source::Json(from) | Source::Header(from) | Source::Regex(from)) = &take.from;
    let whole = take.describe().len();
    whole - from.len()..whole
}

/// Where a value is found; faults are in the value's description.
pub(in crate::request) fn place(take: &Take) -> Result<Place, UnitError> {
    let all = range_of_source(take);
    check_value_name(&take.name).map_err(|message| UnitError::new(0..take.name.len(), message))?;
    check_source(&take.from).map_err(|fault| fault.shifted(all.start))?;
    Place::of(&take.from).map_err(|message| UnitError::new(all, message))
}

impl Compiler<'_> {
    /// Makes assertions and values ready, after what stands without any.
    pub(super) fn judgement(
        &mut self,
        step: &Step,
        compiled: &mut Compiled,
    ) -> Result<(), RequestError> {
        let asked = |assertion: &Assertion| matches!(assertion, Assertion::Status(_));
        let usual = match self.target.protocol {
            _ if step.assertions.iter().any(asked) => None,
            Protocol::Http1 | Protocol::Http2 => Some(((0, 399), "status 400 or above")),
            Protocol::Grpc => Some(((0, 0), "grpc-status above 0")),
            // An error of a database is told by its code, whatever is asserted.
            Protocol::WebSocket
            | Protocol::Tcp
            | Protocol::Udp
            | Protocol::Redis
            | Protocol::Postgres => None,
        };
        if let Some((range, name)) = usual {
            let check = Check::Status(vec![range]);
            compiled.checks.push((check, self.refusal(name)));
        }
        for assertion in &step.assertions {
            let text = assertion.describe();
            let check = self.check(assertion).map_err(|message| {
                let place = format!("step \"{}\", assertion", step.name);
                RequestError::new(place, &text, UnitError::new(0..text.len(), message))
            })?;
            compiled.needs.fields |= check.needs_fields();
            compiled.needs.body |= check.needs_body();
            compiled.checks.push((check, self.refusal(&text)));
        }
        for take in &step.take {
            let text = take.describe();
            let found = self.place(take).map_err(|fault| {
                let place = format!("step \"{}\", value \"{}\"", step.name, take.name);
                RequestError::new(place, &text, fault)
            })?;
            compiled.needs.fields |= !found.needs_body();
            compiled.needs.body |= found.needs_body();
            let refusal = self.refusal(&format!("no value for {text}"));
            compiled.takes.push((found, self.scope.known, refusal));
            self.scope.known += 1;
        }
        if compiled.needs.body {
            compiled.too_long = self.refusal("body above 1 MiB, not searched");
        }
        Ok(())
    }

    fn check(&self, assertion: &Assertion) -> Result<Check, String> {
        let of_head = matches!(assertion, Assertion::Status(_) | Assertion::Header(..));
        if of_head && !self.target.protocol.has_fields() {
            return Err(
                "answers of this protocol have neither status nor header fields".to_owned(),
            );
        }
        if matches!(assertion, Assertion::Rows(..)) && !self.target.protocol.has_rows() {
            return Err("answers of this protocol have no rows".to_owned());
        }
        check_assertion(assertion)?;
        Check::of(assertion)
    }

    /// Where a value is found; faults are in the value's description.
    fn place(&self, take: &Take) -> Result<Place, UnitError> {
        if matches!(take.from, Source::Header(_)) && !self.target.protocol.has_fields() {
            return Err(UnitError::new(
                range_of_source(take),
                "answers of this protocol have no header fields",
            ));
        }
        place(take)
    }

    /// The number of a refusal.
    fn refusal(&mut self, name: &str) -> usize {
        let name: String = name.chars().take(LONGEST_NAME).collect();
        match self.refusals.iter().position(|known| *known == name) {
            Some(index) => index,
            None => {
                self.refusals.push(name);
                self.refusals.len() - 1
            }
        }
    }
}
