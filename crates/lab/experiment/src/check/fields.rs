//! Tables and their keys.

use document::{Problem, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its place.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// A value together with the key that it was found at.
#[derive(Clone, Copy)]
pub(super) struct Field<'t> {
    pub(super) key: &'t str,
    pub(super) value: &'t Value<'t>,
}

impl Field<'_> {
    pub(super) fn span(&self) -> Span {
        self.value.span()
    }
}

/// A table whose keys are known.
pub(super) struct Fields<'t> {
    table: &'t DeTable<'t>,
    /// How messages call it: `[[system]]`.
    pub(super) label: &'t str,
    /// Where it begins: its header, or the whole inline table.
    pub(super) span: Span,
}

impl<'t> Fields<'t> {
    /// The table at `value`. Each key that is neither in `known` nor in `later` is
    /// a problem, and so is each in `later`, which names the keys of future versions.
    pub(super) fn open(
        value: &'t Value<'t>,
        label: &'t str,
        known: &[&str],
        later: &[&str],
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let fields = Self::open_any(value, label, problems)?;
        fields.check_keys(known, later, problems);
        Some(fields)
    }

    /// Reports each key that is not in `known`.
    pub(super) fn check_keys(&self, known: &[&str], later: &[&str], problems: &mut Vec<Problem>) {
        problems.extend(
            self.keys()
                .filter_map(|(key, span)| self.unknown(key, span, known, later)),
        );
    }

    /// The table at `value`, with any keys.
    pub(super) fn open_any(
        value: &'t Value<'t>,
        label: &'t str,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(table) => Some(Self {
                table,
                label,
                span: value.span(),
            }),
            other => {
                let message = format!("{label} must be a table, found {}", described(other));
                problems.push(Problem::new(value.span(), message));
                None
            }
        }
    }

    /// The problem with a key, if it has one.
    fn unknown(&self, key: &str, span: Span, known: &[&str], later: &[&str]) -> Option<Problem> {
        let label = self.label;
        if known.contains(&key) {
            None
        } else if later.contains(&key) {
            let message = format!("\"{key}\" in {label} is not supported by this version");
            Some(Problem::new(span, message))
        } else {
            let message = format!("unknown key \"{key}\" in {label}");
            Some(Problem::new(span, message).suggest_from(key, "keys", known.iter().copied()))
        }
    }

    /// The keys with their places, in order of the file.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'t str, Span)> + use<'t> {
        self.fields().map(|(span, field)| (field.key, span))
    }

    /// The keys' places and the values, in order of the file.
    pub(super) fn fields(&self) -> impl Iterator<Item = (Span, Field<'t>)> + use<'t> {
        let mut fields: Vec<(Span, Field<'t>)> = self
            .table
            .iter()
            .map(|(key, value)| {
                (
                    key.span(),
                    Field {
                        key: key.get_ref().as_ref(),
                        value,
                    },
                )
            })
            .collect();
        fields.sort_by_key(|(span, _)| span.start);
        fields.into_iter()
    }

    pub(super) fn get(&self, key: &str) -> Option<Field<'t>> {
        let (key, value) = self.table.get_key_value(key)?;
        Some(Field {
            key: key.get_ref().as_ref(),
            value,
        })
    }

    /// The value of a key that must be there; `example` shows what to write.
    pub(super) fn require(
        &self,
        key: &str,
        example: &str,
        problems: &mut Vec<Problem>,
    ) -> Option<Field<'t>> {
        let field = self.get(key);
        if field.is_none() {
            problems.push(
                Problem::new(self.span.clone(), format!("{} needs \"{key}\"", self.label))
                    .help(format!("add {key} = {example}")),
            );
        }
        field
    }
}

/// What a value is, for messages.
pub(super) fn described(value: &DeValue<'_>) -> String {
    /// Longest string that is repeated in a message.
    const SHOWN: usize = 40;
    match value {
        DeValue::String(text) if text.chars().count() <= SHOWN => format!("\"{text}\""),
        DeValue::String(_) => "a string".to_owned(),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
