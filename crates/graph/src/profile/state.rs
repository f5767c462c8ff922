//! The profile in force, and the last one that was refused.

use std::sync::{Mutex, MutexGuard, PoisonError};

use document::Source;
use serde::Serialize;

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
        let mut state = self.lock();
        state.source = source;
        state.refusal = None;
    }

    /// Another one was refused at a time, in seconds since 1970.
    pub fn refused(&self, error: String, unix_s: u64) {
        let mut state = self.lock();
        state.refusal = Some(Refusal { error, unix_s });
        state.refused += 1;
    }

    /// The one in force.
    pub fn source(&self) -> Source {
        self.lock().source.clone()
    }

    /// The last refusal, if nothing was taken since.
    pub fn refusal(&self) -> Option<Refusal> {
        self.lock().refusal.clone()
    }

    /// How many were refused since the start.
    pub fn refusals(&self) -> u64 {
        self.lock().refused
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
