//! A connection while it lasts: one reads, one writes, one asks whether the server lives.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot;

use super::Shared;
use super::dial::{self, Connection};
use super::error::DialError;
use super::subscription::Entry;
use crate::codec::{Frame, encode};

/// Room that a read finds at least. What a burst brings is read, queued and handed over
/// in pieces of up to this size.
const READ_BYTES: usize = 256 * 1024;

/// A new block is made when a read would find less room than this.
const LEAST_READ_BYTES: usize = 16 * 1024;

/// A writer's buffer above this size is not kept.
const KEPT_BYTES: usize = 1024 * 1024;

/// Longest wait for the end of a connection's writing side.
const SHUTDOWN: Duration = Duration::from_millis(500);

/// PINGs that wait for their PONG, in order; some are those of a flush.
#[derive(Default)]
pub(super) struct Pings(Mutex<VecDeque<Option<oneshot::Sender<()>>>>);

impl Pings {
    /// Notes a PING that `send` sends; nothing comes between both.
    pub(super) fn sent<E>(
        &self,
        flush: Option<oneshot::Sender<()>>,
        send: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut pings = self.lock();
        send()?;
        pings.push_back(flush);
        Ok(())
    }

    fn answered(&self) {
        if let Some(Some(flush)) = self.lock().pop_front() {
            // Nobody may be waiting any more.
            let _ = flush.send(());
        }
    }

    /// PINGs without an answer that nobody's flush sent.
    fn missing(&self) -> usize {
        self.lock().iter().filter(|flush| flush.is_none()).count()
    }

    /// The connection is gone, as those learn who wait for a flush; `unsend` forgets PINGs
    /// that were not sent yet.
    pub(super) fn forget(&self, unsend: impl FnOnce()) {
        let mut pings = self.lock();
        unsend();
        pings.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Option<oneshot::Sender<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves a connection until it ends, and says why. Ends without a reason when the client
/// is closed and everything was sent.
pub(super) async fn serve(shared: &Shared, connection: Connection) -> Option<DialError> {
    let Connection { stream, unread, .. } = connection;
    let (read, mut write) = tokio::io::split(stream);
    let end = tokio::select! {
        error = receive(shared, read, unread) => error,
        end = send(shared, &mut write) => end,
        error = keep_alive(shared) => error,
        () = give_up(shared) => None,
    };
    // A farewell of TLS needs room in the socket, which a stuck server does not make.
    let _ = tokio::time::timeout(SHUTDOWN, write.shutdown()).await;
    end
}

async fn receive(
    shared: &Shared,
    mut stream: impl AsyncRead + Unpin,
    mut unread: BytesMut,
) -> Option<DialError> {
    let mut scanner = dial::scanner(&shared.config);
    let mut found: Vec<(u64, Entry)> = Vec::new();
    loop {
        let mut consumed = 0;
        loop {
            let rest = &unread[consumed..];
            match scanner.scan(rest) {
                Ok(None) => break,
                Err(error) => return Some(error.into()),
                Ok(Some(scanned)) => {
                    if let Some(error) = take(shared, &unread, scanned.frame, &mut found) {
                        return Some(error);
                    }
                    consumed += scanned.consumed;
                }
            }
        }
        if consumed > 0 {
            let bytes = unread.split_to(consumed).freeze();
            deliver(shared, &bytes, &mut found);
        }
        let room = unread.capacity() - unread.len();
        if room < LEAST_READ_BYTES || scanner.needed() > unread.capacity() {
            let rest = scanner.needed().saturating_sub(unread.len());
            unread.reserve(rest.max(READ_BYTES));
        }
        match stream.read_buf(&mut unread).await {
            Ok(0) => return Some(DialError::Closed),
            Ok(_) => {}
            Err(error) => return Some(error.into()),
        }
    }
}

/// Notes a message, or does what another frame asks for.
fn take(
    shared: &Shared,
    buffer: &[u8],
    frame: Frame<'_>,
    found: &mut Vec<(u64, Entry)>,
) -> Option<DialError> {
    match frame {
        Frame::Msg { sid, message } => {
            // A sid that is none of ours belongs to nobody.
            if let Some(sid) = crate::codec::line::number(sid) {
                found.push((sid, Entry::new(buffer, &message)));
            }
        }
        Frame::Ping => return shared.outbox.add_liveness(encode::PONG).err(),
        Frame::Pong => shared.pings.answered(),
        Frame::Err(text) => shared.server_error(text),
        Frame::Info(_) | Frame::Ok => {}
        Frame::Connect(_) => return Some(DialError::Greeting("CONNECT")),
        Frame::Pub(_) => return Some(DialError::Greeting("PUB")),
        Frame::Sub { .. } | Frame::Unsub { .. } => return Some(DialError::Greeting("SUB")),
    }
    None
}

/// Hands messages over, those of one subscription in a row as one batch.
fn deliver(shared: &Shared, bytes: &bytes::Bytes, found: &mut Vec<(u64, Entry)>) {
    for run in found.chunk_by(|(one, _), (other, _)| one == other) {
        if let Some(queue) = run.first().and_then(|(sid, _)| shared.queue(*sid)) {
            queue.push(bytes.clone(), run.iter().map(|(_, entry)| *entry).collect());
        }
    }
    found.clear();
}

async fn send(shared: &Shared, stream: &mut (impl AsyncWrite + Unpin)) -> Option<DialError> {
    let mut bytes = BytesMut::new();
    encode_subscriptions(shared, &mut bytes);
    if let Err(error) = write(stream, &bytes).await {
        return Some(error.into());
    }
    loop {
        tokio::select! {
            biased;
            () = shared.outbox.take(&mut bytes) => {}
            () = shared.closed() => return None,
        }
        if let Err(error) = write(stream, &bytes).await {
            return Some(error.into());
        }
        if bytes.capacity() > KEPT_BYTES {
            bytes = BytesMut::new();
        }
    }
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

fn encode_subscriptions(shared: &Shared, out: &mut BytesMut) {
    for (sid, queue) in shared.queues().iter() {
        encode::subscribe(out, queue.subject.as_bytes(), queue.group.as_bytes(), *sid);
    }
}

/// Ends some time after the client was closed, whether or not the server took what waits.
async fn give_up(shared: &Shared) {
    shared.closed().await;
    tokio::time::sleep(shared.config.connect_timeout).await;
}

/// Breaks silence, and ends when nobody answers.
async fn keep_alive(shared: &Shared) -> Option<DialError> {
    loop {
        tokio::time::sleep(shared.config.ping_interval).await;
        if shared.pings.missing() >= 2 {
            return Some(DialError::Silent);
        }
        if let Err(error) = shared.ping(None) {
            return Some(error);
        }
    }
}
