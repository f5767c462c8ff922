//! Files that come into a container and go out of it.

mod archive;
mod cache;
mod checksum;
mod fetch;
mod send;
#[cfg(test)]
mod tests;
mod zip;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use diego::models::{CachedDependency, DownloadAction};
use http::header::AUTHORIZATION;
use http::{Method, Request, request};
use net::{Client, ClientOptions};
use processes::Account;
use url::Url;

use super::super::super::config::TransferSettings;
use super::super::super::settings::Error;
use super::place;
use super::users::{FileCredentials, change_owner};
use crate::basic::authorization;
use crate::mutex::lock;
use crate::pool::{Pool, Worker};
pub(super) use archive::folder_within;
use archive::{Room, UnpackError, unpack};
use cache::{Index, Version};
use checksum::Expected;
use fetch::{FetchError, Fetched, fetch};
use send::send;

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Why a file did not come into a container, or out of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransferError {
    /// It was not fetched.
    #[error("{0}")]
    Fetch(#[from] FetchError),
    /// It could not be put where it belongs.
    #[error("{0}")]
    Place(#[from] UnpackError),
    /// Whose it is to be is nobody of this machine, or cannot be let in.
    #[error("{0}")]
    User(String),
    /// It was not sent.
    #[error("{0}")]
    Send(#[from] send::SendError),
}

/// How to download what a container depends on; it is the rep's.
pub(super) fn download_of(on: &CachedDependency) -> DownloadAction {
    DownloadAction {
        from: on.from.clone(),
        to: on.to.clone(),
        cache_key: on.cache_key.clone(),
        checksum_algorithm: on.checksum_algorithm.clone(),
        checksum_value: on.checksum_value.clone(),
        ..DownloadAction::default()
    }
}

/// Unpacks an archive that a container downloads into `folder`, where it may take so many
/// bytes, and writes nothing anywhere else. What fails may have written a part of it.
///
/// # Errors
/// When it is no archive of a kind that is known, is damaged, does not fit, or has in it what
/// does not belong into a container.
pub fn unpack_archive(archive: File, folder: &Path, bytes_max: u64) -> io::Result<()> {
    let wanted = AtomicBool::new(false);
    unpack(archive, folder, Room::new(bytes_max), &wanted).map_err(io::Error::other)
}

/// A file that was fetched, or had been before.
#[derive(Debug)]
pub(super) struct Archive {
    file: File,
    /// Bytes that came over the network for it.
    pub(super) fetched: u64,
}

/// Fetches and sends the files of all containers.
pub(super) struct Transfers {
    client: Client,
    folder: PathBuf,
    settings: TransferSettings,
    index: Mutex<Index>,
    /// Whoever fetches a file, by its key: one at a time.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    files: AtomicU64,
    downloads: Pool,
    uploads: Pool,
}

impl Transfers {
    /// Keeps files in `folder`, which must be nobody else's, and is made.
    pub(super) fn new(folder: PathBuf, settings: TransferSettings) -> Result<Self, Error> {
        super::make_folder(&folder)?;
        let tls = net::tls::anonymous(settings.authorities.as_deref())?;
        Ok(Self {
            client: Client::new(ClientOptions {
                connect_within: CONNECT_WITHIN,
                tls: Some(tls),
                ..ClientOptions::default()
            }),
            folder,
            index: Mutex::new(Index::new(settings.cache_bytes)),
            turns: Mutex::default(),
            files: AtomicU64::new(0),
            downloads: Pool::new("downloads", settings.downloads),
            uploads: Pool::new("uploads", settings.uploads),
            settings,
        })
    }

    /// Waits for a place among those who download.
    pub(super) async fn place_to_download(&self) -> Worker {
        self.downloads.worker(Instant::now()).await
    }

    /// Waits for a place among those who upload.
    pub(super) async fn place_to_upload(&self) -> Worker {
        self.uploads.worker(Instant::now()).await
    }

    /// Those who download, and those who upload.
    pub(super) fn pools(&self) -> impl Iterator<Item = &Pool> {
        [&self.downloads, &self.uploads].into_iter()
    }

    /// Fetches what is wanted.
    pub(super) async fn fetch(&self, wanted: &DownloadAction) -> Result<Archive, TransferError> {
        let bad = |cause: url::ParseError| FetchError::Address(cause.to_string());
        let url = Url::parse(&wanted.from).map_err(bad)?;
        let (algorithm, value) = (&wanted.checksum_algorithm, &wanted.checksum_value);
        let expected = Expected::of(algorithm, value).map_err(FetchError::from)?;
        if wanted.cache_key.is_empty() {
            return self.fetch_anew(wanted, &url, expected.as_ref()).await;
        }
        let turn = self.turn(&wanted.cache_key);
        let _turn = turn.lock().await;
        let known = lock(&self.index).find(&wanted.cache_key);
        let known = known.filter(|(_, version)| version.has_validator());
        // Opened before the server is asked: meanwhile another key may take its place. Whoever
        // tidies up temporary files may have removed it.
        let opened = known.and_then(|(file, version)| {
            let file = File::open(self.folder.join(file.to_string())).ok()?;
            Some((file, version))
        });
        let Some((file, version)) = opened else {
            return self.fetch_anew(wanted, &url, expected.as_ref()).await;
        };
        let newer = self.fetch_newer(wanted, &url, expected.as_ref(), &version);
        if let Some(archive) = newer.await? {
            return Ok(archive);
        }
        verify(&file, expected).await?;
        Ok(Archive { file, fetched: 0 })
    }

    async fn fetch_anew(
        &self,
        wanted: &DownloadAction,
        url: &Url,
        expected: Option<&Expected>,
    ) -> Result<Archive, TransferError> {
        let none = Version::default();
        let fetched = self.fetch_newer(wanted, url, expected, &none).await?;
        fetched.ok_or_else(|| FetchError::Status(304).into())
    }

    /// The file, unless it is of this version still.
    async fn fetch_newer(
        &self,
        wanted: &DownloadAction,
        url: &Url,
        expected: Option<&Expected>,
        version: &Version,
    ) -> Result<Option<Archive>, TransferError> {
        let file = self.new_file();
        let path = self.path(file);
        let (client, max) = (&self.client, self.settings.file_bytes);
        match fetch(client, url, version, expected, max, &path.0).await? {
            Fetched::New { bytes, version } => {
                self.keep(wanted, path, file, bytes, version).map(Some)
            }
            Fetched::Unchanged => Ok(None),
        }
    }

    /// Keeps a file that has a key and of which the server will be able to say whether it is the
    /// newest.
    fn keep(
        &self,
        wanted: &DownloadAction,
        path: Temporary,
        file: u64,
        bytes: u64,
        version: Version,
    ) -> Result<Archive, TransferError> {
        let opened = File::open(&path.0).map_err(FetchError::from)?;
        let mut index = lock(&self.index);
        let go = match version.has_validator() && !wanted.cache_key.is_empty() {
            true => {
                path.stays();
                index.keep(&wanted.cache_key, file, bytes, version)
            }
            false => index.remove(&wanted.cache_key).into_iter().collect(),
        };
        for file in go {
            // Whoever reads it goes on doing so; what cannot be removed goes at the next start.
            let _ = fs::remove_file(self.folder.join(file.to_string()));
        }
        Ok(Archive {
            file: opened,
            fetched: bytes,
        })
    }

    /// Unpacks an archive at `to` within a container's folder; what is in it may take so many
    /// bytes, or as many as any may where that is 0. It is the account's, or the rep's without.
    pub(super) async fn unpack(
        &self,
        archive: Archive,
        folder: &Path,
        wanted: &DownloadAction,
        bytes: u64,
        account: Option<Account>,
    ) -> Result<(), TransferError> {
        let outside = || archive::refused(Path::new(&wanted.to), "lies outside of the container");
        let inside = place::inside(&wanted.to).ok_or_else(outside)?;
        let folder = folder.to_owned();
        let room = Room::new(match bytes {
            0 => self.settings.unpacked_bytes,
            bytes => bytes.min(self.settings.unpacked_bytes),
        });
        // Set when nobody waits for it any more.
        let waits = AbandonOnDrop::default();
        let given_up = Arc::clone(&waits.0);
        let unpacked = tokio::task::spawn_blocking(move || {
            let folder = folder_within(&folder, &inside)?;
            if let Some(account) = &account {
                change_owner(account, &folder)?;
            }
            let _acting = account.as_ref().map(FileCredentials::as_account);
            unpack(archive.file, &folder, room, &given_up)
        });
        let unpacked = unpacked.await.map_err(io::Error::other);
        Ok(unpacked.map_err(UnpackError::from)??)
    }

    /// Sends a file, and returns its length.
    pub(super) async fn send(&self, file: &Path, to: &Url) -> Result<u64, TransferError> {
        Ok(send(&self.client, file, to).await?)
    }

    fn turn(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = lock(&self.turns);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(key.to_owned()).or_default())
    }

    fn new_file(&self) -> u64 {
        self.files.fetch_add(1, Relaxed)
    }

    fn path(&self, file: u64) -> Temporary {
        Temporary(self.folder.join(file.to_string()), true)
    }
}

/// Begins a request. Who asks stands in the address, and goes into a header.
fn begin(method: Method, url: &Url) -> request::Builder {
    let mut bare = url.clone();
    // The URL standard has no such addresses without a host, so both can be taken away.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.set_fragment(None);
    let request = Request::builder().method(method).uri(bare.as_str());
    if url.username().is_empty() && url.password().is_none() {
        return request;
    }
    let pair = format!("{}:{}", url.username(), url.password().unwrap_or_default());
    request.header(AUTHORIZATION, authorization(&pair))
}

/// Reads a file that was kept and fails when it is another one than is expected now.
async fn verify(file: &File, expected: Option<Expected>) -> Result<(), FetchError> {
    let Some(mut expected) = expected else {
        return Ok(());
    };
    let mut file = file.try_clone()?;
    let checked = tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = io::Read::read(&mut file, &mut buffer)?;
            if read == 0 {
                break;
            }
            expected.update(&buffer[..read]);
        }
        Ok(expected.check()?)
    });
    checked.await.map_err(io::Error::other)?
}

/// Says, when it is dropped, that nobody waits any more.
#[derive(Default)]
pub(super) struct AbandonOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A file that is removed, unless it is said that it stays.
struct Temporary(PathBuf, bool);

impl Temporary {
    fn stays(mut self) {
        self.1 = false;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.1 {
            // It may never have been made.
            let _ = fs::remove_file(&self.0);
        }
    }
}
