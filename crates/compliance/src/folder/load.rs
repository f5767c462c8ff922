//! The files of a folder, from the disk.

use std::io;
use std::path::{Path, PathBuf};

use document::{Problems, Source};

use super::FolderFile;

/// Files of one folder that are read.
const FILES: usize = 50_000;
/// Endings of files that are read; all others are left alone.
const ENDINGS: [&str; 3] = ["yml", "yaml", "toml"];

/// Why a folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It, or one within it, cannot be listed.
    #[error("read the folder {}: {cause}", path.display())]
    List {
        /// Which folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// There is nothing in it.
    #[error(
        "the folder {} has no file that ends in .yml, .yaml or .toml; expected rules, directives \
         and techniques", .0.display()
    )]
    Empty(PathBuf),
    /// There is too much in it.
    #[error("the folder {} has more than {FILES} files", .0.display())]
    TooMany(PathBuf),
    /// Something is in a file's place.
    #[error(
        "{} is a folder, a pipe or the like and no file; take it away, or give it a name that does \
         not end in .yml, .yaml or .toml", .0.display()
    )]
    NoFile(PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] Problems),
}

/// Reads all files of a folder and of the folders in it, by their paths. Those whose names begin
/// with a point are left alone.
///
/// # Errors
/// It cannot be read, is empty, or holds too much.
pub fn load(folder: &Path) -> Result<Vec<FolderFile>, FolderError> {
    let mut files = Vec::new();
    list(folder, "", &mut files)?;
    if files.len() > FILES {
        return Err(FolderError::TooMany(folder.to_path_buf()));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    if files.is_empty() {
        return Err(FolderError::Empty(folder.to_path_buf()));
    }
    Ok(files)
}

fn list(folder: &Path, within: &str, files: &mut Vec<FolderFile>) -> Result<(), FolderError> {
    let failed = |cause| FolderError::List {
        path: folder.to_path_buf(),
        cause,
    };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || files.len() > FILES {
            continue;
        }
        let path = match within {
            "" => name.clone(),
            within => format!("{within}/{name}"),
        };
        if entry.file_type().map_err(failed)?.is_dir() {
            // Objects stand one level deep; what is deeper is named as out of place.
            if path.matches('/').count() < 8 {
                list(&entry.path(), &path, files)?;
            }
            continue;
        }
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        if ENDINGS.contains(&ending) {
            let at = entry.path();
            // Of a pipe nobody may ever write the end. What leads nowhere has its error from being read.
            if std::fs::metadata(&at).is_ok_and(|data| !data.is_file()) {
                return Err(FolderError::NoFile(at));
            }
            let source = Source::read(&at)?;
            files.push(FolderFile { path, source });
        }
    }
    Ok(())
}
