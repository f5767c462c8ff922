//! Networks of their own for containers, joined on this machine.

use std::collections::HashMap;
use std::sync::Mutex;

use super::super::super::settings::Error;
use super::super::Network;
use crate::mutex::lock;

/// As many networks as there may be containers, made at the start.
pub(super) struct Networks {
    made: processes::Network,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    free: Vec<usize>,
    by_name: HashMap<String, usize>,
}

impl Networks {
    /// Makes so many.
    pub(super) fn make(count: usize) -> Result<Self, Error> {
        let made = processes::Network::make(std::process::id(), count)?;
        made.route_out()?;
        let held = Held {
            free: (0..count).rev().collect(),
            ..Held::default()
        };
        Ok(Self {
            made,
            held: Mutex::new(held),
        })
    }

    /// One for this container, if one is left.
    pub(super) fn take(&self, name: &str) -> Network {
        let mut held = lock(&self.held);
        match held.free.pop() {
            None => Network::NoneLeft,
            Some(number) => {
                held.by_name.insert(name.to_owned(), number);
                Network::Own {
                    address: self.made.address(number).to_string(),
                    namespace: self.made.namespace(number),
                }
            }
        }
    }

    /// The container has no more use for it.
    pub(super) fn give_back(&self, name: &str) {
        let mut held = lock(&self.held);
        if let Some(number) = held.by_name.remove(name) {
            held.free.push(number);
        }
    }
}
