//! A message without what differs from entity to entity.

use std::collections::{HashMap, HashSet};

/// So many texts of a word are phases; more are numbers of something.
const PHASES: usize = 8;
/// Words of a message that are looked at; a longer one ends there.
const WORDS: usize = 40;
/// Most shapes of messages that are learnt.
const SHAPES: usize = 20_000;

/// A word with a digit, cut into what may be a number or an id, and what stands around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) before: &'a str,
    pub(super) core: &'a str,
    pub(super) after: &'a str,
}

impl<'a> Word<'a> {
    /// `None`: it has no digit, so it is a word like others.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        const AROUND: &[char] = &[
            '(', ')', '[', ']', '{', '}', '<', '>', '"', '\'', ',', ';', ':', '.',
        ];
        let start = text.rfind('=').map_or(0, |at| at + 1);
        let core = text[start..].trim_matches(AROUND);
        if !core.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let at = start + text[start..].find(core)?;
        Some(Self {
            before: &text[..at],
            core,
            after: &text[at + core.len()..],
        })
    }
}

/// Learns which words of messages vary, from all of them.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    /// By shape: the texts seen of each word with a digit, up to one more than [`PHASES`].
    seen: HashMap<String, Vec<HashSet<Box<str>>>>,
}

impl Shapes {
    /// Takes in one message.
    pub(super) fn learn(&mut self, message: &str) {
        let (shape, words) = shape(message);
        if words.is_empty() || (self.seen.len() >= SHAPES && !self.seen.contains_key(&shape)) {
            return;
        }
        let seen = self.seen.entry(shape).or_default();
        seen.resize_with(words.len(), HashSet::new);
        for (texts, word) in seen.iter_mut().zip(words) {
            if texts.len() <= PHASES && !texts.contains(word.core) {
                texts.insert(word.core.into());
            }
        }
    }

    /// The message with each word that varies replaced by `\0` (and what stands around it),
    /// and these words.
    pub(super) fn template<'m>(&self, message: &'m str, shape: &str) -> (String, Vec<Word<'m>>) {
        let seen = self.seen.get(shape);
        let mut number = 0;
        let mut varying = Vec::new();
        let mut pieces: Vec<String> = Vec::new();
        for text in message.split_ascii_whitespace().take(WORDS) {
            let Some(word) = Word::of(text) else {
                pieces.push(text.to_owned());
                continue;
            };
            let varies = seen
                .and_then(|seen| seen.get(number))
                .is_none_or(|texts| texts.len() > PHASES);
            number += 1;
            if varies {
                pieces.push(format!("{}\0{}", word.before, word.after));
                varying.push(word);
            } else {
                pieces.push(text.to_owned());
            }
        }
        (pieces.join(" "), varying)
    }
}

/// The message with each word that has a digit replaced, and these words.
pub(super) fn shape(message: &str) -> (String, Vec<Word<'_>>) {
    let mut words = Vec::new();
    let pieces: Vec<String> = message
        .split_ascii_whitespace()
        .take(WORDS)
        .map(|text| match Word::of(text) {
            Some(word) => {
                words.push(word);
                format!("{}\0{}", word.before, word.after)
            }
            None => text.to_owned(),
        })
        .collect();
    (pieces.join(" "), words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_a_number_is_no_part_of_it() {
        let cut = |text| Word::of(text).map(|word| (word.before, word.core, word.after));
        assert_eq!(cut("17"), Some(("", "17", "")));
        assert_eq!(cut("id=a-17,"), Some(("id=", "a-17", ",")));
        assert_eq!(cut("(\"x1\")."), Some(("(\"", "x1", "\").")));
        assert_eq!(cut("started"), None);
        assert_eq!(cut("1=x"), None);
    }

    #[test]
    fn few_texts_are_phases_and_many_are_numbers() {
        let mut shapes = Shapes::default();
        for job in 0..20 {
            for step in 1..4 {
                shapes.learn(&format!("job {job}: step {step} over http2"));
            }
        }
        let said = "job 7: step 2 over http2";
        let (template, words) = shapes.template(said, &shape(said).0);
        assert_eq!(template, "job \0: step 2 over http2");
        assert_eq!(
            words.iter().map(|word| word.core).collect::<Vec<_>>(),
            ["7"]
        );
        // A message of a shape that there was no room for.
        assert_eq!(shapes.template("other 9", "other \0").0, "other \0");
    }
}
