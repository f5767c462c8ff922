//! Numbers for texts that come again and again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Gives every text a number, counted from 0, up to a limit.
#[derive(Debug)]
pub(crate) struct Interner {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    limit: usize,
}

impl Interner {
    /// Room for `limit` texts, at most `u32::MAX`.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            numbers: HashMap::new(),
            texts: Vec::new(),
            limit: limit.min(u32::MAX as usize),
        }
    }

    /// The number of this text, as it is [`shown`]. `None`: the text is new and there is no room.
    pub(crate) fn number(&mut self, text: &[u8]) -> Option<u32> {
        let text = shown(text);
        if let Some(number) = self.numbers.get(&*text) {
            return Some(*number);
        }
        if self.texts.len() >= self.limit {
            return None;
        }
        let number = self.texts.len() as u32;
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        Some(number)
    }

    pub(crate) fn text(&self, number: u32) -> &Arc<str> {
        &self.texts[number as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// A text of a log as it is shown: a byte that is no UTF-8 is written out, as `\xff`, so that
/// texts which differ in one stay two.
pub(crate) fn shown(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for chunk in text.utf8_chunks() {
        shown += chunk.valid();
        for byte in chunk.invalid() {
            shown += &format!("\\x{byte:02x}");
        }
    }
    Cow::Owned(shown)
}
