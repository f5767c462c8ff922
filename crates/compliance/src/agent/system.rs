//! What methods need of a machine.

use std::time::Duration;

use thiserror::Error;

/// Something on the machine could not be read or changed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{doing} {what}: {problem}")]
pub struct SystemError {
    /// What was being done.
    pub doing: &'static str,
    /// To what.
    pub what: String,
    /// What went wrong.
    pub problem: String,
}

impl SystemError {
    /// An error about doing something to something.
    pub fn new(doing: &'static str, what: &str, problem: impl ToString) -> Self {
        Self {
            doing,
            what: what.chars().take(256).collect(),
            problem: problem.to_string(),
        }
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link and where it leads.
    Symlink(String),
    /// A device, socket or pipe.
    Other,
}

/// What is at a path, and to whom it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// What it is; a link is not followed.
    pub kind: Kind,
    /// Permissions, the lowest twelve bits.
    pub mode: u32,
    /// Its user, by name or number.
    pub owner: String,
    /// Its group, by name or number.
    pub group: String,
}

/// A kind of thing that has a state and a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A package; its state is its version.
    Package,
    /// A running service; its state is `running`.
    ServiceRunning,
    /// A service that starts with the machine; its state is `enabled`.
    ServiceEnabled,
    /// A user; its state is `present`.
    User,
    /// A group; its state is `present`.
    Group,
    /// A kernel parameter; its state is its value.
    Sysctl,
}

/// A machine. Reading takes `&self`: whoever has only that cannot change anything.
pub trait System {
    /// What is at a path; none if there is nothing.
    ///
    /// # Errors
    /// It cannot be found out.
    fn stat(&self, path: &str) -> Result<Option<Stat>, SystemError>;

    /// The content of a file of at most `limit` bytes; none if there is nothing.
    ///
    /// # Errors
    /// It is no file, too long, or cannot be read.
    fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, SystemError>;

    /// Makes this the content of a file, at once and wholly; permissions stay.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&mut self, path: &str, content: &[u8]) -> Result<(), SystemError>;

    /// Removes a file, a link, or an empty directory; with `all`, a directory with what is in it.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&mut self, path: &str, all: bool) -> Result<(), SystemError>;

    /// Makes a directory, and those above it.
    ///
    /// # Errors
    /// It cannot be made.
    fn make_directory(&mut self, path: &str) -> Result<(), SystemError>;

    /// Makes a symbolic link, in the place of another.
    ///
    /// # Errors
    /// It cannot be made.
    fn link(&mut self, path: &str, target: &str) -> Result<(), SystemError>;

    /// Sets permissions.
    ///
    /// # Errors
    /// They cannot be set.
    fn set_mode(&mut self, path: &str, mode: u32) -> Result<(), SystemError>;

    /// Sets user and group; those that are none stay.
    ///
    /// # Errors
    /// They cannot be set, or are not known.
    fn set_owner(
        &mut self,
        path: &str,
        owner: Option<&str>,
        group: Option<&str>,
    ) -> Result<(), SystemError>;

    /// The state of a package, service, user, group or kernel parameter; none if it is absent.
    ///
    /// # Errors
    /// It cannot be found out.
    fn state(&self, resource: Resource, name: &str) -> Result<Option<String>, SystemError>;

    /// Sets such a state. An empty one of a package means any version.
    ///
    /// # Errors
    /// It cannot be set.
    fn set_state(
        &mut self,
        resource: Resource,
        name: &str,
        state: Option<&str>,
    ) -> Result<(), SystemError>;

    /// Runs a command by the shell, for at most this long, and gives its exit code.
    ///
    /// # Errors
    /// It cannot be run, or does not end in time.
    fn command(&mut self, command: &str, limit: Duration) -> Result<i32, SystemError>;
}
