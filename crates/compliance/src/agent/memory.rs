//! A machine that exists only in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use super::system::{Kind, Resource, Stat, System, SystemError};

/// A machine in memory: what is not in it is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// What is at each path, and the content of files.
    pub files: BTreeMap<String, (Stat, Vec<u8>)>,
    /// States of packages, services, users, groups and kernel parameters.
    pub states: BTreeMap<(Resource, String), String>,
    /// Exit codes of commands; others end with 127.
    pub commands: BTreeMap<String, i32>,
    /// Commands that were run.
    pub ran: Vec<String>,
    /// Nothing can be changed at these names and paths.
    pub broken: Vec<String>,
}

impl Memory {
    fn changes(&self, doing: &'static str, what: &str) -> Result<(), SystemError> {
        if self.broken.iter().any(|one| one == what) {
            return Err(SystemError::new(doing, what, "it is broken"));
        }
        Ok(())
    }

    fn put(&mut self, path: &str, kind: Kind, content: &[u8]) {
        let fresh = Stat {
            mode: if kind == Kind::File { 0o644 } else { 0o755 },
            kind: kind.clone(),
            owner: "root".into(),
            group: "root".into(),
        };
        let (stat, old) = self
            .files
            .entry(path.to_owned())
            .or_insert((fresh, Vec::new()));
        stat.kind = kind;
        *old = content.to_vec();
    }

    fn stat_mut(&mut self, doing: &'static str, path: &str) -> Result<&mut Stat, SystemError> {
        self.changes(doing, path)?;
        let found = self.files.get_mut(path).map(|(stat, _)| stat);
        found.ok_or_else(|| SystemError::new(doing, path, "there is nothing"))
    }
}

impl System for Memory {
    fn stat(&self, path: &str) -> Result<Option<Stat>, SystemError> {
        Ok(self.files.get(path).map(|(stat, _)| stat.clone()))
    }

    fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, SystemError> {
        let error = |problem: &str| Err(SystemError::new("reading", path, problem));
        match self.files.get(path) {
            None => Ok(None),
            Some((stat, _)) if stat.kind != Kind::File => error("it is no file"),
            Some((_, content)) if content.len() > limit => error("it is too long"),
            Some((_, content)) => Ok(Some(content.clone())),
        }
    }

    fn write(&mut self, path: &str, content: &[u8]) -> Result<(), SystemError> {
        self.changes("writing", path)?;
        self.put(path, Kind::File, content);
        Ok(())
    }

    fn remove(&mut self, path: &str, all: bool) -> Result<(), SystemError> {
        self.changes("removing", path)?;
        let within = format!("{path}/");
        let inside = |one: &String| one.starts_with(&within);
        if !all && self.files.keys().any(inside) {
            return Err(SystemError::new("removing", path, "it is not empty"));
        }
        self.files.retain(|one, _| one != path && !inside(one));
        Ok(())
    }

    fn make_directory(&mut self, path: &str) -> Result<(), SystemError> {
        self.changes("making", path)?;
        self.put(path, Kind::Directory, b"");
        Ok(())
    }

    fn link(&mut self, path: &str, target: &str) -> Result<(), SystemError> {
        self.changes("linking", path)?;
        self.put(path, Kind::Symlink(target.to_owned()), b"");
        Ok(())
    }

    fn set_mode(&mut self, path: &str, mode: u32) -> Result<(), SystemError> {
        self.stat_mut("setting the mode of", path)?.mode = mode;
        Ok(())
    }

    fn set_owner(
        &mut self,
        path: &str,
        owner: Option<&str>,
        group: Option<&str>,
    ) -> Result<(), SystemError> {
        let stat = self.stat_mut("setting the owner of", path)?;
        for (place, wanted) in [(&mut stat.owner, owner), (&mut stat.group, group)] {
            if let Some(wanted) = wanted {
                *place = wanted.to_owned();
            }
        }
        Ok(())
    }

    fn state(&self, resource: Resource, name: &str) -> Result<Option<String>, SystemError> {
        Ok(self.states.get(&(resource, name.to_owned())).cloned())
    }

    fn set_state(
        &mut self,
        resource: Resource,
        name: &str,
        state: Option<&str>,
    ) -> Result<(), SystemError> {
        self.changes("setting the state of", name)?;
        let key = (resource, name.to_owned());
        match state {
            Some(state) => {
                self.states.insert(key, state.to_owned());
            }
            None => {
                self.states.remove(&key);
            }
        }
        Ok(())
    }

    fn command(&mut self, command: &str, _limit: Duration) -> Result<i32, SystemError> {
        self.ran.push(command.to_owned());
        Ok(self.commands.get(command).copied().unwrap_or(127))
    }
}
