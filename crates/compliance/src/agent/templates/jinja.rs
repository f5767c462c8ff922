//! Templates in Jinja2's language, filled by minijinja. A template is one text (no `include`, no `extends`);
//! strings, lists and objects have Python's methods. What is not defined is written as nothing.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error};
use minijinja_contrib::pycompat;
use serde_json::Value;

use super::FILLED;

/// What a template may take: instructions, and 64 bytes of what it makes count as one.
const STEPS: u64 = 1_000_000;

/// Fills a template.
///
/// # Errors
/// Says what of it cannot be read or worked out, and in which line.
pub(in crate::agent) fn render(template: &str, data: &Value) -> Result<String, String> {
    let filled = fill(template, data).map_err(|error| error.to_string())?;
    if filled.len() > FILLED {
        return Err(format!("the template fills more than {FILLED} bytes"));
    }
    Ok(filled)
}

fn fill(template: &str, data: &Value) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(STEPS));
    environment.set_syntax(
        SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .build()?,
    );
    environment.set_unknown_method_callback(pycompat::unknown_method_callback);
    let template = environment.template_from_named_str("template", template)?;
    template.render(Serde(data))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

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
            (
                "{% macro m(n) %}<{{ n }}>{% endmacro %}{{ m(1) }}{{ m(n=2) }}",
                "<1><2>",
            ),
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
                "{\"x\": 1, \"y\": [true, null, \"it\\u0027s\"]}",
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
    fn what_is_wrong_is_told_with_its_line() {
        for (template, why) in [
            ("{{ x", "end of input"),
            ("{{ 'x' }", "end of variable block"),
            ("a\n{% if x %}", "(in template:2)"),
            ("{% endif %}", "endif"),
            ("{% for x %}{% endfor %}", "expected in"),
            ("{% include 'x' %}", "include"),
            ("{{ nothing.more }}", "undefined"),
            ("{{ 1 + 'a' }}", "+"),
            ("{{ x|nofilter }}", "nofilter"),
            ("{{ x is notest }}", "notest"),
            ("{{ (1 }}", "expected `)`"),
            ("{{ 1 // 0 }}", "1 // 0"),
            ("{% raw %}", "raw block"),
            ("{{ 'x' * 20000000 }}", "more than 16777216 bytes"),
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
        assert!(error.contains("fuel"), "{error}");
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
