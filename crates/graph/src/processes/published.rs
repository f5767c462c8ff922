//! An address of this machine's that leads to the entry, which has a network of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Most connections at a time; the next ones wait to be accepted. Each takes two descriptors.
const MOST_CONNECTIONS: usize = 4_096;
/// How long the entry may take to accept one.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long nothing is accepted when the kernel refuses, for instance for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Whoever connects to it is led to the entry. Dropping it ends all of its connections.
#[derive(Debug)]
pub struct Published(JoinHandle<()>);

impl Published {
    /// Leads what is accepted to an address, in the runtime of the caller.
    pub fn start(listener: TcpListener, entry: SocketAddr) -> Self {
        Self(tokio::spawn(serve(listener, entry)))
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(listener: TcpListener, entry: SocketAddr) {
    let free = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    // They end with this.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok(permit) = Arc::clone(&free).acquire_owned().await {
        while connections.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        connections.spawn(async move {
            lead(client, entry).await;
            drop(permit);
        });
    }
}

/// Carries the bytes of both until both have ended, or either breaks off. A client whose entry
/// cannot be reached sees its connection closed, as it does where nobody stands between.
async fn lead(mut client: TcpStream, entry: SocketAddr) {
    let connect = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(entry));
    let Ok(Ok(mut server)) = connect.await else {
        return;
    };
    // Refused only by sockets that are closed already.
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn bound() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test]
    async fn what_is_sent_to_it_reaches_the_entry_and_back() {
        let (entry, to) = bound().await;
        let (listener, address) = bound().await;
        let published = Published::start(listener, to);
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut server, _) = entry.accept().await.unwrap();
        client.write_all(b"ask").await.unwrap();
        client.shutdown().await.unwrap();
        let mut asked = Vec::new();
        server.read_to_end(&mut asked).await.unwrap();
        // The half that is open still carries the answer.
        server.write_all(b"answer").await.unwrap();
        drop(server);
        let mut answered = Vec::new();
        client.read_to_end(&mut answered).await.unwrap();
        assert_eq!((&asked[..], &answered[..]), (&b"ask"[..], &b"answer"[..]));
        // Its connections end with it.
        let mut other = TcpStream::connect(address).await.unwrap();
        let _server = entry.accept().await.unwrap();
        drop(published);
        let ended = other.read(&mut [0]).await;
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }

    #[tokio::test]
    async fn a_client_of_an_entry_that_is_gone_is_let_go() {
        let (entry, to) = bound().await;
        drop(entry);
        let (listener, address) = bound().await;
        let _published = Published::start(listener, to);
        for _ in 0..3 {
            let mut client = TcpStream::connect(address).await.unwrap();
            let ended = client.read(&mut [0]).await;
            assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
        }
    }
}
