//! Where the paths of a container lead.
//!
//! A container has no file system of its own, but a folder. What comes into the container is
//! put there, also where its path is absolute; programs and files are looked for there first,
//! and then where the machine has them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::{Component, Path, PathBuf};

use processes::Account;

/// A container's path as one within its folder; `None`: it leads out.
pub(super) fn inside(path: &str) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => inside.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(inside)
}

/// Where a container's path is: in its folder, if it is there, else on the machine.
pub(super) fn found(folder: &Path, path: &str) -> PathBuf {
    let own = inside(path).map(|inside| folder.join(inside));
    match own {
        Some(own) if own.exists() => own,
        // One that is absolute stays as it is.
        _ => folder.join(path),
    }
}

/// Where the program at a container's path is, for one that starts in the folder `working`.
pub(super) fn program(folder: &Path, working: &Path, path: &str) -> PathBuf {
    let beside = working.join(path);
    match Path::new(path).is_relative() && beside.exists() {
        true => beside,
        false => found(folder, path),
    }
}

/// Puts a file in the place of what has its name, at once: whoever reads it sees all of the one or of
/// the other. A link of that name is replaced and not followed. `owner`: whose it is, if not the rep's.
pub(super) fn put_file(
    path: &Path,
    content: &[u8],
    mode: u32,
    owner: Option<&Account>,
) -> io::Result<()> {
    // A name that nothing else has: `x.tmp`, say, may be a file of the container's beside `x`.
    let new = path.with_file_name(format!(".{:032x}", rand::random::<u128>()));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
    let written = file.write_all(content);
    let owned = written.and_then(|()| match owner {
        Some(account) => fchown(&file, Some(account.uid), Some(account.gid)),
        None => Ok(()),
    });
    let put = owned.and_then(|()| fs::rename(&new, path));
    if put.is_err() {
        // It may hold a part of a key.
        let _ = fs::remove_file(&new);
    }
    put
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_program_is_looked_for_where_it_starts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::create_dir_all(folder.join("app/bin")).unwrap();
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        for name in ["app/bin/a", "bin/a", "bin/b"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let working = folder.join("app");
        let at = |path| program(folder, &working, path);
        assert_eq!(at("./bin/a"), working.join("./bin/a"));
        assert_eq!(at("/bin/a"), folder.join("bin/a"));
        assert_eq!(at("bin/b"), folder.join("bin/b"));
    }

    #[test]
    fn paths_lead_into_the_folder_or_nowhere() {
        for (path, expected) in [
            (".", Some("")),
            ("", Some("")),
            ("/tmp/app", Some("tmp/app")),
            ("./a//b/", Some("a/b")),
            ("../up", None),
            ("/a/../../up", None),
        ] {
            let expected = expected.map(PathBuf::from);
            assert_eq!(inside(path), expected, "{path}");
        }
    }

    #[test]
    fn a_containers_own_files_come_first() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/sh"), "").unwrap();
        assert_eq!(
            found(folder.path(), "/bin/sh"),
            folder.path().join("bin/sh")
        );
        assert_eq!(found(folder.path(), "/bin/no"), Path::new("/bin/no"));
        assert_eq!(found(folder.path(), "new"), folder.path().join("new"));
    }
}
