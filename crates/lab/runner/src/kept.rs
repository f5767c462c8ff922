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
pub(crate) struct Kept(RefCell<BTreeMap<String, String>>);

impl Kept {
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
    pub(crate) fn tell(&self, addresses: &Addresses, template: &Template) -> String {
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
            told.replace(value.as_str(), &format!("{{{name}}}"))
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

fn number(value: &str) -> Option<f64> {
    let number: f64 = value.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_hidden_where_it_is_told_and_only_numbers_are_numbers() {
        let kept = Kept::default();
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
