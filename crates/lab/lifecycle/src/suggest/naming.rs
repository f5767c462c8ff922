//! Names, keys and matchers as a person would write them.

use std::collections::HashMap;

use regex::Regex;

use super::kinds::Kind;
use super::read::{Place, Read};
use super::words::Word;
use crate::definition::Definition;
use crate::matcher::Matcher;

/// Longest name of a point, in characters.
const LONGEST: usize = 48;

/// Words that name nothing.
const SMALL: [&str; 16] = [
    "a", "an", "and", "at", "by", "for", "from", "has", "in", "is", "of", "on", "the", "to", "was",
    "with",
];

/// The definitions of these kinds, in their order.
pub(super) fn definitions(read: &Read, kinds: &[Kind]) -> Vec<Definition> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    let define = |kind: &Kind| {
        let key = keys(read, &kind.key);
        let name = kind.key.first().map(|place| subject(read, *place));
        let name = name.unwrap_or_default();
        let number = taken.entry(name.clone()).or_insert(0);
        *number += 1;
        let name = match *number {
            1 => name,
            number => format!("{name}-{number}"),
        };
        let group = kind.place.map(|place| keys(read, &[place]));
        Definition {
            name,
            key,
            alias: Vec::new(),
            group: group.unwrap_or_default(),
            points: points(read, &kind.points),
        }
    };
    kinds.iter().map(define).collect()
}

/// What a place names: `task` for the field `task-guid`, `order` for "order 17 paid".
pub(super) fn subject(read: &Read, place: u16) -> String {
    let text = match &read.places[place as usize] {
        Place::Field(path) => without_id(path.rsplit('.').next().unwrap_or(path)),
        Place::Word { message, number } => before(read, *message, *number)
            .map(|(word, _)| word)
            .unwrap_or_default(),
    };
    match slug(&text) {
        name if name.is_empty() => "entity".to_owned(),
        name => name,
    }
}

fn without_id(field: &str) -> String {
    let lower = field.to_lowercase();
    let ends = [
        "guid", "uuid", "id", "key", "name", "handle", "number", "no",
    ];
    let cut = ends.iter().find_map(|end| {
        let rest = lower.strip_suffix(end)?;
        // `orderId`, `order_id` and `order-id`, but not `grid`.
        let at_border = rest.ends_with(['-', '_', '.'])
            || field[rest.len()..].starts_with(|c: char| c.is_ascii_uppercase());
        let kept = rest.trim_end_matches(['-', '_', '.']);
        (at_border && !kept.is_empty()).then_some(kept.len())
    });
    match cut {
        Some(length) => field[..length].to_owned(),
        None => field.to_owned(),
    }
}

/// Places as a key names them; words of messages with the same word before them as one.
fn keys(read: &Read, places: &[u16]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for place in places {
        let key = match &read.places[*place as usize] {
            Place::Field(path) => path.clone(),
            Place::Word { message, number } => expression(read, *message, *number),
        };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// The word before a varying word, and what stands before the number in the word itself.
fn before(read: &Read, message: u32, number: usize) -> Option<(String, String)> {
    let template = read.messages.text(message);
    let words: Vec<&str> = template.split(' ').collect();
    let varying = words.iter().enumerate().filter(|(_, w)| w.contains('\0'));
    let (at, word) = varying.map(|(at, word)| (at, *word)).nth(number)?;
    let own = word.split('\0').next().unwrap_or_default().to_owned();
    if let Some(name) = own.strip_suffix('=') {
        return Some((without_id(name), own));
    }
    let before = words.get(at.checked_sub(1)?)?;
    (!before.contains('\0')).then(|| ((*before).to_owned(), own))
}

/// An expression that captures this varying word: by the word before it if that is enough
/// to find it, else by the whole message.
fn expression(read: &Read, message: u32, number: usize) -> String {
    let template = read.messages.text(message);
    let sample = &read.samples[message as usize];
    let varying: Vec<Word<'_>> = sample
        .split_ascii_whitespace()
        .zip(template.split(' '))
        .filter(|(_, word)| word.contains('\0'))
        .filter_map(|(text, _)| Word::of(text))
        .collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let core = varying.get(number).map_or("", |word| word.core);
    let capture = match core.chars().all(is_plain) {
        true => r"([\w-]+)",
        false => r"(\S*\w)",
    };
    let short = before(read, message, number).map(|(word, own)| match own.ends_with('=') {
        true => format!("{}{capture}", regex::escape(&own)),
        false => format!(
            r"\b{} {}{capture}",
            regex::escape(&word),
            regex::escape(&own)
        ),
    });
    let captures = |expression: &str| {
        let regex = Regex::new(expression).ok()?;
        let found = regex.captures(sample)?.get(1)?.as_str().to_owned();
        Some(core == found)
    };
    let short = short.filter(|short| captures(short) == Some(true));
    format!("/{}/", short.unwrap_or_else(|| whole(template, number)))
}

/// The whole message as an expression, with a group around this varying word.
fn whole(template: &str, group: usize) -> String {
    let mut number = 0;
    let words = template.split(' ').map(|word| match word.split_once('\0') {
        None => regex::escape(word),
        Some((before, after)) => {
            let text = if number == group { r"(\S+?)" } else { r"\S+?" };
            number += 1;
            format!("{}{text}{}", regex::escape(before), regex::escape(after))
        }
    });
    let words: Vec<String> = words.collect();
    format!("^{}$", words.join(r"\s+"))
}

fn points(read: &Read, messages: &[u32]) -> Vec<(String, String)> {
    let templates: Vec<&str> = messages
        .iter()
        .map(|message| &**read.messages.text(*message))
        .collect();
    let names = names(&templates);
    let matchers = messages.iter().map(|message| matcher(read, *message));
    names.into_iter().zip(matchers).collect()
}

/// The shortest text that only this message contains.
fn matcher(read: &Read, message: u32) -> String {
    let template = read.messages.text(message);
    let pieces = template.split(' ').collect::<Vec<_>>();
    let literal = pieces
        .split(|word| word.contains('\0'))
        .map(|words| words.join(" "))
        .max_by_key(String::len)
        .unwrap_or_default();
    let others = (0..read.messages.len() as u32)
        .filter(|other| *other != message && read.shapes[*other as usize] != message);
    let is_alone = !literal.is_empty()
        && read.samples[message as usize].contains(&literal)
        && others
            .clone()
            .all(|other| !read.messages.text(other).contains(&literal));
    let is_plain = matches!(Matcher::parse(&literal), Ok(Matcher::Contains(_)));
    match is_alone && is_plain {
        true => literal,
        false => format!("/{}/", whole(template, usize::MAX)),
    }
}

/// A name for each: its last words, as many as tell it from the others.
fn names(templates: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<String>> = templates
        .iter()
        .map(|template| {
            let words = template.split(|c: char| c == '.' || c.is_whitespace());
            let words = words.filter(|word| !word.contains('\0'));
            words
                .map(letters)
                .filter(|word| !word.is_empty() && !SMALL.contains(&&**word))
                .collect()
        })
        .collect();
    let last = |parts: &[String], count: usize| {
        let name = parts[parts.len().saturating_sub(count)..].join("-");
        let from = name.len().saturating_sub(LONGEST);
        begun(&name[from..])
    };
    let mut names: Vec<String> = Vec::new();
    for (at, own) in parts.iter().enumerate() {
        let others = || parts.iter().enumerate().filter(|(other, _)| *other != at);
        let alone = (1..=own.len()).find(|count| {
            let name = last(own, *count);
            !name.is_empty() && others().all(|(_, other)| last(other, *count) != name)
        });
        let name = last(own, alone.unwrap_or(own.len()));
        let name = match name.is_empty() {
            true => "point".to_owned(),
            false => name,
        };
        let taken = |name: &str| names.iter().any(|taken| taken == name);
        let name = match taken(&name) {
            false => name,
            true => (2..)
                .map(|number| format!("{name}-{number}"))
                .find(|name| !taken(name))
                .unwrap_or(name),
        };
        names.push(name);
    }
    names
}

/// A text as a name: in the letters that one may have, and beginning with one.
fn slug(text: &str) -> String {
    begun(&letters(text))
}

fn begun(text: &str) -> String {
    text.trim_start_matches(|c: char| !c.is_ascii_alphabetic())
        .to_owned()
}

fn letters(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => slug.push(c.to_ascii_lowercase()),
            _ if !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_say_what_they_identify() {
        let named = [
            ("task-guid", "task"),
            ("instance_guid", "instance"),
            ("orderId", "order"),
            ("order.id", "order"),
            ("grid", "grid"),
            ("id", "id"),
            ("handle", "handle"),
        ];
        for (field, name) in named {
            assert_eq!(without_id(field), name);
        }
    }

    #[test]
    fn points_are_called_by_as_few_words_as_tell_them_apart() {
        let messages = [
            "bbs.desire-task.starting",
            "bbs.start-task.starting",
            "rep.create.succeeded",
            "job \0 is done",
            "\0",
        ];
        assert_eq!(
            names(&messages),
            [
                "desire-task-starting",
                "start-task-starting",
                "succeeded",
                "done",
                "point"
            ]
        );
    }
}
