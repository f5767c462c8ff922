//! From technique and directives to what is ready for all nodes.

use super::{CompileError, Compiled, Texts, count_values, methods, sections};
use crate::model::directive::Directive;
use crate::model::methods::fills_template;
use crate::model::technique::{Body, Technique};

/// Makes directives of a technique ready: one, or several whose values are merged in their
/// order.
///
/// # Errors
/// The variable whose value cannot be read or is not accepted; too many values.
pub fn compile(technique: &Technique, directives: &[&Directive]) -> Result<Compiled, CompileError> {
    let mut texts = Texts::default();
    let parts = match &technique.body {
        Body::Sections(list) => sections::compile(list, directives, &mut texts)?,
        Body::Methods(body) => methods::compile(&technique.id, body, directives, &mut texts)?,
    };
    let schedule = directives
        .first()
        .and_then(|one| one.schedule_id.as_deref());
    let mut mentions = texts.mentions;
    mentions.all_properties |= parts.calls.iter().any(|call| fills_template(&call.method));
    let mut compiled = Compiled {
        technique: technique.id.as_str().into(),
        version: technique.version.as_str().into(),
        name: technique.name.as_str().into(),
        system: technique.system,
        schedule: schedule.map(Into::into),
        texts: texts.texts.into(),
        expanded: texts.expanded.into(),
        value_count: count_values(&parts.components),
        components: parts.components.into(),
        variables: parts.variables.into(),
        calls: parts.calls.into(),
        checks: texts.checks.into(),
        mentions,
        digest: [0; 32],
    };
    compiled.digest = compiled.hash();
    Ok(compiled)
}
