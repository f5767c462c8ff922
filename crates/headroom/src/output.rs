//! Both outputs. Either may be a pipe that was closed (`| head`): that is no failure.

use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// A result as JSON, with a line end.
pub(crate) fn json(result: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(result)? + "\n")
}

/// Writes a result to standard output, as JSON or as its text.
pub(crate) fn show(result: &(impl Serialize + Display), as_json: bool) -> Result<()> {
    print(&match as_json {
        true => json(result)?,
        false => result.to_string().trim_end().to_owned() + "\n",
    })
}

/// Writes a result to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("print the result")
        }
        _ => Ok(()),
    }
}

/// Tells a person something on standard error; if nobody listens, nobody hears it.
pub(crate) fn eprint(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Writes a file whole or not at all: what was there stays if the disk is full. What is no file, such as a
/// pipe, is written to.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let writing = || format!("write {}", path.display());
    // The end of a link, which stays one.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.exists() && !path.is_file() {
        return fs::write(&path, bytes).with_context(writing);
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        // As any new file, where they are not taken away from those.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .with_context(writing)?;
    file.write_all(bytes).with_context(writing)?;
    file.persist(path).with_context(writing)?;
    Ok(())
}

/// An error with its causes, each told once: many errors tell their cause within their own
/// text already.
pub(crate) fn explained(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use routing::http::engine::StartError;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
        // A disk that takes nothing.
        replace(Path::new("/dev/full"), b"x").unwrap_err();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
        if replace(&file, b"newer").is_err() {
            assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_cause_is_told_once() {
        let error = StartError::Listen {
            address: ([127, 0, 0, 1], 80).into(),
            source: Error::other("in use"),
        };
        let error = anyhow::Error::new(error).context("start the router");
        assert_eq!(
            explained(&error),
            "start the router: listen on 127.0.0.1:80: in use"
        );
        let plain = anyhow::Error::new(Error::other("gone")).context("read x");
        assert_eq!(explained(&plain), "read x: gone");
    }
}
