//! Unpacking archives of whoever wrote them: into one folder and nowhere else, within bounds.

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use flate2::read::MultiGzDecoder;
use tar::EntryType;

use super::zip;

/// Most files and folders of one archive.
const ENTRIES_MAX: u64 = 200_000;
/// Longest part of an archive that only describes others, such as long names.
const ABOUT_BYTES: u64 = 1 << 20;
/// What an archive may be longer than what is in it: its own blocks.
const AROUND_BYTES: u64 = ENTRIES_MAX * 2048;

/// Why an archive was not unpacked.
#[derive(Debug, thiserror::Error)]
pub(in crate::rep::executor::process) enum UnpackError {
    /// It is neither of the kinds that are known.
    #[error("unknown archive format")]
    Unknown,
    /// There is no room for what is in it.
    #[error("what is in it takes more than {0} bytes: disk quota exceeded")]
    TooLarge(u64),
    /// There are too many files in it.
    #[error("it has more than {ENTRIES_MAX} files: disk quota exceeded")]
    TooMany,
    /// Something in it does not belong there.
    #[error("{name:?} {problem}")]
    Refused {
        /// The name within the archive.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// It is damaged, or cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is damaged.
    #[error("{0}")]
    Zip(#[from] rawzip::Error),
}

impl UnpackError {
    /// Is it not even an archive?
    pub(in crate::rep::executor::process) fn is_about_the_format(&self) -> bool {
        matches!(self, Self::Unknown | Self::Zip(_))
    }
}

/// What may be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    bytes: u64,
    left: u64,
    entries: u64,
}

impl Room {
    /// Room for so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            bytes,
            left: bytes,
            entries: ENTRIES_MAX,
        }
    }

    /// Takes room for an entry of so many bytes.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), UnpackError> {
        self.entries = self.entries.checked_sub(1).ok_or(UnpackError::TooMany)?;
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(UnpackError::TooLarge(self.bytes))?;
        Ok(())
    }

    /// Bytes for which there is room.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    pub(super) fn exceeded(&self) -> UnpackError {
        UnpackError::TooLarge(self.bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Tar,
    TarGz,
    Zip,
}

/// Gives what another reader gives, until nobody wants it any more.
pub(super) struct Awaited<'a, R> {
    pub(super) inner: R,
    pub(super) given_up: &'a AtomicBool,
}

impl<R: Read> Read for Awaited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.given_up.load(Relaxed) {
            false => self.inner.read(buffer),
            true => Err(io::Error::other("nobody wants it any more")),
        }
    }
}

/// Unpacks `archive` into `folder`, which is there, unless it is `given_up`. What fails may have
/// written a part of it.
pub(super) fn unpack(
    mut archive: File,
    folder: &Path,
    mut room: Room,
    given_up: &AtomicBool,
) -> Result<(), UnpackError> {
    let rewound = |archive| {
        let inner = rewound(archive)?;
        io::Result::Ok(Awaited { inner, given_up })
    };
    match format(&mut archive)? {
        Format::Zip => zip::unpack(archive, folder, &mut room, given_up),
        Format::Tar => unpack_tar(|| rewound(&archive), folder, room),
        Format::TarGz => unpack_tar(|| Ok(MultiGzDecoder::new(rewound(&archive)?)), folder, room),
    }
}

/// The kind of an archive, by its first bytes.
fn format(archive: &mut File) -> Result<Format, UnpackError> {
    let mut head = Vec::new();
    archive.seek(SeekFrom::Start(0))?;
    archive.take(512).read_to_end(&mut head)?;
    match head.as_slice() {
        [0x1f, 0x8b, 0x08, ..] => Ok(Format::TarGz),
        [b'P', b'K', 0x03, 0x04, ..] => Ok(Format::Zip),
        head if head.get(257..262) == Some(b"ustar") => Ok(Format::Tar),
        _ => Err(UnpackError::Unknown),
    }
}

fn rewound(archive: &File) -> io::Result<BufReader<&File>> {
    let mut archive = archive;
    archive.seek(SeekFrom::Start(0))?;
    Ok(BufReader::new(archive))
}

/// Unpacks what `open` gives from its beginning. It is read twice: what says how long it is,
/// or describes others at length, is known to be harmless before any of it is believed.
fn unpack_tar<R: Read>(
    open: impl Fn() -> io::Result<R>,
    folder: &Path,
    room: Room,
) -> Result<(), UnpackError> {
    let bounded = || io::Result::Ok(open()?.take(room.left.saturating_add(AROUND_BYTES)));
    look_through(bounded()?, room)?;
    let mut archive = tar::Archive::new(bounded()?);
    archive.set_preserve_mtime(false);
    let mut closed = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let mode = entry.header().mode().unwrap_or(0o777);
        // What is in a folder comes after it, also where nobody may write into that. The entry
        // itself is not kept: what describes it may be long.
        if kind == EntryType::Directory && mode & 0o700 != 0o700 {
            let name = entry.path()?;
            if leads_up(&name) {
                return Err(refused(&name, "lies outside of the container"));
            }
            let inside = normal(&name);
            if inside.parent().is_some() {
                closed.push((folder_within(folder, &inside)?, mode & 0o777));
            }
            continue;
        }
        if kind == EntryType::Link {
            make_way(&entry, folder)?;
            if link_from_folder(&entry, folder)? {
                continue;
            }
        }
        put(&mut entry, folder)?;
    }
    // The inner ones first.
    closed.sort_by(|(one, _), (other, _)| other.cmp(one));
    for (place, mode) in closed {
        fs::set_permissions(place, Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn put(entry: &mut tar::Entry<'_, impl Read>, folder: &Path) -> Result<(), UnpackError> {
    // What lies outside of the folder is left out by the library itself, links within
    // included; here it is an error, as half an archive is none.
    match entry.unpack_in(folder)? {
        true => Ok(()),
        false => Err(refused(&entry.path()?, "lies outside of the container")),
    }
}

/// Removes what has the name of a hard link that is to be made, which the library does for files
/// and symbolic links only.
fn make_way(link: &tar::Entry<'_, impl Read>, folder: &Path) -> Result<(), UnpackError> {
    let name = link.path()?;
    let inside = normal(&name);
    let to_itself = link.link_name()?.is_some_and(|to| normal(&to) == inside);
    if to_itself || leads_up(&name) {
        return Ok(());
    }
    if let (Some(parent), Some(last)) = (inside.parent(), inside.file_name()) {
        clear(&folder_within(folder, parent)?.join(last))?;
    }
    Ok(())
}

/// Makes a hard link if its target is an absolute path, and says whether it is one. As other programs do, it
/// looks for the target in the folder: that of the machine is none of the container's.
fn link_from_folder(link: &tar::Entry<'_, impl Read>, folder: &Path) -> Result<bool, UnpackError> {
    let name = link.path()?;
    let Some(to) = link.link_name()?.filter(|to| to.is_absolute()) else {
        return Ok(false);
    };
    let outside = || refused(&name, "lies outside of the container");
    if leads_up(&name) || leads_up(&to) {
        return Err(outside());
    }
    let (inside, target) = (normal(&name), normal(&to));
    let places = (inside.parent(), inside.file_name());
    let targets = (target.parent(), target.file_name());
    let ((Some(above), Some(last)), (Some(held), Some(held_last))) = (places, targets) else {
        return Err(refused(&name, "has no name, or leads to what has none"));
    };
    let root = folder.canonicalize()?;
    let held = root.join(held).canonicalize()?;
    if !held.starts_with(&root) {
        return Err(outside());
    }
    if inside != target {
        fs::hard_link(
            held.join(held_last),
            folder_within(folder, above)?.join(last),
        )?;
    }
    Ok(true)
}

/// A path of an archive without what the library passes over: a root, and folders that are
/// called `.`.
fn normal(path: &Path) -> PathBuf {
    let parts = path.components();
    let parts = parts.filter(|part| matches!(part, Component::Normal(_)));
    parts.collect()
}

fn leads_up(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

/// Removes the file at `place`, if there is one: another one is to take its name.
pub(super) fn clear(place: &Path) -> io::Result<()> {
    match fs::remove_file(place) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

/// Fails when an archive has what it must not have.
fn look_through(archive: impl Read, mut room: Room) -> Result<(), UnpackError> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        let kind = entry.header().entry_type();
        match kind {
            EntryType::Regular | EntryType::Continuous => room.take(entry.size())?,
            EntryType::Directory | EntryType::Link | EntryType::Symlink => room.take(0)?,
            EntryType::GNULongName
            | EntryType::GNULongLink
            | EntryType::XHeader
            | EntryType::XGlobalHeader => {
                if entry.size() > ABOUT_BYTES {
                    return Err(refused(&name, "is described at too great a length"));
                }
                room.take(0)?;
                // A size told there would be another one than what was counted here.
                if kind == EntryType::XHeader {
                    for pair in entry.pax_extensions()?.into_iter().flatten() {
                        if pair?.key_bytes() == b"size" {
                            return Err(refused(&name, "is larger than 8 GiB"));
                        }
                    }
                }
            }
            _ => return Err(refused(&name, "is neither a file, a folder nor a link")),
        }
    }
    Ok(())
}

pub(super) fn refused(name: &Path, problem: &'static str) -> UnpackError {
    UnpackError::Refused {
        name: name.display().to_string(),
        problem,
    }
}

/// Makes the folder at `inside`, a path without `..`, within `folder`, and says where it is.
/// Links that lead out are refused.
pub(in crate::rep::executor::process) fn folder_within(
    folder: &Path,
    inside: &Path,
) -> Result<PathBuf, UnpackError> {
    let root = folder.canonicalize()?;
    let mut made = root.clone();
    for part in inside.components() {
        made.push(part);
        match fs::create_dir(&made) {
            Ok(()) => {}
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                made = made.canonicalize()?;
                if !made.starts_with(&root) {
                    return Err(refused(inside, "lies outside of the container"));
                }
                if !made.is_dir() {
                    return Err(refused(inside, "is not a folder"));
                }
            }
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(made)
}
