//! What a person asks of a BBS, of its cells and of a Locket: the calls behind the commands that
//! cfdot has, with its texts and its kinds of failure.
//!
//! A [`Caller`] asks a BBS, and the reps that it knows; a [`LocketCaller`] asks a Locket. Lists come
//! as [`Rows`], undecoded, and are printed a line each. Every call is sent once and bounded in time.

mod access;
mod events;
mod failure;
mod lists;
mod locks;
mod orders;
mod spec;
mod states;

pub use access::{BbsAccess, Identity, LocketAccess, Trust};
pub use failure::Failure;
pub use lists::Rows;
pub use locks::{Kind, LocketCaller};
pub use spec::Spec;

pub use diego::models::{ActualLrPsRequest, ActualLrpGroupsRequest, TasksRequest};

use std::io;
use std::time::Duration;

use bytes::Bytes;
use diego::Bbs;
use diego::models::Error;
use net::Client;
use prost::Message;

/// A place for lines; an error ends what is written.
pub type Lines<'a> = &'a mut (dyn FnMut(&str) -> io::Result<()> + Send);

fn write(line: &str, lines: Lines<'_>) -> Result<(), Failure> {
    lines(line).map_err(|error| Failure::Other(format!("write a line: {error}")))
}

/// Asks a BBS.
pub struct Caller {
    bbs: Bbs,
    client: Client,
    /// What its requests are known by in events and logs.
    trace: String,
    within: Duration,
}

/// Any answer of the BBS: its error, and its record or records without looking into them. All of
/// them have both under these numbers.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "1")]
    error: Option<Error>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    rows: Vec<Bytes>,
}

impl diego::Failed for Answer {
    fn failed(&mut self) -> Option<Error> {
        self.error.take()
    }
}

impl Caller {
    /// Sends a request and takes what comes back.
    async fn rows(&self, path: &str, request: &impl Message) -> Result<Vec<Bytes>, Failure> {
        let answer = self.bbs.call_traced::<Answer>(path, request, &self.trace);
        Ok(answer.await?.rows)
    }
}
