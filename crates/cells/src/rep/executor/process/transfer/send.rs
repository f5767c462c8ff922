//! Sending a file over HTTP.

use std::io;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Method, Request};
use md5::Md5;
use net::{Body, Client, ClientError};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::timeout;
use url::Url;

use super::begin;

/// Longest time for one attempt.
const WITHIN: Duration = Duration::from_secs(15 * 60);
/// How often a file is sent.
const ATTEMPTS: usize = 3;
/// Bytes that are read at once, and how many such pieces wait for the network.
const PIECE_BYTES: usize = 64 * 1024;
const PIECES: usize = 4;

/// Why a file was not taken.
#[derive(Debug, thiserror::Error)]
pub(in crate::rep::executor::process) enum SendError {
    /// The address cannot be used.
    #[error("the address cannot be used: {0}")]
    Address(#[from] http::Error),
    /// The server cannot be reached, or broke off.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// It took too long.
    #[error("the server did not take it within {WITHIN:?}")]
    TooSlow,
    /// The server did not want it.
    #[error("Upload failed: Status code {0}")]
    Status(u16),
    /// The file cannot be read, or has changed meanwhile.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Posts the file to `url`, three times at most, and returns its length.
pub(super) async fn send(client: &Client, file: &Path, url: &Url) -> Result<u64, SendError> {
    let sums = sums(file).await?;
    let mut attempt = 1;
    loop {
        let sent = timeout(WITHIN, once(client, file, &sums, url)).await;
        match sent.unwrap_or(Err(SendError::TooSlow)) {
            Err(SendError::Client(_) | SendError::TooSlow | SendError::Status(_))
                if attempt < ATTEMPTS =>
            {
                attempt += 1;
            }
            sent => return sent.map(|()| sums.bytes),
        }
    }
}

struct Sums {
    bytes: u64,
    md5: String,
    sha256: String,
}

async fn sums(path: &Path) -> io::Result<Sums> {
    let mut file = tokio::fs::File::open(path).await?;
    let (mut md5, mut sha256) = (Md5::new(), Sha256::new());
    let (mut bytes, mut buffer) = (0, vec![0; PIECE_BYTES]);
    loop {
        let read = file.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        md5.update(&buffer[..read]);
        sha256.update(&buffer[..read]);
    }
    Ok(Sums {
        bytes,
        md5: BASE64_STANDARD.encode(md5.finalize()),
        sha256: BASE64_STANDARD.encode(sha256.finalize()),
    })
}

async fn once(client: &Client, path: &Path, sums: &Sums, url: &Url) -> Result<(), SendError> {
    let mut file = tokio::fs::File::open(path).await?;
    let (sender, pieces) = mpsc::channel(PIECES);
    let mut left = sums.bytes;
    // Ends with the file, or when nobody takes its pieces any more.
    let reading = tokio::spawn(async move {
        while left > 0 {
            let mut piece = vec![0; PIECE_BYTES];
            let read = file.read(&mut piece).await?.min(left as usize);
            if read == 0 {
                break;
            }
            left -= read as u64;
            piece.truncate(read);
            if sender.send(Bytes::from(piece)).await.is_err() {
                break;
            }
        }
        io::Result::Ok(())
    });
    let answer = client.open(request(url, sums, net::stream(pieces))?).await;
    reading.abort();
    let status = answer?.status();
    match status.as_u16() {
        400.. => Err(SendError::Status(status.as_u16())),
        _ => Ok(()),
    }
}

fn request(url: &Url, sums: &Sums, body: Body) -> Result<Request<Body>, http::Error> {
    begin(Method::POST, url)
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_LENGTH, sums.bytes)
        .header("Content-MD5", &sums.md5)
        .header("Content-Digest", format!("sha-256=:{}:", sums.sha256))
        .body(body)
}
