//! No file, however broken, does more than give diagnostics.

use crate::support::{DEMO, catalogue, checked};
use lab_experiment::{Source, check};
use proptest::prelude::*;

/// Every diagnostic marks something that is there.
fn sound(text: &str) -> Result<(), TestCaseError> {
    let source = Source {
        name: "x.toml".to_owned(),
        text: text.to_owned(),
    };
    let Err(diagnostics) = check(&source, &[], &catalogue()) else {
        return Ok(());
    };
    prop_assert!(!diagnostics.is_empty() && diagnostics.len() <= 100);
    let places: Vec<_> = diagnostics.iter().map(|d| (d.line, d.column)).collect();
    prop_assert!(places.is_sorted(), "{places:?}");
    for diagnostic in diagnostics {
        let line = text.split('\n').nth(diagnostic.line - 1);
        prop_assert_eq!(
            line.map(|l| l.trim_end_matches('\r')),
            Some(diagnostic.source_line.as_str())
        );
        let length = diagnostic.source_line.chars().count();
        prop_assert!(
            diagnostic.column + diagnostic.length <= length + 2,
            "{diagnostic:?}"
        );
        prop_assert!(!diagnostic.message.is_empty());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text(text in "\\PC{0,200}") {
        sound(&text)?;
    }

    #[test]
    fn lines_of_toml(lines in prop::collection::vec("(\\[\\[(system|fleet|driver|lifecycle|loop|step|expect|load)\\]\\]|\\[let\\]|(lab|name|run|args|builtin|kind|count|talk_to|makes|points|make|wait|that|ready|after|env|watch) = (1|\"[a-z{} .]{0,8}\"|\\[\"[a-z]\"\\]|\\{\\}|\\[\\]|true|1.5))", 0..20)) {
        sound(&format!("lab = 1\n{}", lines.join("\n")))?;
    }

    /// A good file with one stretch cut out or repeated.
    #[test]
    fn a_file_with_a_mistake(from in 0_usize..4000, length in 0_usize..40, twice in any::<bool>()) {
        let at = |byte: usize| DEMO.floor_char_boundary(byte.min(DEMO.len()));
        let (from, to) = (at(from), at(from + length));
        let middle = if twice { DEMO[from..to].repeat(2) } else { String::new() };
        sound(&format!("{}{middle}{}", &DEMO[..from], &DEMO[to..]))?;
    }

    /// A good file with one word replaced.
    #[test]
    fn a_file_with_another_word(
        at in 0_usize..300,
        word in prop::sample::select(vec!["{", "}", "\"", "[[", "]]", "0", "-1", "é", "\\u0000", "{port}", "'", "\r\n", "\t"]),
    ) {
        let mut words: Vec<&str> = DEMO.split(' ').collect();
        let at = at % words.len();
        words[at] = word;
        sound(&words.join(" "))?;
    }

    /// What stands for a constant arrives as it is, as one word.
    #[test]
    fn constants_arrive_as_they_are(value in "[^\"\\\\\\x00-\\x1f\\x7f]{0,30}") {
        let file = format!(
            "lab = 1\nname = \"t\"\n[let]\nx = \"{}\"\n[[system]]\nname = \"a\"\nrun = \"run {{x}} -{{x}}-\"\n\
             [[step]]\nname = \"s\"\nhold = \"1s\"\n",
            value.replace('{', "{{").replace('}', "}}"),
        );
        let plan = checked(&file, &[]).map_err(TestCaseError::fail)?;
        let words: Vec<String> = plan.systems[0].args.iter().map(|a| a.render(|_| String::new())).collect();
        prop_assert_eq!(words, vec![value.clone(), format!("-{value}-")]);
    }
}
