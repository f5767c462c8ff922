//! Tables and their keys.

use document::{Problem, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values::Reader;

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
    /// The table at `value`. Each key that is not in `known` is a problem.
    pub(super) fn open(
        value: &'t Value<'t>,
        label: &'t str,
        known: &[&str],
        reader: &mut Reader<'_>,
    ) -> Option<Self> {
        let fields = Self::open_any(value, label, reader)?;
        fields.check_keys(known, reader);
        Some(fields)
    }

    /// Reports each key that is not in `known`.
    pub(super) fn check_keys(&self, known: &[&str], reader: &mut Reader<'_>) {
        for (key, span) in self.keys().filter(|(key, _)| !known.contains(key)) {
            let message = format!("unknown key \"{key}\" in {}", self.label);
            let problem = Problem::new(span, message);
            reader.problem(problem.suggest_from(key, "keys", known.iter().copied()));
        }
    }

    /// The table at `value`, with any keys.
    pub(super) fn open_any(
        value: &'t Value<'t>,
        label: &'t str,
        reader: &mut Reader<'_>,
    ) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(table) => Some(Self {
                table,
                label,
                span: value.span(),
            }),
            other => {
                let message = format!("{label} must be a table, found {}", described(other));
                reader.refuse(Problem::new(value.span(), message))
            }
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
        reader: &mut Reader<'_>,
    ) -> Option<Field<'t>> {
        self.get(key).or_else(|| {
            let message = format!("{} needs \"{key}\"", self.label);
            let problem = Problem::new(self.span.clone(), message);
            reader.refuse(problem.help(format!("add {key} = {example}")))
        })
    }

    /// Reports each key that goes with other kinds than this one; whether there is none.
    pub(super) fn go_with(
        &self,
        kind: &str,
        of_kinds: &[(&str, &[&str])],
        reader: &mut Reader<'_>,
    ) -> bool {
        let mut belong = true;
        for (key, kinds) in of_kinds.iter().filter(|(_, kinds)| !kinds.contains(&kind)) {
            if let Some(own) = self.get(key) {
                let kinds = kinds.join(", ");
                let message = format!("\"{key}\" goes with {kinds}, not with {kind}");
                reader.problem(Problem::new(own.span(), message));
                belong = false;
            }
        }
        belong
    }

    /// Reads the value of a key that may be left out: `Some(None)` when it is, `None` when it is
    /// wrong.
    pub(super) fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(Field<'t>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.get(key) {
            Some(field) => read(field).map(Some),
            None => Some(None),
        }
    }

    /// Reads the value of a key that has a usual value.
    pub(super) fn value_or<T>(
        &self,
        key: &str,
        usual: T,
        read: impl FnOnce(Field<'t>) -> Option<T>,
    ) -> Option<T> {
        self.get(key).map_or(Some(usual), read)
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
