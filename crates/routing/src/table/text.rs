//! Texts that many endpoints share.

use std::ops::Deref;
use std::sync::Arc;

use stats::fnv1a;

/// A short immutable text: one pointer wide, shared when cloned, and free when empty.
pub type Text = arcstr::ArcStr;

/// Tags of an endpoint, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(Arc<Vec<(Text, Text)>>);

impl Deref for Tags {
    type Target = [(Text, Text)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<(Text, Text)> for Tags {
    fn from_iter<I: IntoIterator<Item = (Text, Text)>>(tags: I) -> Self {
        let mut tags: Vec<_> = tags.into_iter().collect();
        tags.sort_by(|one, other| one.0.cmp(&other.0));
        tags.shrink_to_fit();
        Self(Arc::new(tags))
    }
}

/// Texts that were stored lately, so that the same text is stored once: the zone of many
/// endpoints, the application of all routes of one message. A text that comes late is
/// stored again, which costs memory only; in return the cache is bounded and needs no
/// sweeping.
#[derive(Debug)]
pub(super) struct TextCache {
    texts: Box<[Text]>,
    tags: Tags,
}

impl TextCache {
    /// A power of two.
    const TEXTS: usize = 16 * 1024;
    /// Longer texts are not kept, so that what the cache holds is bounded too.
    const LONGEST: usize = 256;

    /// A text of its own, or the stored one.
    pub(super) fn text(&mut self, text: &str) -> Text {
        if text.is_empty() {
            return Text::new();
        }
        if text.len() > Self::LONGEST {
            return Text::from(text);
        }
        let slot = &mut self.texts[fnv1a(0, text.bytes()) as usize % Self::TEXTS];
        if slot.as_str() != text {
            *slot = Text::from(text);
        }
        slot.clone()
    }

    /// Tags of their own, or those of the endpoint before.
    pub(super) fn tags<S: AsRef<str>>(&mut self, tags: &[(S, S)]) -> Tags {
        if !alike(&self.tags, tags) {
            let stored: Vec<_> = tags
                .iter()
                .map(|(name, value)| (self.text(name.as_ref()), self.text(value.as_ref())))
                .collect();
            self.tags = stored.into_iter().collect();
        }
        self.tags.clone()
    }
}

impl Default for TextCache {
    fn default() -> Self {
        Self {
            texts: vec![Text::new(); Self::TEXTS].into(),
            tags: Tags::default(),
        }
    }
}

/// Whether both have the same tags in the same order.
pub(super) fn alike<S: AsRef<str>>(stored: &[(Text, Text)], tags: &[(S, S)]) -> bool {
    stored.len() == tags.len()
        && stored.iter().zip(tags).all(|(stored, tag)| {
            stored.0.as_str() == tag.0.as_ref() && stored.1.as_str() == tag.1.as_ref()
        })
}
