//! What one directive asks of a node, once its texts are expanded. Nodes for which they expand
//! to the same share one content.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::compile::{Compiled, Form, TextRef};
use super::digest::{Digest, Digester};
use super::template::{Context, ExpandError, NodeContext};

/// Most bytes that the texts of one directive expand to on a node.
pub const CONTENT_BYTES: usize = 64 << 20;

/// A directive with its texts expanded.
#[derive(Debug)]
pub struct Content {
    /// What is the same on all nodes.
    pub compiled: Arc<Compiled>,
    /// The expanded texts, one after the other.
    texts: Box<str>,
    /// Where each of them ends.
    ends: Box<[u32]>,
    /// Hash of all of it.
    pub digest: Digest,
}

/// A text that has no value on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentError {
    /// The variable.
    pub variable: Arc<str>,
    /// Why.
    pub cause: ContentErrorCause,
}

/// Why a text has no value on a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentErrorCause {
    /// A variable in it has none.
    #[error(transparent)]
    Expand(#[from] ExpandError),
    /// It is not what the variable accepts.
    #[error("the expanded value is not accepted: {0}")]
    NotAccepted(String),
    /// All together are too long.
    #[error("the directive's texts expand to more than {CONTENT_BYTES} bytes")]
    Size,
}

impl Content {
    /// Expands the texts of a directive on a node; `buffer` is scratch space.
    ///
    /// # Errors
    /// The first text that has no value.
    pub fn expand(
        compiled: &Arc<Compiled>,
        node: NodeContext<'_>,
        buffer: &mut String,
    ) -> Result<Self, ContentError> {
        buffer.clear();
        let steps = Cell::new(0);
        let context = Context::new(node, &steps);
        let mut ends = Vec::with_capacity(compiled.expanded.len());
        for (template, variable) in &compiled.expanded {
            let wrong = |cause| ContentError {
                variable: Arc::clone(variable),
                cause,
            };
            context
                .expand(template, buffer)
                .map_err(|error| wrong(error.into()))?;
            if buffer.len() > CONTENT_BYTES {
                return Err(wrong(ContentErrorCause::Size));
            }
            ends.push(buffer.len() as u32);
        }
        let mut hash = Digester::new("content");
        hash.digest(&compiled.digest);
        ends.iter().for_each(|&end| hash.number(end.into()));
        hash.text(buffer);
        let content = Self {
            compiled: Arc::clone(compiled),
            texts: buffer.as_str().into(),
            ends: ends.into(),
            digest: hash.finish(),
        };
        for (slot, constraint) in &compiled.checks {
            if let Err(message) = constraint.check(content.expanded(*slot)) {
                let variable = compiled.expanded.get(*slot as usize);
                return Err(ContentError {
                    variable: variable.map_or("".into(), |(_, name)| Arc::clone(name)),
                    cause: ContentErrorCause::NotAccepted(message),
                });
            }
        }
        Ok(content)
    }

    fn expanded(&self, slot: u32) -> &str {
        let slot = slot as usize;
        let end = |slot: usize| self.ends.get(slot).map_or(0, |&end| end as usize);
        let start = slot.checked_sub(1).map_or(0, end);
        self.texts.get(start..end(slot)).unwrap_or_default()
    }

    /// The value of a text.
    pub fn text(&self, at: TextRef) -> &str {
        match self.compiled.texts.get(at as usize).map(|text| &text.form) {
            Some(Form::Constant(text)) => text,
            Some(Form::Expanded(slot)) => self.expanded(*slot),
            None => "",
        }
    }

    /// A text as the directive writes it.
    pub fn source(&self, at: TextRef) -> &str {
        let text = self.compiled.texts.get(at as usize);
        text.map_or("", |text| &text.source)
    }

    /// Bytes that it keeps for itself.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.texts.len() + self.ends.len() * size_of::<u32>()
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// Parts of the table of contents, so that threads seldom wait for each other.
const SHARDS: usize = 16;

#[derive(Debug, Default)]
struct Shard {
    known: HashMap<Digest, Weak<Content>>,
    /// Contents in use after it was last swept.
    settled: usize,
}

/// All contents in use, by their hash.
#[derive(Debug, Default)]
pub struct Contents {
    shards: [Mutex<Shard>; SHARDS],
}

impl Contents {
    /// The content that is kept for this one: itself, or an equal one.
    pub fn share(&self, content: Content) -> Arc<Content> {
        let shard = usize::from(content.digest[0]) % SHARDS;
        let mut shard = self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shard.known.get(&content.digest).and_then(Weak::upgrade) {
            return known;
        }
        let content = Arc::new(content);
        shard.known.insert(content.digest, Arc::downgrade(&content));
        if shard.known.len() > 2 * shard.settled + 1_024 {
            shard.known.retain(|_, content| content.strong_count() > 0);
            shard.settled = shard.known.len();
        }
        content
    }
}
