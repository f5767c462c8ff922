//! Texts and tags of a message, borrowed from it where it needs no unescaping.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

/// A text; absent or `null`: empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Text<'_> {
    /// The same without a borrow.
    pub fn into_owned(self) -> Text<'static> {
        Text(Cow::Owned(self.0.into_owned()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
}

/// Tags in the order of their names, each name once; absent or `null`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags<'a>(pub Option<Vec<(Cow<'a, str>, Cow<'a, str>)>>);

impl Tags<'_> {
    /// The same without a borrow.
    pub fn into_owned(self) -> Tags<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let pairs = |(name, value)| (owned(name), owned(value));
        Tags(self.0.map(|tags| tags.into_iter().map(pairs).collect()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Tags<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TagsVisitor)
    }
}

struct TagsVisitor;

impl<'de> Visitor<'de> for TagsVisitor {
    type Value = Tags<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tags: texts by their names")
    }

    fn visit_unit<E: Error>(self) -> Result<Tags<'de>, E> {
        Ok(Tags(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tags<'de>, A::Error> {
        let mut tags = Vec::with_capacity(map.size_hint().unwrap_or(8).min(64));
        while let Some((Text(name), Text(value))) = map.next_entry()? {
            tags.push((name, value));
        }
        // Components send them in order. Of a name that comes twice the last one counts:
        // the sort is stable.
        if !tags.is_sorted_by(|(one, _), (other, _)| one < other) {
            tags.sort_by(|(one, _), (other, _)| one.cmp(other));
            tags.reverse();
            tags.dedup_by(|(one, _), (other, _)| one == other);
            tags.reverse();
        }
        Ok(Tags(Some(tags)))
    }
}

/// Policies of a route, with commas between them.
pub(super) fn policies<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text<'de>, D::Error> {
    deserializer.deserialize_any(PoliciesVisitor).map(Text)
}

struct PoliciesVisitor;

impl<'de> Visitor<'de> for PoliciesVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("policies: a text, or a list of texts without commas")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        TextVisitor.visit_borrowed_str(text)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        TextVisitor.visit_str(text)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        TextVisitor.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut joined = String::new();
        while let Some(Text(policy)) = list.next_element()? {
            // It would become two.
            if policy.contains(',') {
                return Err(A::Error::invalid_value(Unexpected::Str(&policy), &self));
            }
            if !joined.is_empty() {
                joined.push(',');
            }
            joined.push_str(&policy);
        }
        Ok(Cow::Owned(joined))
    }
}

/// A number that is not negative.
pub(super) fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(FactorVisitor)
}

struct FactorVisitor;

impl Visitor<'_> for FactorVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number that is not negative")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
        if number.is_finite() && number >= 0.0 {
            Ok(number)
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<f64, E> {
        self.visit_f64(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
        self.visit_f64(number as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        match text {
            "" => Ok(0.0),
            _ => match text.parse() {
                Ok(number) => self.visit_f64(number),
                Err(_) => Err(E::invalid_value(Unexpected::Str(text), &self)),
            },
        }
    }

    fn visit_unit<E: Error>(self) -> Result<f64, E> {
        Ok(0.0)
    }
}
