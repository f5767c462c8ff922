//! Contents of files as methods want them.

use regex::{Captures, Regex};

/// Lines of a parameter, without the last one's end.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').collect()
}

/// The text with these lines at its end, as far as it lacks them.
pub(super) fn with_lines(text: &str, wanted: &[&str]) -> String {
    let mut out = text.to_owned();
    for line in wanted {
        if !text_lines(&out).any(|known| known == *line) {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The text without these lines.
pub(super) fn without_lines(text: &str, unwanted: &[&str]) -> String {
    let kept = text.split_inclusive('\n').filter(|line| {
        let line = line.strip_suffix('\n').unwrap_or(line);
        !unwanted.contains(&line)
    });
    kept.collect()
}

/// Between a key and its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Separator<'a> {
    pub(super) text: &'a str,
    /// May there be other spaces around it?
    pub(super) lax: bool,
}

impl Separator<'_> {
    /// The value of this key, if the line has it, and does its spacing do?
    fn value<'l>(&self, line: &'l str, key: &str) -> Option<(&'l str, bool)> {
        let rest = line.trim_start().strip_prefix(key)?;
        let bare = self.text.trim();
        let value = match bare {
            // Spaces separate: without one it is another key.
            "" => rest.starts_with(char::is_whitespace).then_some(rest)?,
            _ => rest.trim_start().strip_prefix(bare)?,
        };
        let value = value.trim();
        let exact = || {
            let line = line.strip_prefix(key);
            line.and_then(|rest| rest.strip_prefix(self.text)) == Some(value)
        };
        Some((value, self.lax || exact()))
    }
}

/// The text in which every line of the key has the value, added at the end if there is none.
pub(super) fn with_value(text: &str, key: &str, value: &str, separator: Separator<'_>) -> String {
    let wanted = format!("{key}{}{value}", separator.text);
    let mut found = false;
    let mut out = String::with_capacity(text.len() + wanted.len());
    for (content, end) in with_ends(text) {
        match separator.value(content, key) {
            None => out.push_str(content),
            Some((old, spaced)) => {
                found = true;
                let right = spaced && old == value;
                out.push_str(if right { content } else { &wanted });
            }
        }
        out.push_str(end);
    }
    match found {
        true => out,
        false => with_lines(text, &[&wanted]),
    }
}

/// The text in which a section `[section]` is as `change` makes its lines; added at the end if
/// there is none. Of several of the name it is the first.
pub(super) fn with_section(
    text: &str,
    section: &str,
    change: impl FnOnce(&str) -> String,
) -> String {
    let header = |line: &str| {
        let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
        Some(name.trim().to_owned())
    };
    let mut at = 0;
    let (mut begin, mut end) = (None, text.len());
    for line in text.split_inclusive('\n') {
        match (header(line), begin) {
            (Some(found), None) if found == section => begin = Some(at + line.len()),
            (Some(_), Some(_)) => {
                end = at;
                break;
            }
            _ => {}
        }
        at += line.len();
    }
    let Some(begin) = begin else {
        let mut out = with_lines(text, &[&format!("[{section}]")]);
        out.push_str(&change(""));
        return out;
    };
    let (before, rest) = text.split_at(begin);
    let (inside, after) = rest.split_at(end - begin);
    // Empty lines before the next section stay there.
    let kept = inside.trim_end_matches('\n').len();
    let kept = match kept {
        0 => 0,
        kept => (kept + 1).min(inside.len()),
    };
    let (lines, gap) = inside.split_at(kept);
    let mut out = before.to_owned();
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&change(lines));
    out.push_str(gap);
    out.push_str(after);
    out
}

/// The text with these lines one after the other somewhere; added at the end if they are not.
pub(super) fn with_block(text: &str, block: &[&str]) -> String {
    let all: Vec<_> = text_lines(text).collect();
    if all.windows(block.len()).any(|lines| lines == block) {
        return text.to_owned();
    }
    let mut out = text.to_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    for line in block {
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The text with these lines and no others between the two lines, added at the end if those are not
/// there; none if the first is there without the second after it.
pub(super) fn with_block_between(
    text: &str,
    (start, end): (&str, &str),
    block: &[&str],
) -> Option<String> {
    let all: Vec<_> = text_lines(text).collect();
    let Some(first) = all.iter().position(|line| *line == start) else {
        let whole = [&[start], block, &[end]].concat();
        return Some(with_block(text, &whole));
    };
    let after = &all[first + 1..];
    let length = after.iter().position(|line| *line == end)?;
    if &after[..length] == block {
        return Some(text.to_owned());
    }
    let whole = [&all[..=first], block, &after[length..]].concat();
    let mut out = whole.join("\n");
    out.push('\n');
    Some(out)
}

/// The text in which each line that the expression matches wholly is the replacement, in which
/// `${match.1}` stands for what the first group matched.
pub(super) fn with_replaced(text: &str, line: &Regex, replacement: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (content, end) in with_ends(text) {
        match line.captures(content) {
            Some(found) if found.get(0).is_some_and(|all| all.len() == content.len()) => {
                out.push_str(&filled(replacement, &found));
            }
            _ => out.push_str(content),
        }
        out.push_str(end);
    }
    out
}

fn filled(replacement: &str, found: &Captures<'_>) -> String {
    let mut out = String::with_capacity(replacement.len());
    let mut rest = replacement;
    while let Some((before, after)) = rest.split_once("${match.") {
        out.push_str(before);
        let group = after.split_once('}');
        let group = group.and_then(|(number, rest)| Some((number.parse::<usize>().ok()?, rest)));
        match group {
            Some((number, after)) => {
                out.push_str(found.get(number).map_or("", |group| group.as_str()));
                rest = after;
            }
            None => {
                out.push_str("${match.");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Lines and what ends each.
fn with_ends(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(content) => (content, "\n"),
            None => (line, ""),
        })
}

fn text_lines(text: &str) -> impl Iterator<Item = &str> {
    let none = text.is_empty();
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').filter(move |_| !none)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EQUALS: Separator<'_> = Separator {
        text: "=",
        lax: false,
    };
    const SPACE: Separator<'_> = Separator {
        text: " ",
        lax: false,
    };
    const LAX: Separator<'_> = Separator {
        text: "=",
        lax: true,
    };

    #[test]
    fn keys_have_values() {
        for (text, separator, expected) in [
            ("", EQUALS, "k=v\n"),
            ("a=1", EQUALS, "a=1\nk=v\n"),
            ("k=1\n#k=2\nkk=3\n", EQUALS, "k=v\n#k=2\nkk=3\n"),
            ("k = v\n", EQUALS, "k=v\n"),
            ("  k=v\n", EQUALS, "k=v\n"),
            ("k = v\n", LAX, "k = v\n"),
            ("k = w\n", LAX, "k=v\n"),
            ("k=1\nk=2", EQUALS, "k=v\nk=v"),
            ("k 1\nkey 2\n", SPACE, "k v\nkey 2\n"),
            ("k\t1\n", SPACE, "k v\n"),
        ] {
            assert_eq!(with_value(text, "k", "v", separator), expected, "{text:?}");
        }
    }

    #[test]
    fn sections_are_changed_where_they_are() {
        let set = |lines: &str| with_value(lines, "k", "v", LAX);
        for (text, expected) in [
            ("", "[s]\nk=v\n"),
            ("[s]", "[s]\nk=v\n"),
            ("[t]\nk=1\n", "[t]\nk=1\n[s]\nk=v\n"),
            ("[s]\na=1\n\n[t]\nk=2\n", "[s]\na=1\nk=v\n\n[t]\nk=2\n"),
            ("x=1\n[ s ]\nk = 0\n[t]\n", "x=1\n[ s ]\nk=v\n[t]\n"),
            ("[s]\n\n[t]\n", "[s]\nk=v\n\n[t]\n"),
        ] {
            assert_eq!(with_section(text, "s", set), expected, "{text:?}");
        }
    }

    #[test]
    fn blocks_stand_together() {
        for (text, expected) in [
            ("", "a\nb\n"),
            ("x\na\nb\ny\n", "x\na\nb\ny\n"),
            ("a\nx\nb\n", "a\nx\nb\na\nb\n"),
            ("a\nb", "a\nb"),
        ] {
            assert_eq!(with_block(text, &["a", "b"]), expected, "{text:?}");
        }
        for (text, expected) in [
            ("", Some("<\na\n>\n")),
            ("x\n<\nold\nold\n>\ny\n", Some("x\n<\na\n>\ny\n")),
            ("<\n>\n", Some("<\na\n>\n")),
            ("<\na\n>", Some("<\na\n>")),
            (">\n<\nx\n", None),
        ] {
            let found = with_block_between(text, ("<", ">"), &["a"]);
            assert_eq!(found.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_replaced_with_what_groups_matched() {
        let regex = Regex::new("<(.*)>(.)?").unwrap();
        for (text, expected) in [
            ("<x>\n", "[x]\n"),
            ("a<x>\n<y>", "a<x>\n[y]"),
            ("none\n", "none\n"),
        ] {
            let found = with_replaced(text, &regex, "[${match.1}${match.2}]");
            assert_eq!(found, expected, "{text:?}");
        }
        let found = with_replaced("<x>", &regex, "${match.x} ${match.0}");
        assert_eq!(found, "${match.x} <x>");
    }

    proptest! {
        /// What was changed once is not changed again, and lines of others stay.
        #[test]
        fn changes_hold(text in "[ak=<>\\[\\]s \n]{0,24}", lax in any::<bool>()) {
            let separator = Separator { text: "=", lax };
            let once = with_value(&text, "k", "v", separator);
            prop_assert_eq!(&with_value(&once, "k", "v", separator), &once);
            let set = |lines: &str| with_value(lines, "k", "v", separator);
            let once = with_section(&text, "s", set);
            prop_assert_eq!(with_section(&once, "s", set), once);
            let once = with_block(&text, &["a", "k"]);
            prop_assert!(once.starts_with(&text));
            prop_assert_eq!(with_block(&once, &["a", "k"]), once);
            if let Some(once) = with_block_between(&text, ("<", ">"), &["a"]) {
                prop_assert_eq!(with_block_between(&once, ("<", ">"), &["a"]), Some(once));
            }
        }
    }
}
