//! Entries of an object in the order in which they are written, which is that of a method's
//! parameters.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserializer, Serializer};
use serde_json::Value;

pub(super) fn serialize<S: Serializer>(
    entries: &[(String, Value)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(entries.iter().map(|(key, value)| (key, value)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<(String, Value)>, D::Error> {
    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, Value)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of parameters and values")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    from.deserialize_map(Entries)
}
