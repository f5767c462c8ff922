//! Techniques of method calls.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::sections::{Parts, wrong};
use super::{Call, CompileError, Component, ExpectedValue, TEXTS, TextRef, Texts};
use crate::agent::condition::canonify;
use crate::model::directive::Directive;
use crate::model::methods::key_place;
use crate::model::mode::PolicyMode;
use crate::model::property::text_of;
use crate::model::reporting::ReportingLogic;
use crate::model::technique::{Action, MethodItem, Methods, Reporting};
use crate::policy::template::{EXPRESSION_PREFIX, Substitutions, Template, Token, parse};

pub(super) fn compile(
    technique: &str,
    body: &Methods,
    directives: &[&Directive],
    texts: &mut Texts,
) -> Result<Parts, CompileError> {
    let mut parts = Parts::default();
    for directive in directives {
        let mut substitutions = Substitutions::new();
        let values = &directive.parameters.section;
        for parameter in &body.params {
            let found = values.value_anywhere(&parameter.name);
            let found = found.or_else(|| values.value_anywhere(&parameter.id));
            let default = parameter.constraints.default.as_deref();
            let source = found.or(default).unwrap_or_default();
            let name = parameter.name.as_str();
            let template = parse(source, &Substitutions::new())
                .map_err(|error| wrong(name, error.to_string()))?;
            let constraint = parameter.constraints.compile();
            let constraint = Arc::new(constraint.map_err(|message| wrong(name, message))?);
            let text = texts.add(name, source, template.clone())?;
            texts.check(name, text, &constraint)?;
            substitutions.insert(format!("{technique}.{name}"), template);
            parts.variables.push((name.into(), [text].into()));
        }
        let mut compiler = Compiler {
            texts,
            calls: &mut parts.calls,
            items: 0,
        };
        let around = ItemContext {
            condition: String::new(),
            mode: None,
            reported: true,
            id_suffix: String::new(),
        };
        let components = compiler.items(&body.items, &around, &substitutions)?;
        parts.components.extend(components);
    }
    Ok(parts)
}

struct Compiler<'t> {
    texts: &'t mut Texts,
    calls: &'t mut Vec<Call>,
    /// Calls and blocks so far: `foreach` within `foreach` multiplies them.
    items: usize,
}

/// What holds around an item.
struct ItemContext {
    condition: String,
    mode: Option<PolicyMode>,
    reported: bool,
    /// Distinguishes instances of `foreach`.
    id_suffix: String,
}

impl Compiler<'_> {
    fn items(
        &mut self,
        items: &[MethodItem],
        around: &ItemContext,
        substitutions: &Substitutions,
    ) -> Result<Vec<Component>, CompileError> {
        let mut components = Vec::new();
        for item in items {
            let foreach = &item.foreach;
            let name = item.foreach_name.as_deref().unwrap_or("item");
            if foreach.is_empty() {
                self.item(item, around, substitutions, &mut components)?;
            }
            for (set, number) in foreach.iter().zip(0..) {
                let substitutions = with_set(substitutions, name, set)?;
                let around = ItemContext {
                    condition: around.condition.clone(),
                    id_suffix: format!("{}-{number}", around.id_suffix),
                    ..*around
                };
                self.item(item, &around, &substitutions, &mut components)?;
            }
        }
        Ok(components)
    }

    fn item(
        &mut self,
        item: &MethodItem,
        around: &ItemContext,
        substitutions: &Substitutions,
        components: &mut Vec<Component>,
    ) -> Result<(), CompileError> {
        self.items += 1;
        if self.items > TEXTS {
            return Err(CompileError::Size);
        }
        components.extend(match &item.action {
            Action::Call { method, params } => {
                self.call(item, method, params, around, substitutions)?
            }
            Action::Block { items } => self.block(item, items, around, substitutions)?,
        });
        Ok(())
    }

    fn text(
        &mut self,
        variable: &str,
        source: &str,
        substitutions: &Substitutions,
    ) -> Result<TextRef, CompileError> {
        let template =
            parse(source, substitutions).map_err(|error| wrong(variable, error.to_string()))?;
        self.texts.add(variable, source, template)
    }

    /// The text of a condition: what variables in it stand for are parts of names, and written as
    /// in those that calls set.
    fn condition(
        &mut self,
        variable: &str,
        source: &str,
        substitutions: &Substitutions,
    ) -> Result<TextRef, CompileError> {
        if !source.contains("${") || source.starts_with(EXPRESSION_PREFIX) {
            return self.text(variable, source, substitutions);
        }
        let names = substitutions.iter();
        let names = names.map(|(name, template)| (name.clone(), as_name(template)));
        let names: Substitutions = names.collect();
        let template = parse(source, &names).map_err(|error| wrong(variable, error.to_string()))?;
        let template = template.into_iter().map(|token| match token {
            Token::Text(_) | Token::Name(_) => token,
            other => Token::Name([other].into()),
        });
        self.texts.add(variable, source, template.collect())
    }

    fn block(
        &mut self,
        block: &MethodItem,
        items: &[MethodItem],
        around: &ItemContext,
        substitutions: &Substitutions,
    ) -> Result<Option<Component>, CompileError> {
        let logic = logic(&block.id, &block.reporting)?;
        let within = ItemContext {
            condition: both(&around.condition, &block.condition),
            mode: block.policy_mode_override.or(around.mode),
            reported: around.reported && logic.is_some(),
            id_suffix: around.id_suffix.clone(),
        };
        let inner = self.items(items, &within, substitutions)?;
        let Some(logic) = logic.filter(|_| around.reported) else {
            return Ok(None);
        };
        let logic = match logic {
            // Components are summed up by their names.
            ReportingLogic::Focus(id) => ReportingLogic::Focus(name_of(items, &id)),
            other => other,
        };
        Ok(Some(Component::Block {
            name: self.text(&block.id, &block.name, substitutions)?,
            id: Some(format!("{}{}", block.id, around.id_suffix).into()),
            logic,
            components: inner.into(),
        }))
    }

    fn call(
        &mut self,
        call: &MethodItem,
        method: &str,
        params: &[(String, Value)],
        around: &ItemContext,
        substitutions: &Substitutions,
    ) -> Result<Option<Component>, CompileError> {
        let name = match call.name.as_str() {
            "" => method,
            name => name,
        };
        let name = self.text(&call.id, name, substitutions)?;
        let condition = both(&around.condition, &call.condition);
        let condition = self.condition(&call.id, &condition, substitutions)?;
        let mut values = Vec::with_capacity(params.len());
        for (parameter, value) in params {
            let value = self.text(parameter, &text_of(value), substitutions)?;
            values.push((Arc::from(parameter.as_str()), value));
        }
        let place = key_place(method, params.iter().map(|(name, _)| name.as_str()));
        let key = values.get(place).map(|(_, value)| *value);
        let id: Arc<str> = format!("{}{}", call.id, around.id_suffix).into();
        let reported = around.reported && logic(&call.id, &call.reporting)?.is_some();
        self.calls.push(Call {
            id: Arc::clone(&id),
            method: method.into(),
            name,
            condition,
            mode: call.policy_mode_override.or(around.mode),
            reported,
            params: values.into(),
        });
        if !reported {
            return Ok(None);
        }
        let key = match key {
            Some(key) => key,
            None => self.texts.plain("None")?,
        };
        Ok(Some(Component::Values {
            name,
            values: [ExpectedValue::WithId(id, key)].into(),
        }))
    }
}

fn logic(id: &str, reporting: &Reporting) -> Result<Option<ReportingLogic>, CompileError> {
    reporting.logic().map_err(|message| wrong(id, message))
}

/// The name of the item of this identity, or the identity.
fn name_of(items: &[MethodItem], id: &str) -> String {
    let found = items.iter().find(|item| item.id == id);
    let name = found.map(|item| match &item.action {
        Action::Call { method, .. } if item.name.is_empty() => method,
        _ => &item.name,
    });
    name.map_or(id, String::as_str).to_owned()
}

/// What a variable stands for as a part of a name. What has variables of the agent in it only the
/// agent can make one.
fn as_name(template: &[Token]) -> Template {
    let of_agent = |token: &Token| matches!(token, Token::Text(text) if text.contains("${"));
    match template {
        all if all.iter().any(of_agent) => all.to_vec(),
        [Token::Text(text)] => vec![Token::Text(canonify(text).into())],
        [] => Vec::new(),
        all => vec![Token::Name(all.into())],
    }
}

/// Two conditions that must both hold.
fn both(outer: &str, inner: &str) -> String {
    match (outer, inner) {
        ("", one) | (one, "") => one.to_owned(),
        (outer, inner) => format!("({outer}).({inner})"),
    }
}

fn with_set(
    substitutions: &Substitutions,
    name: &str,
    set: &Map<String, Value>,
) -> Result<Substitutions, CompileError> {
    let mut all = substitutions.clone();
    for (key, value) in set {
        let text = text_of(value);
        let template = match parse(&text, substitutions) {
            Ok(template) if template.is_empty() => vec![Token::Text("".into())],
            Ok(template) => template,
            Err(error) => return Err(wrong(key, error.to_string())),
        };
        all.insert(format!("{name}.{key}"), template);
    }
    Ok(all)
}
