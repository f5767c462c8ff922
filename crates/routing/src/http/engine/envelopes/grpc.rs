//! Envelopes of the second protocol, in a stream of gRPC over mutual TLS
//! (`/loggregator.v2.Ingress/BatchSender`), as loggregator's agents take them.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use h2::SendStream;
use h2::client::ResponseFuture;
use http::{Method, Request};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::{PATIENCE, PAUSE, Queue, messages};
use crate::http::counters::ThreadCounters;
use crate::http::engine::batches::FAREWELL;

/// Envelopes in a message, as the platform's own clients send them.
const MOST: usize = 100;

/// What ends a stream: the next one may do better. Its cause is told by the count of drops.
struct Broken;

impl<E: std::error::Error> From<E> for Broken {
    fn from(_: E) -> Self {
        Self
    }
}

pub(super) struct Agent {
    address: String,
    server_name: String,
    tls: TlsConnector,
    counters: Arc<ThreadCounters>,
    /// Until then envelopes are dropped: something failed.
    pause_ends: Option<Instant>,
}

/// An open stream. The connection goes with it.
struct Stream {
    messages: SendStream<Bytes>,
    answer: ResponseFuture,
    connection: JoinHandle<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Agent {
    pub(super) fn new(
        address: String,
        server_name: String,
        tls: Arc<ClientConfig>,
        counters: Arc<ThreadCounters>,
    ) -> Self {
        let mut tls = ClientConfig::clone(&tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Self {
            address,
            server_name,
            tls: TlsConnector::from(Arc::new(tls)),
            counters,
            pause_ends: None,
        }
    }

    pub(super) async fn run(mut self, mut queue: Queue) {
        let mut stream = None;
        while let Some(bytes) = queue.waiting.recv().await {
            for (count, message) in messages(&bytes, MOST) {
                match self.send(&mut stream, message).await {
                    true => self.counters.envelopes.add(count),
                    false => self.counters.envelope_drops.add(count),
                }
            }
            queue.emptied(bytes);
        }
        if let Some(stream) = stream {
            stream.end().await;
        }
    }

    /// Whether the stream took it.
    async fn send(&mut self, stream: &mut Option<Stream>, message: Bytes) -> bool {
        // An agent that has answered takes nothing more: it refuses, or goes away.
        if let Some(open) = stream
            && open.is_over().await
        {
            *stream = None;
        }
        if stream.is_none() {
            if self.pause_ends.is_some_and(|ends| Instant::now() < ends) {
                return false;
            }
            *stream = timeout(PATIENCE, self.open())
                .await
                .ok()
                .and_then(Result::ok);
        }
        let sent = match stream {
            Some(open) => timeout(PATIENCE, open.send(message)).await,
            None => Ok(Err(Broken)),
        };
        let sent = matches!(sent, Ok(Ok(())));
        if !sent {
            *stream = None;
            self.pause_ends = Some(Instant::now() + PAUSE);
        }
        sent
    }

    async fn open(&self) -> Result<Stream, Broken> {
        let socket = TcpStream::connect(&self.address).await?;
        let _ = socket.set_nodelay(true);
        let name = ServerName::try_from(self.server_name.clone())?;
        let tls = self.tls.connect(name, socket).await?;
        let (client, connection) = h2::client::handshake(tls).await?;
        let connection = tokio::spawn(async move {
            // What ends it reaches the stream as well.
            let _ = connection.await;
        });
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!(
                "https://{}/loggregator.v2.Ingress/BatchSender",
                self.server_name
            ))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let (answer, messages) = client.ready().await?.send_request(request, false)?;
        Ok(Stream {
            messages,
            answer,
            connection,
        })
    }
}

impl Stream {
    /// Whether the agent has ended it, or its connection is gone.
    async fn is_over(&mut self) -> bool {
        let answer = &mut self.answer;
        // Looks once, and does not wait.
        let answered = poll_fn(|context| {
            let poll = std::pin::Pin::new(&mut *answer).poll(context);
            std::task::Poll::Ready(poll)
        })
        .await;
        match answered {
            std::task::Poll::Pending => self.connection.is_finished(),
            std::task::Poll::Ready(_) => true,
        }
    }

    /// Sends a message as the agent makes room for it.
    async fn send(&mut self, mut message: Bytes) -> Result<(), Broken> {
        while !message.is_empty() {
            self.messages.reserve_capacity(message.len());
            let room = poll_fn(|context| self.messages.poll_capacity(context)).await;
            let room = room.ok_or(Broken)??;
            let part = message.split_to(room.min(message.len()));
            self.messages.send_data(part, false)?;
        }
        Ok(())
    }

    /// Ends it, so that what was sent arrives.
    async fn end(mut self) {
        if self.messages.send_data(Bytes::new(), true).is_ok() {
            // The agent answers when it has read everything; whatever it says then.
            let _ = timeout(FAREWELL, &mut self.answer).await;
        }
    }
}
