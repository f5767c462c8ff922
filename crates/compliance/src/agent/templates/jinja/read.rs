//! A template's text into its parts.

use super::super::beginning;
use super::expression::{Expression, Reader};
use super::{DEPTH, For, Part};

/// The parts of a whole template.
pub(super) fn parts(template: &str) -> Result<Vec<Part<'_>>, String> {
    let mut tags = Tags {
        rest: template,
        trim: false,
    };
    let (parts, end) = tags.parts(0)?;
    match end {
        None => Ok(parts),
        Some(end) => Err(format!(
            "the template has {:?} where nothing of it is open",
            end.word
        )),
    }
}

/// A statement that ends a list of parts: `endif`, `else` and so on, and what is behind the word.
struct End<'t> {
    word: &'t str,
    rest: &'t str,
}

/// The second character of a tag, and what is in it.
type Tag<'t> = (char, &'t str);

struct Tags<'t> {
    rest: &'t str,
    /// Is the space before the next text taken away?
    trim: bool,
}

impl<'t> Tags<'t> {
    /// The text until the next tag, and the tag.
    fn next(&mut self) -> Result<(&'t str, Option<Tag<'t>>), String> {
        let open = self.rest.match_indices('{').find(|(at, _)| {
            let second = self.rest[at + 1..].chars().next();
            matches!(second, Some('{' | '%' | '#'))
        });
        let trimmed = |text: &'t str, trim: bool| match trim {
            true => text.trim_start(),
            false => text,
        };
        let Some((at, _)) = open else {
            let text = trimmed(self.rest, self.trim);
            self.rest = "";
            return Ok((text, None));
        };
        let (text, tag) = self.rest.split_at(at);
        let kind = tag[1..].chars().next().unwrap_or_default();
        let inside = &tag[2..];
        let end = match kind {
            '#' => inside.find("#}").map(|end| (end, end + 2)),
            '%' => end_of(inside, "%}"),
            _ => end_of(inside, "}}"),
        };
        let (end, after) =
            end.ok_or_else(|| format!("a tag of the template does not end: {:?}", beginning(tag)))?;
        let mut text = trimmed(text, self.trim);
        let mut inner = &inside[..end];
        if let Some(less) = inner.strip_prefix('-') {
            text = text.trim_end();
            inner = less;
        }
        self.trim = false;
        if let Some(less) = inner.strip_suffix('-') {
            self.trim = true;
            inner = less;
        }
        self.rest = &inside[after..];
        Ok((text, Some((kind, inner.trim()))))
    }

    /// Parts until the template ends or a statement ends them.
    fn parts(&mut self, depth: usize) -> Result<(Vec<Part<'t>>, Option<End<'t>>), String> {
        if depth > DEPTH {
            return Err(format!(
                "statements of the template are more than {DEPTH} deep"
            ));
        }
        let mut parts = Vec::new();
        loop {
            let (text, tag) = self.next()?;
            if !text.is_empty() {
                parts.push(Part::Text(text));
            }
            let Some((kind, inside)) = tag else {
                return Ok((parts, None));
            };
            match kind {
                '#' => continue,
                '{' => {
                    parts.push(Part::Output(Reader::whole(inside)?));
                    continue;
                }
                _ => {}
            }
            let (word, rest) = split_word(inside);
            match word {
                "if" => parts.push(self.branches(rest, depth)?),
                "for" => parts.push(Part::For(Box::new(self.each(rest, depth)?))),
                "set" => {
                    let pair = rest.split_once('=');
                    let (name, value) = pair.ok_or_else(|| {
                        format!("set of the template is {rest:?}; expected NAME = VALUE")
                    })?;
                    let name = name_of(name)?;
                    parts.push(Part::Set(name, Reader::whole(value)?));
                }
                "raw" => parts.push(Part::Text(self.raw()?)),
                "endif" | "else" | "elif" | "endfor" => {
                    return Ok((parts, Some(End { word, rest })));
                }
                other => {
                    return Err(format!(
                        "the template has the statement {other:?}; expected if, for, set or raw"
                    ));
                }
            }
        }
    }

    fn branches(&mut self, condition: &str, depth: usize) -> Result<Part<'t>, String> {
        let mut branches = Vec::new();
        let mut condition = Some(Reader::whole(condition)?);
        loop {
            let always = condition.is_none();
            let (body, end) = self.parts(depth + 1)?;
            branches.push((condition, body));
            condition = match end {
                Some(End { word: "endif", .. }) => return Ok(Part::If(branches)),
                Some(End { word: "else", .. }) if !always => None,
                Some(End { word: "elif", rest }) if !always => Some(Reader::whole(rest)?),
                _ => return Err(lacks("if", "endif", end)),
            };
        }
    }

    fn each(&mut self, head: &str, depth: usize) -> Result<For<'t>, String> {
        let wrong = || format!("for of the template is {head:?}; expected NAME in LIST");
        let (names, over) = head.split_once(" in ").ok_or_else(wrong)?;
        let names = names.split(',').map(name_of);
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let mut reader = Reader::new(over);
        let over: Expression = reader.without_choice()?;
        let filter = match reader.word("if") {
            true => Some(reader.expression()?),
            false => None,
        };
        reader.end()?;
        let (body, end) = self.parts(depth + 1)?;
        let (none, end) = match end {
            Some(End { word: "else", .. }) => self.parts(depth + 1)?,
            end => (Vec::new(), end),
        };
        match end {
            Some(End { word: "endfor", .. }) => Ok(For {
                names,
                over,
                filter,
                body,
                none,
            }),
            end => Err(lacks("for", "endfor", end)),
        }
    }

    /// The text until `{% endraw %}`.
    fn raw(&mut self) -> Result<&'t str, String> {
        let mut from = 0;
        while let Some(found) = self.rest[from..].find("{%") {
            let at = from + found;
            let inside = &self.rest[at + 2..];
            let end = inside.find("%}");
            let word = end.map(|end| inside[..end].trim_matches(['-', ' ', '\n', '\t']));
            if let (Some("endraw"), Some(end)) = (word, end) {
                let text = &self.rest[..at];
                self.rest = &inside[end + 2..];
                self.trim = false;
                return Ok(text);
            }
            from = at + 2;
        }
        Err("raw of the template has no endraw".into())
    }
}

fn lacks(open: &str, close: &str, found: Option<End<'_>>) -> String {
    match found {
        None => format!("{open} of the template has no {close}"),
        Some(end) => format!(
            "{open} of the template has {:?}; expected {close}",
            end.word
        ),
    }
}

fn name_of(text: &str) -> Result<String, String> {
    let name = text.trim();
    let plain = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let begins = name.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_');
    match begins && name.chars().all(plain) {
        true => Ok(name.to_owned()),
        false => Err(format!("{name:?} is no name of a variable of the template")),
    }
}

fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (word, rest.trim())
}

/// Where a tag ends and what is behind it begins: not within a text in quotes.
fn end_of(inside: &str, end: &str) -> Option<(usize, usize)> {
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in inside.char_indices() {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, _) if inside[at..].starts_with(end) => return Some((at, at + end.len())),
            (None, _) => {}
        }
    }
    None
}
