//! The files of this machine, and its commands.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use processes::Program;

use super::system::{Kind, Resource, Stat, System, SystemError};

/// Where programs of commands are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long a command that takes too long has to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// The files of this machine, and its commands if `/` is the root: one that runs elsewhere would
/// change the machine all the same. Owners are numbers; packages, services, users, groups and
/// kernel parameters are an error: this agent leaves them alone.
#[derive(Debug, Clone)]
pub struct Disk {
    root: PathBuf,
}

impl Disk {
    /// Files below `root`, as if that were `/`: paths are taken from there, and may not lead out
    /// by `..`. Links are followed wherever they lead when files are read and written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
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

fn not_here<T>(doing: &'static str, what: &str) -> Result<T, SystemError> {
    let problem = "this agent manages files and runs commands only; use another for this method";
    Err(SystemError::new(doing, what, problem))
}

impl System for Disk {
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
            owner: data.uid().to_string(),
            group: data.gid().to_string(),
        }))
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
        owner: Option<&str>,
        group: Option<&str>,
    ) -> Result<(), SystemError> {
        const DOING: &str = "setting the owner of";
        let number = |name: Option<&str>| match name.map(str::parse) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => {
                let problem = "names of users and groups are not looked up; give numbers";
                Err(SystemError::new(DOING, path, problem))
            }
        };
        let (owner, group) = (number(owner)?, number(group)?);
        let place = self.path(path)?;
        std::os::unix::fs::lchown(place, owner, group).map_err(failed(DOING, path))
    }

    fn state(&self, _resource: Resource, name: &str) -> Result<Option<String>, SystemError> {
        not_here("finding out the state of", name)
    }

    fn set_state(
        &mut self,
        _resource: Resource,
        name: &str,
        _state: Option<&str>,
    ) -> Result<(), SystemError> {
        not_here("setting the state of", name)
    }

    fn command(&mut self, command: &str, limit: Duration) -> Result<i32, SystemError> {
        let failed = |problem: &dyn std::fmt::Display| {
            SystemError::new("running", command, problem.to_string())
        };
        if self.root != Path::new("/") {
            let root = self.root.display();
            return Err(failed(&format!(
                "this agent takes {root} for /; commands are run on the machine itself only"
            )));
        }
        // It depends on nothing that the agent happens to be started with.
        let mut program = Program::without_environment("/bin/sh").args(["-c", command]);
        program.env.insert("PATH".into(), PATH.into());
        program.env.insert("LC_ALL".into(), "C".into());
        program.folder = Some("/".into());
        let mut process = program.spawn().map_err(|error| failed(&error))?;
        match process
            .ended_within(limit)
            .map_err(|error| failed(&error))?
        {
            Some(ended) => ended.status.code().ok_or_else(|| failed(&ended.status)),
            None => {
                process.stop(GRACE).map_err(|error| failed(&error))?;
                let seconds = limit.as_secs_f64();
                Err(failed(&format!(
                    "it did not end within {seconds} s and was ended, with all that it had started"
                )))
            }
        }
    }
}
