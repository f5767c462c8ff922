//! Which points a line shows, for all lifecycles and loops at once.

use std::collections::HashMap;

use memchr::memmem::Finder;
use regex::bytes::Regex;

use crate::fields::{FieldId, Fields};
use crate::line::Line;
use crate::matcher::Matcher;

/// Most messages that are remembered; then the memory starts anew.
const MAX_REMEMBERED: usize = 4096;
/// Longest message that is remembered; longer ones are matched each time.
const MAX_REMEMBERED_BYTES: usize = 256;

/// All matchers. Each has a bit in the mask of a target (a lifecycle or a loop).
///
/// Programs repeat few messages very often, so what a message means is remembered.
#[derive(Debug, Default)]
pub(crate) struct Classifier {
    targets: usize,
    contains: Vec<(Finder<'static>, Bit)>,
    regexes: Vec<(Regex, Bit)>,
    fields: Vec<(FieldId, Box<[u8]>, Bit)>,
    remembered: HashMap<Box<[u8]>, u32>,
    /// Masks of the remembered messages, `targets` for each.
    masks: Vec<u64>,
    current: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Bit {
    target: usize,
    mask: u64,
}

impl Classifier {
    /// Adds a target whose bit `i` is matcher `i`, and returns its number, counted
    /// from 0. At most 64 matchers.
    pub(crate) fn add(&mut self, matchers: Vec<Matcher>, fields: &mut Fields) -> usize {
        let target = self.targets;
        for (index, matcher) in matchers.into_iter().enumerate() {
            let bit = Bit {
                target,
                mask: 1 << index,
            };
            match matcher {
                Matcher::Contains(text) => {
                    self.contains.push((Finder::new(&text).into_owned(), bit));
                }
                Matcher::Regex(regex) => self.regexes.push((regex, bit)),
                Matcher::Field { path, value } => {
                    self.fields
                        .push((fields.register(&path), value.into_bytes().into(), bit));
                }
            }
        }
        self.targets += 1;
        self.current = vec![0; self.targets];
        target
    }

    /// The mask of each target for this line.
    pub(crate) fn classify(&mut self, line: &Line<'_>) -> &[u64] {
        let message = line.message();
        if let Some(entry) = self.remembered.get(&*message) {
            let start = *entry as usize * self.targets;
            self.current
                .copy_from_slice(&self.masks[start..start + self.targets]);
        } else {
            self.match_message(&message);
            self.remember(&message);
        }
        for (id, value, bit) in &self.fields {
            if line.field(*id).is_some_and(|text| *text == **value) {
                self.current[bit.target] |= bit.mask;
            }
        }
        &self.current
    }

    fn match_message(&mut self, message: &[u8]) {
        self.current.fill(0);
        for (finder, bit) in &self.contains {
            if finder.find(message).is_some() {
                self.current[bit.target] |= bit.mask;
            }
        }
        for (regex, bit) in &self.regexes {
            if regex.is_match(message) {
                self.current[bit.target] |= bit.mask;
            }
        }
    }

    fn remember(&mut self, message: &[u8]) {
        if message.len() > MAX_REMEMBERED_BYTES {
            return;
        }
        if self.remembered.len() >= MAX_REMEMBERED {
            self.remembered.clear();
            self.masks.clear();
        }
        self.remembered
            .insert(message.into(), self.remembered.len() as u32);
        self.masks.extend_from_slice(&self.current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Format, Scanner};

    fn classifier(targets: &[&[&str]]) -> (Classifier, Scanner) {
        let mut fields = Fields::new();
        let mut classifier = Classifier::default();
        for matchers in targets {
            let matchers = matchers
                .iter()
                .map(|text| Matcher::parse(text).unwrap())
                .collect();
            classifier.add(matchers, &mut fields);
        }
        (classifier, Scanner::new(fields))
    }

    fn masks(classifier: &mut Classifier, scanner: &mut Scanner, line: &str) -> Vec<u64> {
        classifier
            .classify(&scanner.scan(Format::Logfmt, line.as_bytes()).unwrap())
            .to_vec()
    }

    #[test]
    fn every_form_sets_its_own_bit() {
        let (mut classifier, mut scanner) =
            classifier(&[&["start", "/^re/", "state=up"], &["restart"]]);
        for _ in 0..2 {
            let mut check = |line, expected: [u64; 2]| {
                assert_eq!(
                    masks(&mut classifier, &mut scanner, line),
                    expected,
                    "{line}"
                );
            };
            check("ts=1 msg=restart", [0b011, 1]);
            check("ts=1 msg=restart state=up", [0b111, 1]);
            check("ts=1 msg=stop state=up", [0b100, 0]);
            check("ts=1 msg=stop state=upper", [0, 0]);
            check("ts=1", [0, 0]);
        }
    }

    #[test]
    fn forgetting_changes_nothing() {
        let (mut classifier, mut scanner) = classifier(&[&["7"]]);
        for n in 0..3 * MAX_REMEMBERED {
            let line = format!("ts=1 msg=message-{n}");
            let expected = u64::from(n.to_string().contains('7'));
            for _ in 0..2 {
                assert_eq!(masks(&mut classifier, &mut scanner, &line), [expected]);
            }
            assert!(classifier.remembered.len() <= MAX_REMEMBERED);
        }
        let long = format!("ts=1 msg=7{}", "x".repeat(MAX_REMEMBERED_BYTES));
        assert_eq!(masks(&mut classifier, &mut scanner, &long), [1]);
    }
}
