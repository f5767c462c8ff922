//! Fetching a file over HTTP.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ETAG, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use net::{Client, ClientError, Incoming};
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};
use url::Url;

use super::begin;
use super::cache::Version;
use super::checksum::{ChecksumError, Expected};

/// Longest silence of a server.
const IDLE: Duration = Duration::from_secs(10);
/// How often a file is asked for.
const ATTEMPTS: u32 = 4;
/// Pauses between these: twice as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often another address may be named.
const REDIRECTS: usize = 10;

/// Why a file did not come.
#[derive(Debug, thiserror::Error)]
pub(in crate::rep::executor::process) enum FetchError {
    /// Its address cannot be used.
    #[error("the address cannot be used: {0}")]
    Address(String),
    /// The server cannot be reached, or broke off.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The server broke off.
    #[error("{0}")]
    Broken(#[from] hyper::Error),
    /// The server said nothing for so long.
    #[error("the server was silent for {0:?}")]
    Silent(Duration),
    /// It named one address after the other.
    #[error("stopped after {REDIRECTS} redirects")]
    Redirects,
    /// It has no such file.
    #[error("Download failed: Status code {0}")]
    Status(u16),
    /// The file is larger than any may be.
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// It is another file.
    #[error("{0}")]
    Checksum(#[from] ChecksumError),
    /// It cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl FetchError {
    /// Could it be otherwise next time?
    fn may_pass(&self) -> bool {
        !matches!(
            self,
            Self::Checksum(_) | Self::Address(_) | Self::TooLarge(_) | Self::Io(_)
        )
    }
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// The file, which is so many bytes long.
    New { bytes: u64, version: Version },
    /// There is none but the one that is here.
    Unchanged,
}

/// Fetches the file at `url` to the path `to`, if it is another version than `known`. Tried
/// again while the server may get better.
pub(super) async fn fetch(
    client: &Client,
    url: &Url,
    known: &Version,
    expected: Option<&Expected>,
    bytes_max: u64,
    to: &Path,
) -> Result<Fetched, FetchError> {
    let mut pause = PAUSE_MIN;
    let mut attempt = 1;
    loop {
        let fetched = once(client, url, known, expected.cloned(), bytes_max, to).await;
        match fetched {
            Err(error) if error.may_pass() && attempt < ATTEMPTS => {
                attempt += 1;
                sleep(pause.mul_f64(rand::random_range(1.0..1.25))).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            fetched => return fetched,
        }
    }
}

async fn once(
    client: &Client,
    url: &Url,
    known: &Version,
    mut expected: Option<Expected>,
    bytes_max: u64,
    to: &Path,
) -> Result<Fetched, FetchError> {
    let answer = get(client, url.clone(), known).await?;
    match answer.status() {
        StatusCode::NOT_MODIFIED if known.has_validator() => return Ok(Fetched::Unchanged),
        StatusCode::OK => {}
        status => return Err(FetchError::Status(status.as_u16())),
    }
    let text = |headers: &HeaderMap, name| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let version = Version {
        etag: text(answer.headers(), ETAG),
        last_modified: text(answer.headers(), LAST_MODIFIED),
    };
    let mut body = answer.into_body();
    let mut file = tokio::fs::File::create(to).await?;
    let mut bytes = 0_u64;
    while let Some(frame) = timeout(IDLE, body.frame())
        .await
        .map_err(|_| FetchError::Silent(IDLE))?
    {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        bytes += data.len() as u64;
        if bytes > bytes_max {
            return Err(FetchError::TooLarge(bytes_max));
        }
        if let Some(expected) = &mut expected {
            expected.update(&data);
        }
        file.write_all(&data).await?;
    }
    file.flush().await?;
    if let Some(expected) = expected {
        expected.check()?;
    }
    Ok(Fetched::New { bytes, version })
}

/// The head of the answer at the end of all redirects.
async fn get(
    client: &Client,
    mut url: Url,
    known: &Version,
) -> Result<Response<Incoming>, FetchError> {
    for _ in 0..=REDIRECTS {
        let request = request(&url, known)?;
        let answer = timeout(IDLE, client.open(request))
            .await
            .map_err(|_| FetchError::Silent(IDLE))??;
        let moved = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = answer.headers().get(LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        match location.filter(|_| moved) {
            None => return Ok(answer),
            Some(location) => {
                let next = url.join(location);
                url = next.map_err(|cause| FetchError::Address(cause.to_string()))?;
            }
        }
    }
    Err(FetchError::Redirects)
}

fn request(url: &Url, known: &Version) -> Result<Request<Full<Bytes>>, FetchError> {
    let mut request = begin(Method::GET, url);
    if !known.etag.is_empty() {
        request = request.header(IF_NONE_MATCH, &known.etag);
    }
    if !known.last_modified.is_empty() {
        request = request.header(IF_MODIFIED_SINCE, &known.last_modified);
    }
    request
        .body(Full::new(Bytes::new()))
        .map_err(|cause| FetchError::Address(cause.to_string()))
}
