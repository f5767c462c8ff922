//! Parameters of a method in their order, which matters: the first is the one that reports name.
//! They are read as an object, as YAML has them, or as a list of pairs, which is how they are
//! written: whoever passes JSON on may sort the keys of an object.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serializer};
use serde_json::Value;

pub(super) fn serialize<S: Serializer>(
    entries: &[(String, Value)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(entries)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<(String, Value)>, D::Error> {
    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, Value)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("parameters with values, or a list of such pairs")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = list.next_element()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    from.deserialize_any(Entries)
}
