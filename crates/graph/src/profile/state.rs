//! The profile in force, and the last one that was refused.

use std::sync::Mutex;

use document::Source;
use serde::Serialize;

use crate::lock;

/// A profile that was not put in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// What is wrong with it, with its places.
    pub error: String,
    /// When it was refused, in seconds since 1970.
    pub unix_s: u64,
}

/// The text of the profile in force, and what became of others.
#[derive(Debug)]
pub struct Profile(Mutex<State>);

#[derive(Debug)]
struct State {
    source: Source,
    /// Since the last that was taken.
    refusal: Option<Refusal>,
    refused: u64,
}

impl Profile {
    /// The first one, which is in force.
    pub fn new(source: Source) -> Self {
        Self(Mutex::new(State {
            source,
            refusal: None,
            refused: 0,
        }))
    }

    /// Another one is in force.
    pub fn taken(&self, source: Source) {
        let mut state = lock(&self.0);
        state.source = source;
        state.refusal = None;
    }

    /// Another one was refused at a time, in seconds since 1970.
    pub fn refused(&self, error: String, unix_s: u64) {
        let mut state = lock(&self.0);
        state.refusal = Some(Refusal { error, unix_s });
        state.refused += 1;
    }

    /// The one in force.
    pub fn source(&self) -> Source {
        lock(&self.0).source.clone()
    }

    /// The last refusal, if nothing was taken since.
    pub fn refusal(&self) -> Option<Refusal> {
        lock(&self.0).refusal.clone()
    }

    /// How many were refused since the start.
    pub fn refusals(&self) -> u64 {
        lock(&self.0).refused
    }
}
