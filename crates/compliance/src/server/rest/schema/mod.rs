//! JSON as data: what a call takes and what it answers is written down once. By it bodies are
//! checked, field by field, and of it the OpenAPI document is made.

mod check;
mod document;
mod form;
#[cfg(test)]
mod tests;

pub(super) use check::Wrong;
pub(super) use document::Documents;

/// What a JSON value must be.
#[derive(Debug)]
pub(super) enum Schema {
    /// Any value.
    Any,
    /// `true` or `false`.
    Flag,
    /// A whole number within these bounds.
    Number(i64, i64),
    /// A number, such as a percentage.
    Share,
    /// A text of at most so many bytes.
    Text(usize),
    /// An identity, as `check_id` has it.
    Identity,
    /// A name for people, which is not empty.
    Name,
    /// The name of a property.
    PropertyName,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A target of one word, such as `special:all`.
    Target,
    /// A list of at most so many.
    List(&'static Schema, usize),
    /// A list of these two.
    Pair(&'static Schema, &'static Schema),
    /// An object of any keys.
    Map(&'static Schema),
    /// An object of these keys, known under a name.
    Object(&'static str, &'static [Field]),
    /// Any of these.
    Either(&'static [&'static Schema]),
}

/// A key of an object, or of what follows `?`.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) schema: &'static Schema,
    /// Must it be there?
    pub(super) needed: bool,
    pub(super) note: &'static str,
}

/// A key that must be there.
pub(super) const fn needed(name: &'static str, schema: &'static Schema) -> Field {
    Field {
        name,
        schema,
        needed: true,
        note: "",
    }
}

/// A key that may be left out.
pub(super) const fn may(name: &'static str, schema: &'static Schema) -> Field {
    Field {
        name,
        schema,
        needed: false,
        note: "",
    }
}

impl Field {
    /// The same with what is to be told of it.
    pub(super) const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}

/// An object under a name, of fields that are `needed` or `may` be left out: a key, its schema, and
/// what is to be told of it. Fields that several objects have come last, each behind a `+`.
macro_rules! object {
    (
        $name:literal
        $($kind:ident $key:literal : $schema:expr $(, $note:literal)?;)*
        $(+ $more:ident;)*
    ) => {
        $crate::server::rest::schema::Schema::Object(
            $name,
            &[
                $($crate::server::rest::schema::$kind($key, &$schema)$(.note($note))?,)*
                $($more,)*
            ],
        )
    };
}
pub(super) use object;

/// A list of any number of such objects.
macro_rules! objects {
    ($($object:tt)*) => {
        $crate::server::rest::schema::Schema::List(
            &$crate::server::rest::schema::object! { $($object)* },
            usize::MAX,
        )
    };
}
pub(super) use objects;

/// A text of some length, for people.
pub(super) static TEXT: Schema = Schema::Text(64 << 10);
