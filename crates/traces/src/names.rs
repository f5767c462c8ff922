//! Names of spans that were read: each is kept once.

use std::collections::HashSet;
use std::sync::Arc;

use super::Name;

/// Names that are shared. What comes in from outside is bounded.
#[derive(Debug, Default)]
pub struct Names(HashSet<Name>);

/// Most names that are shared; further ones are kept with their spans.
const MOST: usize = 65_536;

/// Most bytes of a name; the rest is cut off.
pub const NAME_BYTES: usize = 256;

impl Names {
    /// The shared form of a name.
    pub fn share(&mut self, name: &str) -> Name {
        let name = cut(name);
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let name: Name = name.into();
        if self.0.len() < MOST {
            self.0.insert(Arc::clone(&name));
        }
        name
    }
}

/// As much of a name as is kept.
pub fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}
