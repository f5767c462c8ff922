//! The files of this machine, or of a folder that is taken for it.

mod place;

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use self::place::{Last, Place};
use super::machine::Site;
use super::system::{Files, Kind, Stat, SystemError};

/// What is below the agent's own folder and came with it.
const RESOURCES: &str = "shared-files";

/// This machine, if `/` is the root. Else the files of a folder: programs are then neither asked nor
/// run, as they would tell of the machine, and change it.
#[derive(Debug)]
pub struct Disk {
    pub(super) root: PathBuf,
    pub(super) site: Site,
}

impl Disk {
    /// Files below `root`, as if that were `/`: paths and links begin there, and none leads out.
    pub fn new(root: impl Into<PathBuf>, site: Site) -> Self {
        Self {
            root: root.into(),
            site,
        }
    }

    /// Is the root that of the machine, whose programs may be asked and run?
    pub(super) fn is_the_machine(&self) -> bool {
        self.site.of_root || self.root == Path::new("/")
    }

    /// Another root than the machine's, which nothing leads out of.
    fn other_root(&self) -> Option<&Path> {
        (self.root != Path::new("/")).then_some(&*self.root)
    }

    /// Where a path leads. With `make` directories on the way to it are made.
    fn place(&self, path: &str, last: Last, make: bool) -> io::Result<Place> {
        match self.other_root() {
            Some(root) => {
                if make {
                    // The first that is written makes the root.
                    fs::create_dir_all(root)?;
                }
                place::below(root, path, last, make)
            }
            None => {
                if make && let Some(parent) = Path::new(path).parent() {
                    fs::create_dir_all(parent)?;
                }
                place::on_machine(path, last)
            }
        }
    }

    /// Where a file is written, so that what is in its place is replaced: that to which a link leads, if there
    /// is such.
    fn written(&self, path: &str) -> io::Result<Place> {
        match self.other_root() {
            None => {
                let real = found(fs::canonicalize(path))?;
                let real = real.as_deref().and_then(Path::to_str);
                self.place(real.unwrap_or(path), Last::Itself, true)
            }
            Some(_) => {
                let real = found(self.place(path, Last::Followed, false))?;
                match real {
                    Some(real) if found(real.stat())?.is_some() => Ok(real),
                    _ => self.place(path, Last::Itself, true),
                }
            }
        }
    }
}

/// Refuses what is no absolute path, or one that leads up.
fn check(path: &str) -> Result<(), SystemError> {
    let error = |problem: &str| SystemError::new("finding", path, problem);
    if !path.starts_with('/') {
        return Err(error("the path is not absolute"));
    }
    if path.contains('\0') {
        return Err(error("the path holds a zero byte"));
    }
    let mut parts = Path::new(path).components();
    if parts.any(|part| matches!(part, std::path::Component::ParentDir)) {
        return Err(error("the path holds .."));
    }
    Ok(())
}

/// A failed call on a path.
fn failed<'p>(doing: &'static str, path: &'p str) -> impl Fn(io::Error) -> SystemError + 'p {
    move |error| SystemError::new(doing, path, error)
}

fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        // A file in the place of a directory above: nothing is there either.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The content of the file at a place; none if nothing is there.
fn read(
    path: &str,
    limit: usize,
    place: impl Fn() -> io::Result<Place>,
) -> Result<Option<Vec<u8>>, SystemError> {
    let failed = failed("reading", path);
    let no_file = || SystemError::new("reading", path, "it is no file");
    let looked = || {
        let place = place()?;
        let stat = place.stat()?;
        Ok((place, FileType::from_raw_mode(stat.st_mode)))
    };
    let Some((place, kind)) = found(looked()).map_err(&failed)? else {
        return Ok(None);
    };
    // To open a device may do something.
    if kind != FileType::RegularFile {
        return Err(no_file());
    }
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut content = Vec::new();
    let file = place.open().map_err(&failed)?;
    // Another may be in its place by now: a pipe would never end.
    if !file.metadata().map_err(&failed)?.is_file() {
        return Err(no_file());
    }
    file.take(most).read_to_end(&mut content).map_err(&failed)?;
    if content.len() > limit {
        let problem = format!("it is longer than {limit} bytes");
        return Err(SystemError::new("reading", path, problem));
    }
    Ok(Some(content))
}

impl Files for Disk {
    fn stat(&self, path: &str) -> Result<Option<Stat>, SystemError> {
        check(path)?;
        let looked = || {
            let place = self.place(path, Last::Itself, false)?;
            let stat = place.stat()?;
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Directory,
                FileType::Symlink => Kind::Symlink(place.target()?),
                _ => Kind::Other,
            };
            Ok(Stat {
                kind,
                mode: stat.st_mode & 0o7777,
                owner: stat.st_uid,
                group: stat.st_gid,
            })
        };
        found(looked()).map_err(failed("looking at", path))
    }

    fn list(&self, path: &str, limit: usize) -> Result<Vec<String>, SystemError> {
        check(path)?;
        let failed = failed("listing", path);
        let place = self.place(path, Last::Followed, false).map_err(&failed)?;
        let mut names = Vec::new();
        for name in place.names().map_err(&failed)? {
            let name = name.map_err(&failed)?.into_string().map_err(|name| {
                let problem = format!("a name in it is not UTF-8: {}", name.display());
                SystemError::new("listing", path, problem)
            })?;
            if names.len() >= limit {
                let problem = format!("it has more than {limit} entries");
                return Err(SystemError::new("listing", path, problem));
            }
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    fn resource(&self, name: &str, limit: usize) -> Result<Vec<u8>, SystemError> {
        let error = |problem: &str| SystemError::new("reading the shared file", name, problem);
        let folder = self.site.folder.as_ref();
        let folder = folder.ok_or_else(|| error("this agent has no folder of its own"))?;
        let inside = format!("/{}", name.trim_start_matches('/'));
        check(&inside)?;
        let shared = folder.join(RESOURCES);
        let place = || match self.other_root() {
            // A policy may have made links in it.
            Some(_) => place::below(&shared, &inside, Last::Followed, false),
            None => {
                let path = std::path::absolute(shared.join(&inside[1..]))?;
                let path = path.to_str().ok_or(ErrorKind::InvalidFilename)?;
                place::on_machine(path, Last::Followed)
            }
        };
        let found = read(name, limit, place)?;
        found.ok_or_else(|| error("the folder shared-files of the agent does not have it"))
    }

    fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, SystemError> {
        check(path)?;
        read(path, limit, || self.place(path, Last::Followed, false))
    }

    fn write(&mut self, path: &str, content: &[u8]) -> Result<(), SystemError> {
        check(path)?;
        let write = || {
            let place = self.written(path)?;
            // A link has a mode as well, which lets everybody write: what is new has that of new files.
            let is_file = |old: &rustix::fs::Stat| {
                FileType::from_raw_mode(old.st_mode) == FileType::RegularFile
            };
            let old = found(place.stat())?.filter(is_file);
            let mut name = OsString::from(".");
            name.push(place.name());
            name.push(format!(".agent-{}", std::process::id()));
            let fresh = place.beside(name)?;
            let written = (|| {
                // What is left of a run that was interrupted.
                found(fresh.remove_file())?;
                // Nobody reads what the old file keeps to itself before this one is like it.
                let mode = if old.is_some() { 0o600 } else { 0o666 };
                let mut file = fresh.create(mode)?;
                if let Some(old) = &old {
                    let (owner, group) = (Some(old.st_uid), Some(old.st_gid));
                    std::os::unix::fs::fchown(&file, owner, group)?;
                    let mode = rustix::fs::Mode::from_raw_mode(old.st_mode);
                    rustix::fs::fchmod(&file, mode)?;
                }
                file.write_all(content)?;
                file.sync_all()?;
                fresh.rename_to(&place)
            })();
            if written.is_err() {
                // The error that counts is the first.
                let _ = fresh.remove_file();
            }
            written
        };
        write().map_err(failed("writing", path))
    }

    fn remove(&mut self, path: &str, all: bool) -> Result<(), SystemError> {
        check(path)?;
        let remove = || {
            let place = self.place(path, Last::Itself, false)?;
            let stat = place.stat()?;
            match (FileType::from_raw_mode(stat.st_mode), all) {
                (FileType::Directory, true) => place.remove_all(),
                (FileType::Directory, false) => place.remove_directory(),
                _ => place.remove_file(),
            }
        };
        remove().map_err(failed("removing", path))
    }

    fn make_directory(&mut self, path: &str) -> Result<(), SystemError> {
        check(path)?;
        let make = || match self.place(path, Last::Itself, true)?.make_directory() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let there = self.place(path, Last::Followed, false)?.stat()?;
                match FileType::from_raw_mode(there.st_mode) {
                    FileType::Directory => Ok(()),
                    _ => Err(error),
                }
            }
            made => made,
        };
        make().map_err(failed("making", path))
    }

    fn link(&mut self, path: &str, target: &str) -> Result<(), SystemError> {
        check(path)?;
        let link = || {
            let place = self.place(path, Last::Itself, false)?;
            let mut name = place.name().to_owned();
            name.push(format!(".agent-{}", std::process::id()));
            let fresh = place.beside(name)?;
            found(fresh.remove_file())?;
            fresh.make_link(target)?;
            fresh.rename_to(&place)
        };
        link().map_err(failed("linking", path))
    }

    fn set_mode(&mut self, path: &str, mode: u32) -> Result<(), SystemError> {
        check(path)?;
        let place = self.place(path, Last::Itself, false);
        let set = place.and_then(|place| place.set_mode(mode));
        set.map_err(failed("setting the mode of", path))
    }

    fn set_owner(
        &mut self,
        path: &str,
        owner: Option<u32>,
        group: Option<u32>,
    ) -> Result<(), SystemError> {
        check(path)?;
        let place = self.place(path, Last::Itself, false);
        let set = place.and_then(|place| place.set_owner(owner, group));
        set.map_err(failed("setting the owner of", path))
    }
}
