//! What the laboratory and its drivers say to each other, one JSON object a line; see
//! `docs/drivers.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Version of the protocol.
pub(super) const PROTOCOL: u32 = 1;

/// Different texts of refusals that are told of one make.
const TEXTS: usize = 10;

/// What we are asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Request {
    Hello(Hello),
    Make(Make),
    Close,
}

/// The greeting.
#[derive(Debug, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) seed: u64,
    /// Address of the BBS.
    pub(super) talk_to: Option<String>,
    /// Most requests that a make has under way.
    #[serde(default = "usual_in_flight")]
    pub(super) in_flight: u32,
    /// Files for an `https` address.
    pub(super) tls: Option<TlsFiles>,
    /// Address of this machine at which the BBS can reach us; loopback without it.
    pub(super) reach_at: Option<IpAddr>,
}

const fn usual_in_flight() -> u32 {
    100
}

/// PEM files of mutual TLS.
#[derive(Debug, Deserialize)]
pub(super) struct TlsFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) authority: PathBuf,
}

/// Entities to bring about.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Make {
    pub(super) id: u64,
    pub(super) what: String,
    pub(super) count: u64,
    /// Requests a second; `None`: as fast as `in_flight` lets them.
    pub(super) rate: Option<f64>,
    pub(super) in_flight: u32,
    #[serde(rename = "as")]
    pub(super) shape: Option<String>,
    #[serde(default)]
    pub(super) options: BTreeMap<String, String>,
}

/// What we say.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Line<'a> {
    Greeted {
        ok: bool,
        entities: BTreeMap<&'static str, &'static [&'static str]>,
    },
    Refused {
        ok: bool,
        error: &'a str,
    },
    Made {
        id: u64,
        done: bool,
        made: u64,
        failed: u64,
        errors: &'a BTreeMap<String, u64>,
    },
    CannotMake {
        id: u64,
        error: &'a str,
    },
    Counts {
        counts: &'a Counts,
    },
    /// Nothing can be made or counted any more.
    Lost {
        error: &'a str,
    },
}

/// How many entities are in which state, by kind and state; `None`: unknown at the moment.
pub(super) type Counts = BTreeMap<&'static str, BTreeMap<&'static str, Option<u64>>>;

/// What became of a make: every request was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MakeOutcome {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// What was said, and how often; further texts are counted in `refused` alone.
    pub(super) errors: BTreeMap<String, u64>,
}

impl MakeOutcome {
    pub(super) fn accept(&mut self) {
        self.accepted += 1;
    }

    pub(super) fn refuse(&mut self, error: impl fmt::Display) {
        self.refused += 1;
        let text = error.to_string();
        if let Some(count) = self.errors.get_mut(&text) {
            *count += 1;
        } else if self.errors.len() < TEXTS {
            self.errors.insert(text, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_keep_their_texts_within_bounds() {
        let mut made = MakeOutcome::default();
        made.accept();
        made.refuse("full");
        made.refuse("full");
        assert_eq!(made.errors["full"], 2);
        (0..20).for_each(|n| made.refuse(format!("text {n:02}")));
        assert_eq!((made.errors.len(), made.refused), (10, 22));
    }
}
