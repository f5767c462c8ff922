//! Load from several machines: a coordinator and its workers, joined over NATS.
//!
//! [`Remote`] is the coordinator's end: a generator like any other. [`serve`] is what a
//! worker does. `docs/workers.md` says how they are used; this is how they talk.
//!
//! **Meeting.** A worker repeats a hello (name, version, cores) on
//! `headroom.load.SESSION.hello` until the coordinator answers on
//! `headroom.load.SESSION.worker.ID`, the id being the worker's own random number:
//! welcome, with the run's random token and the length of silence that means loss, or
//! refused, and why (another version; all are there). From then on the worker speaks on
//! `headroom.load.SESSION.run.TOKEN` only, so that two runs with one session's name, or
//! what is left of an older one, cannot be taken for each other.
//!
//! **Requests.** NATS delivers at most once. So each end ([`connection`]) numbers its
//! requests, has one under way, and sends it again until the reply acknowledges it; the
//! other end takes each number once. A message that the server would not take in one
//! piece goes as several requests. Every queue has a bound: 64 MiB may wait to be sent;
//! a worker beyond that is lost.
//!
//! **Heartbeats and clocks.** An end with nothing to say sends an empty request every
//! quarter of a second. The reply to any request says when it came, so each is also an
//! exchange of times; the coordinator takes a clock's offset from the fastest of the last
//! 128. A run begins at one moment, told to each worker in its own time.
//!
//! **A run.** Arrival `k` belongs to thread `k mod n` of all `n`; each worker knows its
//! threads' numbers and thins the same schedule. It sends each second's span, and the
//! total at the end; histograms are added exactly. Reports of another run than the
//! current one are dropped.
//!
//! **Losses.** A worker that is silent too long is lost for good: what it had sent
//! counts, its name stands in the result, and the run is INVALID. A worker that hears
//! nothing from its coordinator for as long stops its load.
//!
//! **Trust.** Whoever may publish on these subjects may start load: give the session's
//! subjects (`headroom.load.>`) to those only who should. The workload, with the own
//! private key if there is one, crosses NATS: use TLS where that matters.

mod connection;
mod coordinator;
mod driver;
mod message;
mod nats;
mod offset;
mod remote;
mod run;
mod serve;
mod share;
#[cfg(test)]
mod tests;
mod worker;

use lab_load::GenerateError;

pub use nats::Nats;
pub use offset::Offset;
pub use remote::{Remote, Settings, WorkerFacts};
pub use serve::{ServeSettings, serve};

/// Both sides must be built from the same version: what they tell each other is no
/// public format.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A session's name is a part of NATS subjects, where dots and stars mean something.
fn check_session(session: &str) -> Result<(), GenerateError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=64).contains(&session.len()) && session.bytes().all(plain) {
        return Ok(());
    }
    let error = GenerateError::new("read the session's name", format!("{session:?}"));
    Err(error.help("use 1 to 64 letters, digits, - or _"))
}
