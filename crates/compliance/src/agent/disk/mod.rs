//! The files of this machine, or of a folder that is taken for it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

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
    /// Files below `root`, as if that were `/`: paths are taken from there, and may not lead out
    /// by `..`. Links are followed wherever they lead when files are read and written.
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

    fn path(&self, path: &str) -> Result<PathBuf, SystemError> {
        let error = |problem: &str| SystemError::new("finding", path, problem);
        let Some(inside) = path.strip_prefix('/') else {
            return Err(error("the path is not absolute"));
        };
        if path.contains('\0') {
            return Err(error("the path holds a zero byte"));
        }
        if Path::new(inside)
            .components()
            .any(|part| matches!(part, std::path::Component::ParentDir))
        {
            return Err(error("the path holds .."));
        }
        Ok(self.root.join(inside.trim_start_matches('/')))
    }
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

impl Files for Disk {
    fn stat(&self, path: &str) -> Result<Option<Stat>, SystemError> {
        let failed = failed("looking at", path);
        let place = self.path(path)?;
        let Some(data) = found(fs::symlink_metadata(&place)).map_err(&failed)? else {
            return Ok(None);
        };
        let kind = if data.is_file() {
            Kind::File
        } else if data.is_dir() {
            Kind::Directory
        } else if data.is_symlink() {
            let target = fs::read_link(&place).map_err(&failed)?;
            Kind::Symlink(target.to_string_lossy().into_owned())
        } else {
            Kind::Other
        };
        Ok(Some(Stat {
            kind,
            mode: data.mode() & 0o7777,
            owner: data.uid(),
            group: data.gid(),
        }))
    }

    fn list(&self, path: &str, limit: usize) -> Result<Vec<String>, SystemError> {
        let failed = failed("listing", path);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path)?).map_err(&failed)? {
            let name = entry.map_err(&failed)?.file_name();
            let name = name.into_string().map_err(|name| {
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
        let shared = Self::new(folder.join(RESOURCES), Site::default());
        let found = shared.read(&format!("/{}", name.trim_start_matches('/')), limit)?;
        found.ok_or_else(|| error("the folder shared-files of the agent does not have it"))
    }

    fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, SystemError> {
        let failed = failed("reading", path);
        let place = self.path(path)?;
        let Some(data) = found(fs::metadata(&place)).map_err(&failed)? else {
            return Ok(None);
        };
        // A pipe would never end, and opening it might wait.
        if !data.is_file() {
            return Err(SystemError::new("reading", path, "it is no file"));
        }
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let mut content = Vec::new();
        let file = File::open(&place).map_err(&failed)?;
        file.take(most).read_to_end(&mut content).map_err(&failed)?;
        if content.len() > limit {
            let problem = format!("it is longer than {limit} bytes");
            return Err(SystemError::new("reading", path, problem));
        }
        Ok(Some(content))
    }

    fn write(&mut self, path: &str, content: &[u8]) -> Result<(), SystemError> {
        let failed = failed("writing", path);
        let place = self.path(path)?;
        let place = match found(fs::canonicalize(&place)).map_err(&failed)? {
            Some(real) => real,
            None => place,
        };
        let Some(folder) = place.parent() else {
            return Err(SystemError::new("writing", path, "it is no file"));
        };
        fs::create_dir_all(folder).map_err(&failed)?;
        let old = found(fs::metadata(&place)).map_err(&failed)?;
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let fresh = folder.join(format!(".{name}.agent-{}", std::process::id()));
        let written = (|| {
            // What is left of a run that was interrupted.
            found(fs::remove_file(&fresh))?;
            let mut file = File::create_new(&fresh)?;
            if let Some(old) = &old {
                let (owner, group) = (Some(old.uid()), Some(old.gid()));
                std::os::unix::fs::fchown(&file, owner, group)?;
                file.set_permissions(old.permissions())?;
            }
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&fresh, &place)
        })();
        if written.is_err() {
            // The error that counts is the first.
            let _ = fs::remove_file(&fresh);
        }
        written.map_err(&failed)
    }

    fn remove(&mut self, path: &str, all: bool) -> Result<(), SystemError> {
        let place = self.path(path)?;
        let removed = fs::symlink_metadata(&place).and_then(|data| match (data.is_dir(), all) {
            (true, true) => fs::remove_dir_all(&place),
            (true, false) => fs::remove_dir(&place),
            (false, _) => fs::remove_file(&place),
        });
        removed.map_err(failed("removing", path))
    }

    fn make_directory(&mut self, path: &str) -> Result<(), SystemError> {
        let place = self.path(path)?;
        fs::create_dir_all(place).map_err(failed("making", path))
    }

    fn link(&mut self, path: &str, target: &str) -> Result<(), SystemError> {
        let failed = failed("linking", path);
        let place = self.path(path)?;
        let fresh = place.with_added_extension(format!("agent-{}", std::process::id()));
        found(fs::remove_file(&fresh)).map_err(&failed)?;
        symlink(target, &fresh).map_err(&failed)?;
        fs::rename(&fresh, &place).map_err(&failed)
    }

    fn set_mode(&mut self, path: &str, mode: u32) -> Result<(), SystemError> {
        let place = self.path(path)?;
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(place, permissions).map_err(failed("setting the mode of", path))
    }

    fn set_owner(
        &mut self,
        path: &str,
        owner: Option<u32>,
        group: Option<u32>,
    ) -> Result<(), SystemError> {
        let place = self.path(path)?;
        let changed = std::os::unix::fs::lchown(place, owner, group);
        changed.map_err(failed("setting the owner of", path))
    }
}
