//! Messages as JSON, as Go's types of them print and read it: what cfdot prints, one object a line.
//!
//! A [`Shape`] says for one message which keys there are, in which order they are printed, and which
//! of them are left out when there is nothing to say. [`print`] walks the bytes of a message along
//! its shape, so that a list of many records is printed without being decoded; [`read`] goes the
//! other way, for what a person writes.
//!
//! Facts from the struct tags of the BBS's models as of b2385bea, held against recordings.

mod print;
mod read;
pub mod shapes;

pub use print::{BadMessage, compact, print, quote};
pub use read::{BadJson, read};

/// Messages within messages that are followed, as many as decoders of protobuf follow.
const DEPTH_MOST: usize = 100;

/// One message: its fields in the order in which they are printed.
#[derive(Debug)]
pub struct Shape {
    /// Its name in `bbs.proto`.
    pub name: &'static str,
    fields: &'static [Field],
}

/// One field of a message.
#[derive(Debug)]
struct Field {
    number: u32,
    /// Empty where the field's own fields stand in its place.
    key: &'static str,
    kind: Kind,
    form: Form,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    /// A number with names, printed as its name.
    Named(&'static [(i32, &'static str)]),
    Message(&'static Shape),
    /// A map of texts to texts that are JSON themselves, in a message of its own.
    Routes,
}

/// How often a value may come, and what is printed when it did not.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// Always printed: zero, an empty text, `false`; `null` for a message that did not come.
    Always,
    /// A message that is always printed, with all its keys.
    Whole,
    /// Left out when it is zero or empty, or a message that did not come.
    UnlessZero,
    /// Left out when it did not come; printed when it is zero.
    IfSent,
    /// Left out when it has no element.
    List,
    /// `null` when it has no element.
    ListOrNull,
    /// Keys are texts; left out when it has none.
    Map,
    /// Keys are texts; `{}` when it has none.
    MapAlways,
    /// A message whose keys stand among those around it.
    Flat,
    /// The same; nothing of it is printed when it did not come.
    FlatIfSent,
    /// A Boolean within an object with one key, as Go prints one that may be unset: `null` when
    /// it did not come.
    Within {
        /// The key within.
        key: &'static str,
        /// Is `false` told?
        false_too: bool,
    },
}

const fn field(number: u32, key: &'static str, kind: Kind, form: Form) -> Field {
    Field {
        number,
        key,
        kind,
        form,
    }
}

const fn always(number: u32, key: &'static str, kind: Kind) -> Field {
    field(number, key, kind, Form::Always)
}

const fn unless_zero(number: u32, key: &'static str, kind: Kind) -> Field {
    field(number, key, kind, Form::UnlessZero)
}

const fn if_sent(number: u32, key: &'static str, kind: Kind) -> Field {
    field(number, key, kind, Form::IfSent)
}

const fn list(number: u32, key: &'static str, kind: Kind) -> Field {
    field(number, key, kind, Form::List)
}

const fn list_or_null(number: u32, key: &'static str, kind: Kind) -> Field {
    field(number, key, kind, Form::ListOrNull)
}

const fn map(number: u32, key: &'static str, kind: Kind) -> Field {
    field(number, key, kind, Form::Map)
}

/// A message that is left out when it did not come.
const fn message(number: u32, key: &'static str, shape: &'static Shape) -> Field {
    field(number, key, Kind::Message(shape), Form::UnlessZero)
}

/// A message that is printed in any case.
const fn whole(number: u32, key: &'static str, shape: &'static Shape) -> Field {
    field(number, key, Kind::Message(shape), Form::Whole)
}

/// A list of messages.
const fn messages(number: u32, key: &'static str, shape: &'static Shape) -> Field {
    field(number, key, Kind::Message(shape), Form::List)
}

/// A message whose keys stand among those around it.
const fn flat(number: u32, shape: &'static Shape) -> Field {
    field(number, "", Kind::Message(shape), Form::Flat)
}

/// The parts of a map's entry.
const MAP_KEY: u32 = 1;
const MAP_VALUE: u32 = 2;

#[cfg(test)]
mod tests;
