//! Values that steps keep of answers and outputs, for what comes after.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use lab_experiment::plan::{Reference, Template};

use crate::processes::Addresses;

/// Shortest value that is looked for in texts that are told: a shorter one may stand there by
/// chance.
const SHORTEST: usize = 4;

/// The values by their names. They may be secret, so nothing that is told or stored holds
/// them, but for the numbers that expectations ask for.
#[derive(Debug, Default)]
pub(crate) struct CapturedValues(RefCell<BTreeMap<String, String>>);

impl CapturedValues {
    /// Keeps values for what comes after.
    pub(crate) fn keep(&self, values: impl IntoIterator<Item = (String, String)>) {
        self.0.borrow_mut().extend(values);
    }

    /// What a reference of a step stands for.
    pub(crate) fn resolve(&self, addresses: &Addresses, reference: &Reference) -> String {
        match reference {
            // The checker knows that it is kept before it is used.
            Reference::Kept(name) => self.0.borrow().get(name).cloned().unwrap_or_default(),
            other => addresses.resolve(other),
        }
    }

    /// A text of a step as it is made.
    pub(crate) fn render(&self, addresses: &Addresses, template: &Template) -> String {
        template.render(|reference| self.resolve(addresses, reference))
    }

    /// A text of a step as it is told: with names in place of what was kept.
    pub(crate) fn render_redacted(&self, addresses: &Addresses, template: &Template) -> String {
        template.render(|reference| match reference {
            Reference::Kept(name) => format!("{{{name}}}"),
            other => addresses.resolve(other),
        })
    }

    /// A text of somebody else, with names in place of what was kept and is no number.
    pub(crate) fn hide(&self, text: &str) -> String {
        let kept = self.0.borrow();
        let is_hidden = |value: &str| value.len() >= SHORTEST && number(value).is_none();
        let mut hidden: Vec<_> = kept.iter().filter(|(_, value)| is_hidden(value)).collect();
        // One may be a part of another.
        hidden.sort_by_key(|(_, value)| Reverse(value.len()));
        hidden.iter().fold(text.to_owned(), |told, (name, value)| {
            replace(&told, value, &format!("{{{name}}}"))
        })
    }

    /// Those that are numbers.
    pub(crate) fn numbers(&self) -> BTreeMap<String, f64> {
        let kept = self.0.borrow();
        let numbers = kept.iter().filter_map(|(name, value)| {
            let number = number(value)?;
            Some((name.clone(), number))
        });
        numbers.collect()
    }
}

/// Replaces a value wherever it stands as it is, or as JSON or a URL would write it.
fn replace(text: &str, value: &str, with: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        // What looks like an escape may be a part of the value itself.
        let length = stands(rest, value, true).or_else(|| stands(rest, value, false));
        if let Some(length) = length {
            told.push_str(with);
            rest = &rest[length..];
        } else {
            let next = rest.chars().next().map_or(rest.len(), char::len_utf8);
            told.push_str(&rest[..next]);
            rest = &rest[next..];
        }
    }
    told
}

/// How many bytes the value takes at the start of a text, if it stands there.
fn stands(text: &str, value: &str, escapes_first: bool) -> Option<usize> {
    let (mut left, mut wanted) = (text, value);
    while let Some(first) = wanted.chars().next() {
        let plain = left.starts_with(first).then(|| first.len_utf8());
        let escape = || escaped(left).and_then(|(meant, used)| (meant == first).then_some(used));
        let used = match escapes_first {
            true => escape().or(plain),
            false => plain.or_else(escape),
        }?;
        (left, wanted) = (&left[used..], &wanted[first.len_utf8()..]);
    }
    Some(text.len() - left.len())
}

/// The character that an escape at the start of a text means, and the escape's length: `\/`, `\n`,
/// `\u003d` of JSON, `%3D` of URLs, of which several make a character beyond ASCII.
fn escaped(text: &str) -> Option<(char, usize)> {
    if let Some(rest) = text.strip_prefix('\\') {
        let meant = match rest.chars().next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => return units(text),
            other => other,
        };
        return Some((meant, 1 + rest.chars().next()?.len_utf8()));
    }
    let mut bytes = Vec::new();
    for written in text.as_bytes().chunks_exact(3).take(4) {
        let [b'%', digits @ ..] = written else {
            break;
        };
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        if let Ok(meant) = std::str::from_utf8(&bytes) {
            return Some((meant.chars().next()?, 3 * bytes.len()));
        }
    }
    None
}

/// `\u003d`, or a pair of surrogates.
fn units(text: &str) -> Option<(char, usize)> {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let both = [
        unit(text)?,
        text.get(6..).and_then(unit).unwrap_or_default(),
    ];
    let meant = char::decode_utf16(both).next()?.ok()?;
    Some((meant, 6 * meant.len_utf16()))
}

fn number(value: &str) -> Option<f64> {
    let number: f64 = value.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_hidden_however_it_is_written() {
        let kept = CapturedValues::default();
        kept.keep([("token".to_owned(), "abc/d\"e=é😀+\\n".to_owned())]);
        for written in [
            "abc/d\"e=é😀+\\n",
            r#"abc\/d\"e=é😀+\\n"#,
            r"abc\/d\u0022e\u003d\u00e9\ud83d\ude00\u002B\\n",
            "abc%2Fd%22e%3d%C3%A9%F0%9F%98%80%2b%5Cn",
        ] {
            let said = format!("bad token <{written}>, {written}");
            assert_eq!(kept.hide(&said), "bad token <{token}>, {token}", "{said}");
        }
        for other in ["abc/d", "%", "%2", "\\", "\\u00", "abc\\/d\\", "abc%2Fd%zz"] {
            assert_eq!(kept.hide(other), other);
        }
    }

    #[test]
    fn what_is_kept_is_hidden_where_it_is_told_and_only_numbers_are_numbers() {
        let kept = CapturedValues::default();
        let values = [
            ("token", "s3cret"),
            ("rows", "1000"),
            ("share", " 0.5\n"),
            ("one", "1"),
            ("endless", "inf"),
            ("word", "x"),
        ];
        kept.keep(values.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(kept.hide("1 of 1000, s3cret x"), "1 of 1000, {token} x");
        let numbers: Vec<(String, f64)> = kept.numbers().into_iter().collect();
        let expected = [("one", 1.0), ("rows", 1000.0), ("share", 0.5)];
        assert_eq!(
            numbers,
            expected.map(|(name, number)| (name.to_owned(), number))
        );
    }
}
