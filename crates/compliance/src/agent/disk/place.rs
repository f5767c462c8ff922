//! Where a path leads: on this machine as the kernel says, below another root as if that were `/`.
//!
//! Below another root each part is opened by itself, from the directory that is open already, and a link is
//! read and not followed: what it names begins at the root, and `..` ends there. So nobody is led
//! out, neither by links nor by whoever moves directories meanwhile. Linux's `openat2` does the same, but
//! is forbidden in many containers.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chmodat, chownat, mkdirat, open, openat,
    readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

/// Links that one path may lead over, as Linux has it.
const LINKS: usize = 40;
/// What a directory is opened with that is only passed.
const PASSED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What is done with a link at a path's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// What it leads to is meant.
    Followed,
    /// It is meant itself.
    Itself,
}

/// A directory, and a name in it that may be of nothing yet.
#[derive(Debug)]
pub(super) struct Place {
    directory: OwnedFd,
    name: OsString,
    /// Does the kernel follow a link of this name?
    followed: bool,
}

/// The place of an absolute path on this machine.
pub(super) fn on_machine(path: &str, last: Last) -> io::Result<Place> {
    // A slash at the end has the kernel follow a link, so it stays.
    let end = path.trim_end_matches('/').rfind('/').unwrap_or(0);
    let (parent, name) = path.split_at_checked(end + 1).unwrap_or((path, ""));
    Ok(Place {
        directory: open(parent, PASSED, Mode::empty())?,
        name: if name.is_empty() { "." } else { name }.into(),
        followed: last == Last::Followed,
    })
}

/// The place of a path below another root. With `make` directories on the way to it are made.
pub(super) fn below(root: &Path, path: &str, last: Last, make: bool) -> io::Result<Place> {
    // As for the kernel.
    let last = match path.ends_with('/') {
        true => Last::Followed,
        false => last,
    };
    let mut way = vec![open(root, PASSED, Mode::empty())?];
    let mut left = Vec::new();
    push_parts(&mut left, path.as_bytes());
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            // Above the root is the root.
            if way.len() > 1 {
                way.pop();
            }
            continue;
        }
        let directory = way.last().ok_or(Errno::NOENT)?;
        let is_last = left.is_empty();
        let found = statat(directory, &part, AtFlags::SYMLINK_NOFOLLOW);
        let kind = found.map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Ok(FileType::Symlink) if !is_last || last == Last::Followed => {
                links += 1;
                if links > LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = readlinkat(directory, &part, Vec::new())?;
                if target.as_bytes().starts_with(b"/") {
                    way.truncate(1);
                }
                push_parts(&mut left, target.as_bytes());
                continue;
            }
            _ if is_last => {
                let directory = way.pop().ok_or(Errno::NOENT)?;
                return Ok(Place::of(directory, part));
            }
            Err(Errno::NOENT) if make => match mkdirat(directory, &part, Mode::from(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let next = openat(directory, &part, PASSED | OFlags::NOFOLLOW, Mode::empty())?;
        way.push(next);
    }
    let directory = way.pop().ok_or(Errno::NOENT)?;
    Ok(Place::of(directory, ".".into()))
}

/// Puts the parts of a path on those that are left, the first on top.
fn push_parts(left: &mut Vec<OsString>, path: &[u8]) {
    let parts = path.rsplit(|byte| *byte == b'/');
    let parts = parts.filter(|part| !part.is_empty() && *part != b".");
    left.extend(parts.map(|part| OsString::from_vec(part.to_vec())));
}

impl Place {
    fn of(directory: OwnedFd, name: OsString) -> Self {
        Self {
            directory,
            name,
            followed: false,
        }
    }

    /// Its name in its directory.
    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Another name in the same directory.
    pub(super) fn beside(&self, name: OsString) -> io::Result<Self> {
        Ok(Self::of(self.directory.try_clone()?, name))
    }

    fn at_flags(&self) -> AtFlags {
        match self.followed {
            true => AtFlags::empty(),
            false => AtFlags::SYMLINK_NOFOLLOW,
        }
    }

    fn open_flags(&self) -> OFlags {
        match self.followed {
            true => OFlags::CLOEXEC,
            false => OFlags::CLOEXEC | OFlags::NOFOLLOW,
        }
    }

    pub(super) fn stat(&self) -> io::Result<Stat> {
        Ok(statat(&self.directory, &self.name, self.at_flags())?)
    }

    /// What a link says.
    pub(super) fn target(&self) -> io::Result<String> {
        let target = readlinkat(&self.directory, &self.name, Vec::new())?;
        Ok(target.to_string_lossy().into_owned())
    }

    /// Opens it to be read; a pipe is not waited for.
    pub(super) fn open(&self) -> io::Result<fs::File> {
        let flags = self.open_flags() | OFlags::RDONLY | OFlags::NONBLOCK;
        Ok(openat(&self.directory, &self.name, flags, Mode::empty())?.into())
    }

    /// A new file, which nothing of this name may be in the way of. The process's umask takes from its mode.
    pub(super) fn create(&self, mode: u32) -> io::Result<fs::File> {
        let flags = self.open_flags() | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Ok(openat(
            &self.directory,
            &self.name,
            flags,
            Mode::from_raw_mode(mode),
        )?
        .into())
    }

    /// The names in it, if it is a directory.
    pub(super) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
        let flags = self.open_flags() | OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = openat(&self.directory, &self.name, flags, Mode::empty())?;
        let names = Dir::new(directory)?.map(|entry| {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            Ok(name)
        });
        Ok(names.filter(|name| !matches!(name, Ok(name) if name == "." || name == "..")))
    }

    /// Takes the place of another one in the same directory.
    pub(super) fn rename_to(&self, other: &Self) -> io::Result<()> {
        let (from, to) = (&self.directory, &other.directory);
        Ok(renameat(from, &self.name, to, &other.name)?)
    }

    pub(super) fn remove_file(&self) -> io::Result<()> {
        Ok(unlinkat(&self.directory, &self.name, AtFlags::empty())?)
    }

    /// Removes a directory that is empty.
    pub(super) fn remove_directory(&self) -> io::Result<()> {
        Ok(unlinkat(&self.directory, &self.name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a directory with all that is in it. Links in it are removed, not what they lead to.
    pub(super) fn remove_all(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inside = openat(&self.directory, &self.name, flags, Mode::empty())?;
        let names: Vec<OsString> = self.names()?.collect::<io::Result<_>>()?;
        for name in names {
            let one = Self::of(inside.try_clone()?, name);
            let stat = one.stat()?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => one.remove_all()?,
                _ => one.remove_file()?,
            }
        }
        self.remove_directory()
    }

    pub(super) fn make_directory(&self) -> io::Result<()> {
        Ok(mkdirat(&self.directory, &self.name, Mode::from(0o777))?)
    }

    pub(super) fn make_link(&self, target: &str) -> io::Result<()> {
        Ok(symlinkat(target, &self.directory, &self.name)?)
    }

    /// Not of a link, nor of what it leads to: whoever may put one there would have the mode of
    /// any file changed.
    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode);
        // Linux changes no mode of a name without following it: the file is held, and changed by
        // what `/proc` calls it.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = openat(&self.directory, &self.name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&held)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
        let held = std::os::fd::AsRawFd::as_raw_fd(&held);
        let name = format!("/proc/self/fd/{held}");
        Ok(chmodat(CWD, name, mode, AtFlags::empty())?)
    }

    /// Of a link, the link's own.
    pub(super) fn set_owner(&self, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        let owner = owner.map(Uid::from_raw);
        let group = group.map(Gid::from_raw);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(chownat(&self.directory, &self.name, owner, group, flags)?)
    }
}
