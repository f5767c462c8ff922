//! Techniques of sections with variables.

use std::sync::Arc;

use super::{Call, CompileError, Component, ExpectedValue, TextRef, Texts, VariableValues};
use crate::model::constraint::CompiledConstraint;
use crate::model::directive::{Directive, SectionValues};
use crate::model::technique::{Section, VariableKind, VariableSpec};
use crate::policy::template::{Substitutions, parse};

/// What a technique's body becomes.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) components: Vec<Component>,
    pub(super) variables: Vec<VariableValues>,
    pub(super) calls: Vec<Call>,
}

pub(super) fn compile(
    sections: &[Section],
    directives: &[&Directive],
    texts: &mut Texts,
) -> Result<Parts, CompileError> {
    let roots: Vec<&SectionValues> = directives
        .iter()
        .map(|directive| &directive.parameters.section)
        .collect();
    let mut parts = Parts::default();
    parts.components = of_sections(sections, &roots, texts, &mut parts.variables)?;
    Ok(parts)
}

/// Sections within some instances of the section around them, of all directives in order.
fn of_sections(
    sections: &[Section],
    around: &[&SectionValues],
    texts: &mut Texts,
    variables: &mut Vec<VariableValues>,
) -> Result<Vec<Component>, CompileError> {
    let mut components = Vec::new();
    for section in sections {
        let mut instances: Vec<&SectionValues> = around
            .iter()
            .flat_map(|values| values.instances(&section.name))
            .collect();
        if !section.multivalued {
            // A value of a section that occurs once may be given without the section, and
            // of several merged directives the first decides.
            let first = instances.first().or(around.first()).copied();
            instances = first.into_iter().collect();
        }
        let mut keys = Vec::new();
        for variable in &section.variables {
            let values = of_variable(variable, &instances, texts)?;
            if section.component_key.as_ref() == Some(&variable.name) {
                keys = expected(variable, &values);
            }
            variables.push((variable.name.as_str().into(), values.into()));
        }
        let within = of_sections(&section.sections, &instances, texts, variables)?;
        let name = section.name.as_str();
        if let Some(logic) = &section.reporting {
            components.push(Component::Block {
                name: texts.plain(name)?,
                id: section.id.as_deref().map(Into::into),
                logic: logic.clone(),
                components: within.into(),
            });
            continue;
        }
        // A section of several instances without any is not there to be reported.
        if section.component && !instances.is_empty() {
            if keys.is_empty() {
                keys.push(ExpectedValue::None);
            }
            components.push(Component::Values {
                name: texts.plain(name)?,
                values: keys.into(),
            });
        }
        components.extend(within);
    }
    Ok(components)
}

fn expected(variable: &VariableSpec, values: &[TextRef]) -> Vec<ExpectedValue> {
    let ids = variable.report_keys.iter().map(|key| key.id.as_deref());
    let ids = ids.chain(std::iter::repeat(None));
    let pairs = values.iter().zip(ids);
    pairs
        .map(|(&value, id)| match id {
            Some(id) => ExpectedValue::WithId(id.into(), value),
            None => ExpectedValue::Key(value),
        })
        .collect()
}

/// The values of a variable, one for each instance of its section.
fn of_variable(
    variable: &VariableSpec,
    instances: &[&SectionValues],
    texts: &mut Texts,
) -> Result<Vec<TextRef>, CompileError> {
    let name = variable.name.as_str();
    let none = Substitutions::new();
    let mut add = |source: &str| {
        let template = parse(source, &none).map_err(|error| wrong(name, error.to_string()))?;
        texts.add(name, source, template)
    };
    if variable.kind == VariableKind::ReportKeys {
        return variable
            .report_keys
            .iter()
            .map(|key| add(&key.value))
            .collect();
    }
    let default = variable.constraint.default.as_deref().unwrap_or_default();
    let mut values = Vec::with_capacity(instances.len());
    for instance in instances {
        let source = instance.value(name).unwrap_or(default);
        if variable.kind == VariableKind::Select1 && !source.is_empty() {
            let known = variable.items.iter().any(|item| item.value == source);
            if !known && !variable.items.is_empty() && !source.contains("${") {
                let items: Vec<_> = variable
                    .items
                    .iter()
                    .map(|item| item.value.as_str())
                    .collect();
                return Err(wrong(name, format!("expected one of {}", items.join(", "))));
            }
        }
        values.push(add(source)?);
    }
    let constraint = variable.constraint.compile();
    let constraint: Arc<CompiledConstraint> =
        Arc::new(constraint.map_err(|message| wrong(name, message))?);
    for &value in &values {
        texts.check(name, value, &constraint)?;
    }
    Ok(values)
}

pub(super) fn wrong(variable: &str, message: String) -> CompileError {
    CompileError::Value {
        variable: variable.to_owned(),
        message,
    }
}
