//! Sends envelopes to loggregator's agent on this machine (or wherever it is).
//!
//! A thread of its own sends them, so that an agent that is slow or away holds up no request:
//! what finds its queue full, or comes while nobody takes it, is dropped and counted.

mod datagrams;
mod grpc;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::batches::{Batches, BufferPool, WAITING, finish};
use crate::http::counters::ThreadCounters;
use crate::http::settings::{EnvelopeSettings, EnvelopesTo};
use crate::peer_tls::{self, TlsPartError};

/// Longest wait for a connection, and for the agent to take something.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long envelopes are dropped after something failed, before the next connection.
const PAUSE: Duration = Duration::from_secs(1);

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum EnvelopesError {
    /// Certificates or the key are of no use.
    #[error(transparent)]
    Tls(#[from] TlsPartError),
    /// There is no thread left.
    #[error(transparent)]
    Thread(#[from] io::Error),
}

/// The thread that sends. Ends when all [`Batches`] are gone, after the last of them.
pub(super) struct EnvelopeSender {
    full: Sender<Vec<u8>>,
    spare: BufferPool,
    thread: JoinHandle<()>,
}

/// Says what of the settings [`EnvelopeSender::start`] would refuse.
pub(super) fn check(settings: &EnvelopeSettings) -> Result<(), TlsPartError> {
    match &settings.to {
        EnvelopesTo::Datagrams { .. } => Ok(()),
        EnvelopesTo::Agent { tls, .. } => peer_tls::client("envelopes", tls).map(drop),
    }
}

impl EnvelopeSender {
    pub(super) fn start(
        settings: &EnvelopeSettings,
        counters: Arc<ThreadCounters>,
    ) -> Result<Self, EnvelopesError> {
        let (full, waiting) = channel(WAITING);
        let spare = BufferPool::default();
        let queue = Queue {
            waiting,
            spare: spare.clone(),
        };
        let run: Box<dyn FnOnce() + Send> = match &settings.to {
            EnvelopesTo::Datagrams { address } => {
                let sender = datagrams::Datagrams::new(address.clone(), counters);
                Box::new(|| sender.run(queue))
            }
            EnvelopesTo::Agent {
                address,
                server_name,
                tls,
            } => {
                let tls = peer_tls::client("envelopes", tls)?;
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let agent = grpc::Agent::new(address.clone(), server_name.clone(), tls, counters);
                Box::new(move || runtime.block_on(agent.run(queue)))
            }
        };
        let thread = std::thread::Builder::new()
            .name("envelopes".to_owned())
            .spawn(run)?;
        Ok(Self {
            full,
            spare,
            thread,
        })
    }

    /// Where a thread gathers its envelopes.
    pub(super) fn batches(&self) -> Batches {
        Batches::new(self.full.clone(), self.spare.clone())
    }

    /// Waits for the last envelopes, as [`finish`]. All [`Batches`] must be gone.
    pub(super) fn finish(self) {
        drop(self.full);
        finish(vec![self.thread]);
    }
}

/// What waits to be sent.
struct Queue {
    waiting: Receiver<Vec<u8>>,
    spare: BufferPool,
}

impl Queue {
    /// Gives an emptied buffer to those who fill it.
    fn emptied(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.put(buffer);
    }
}

/// The envelopes that stand one behind another, each behind its length.
fn apart(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = prost::decode_length_delimiter(bytes).ok()?;
        let start = prost::length_delimiter_len(length);
        let envelope = bytes.get(start..start.checked_add(length)?)?;
        bytes = bytes.get(start + length..)?;
        Some(envelope)
    })
}

/// The same envelopes as messages of gRPC, none with more than `most` of them.
fn messages(bytes: &[u8], most: usize) -> Vec<(u64, Bytes)> {
    use crate::http::envelopes::{dropsonde, loggregator};
    let envelopes = apart(bytes).filter_map(|old| {
        let old = dropsonde::Envelope::decode(old).ok()?;
        loggregator::converted(old)
    });
    let envelopes: Vec<_> = envelopes.collect();
    envelopes
        .chunks(most)
        .map(|batch| {
            let count = batch.len() as u64;
            let batch = loggregator::EnvelopeBatch {
                batch: batch.to_vec(),
            };
            // Not compressed (0), and its length in four bytes.
            let length = batch.encoded_len();
            let mut message = Vec::with_capacity(length + 5);
            message.push(0);
            message.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
            batch.encode_raw(&mut message);
            (count, Bytes::from(message))
        })
        .collect()
}
