//! Templates in mustache's language: variables, escaped or not, sections, inverted sections and
//! comments; no partials and no other delimiters. As CFEngine has it, `{{#-top-}}` stands for all
//! data and `{{@}}` for the key of what a section goes through, which then may be an object;
//! `{{.name}}` is of that alone; `{{$name}}` writes JSON in one line and `{{%name}}` in several.

use serde_json::Value;

use super::{FILLED, beginning};
use crate::model::property::within;

/// Deepest nesting of sections.
const DEPTH: usize = 32;
/// Fills a template.
pub(in crate::agent) fn render(template: &str, data: &Value) -> Result<String, String> {
    let mut writer = Writer { out: String::new() };
    let around = [Frame {
        value: data,
        key: "",
    }];
    let (rest, closed) = writer.part(template, &around, true, None)?;
    match closed {
        None => Ok(writer.out),
        Some(name) => Err(format!(
            "the template closes the section {name:?}, which is not open, before {:?}",
            beginning(rest)
        )),
    }
}

/// What names are looked up in, and its key in what is around it.
#[derive(Clone, Copy)]
struct Frame<'d> {
    value: &'d Value,
    key: &'d str,
}

struct Writer {
    out: String,
}

/// A tag: what kind of one it is, its name, what is before it and what is behind it.
struct Tag<'t> {
    kind: char,
    name: &'t str,
    before: &'t str,
    after: &'t str,
}

/// The next tag, if there is one.
fn next(text: &str) -> Result<Option<Tag<'_>>, String> {
    let Some((before, rest)) = text.split_once("{{") else {
        return Ok(None);
    };
    let (open, end) = match rest.strip_prefix('{') {
        Some(inner) => (inner, "}}}"),
        None => (rest, "}}"),
    };
    let found = open.split_once(end);
    let (inside, after) = found
        .ok_or_else(|| format!("a tag of the template does not end: {:?}", beginning(rest)))?;
    let inside = inside.trim();
    let kind = match end {
        "}}}" => '&',
        _ => inside.chars().next().unwrap_or_default(),
    };
    let name = match kind {
        '#' | '^' | '/' | '!' | '$' | '%' => inside[1..].trim(),
        '&' => inside.strip_prefix('&').unwrap_or(inside).trim(),
        '>' | '=' => {
            let what = "partials and other delimiters are not filled here";
            return Err(format!("the template has {{{{{inside}}}}}; {what}"));
        }
        _ => inside,
    };
    Ok(Some(Tag {
        kind,
        name,
        before,
        after,
    }))
}

impl Tag<'_> {
    /// Does it stand alone in its line, which then is not written?
    fn is_standalone(&self, begins_line: bool) -> bool {
        let before = self.before.rsplit('\n').next().unwrap_or_default();
        let line = begins_line || self.before.contains('\n');
        let after = self.after.split('\n').next().unwrap_or_default();
        let kind = matches!(self.kind, '#' | '^' | '/' | '!');
        kind && line && before.trim().is_empty() && after.trim().is_empty()
    }
}

impl Writer {
    fn push(&mut self, text: &str) -> Result<(), String> {
        if self.out.len() + text.len() > FILLED {
            return Err(format!("the template fills more than {FILLED} bytes"));
        }
        self.out.push_str(text);
        Ok(())
    }

    /// Writes until the end of the template or until a section closes; gives what is behind it, and
    /// the section's name. Without `write` it only reads.
    fn part<'t>(
        &mut self,
        mut text: &'t str,
        around: &[Frame<'_>],
        write: bool,
        open: Option<&str>,
    ) -> Result<(&'t str, Option<&'t str>), String> {
        if around.len() > DEPTH {
            return Err(format!(
                "sections of the template are more than {DEPTH} deep"
            ));
        }
        // Behind a section's tag that stood alone a line begins.
        let mut begins_line = open.is_none() || self.out.is_empty() || self.out.ends_with('\n');
        while let Some(tag) = next(text)? {
            let alone = tag.is_standalone(begins_line);
            let (before, after) = match alone {
                true => {
                    let line = tag.before.rfind('\n').map_or(0, |at| at + 1);
                    let after = tag.after.split_once('\n').map_or("", |(_, after)| after);
                    (&tag.before[..line], after)
                }
                false => (tag.before, tag.after),
            };
            if write {
                self.push(before)?;
            }
            begins_line = alone;
            text = after;
            match tag.kind {
                '!' => {}
                '/' if open == Some(tag.name) => return Ok((after, None)),
                '/' => return Ok((after, Some(tag.name))),
                '#' | '^' => text = self.section(&tag, after, around, write)?,
                kind if write => {
                    let value = look_up(around, tag.name);
                    let found = match (tag.name, value) {
                        ("@", _) => around.last().map_or("", |frame| frame.key).to_owned(),
                        (_, None) => String::new(),
                        (_, Some(Value::String(text))) => text.clone(),
                        (_, Some(other)) if kind == '%' => format!("{other:#}"),
                        (_, Some(other)) => other.to_string(),
                    };
                    match kind {
                        '&' | '$' | '%' => self.push(&found)?,
                        _ => self.push(&escaped(&found))?,
                    }
                }
                _ => {}
            }
        }
        if let Some(open) = open {
            return Err(format!(
                "the section {open:?} of the template is not closed"
            ));
        }
        if write {
            self.push(text)?;
        }
        Ok(("", None))
    }

    /// Writes a section as often as its value says; gives what is behind it.
    fn section<'t>(
        &mut self,
        tag: &Tag<'t>,
        inside: &'t str,
        around: &[Frame<'_>],
        write: bool,
    ) -> Result<&'t str, String> {
        let value = look_up(around, tag.name);
        let falsy = match value {
            None | Some(Value::Null | Value::Bool(false)) => true,
            Some(Value::Array(all)) => all.is_empty(),
            Some(Value::Object(all)) => all.is_empty(),
            Some(Value::String(text)) => text.is_empty(),
            Some(_) => false,
        };
        let numbers: Vec<String>;
        let mut frames: Vec<Option<Frame<'_>>> = match (tag.kind, value) {
            ('^', _) => falsy.then_some(None).into_iter().collect(),
            (_, Some(Value::Array(all))) => {
                numbers = (0..all.len()).map(|number| number.to_string()).collect();
                let all = all.iter().zip(&numbers);
                all.map(|(value, key)| Some(Frame { value, key })).collect()
            }
            (_, Some(Value::Object(all))) if names_key(inside)? => {
                let all = all.iter();
                all.map(|(key, value)| Some(Frame { value, key })).collect()
            }
            (_, Some(value @ Value::Object(_))) if !falsy => {
                let key = tag.name;
                vec![Some(Frame { value, key })]
            }
            (_, Some(_)) if !falsy => vec![None],
            _ => Vec::new(),
        };
        let once = frames.is_empty();
        if once {
            // It is read all the same, to find its end.
            frames.push(None);
        }
        let mut behind = "";
        for frame in frames {
            let inner: Vec<_> = around.iter().copied().chain(frame).collect();
            let (rest, closed) = self.part(inside, &inner, write && !once, Some(tag.name))?;
            if let Some(other) = closed {
                let open = tag.name;
                return Err(format!(
                    "the template closes the section {other:?} where {open:?} is open"
                ));
            }
            behind = rest;
        }
        Ok(behind)
    }
}

/// Does a section, from its beginning on, write keys? Of an object it then goes through all of
/// them, as with Rudder's agents.
fn names_key(mut text: &str) -> Result<bool, String> {
    let mut depth = 0_usize;
    while let Some(tag) = next(text)? {
        match (tag.kind, tag.name) {
            ('!', _) => {}
            ('#' | '^', _) => depth += 1,
            ('/', _) if depth == 0 => return Ok(false),
            ('/', _) => depth -= 1,
            (_, "@") if depth == 0 => return Ok(true),
            _ => {}
        }
        text = tag.after;
    }
    Ok(false)
}

/// A name with dots, in the innermost data that has its first part.
fn look_up<'d>(around: &[Frame<'d>], name: &str) -> Option<&'d Value> {
    match name {
        "." => return around.last().map(|frame| frame.value),
        "-top-" => return around.first().map(|frame| frame.value),
        _ => {}
    }
    let mut parts = name.split('.');
    let mut frames = around.iter().rev();
    let found = match parts.next()? {
        // `.name` is one of the innermost data, whatever is around that.
        "" => frames.next()?.value.get(parts.next()?)?,
        first => frames.find_map(|frame| frame.value.get(first))?,
    };
    parts.try_fold(found, within)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_are_filled() {
        let data = json!({
            "classes": {"linux": true, "debian": true},
            "vars": {"web": {"host": "a<b", "port": 80, "names": ["x", "y"], "none": []}},
            "list": [{"n": 1}, {"n": 2}],
        });
        for (template, expected) in [
            ("plain", "plain"),
            (
                "{{vars.web.host}} {{{vars.web.host}}} {{& vars.web.host }}",
                "a&lt;b a<b a<b",
            ),
            ("{{vars.web.port}}{{vars.web.nothing}}", "80"),
            (
                "{{#classes.linux}}L{{/classes.linux}}{{^classes.windows}}w{{/classes.windows}}",
                "Lw",
            ),
            (
                "{{#classes.windows}}{{#x}}no{{/x}}{{/classes.windows}}yes",
                "yes",
            ),
            (
                "{{#vars.web.names}}{{@}}={{.}};{{/vars.web.names}}",
                "0=x;1=y;",
            ),
            ("{{#list}}{{n}}{{vars.web.port}} {{/list}}", "180 280 "),
            ("{{#vars.web}}{{host}}{{/vars.web}}", "a&lt;b"),
            (
                "{{#vars.web}}{{{@}}}={{{.}}};{{/vars.web}}",
                "host=a<b;names=[\"x\",\"y\"];none=[];port=80;",
            ),
            (
                "{{#vars}}{{! @ }}{{#web.names}}{{@}}{{/web.names}}{{/vars}}",
                "01",
            ),
            ("{{#list}}{{.n}}{{.vars}} {{/list}}", "1 2 "),
            ("{{^vars.web.none}}empty{{/vars.web.none}}", "empty"),
            ("a{{! a comment }}b", "ab"),
            (
                "a\n  {{#classes.linux}}\n  b\n  {{/classes.linux}}\nc\n",
                "a\n  b\nc\n",
            ),
            ("{{#list}}\n{{n}}\n{{/list}}\n", "1\n2\n"),
            ("{{#-top-}}{{vars.web.port}}{{/-top-}}", "80"),
            ("{{vars.web.names.1}}", "y"),
            (
                "{{$vars.web.names}} {{$ vars.web.host}}{{$vars.web.nothing}}",
                "[\"x\",\"y\"] a<b",
            ),
            (
                "{{%vars.web.names}}\n{{#list}}{{%.}}{{/list}}",
                "[\n  \"x\",\n  \"y\"\n]\n{\n  \"n\": 1\n}{\n  \"n\": 2\n}",
            ),
        ] {
            assert_eq!(
                render(template, &data).as_deref(),
                Ok(expected),
                "{template}"
            );
        }
        for (template, why) in [
            ("{{x", "does not end"),
            ("{{#x}}y", "is not closed"),
            ("{{/x}}", "is not open"),
            ("{{#x}}{{/y}}", "closes the section \"y\""),
            ("{{>x}}", "partials"),
            ("{{=<% %>=}}", "delimiters"),
        ] {
            let error = render(template, &data).unwrap_err();
            assert!(error.contains(why), "{template}: {error}");
        }
        let deep = "{{#list}}".repeat(40);
        assert!(render(&deep, &data).is_err());
    }

    proptest! {
        #[test]
        fn any_text_ends_and_plain_text_stays(text in "[a{}#/^.x \n]{0,40}") {
            let data = json!({"x": [1, 2], "a": "b"});
            let filled = render(&text, &data);
            if !text.contains("{{") {
                prop_assert_eq!(filled, Ok(text));
            }
        }
    }
}
