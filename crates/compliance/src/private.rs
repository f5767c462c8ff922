//! Folders and files of data that only their owner may read, whatever the process lets others do
//! with what it makes: there are messages of nodes, hashes of passwords and keys in them.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// What group and others may do.
const OF_OTHERS: u32 = 0o077;
/// A folder in which everybody has files: it is not made for the data.
const SHARED: u32 = 0o1000;
/// The ending of a file that is being written.
pub(crate) const FRESH: &str = ".new";

/// Makes a folder for its owner alone. One that is there, and the files in it, are made so; what is
/// somebody else's stays as it is, and so does a folder in which everybody has files.
///
/// # Errors
/// It is not there and cannot be made, or cannot be listed.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let found = fs::metadata(path)?;
    if !found.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    if found.permissions().mode() & SHARED != 0 {
        return Ok(());
    }
    close(path, &found)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // Not what a link leads to. What is gone meanwhile needs nothing.
        match entry.metadata() {
            Ok(found) if found.is_file() => close(&entry.path(), &found)?,
            _ => {}
        }
    }
    Ok(())
}

/// Writes a file that only its owner may read.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = open(path, true)?;
    file.write_all(content)
}

/// Has a file be there, for its owner alone: what others make of it keeps that.
///
/// # Errors
/// It cannot be made.
pub(crate) fn file(path: &Path) -> io::Result<()> {
    open(path, false).map(drop)
}

/// Has a file be these parts, for its owner alone: wholly, or as it was before.
///
/// # Errors
/// It cannot be written; of the new one nothing is left.
pub(crate) fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(FRESH);
    let fresh = Path::new(&fresh);
    let write = || {
        let mut file = open(fresh, true)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.sync_all()?;
        fs::rename(fresh, path)
    };
    // A full disk gets the room back.
    write().inspect_err(|_| drop(fs::remove_file(fresh)))
}

fn open(path: &Path, empty: bool) -> io::Result<File> {
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(empty);
    let file = options.mode(0o600).open(path)?;
    close(path, &file.metadata()?)?;
    Ok(file)
}

/// Takes from others what they may do.
fn close(path: &Path, found: &Metadata) -> io::Result<()> {
    let mode = found.permissions().mode();
    if mode & OF_OTHERS == 0 {
        return Ok(());
    }
    let own = Permissions::from_mode(mode & 0o7777 & !OF_OTHERS);
    match fs::set_permissions(path, own) {
        Err(error) if error.kind() != ErrorKind::PermissionDenied => match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_there_is_closed_and_what_is_made_is_so_from_the_start() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("deep/data");
        folder(&data).unwrap();
        assert_eq!(mode(&data), 0o700);
        let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        for name in ["old", "tool", "rewritten"] {
            fs::write(data.join(name), "x").unwrap();
        }
        open(&data, 0o755).unwrap();
        open(&data.join("old"), 0o644).unwrap();
        open(&data.join("tool"), 0o755).unwrap();
        let outside = place.path().join("outside");
        fs::write(&outside, "x").unwrap();
        open(&outside, 0o644).unwrap();
        std::os::unix::fs::symlink(&outside, data.join("link")).unwrap();
        folder(&data).unwrap();
        assert_eq!(mode(&data), 0o700);
        assert_eq!(
            (mode(&data.join("old")), mode(&data.join("tool"))),
            (0o600, 0o700)
        );
        assert_eq!(mode(&outside), 0o644);
        open(&data.join("rewritten"), 0o666).unwrap();
        write(&data.join("rewritten"), b"y").unwrap();
        assert_eq!(fs::read(data.join("rewritten")).unwrap(), b"y");
        file(&data.join("rewritten")).unwrap();
        file(&data.join("new")).unwrap();
        assert_eq!(fs::read(data.join("rewritten")).unwrap(), b"y");
        for name in ["rewritten", "new"] {
            assert_eq!(mode(&data.join(name)), 0o600, "{name}");
        }
        // Where everybody has files nobody is shut out.
        open(place.path(), 0o1777).unwrap();
        folder(place.path()).unwrap();
        assert_eq!((mode(place.path()), mode(&outside)), (0o1777, 0o644));
    }
}
