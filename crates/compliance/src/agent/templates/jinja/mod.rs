//! Templates in a part of Jinja2's language: `{{ expression }}`, `if`, `for`, `set`, `raw` and comments, with
//! `-` to take away the space around a tag. What is not defined is written as nothing. There is no
//! `include`, `extends` or `macro`: a template is one text.

mod expression;
mod read;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::FILLED;
use expression::{Expression, Scope, is_true, shown};

/// Deepest nesting of statements, and of expressions.
const DEPTH: usize = 32;
/// Parts that are written, each time that they are.
const STEPS: usize = 1_000_000;

/// A part of a template.
#[derive(Debug)]
enum Part<'t> {
    Text(&'t str),
    Output(Expression),
    /// Conditions with what is written if each is the first to hold; without one, always.
    If(Vec<(Option<Expression>, Vec<Part<'t>>)>),
    For(Box<For<'t>>),
    Set(String, Expression),
}

/// A loop.
#[derive(Debug)]
struct For<'t> {
    /// One name, or those of key and value.
    names: Vec<String>,
    over: Expression,
    /// What must hold of an item.
    filter: Option<Expression>,
    body: Vec<Part<'t>>,
    /// Written if there is no item.
    none: Vec<Part<'t>>,
}

/// Fills a template.
///
/// # Errors
/// Says what of it cannot be read or worked out.
pub(in crate::agent) fn render(template: &str, data: &Value) -> Result<String, String> {
    let parts = read::parts(template)?;
    let mut writer = Writer {
        out: String::new(),
        steps: 0,
    };
    let mut scope = Scope::new(data);
    writer.write(&parts, &mut scope)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    steps: usize,
}

impl Writer {
    fn push(&mut self, text: &str) -> Result<(), String> {
        if self.out.len() + text.len() > FILLED {
            return Err(format!("the template fills more than {FILLED} bytes"));
        }
        self.out.push_str(text);
        Ok(())
    }

    fn write(&mut self, parts: &[Part<'_>], scope: &mut Scope<'_>) -> Result<(), String> {
        for part in parts {
            self.steps += 1;
            if self.steps > STEPS {
                return Err(format!("the template takes more than {STEPS} steps"));
            }
            match part {
                Part::Text(text) => self.push(text)?,
                Part::Output(expression) => {
                    let value = expression.value(scope)?;
                    self.push(&value.as_ref().map(shown).unwrap_or_default())?;
                }
                Part::Set(name, expression) => {
                    let value = expression.value(scope)?.unwrap_or_default();
                    scope.set(name, value);
                }
                Part::If(branches) => {
                    for (condition, body) in branches {
                        let holds = match condition {
                            None => true,
                            Some(condition) => is_true(condition.value(scope)?.as_ref()),
                        };
                        if holds {
                            self.write(body, scope)?;
                            break;
                        }
                    }
                }
                Part::For(each) => self.go_through(each, scope)?,
            }
        }
        Ok(())
    }

    fn go_through(&mut self, each: &For<'_>, scope: &mut Scope<'_>) -> Result<(), String> {
        let items = match each.over.value(scope)? {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(Value::Object(object)) => object.into_iter().map(|(key, _)| key.into()).collect(),
            Some(Value::String(text)) => text.chars().map(|c| c.to_string().into()).collect(),
            Some(other) => return Err(format!("for cannot go through {}", shown(&other))),
        };
        let mut wanted = Vec::new();
        for item in items {
            let mut frame = BTreeMap::new();
            match (&each.names[..], item) {
                ([name], item) => {
                    frame.insert(name.clone(), item);
                }
                (names, Value::Array(values)) if values.len() == names.len() => {
                    frame.extend(names.iter().cloned().zip(values));
                }
                (names, item) => {
                    let count = names.len();
                    return Err(format!("for takes {count} values, found {}", shown(&item)));
                }
            }
            self.steps += 1;
            scope.enter(frame);
            let filter = each.filter.as_ref();
            let kept = filter.map(|filter| filter.value(scope)).transpose();
            let frame = scope.leave();
            if kept?.is_none_or(|kept| is_true(kept.as_ref())) {
                wanted.push(frame);
            }
        }
        if wanted.is_empty() {
            return self.write(&each.none, scope);
        }
        let count = wanted.len();
        for (place, mut frame) in wanted.into_iter().enumerate() {
            let told = json!({
                "index": place + 1, "index0": place, "first": place == 0,
                "last": place + 1 == count, "length": count,
            });
            frame.insert("loop".into(), told);
            scope.enter(frame);
            let written = self.write(&each.body, scope);
            scope.leave();
            written?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data() -> Value {
        json!({
            "classes": {"linux": true, "any": true},
            "vars": {"web": {"host": "Example", "port": "80", "n": 3, "list": ["b", "a", "b"],
                "map": {"x": 1, "y": [true, null, "it's"]}}},
        })
    }

    #[test]
    fn templates_are_filled() {
        for (template, expected) in [
            ("plain {{ vars.web.host }}\n", "plain Example\n"),
            (
                "{{vars['web'].host}}{{ vars.web.no }}{{ nothing }}",
                "Example",
            ),
            ("{% if classes.linux %}L{% else %}o{% endif %}", "L"),
            (
                "{% if classes.windows %}w{% elif vars.web.n > 2 %}n{% endif %}",
                "n",
            ),
            ("{% if classes.windows is defined %}w{% endif %}x", "x"),
            (
                "{% if not classes.windows and vars.web.port == '80' %}y{% endif %}",
                "y",
            ),
            (
                "{% if 'a' in vars.web.list and 'c' not in vars.web.list %}y{% endif %}",
                "y",
            ),
            (
                "{% for x in vars.web.list %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
                "1b,2a,3b",
            ),
            (
                "{% for k, v in vars.web.map.items() %}{{ k }}={{ v }};{% endfor %}",
                "x=1;y=[True, None, \"it's\"];",
            ),
            (
                "{% for x in vars.web.list if x != 'b' %}{{ x }}{% endfor %}",
                "a",
            ),
            (
                "{% for x in nothing %}{{ x }}{% else %}none{% endfor %}",
                "none",
            ),
            (
                "{% set x = vars.web.n * 2 + 1 %}{{ x }} {{ x // 2 }} {{ 7 / 2 }} {{ -x % 4 }}",
                "7 3 3.5 1",
            ),
            ("a\n{%- if true %} b {%- endif -%}\n c", "a bc"),
            ("a{# {{ no }} #}b{% raw %}{{ x }}{% endraw %}", "ab{{ x }}"),
            (
                "{{ vars.web.host|upper }} {{ 'x' ~ 1 }} {{ nothing|default('d') }} {{ ''|d('e', true) }}",
                "EXAMPLE x1 d e",
            ),
            (
                "{{ vars.web.list|unique|sort|join('-') }} {{ vars.web.list|length }}",
                "a-b 3",
            ),
            (
                "{{ vars.web.host|replace('E', 'e')|trim }} {{ vars.web.port|int + 1 }}",
                "example 81",
            ),
            (
                "{{ vars.web.list[0] }}{{ vars.web.list[-1] }}{{ vars.web.list|first }}{{ vars.web.list|last }}",
                "bbbb",
            ),
            (
                "{{ 'yes' if classes.linux else 'no' }}{{ [1, 'a'] }}",
                "yes[1, 'a']",
            ),
            (
                "{{ true }} {{ none }} {{ 1 < 2 }} {{ \"a\\nb\" }}",
                "True None True a\nb",
            ),
            (
                "{{ vars.web.map|tojson }}",
                "{\"x\":1,\"y\":[true,null,\"it's\"]}",
            ),
            (
                "{{ vars.web.n is number }}{{ vars.web.host is string }}{{ nothing is undefined }}",
                "TrueTrueTrue",
            ),
        ] {
            assert_eq!(
                render(template, &data()).as_deref(),
                Ok(expected),
                "{template}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (template, why) in [
            ("{{ x", "does not end"),
            ("{% if x %}", "endif"),
            ("{% endif %}", "endif"),
            ("{% for x %}{% endfor %}", "in"),
            ("{% include 'x' %}", "include"),
            ("{{ nothing.more }}", "is not defined"),
            ("{{ 1 + 'a' }}", "+"),
            ("{{ x|nofilter }}", "nofilter"),
            ("{{ x is notest }}", "notest"),
            ("{{ (1 }}", "cannot be read"),
            ("{{ 1 // 0 }}", "by 0"),
            ("{{ 'x' }", "does not end"),
            ("{% raw %}", "endraw"),
        ] {
            let error = render(template, &data()).unwrap_err();
            assert!(error.contains(why), "{template}: {error}");
        }
        let deep = format!("{{{{ {}1 }}}}", "(".repeat(1_000));
        assert!(render(&deep, &data()).is_err());
        let deep = "{% if true %}".repeat(1_000);
        assert!(render(&deep, &data()).is_err());
        // Loops within loops end all the same.
        let list = format!("{{% set l = [{}] %}}", "1,".repeat(200) + "1");
        let loops = "{% for x in l %}".repeat(4) + &"{% endfor %}".repeat(4);
        let error = render(&(list + &loops), &data()).unwrap_err();
        assert!(error.contains("steps"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_ends_and_plain_text_stays(text in "[a1x'{}%#|.( )=+\\-\n]{0,40}") {
            let filled = render(&text, &data());
            if !["{{", "{%", "{#"].iter().any(|tag| text.contains(tag)) {
                prop_assert_eq!(filled, Ok(text));
            }
        }

        #[test]
        fn any_expression_ends(text in "(not |[a1x'.(){}\\[\\]|+*/%~<>=!, -]| in | is | if | else ){0,20}") {
            let _ = render(&format!("{{{{ {text} }}}}"), &data());
        }
    }
}
