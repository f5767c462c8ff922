//! What methods need of a machine: its files, and what its programs know and change.

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
    /// The number of its user.
    pub owner: u32,
    /// The number of its group.
    pub group: u32,
}

/// The files of a machine. Reading takes `&self`: whoever has only that cannot change anything.
/// Each call fails where the machine cannot do it; what else is wrong, it says itself.
pub trait Files {
    /// What is at a path; none if there is nothing.
    fn stat(&self, path: &str) -> Result<Option<Stat>, SystemError>;

    /// The names of what is in a directory, sorted, at most `limit`.
    ///
    /// # Errors
    /// It is no directory, has more, or cannot be read.
    fn list(&self, path: &str, limit: usize) -> Result<Vec<String>, SystemError>;

    /// The content of a file of at most `limit` bytes; none if there is nothing.
    ///
    /// # Errors
    /// It is no file, too long, or cannot be read.
    fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, SystemError>;

    /// The content of a file that came with the agent, from the folder of its resources.
    ///
    /// # Errors
    /// There is none of this name, it is too long, or the agent has no such folder.
    fn resource(&self, name: &str, limit: usize) -> Result<Vec<u8>, SystemError>;

    /// Makes this the content of a file, at once and wholly; permissions stay.
    fn write(&mut self, path: &str, content: &[u8]) -> Result<(), SystemError>;

    /// Removes a file, a link, or an empty directory; with `all`, a directory with what is in it.
    fn remove(&mut self, path: &str, all: bool) -> Result<(), SystemError>;

    /// Makes a directory, and those above it.
    fn make_directory(&mut self, path: &str) -> Result<(), SystemError>;

    /// Makes a symbolic link, in the place of another or of a file.
    fn link(&mut self, path: &str, target: &str) -> Result<(), SystemError>;

    /// Sets permissions. A link is not followed.
    fn set_mode(&mut self, path: &str, mode: u32) -> Result<(), SystemError>;

    /// Sets the numbers of user and group; those that are none stay. A link is not followed.
    fn set_owner(
        &mut self,
        path: &str,
        owner: Option<u32>,
        group: Option<u32>,
    ) -> Result<(), SystemError>;
}

/// What installs packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manager {
    /// `apt-get`, beside dpkg.
    Apt,
    /// `dnf`, beside rpm.
    Dnf,
    /// `yum`, beside rpm.
    Yum,
    /// `zypper`, beside rpm.
    Zypper,
}

/// Which package is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its architecture; none: that of the machine.
    pub architecture: Option<String>,
    /// What installs it; none: what the machine has.
    pub manager: Option<Manager>,
}

/// A package that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its version, as the package manager tells it.
    pub version: String,
    /// Its architecture.
    pub architecture: String,
}

/// A service, in systemd's words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service {
    /// `loaded`, `not-found`, `masked`…
    pub loaded: String,
    /// `active`, `inactive`, `failed`…
    pub active: String,
    /// `enabled`, `disabled`, `static`…; empty if it is none of these.
    pub at_boot: String,
}

/// What is done to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceAction {
    /// It is started.
    Start,
    /// It is stopped.
    Stop,
    /// It is stopped and started.
    Restart,
    /// It reads its settings again.
    Reload,
    /// From now on it starts with the machine.
    Enable,
    /// From now on it does not start with the machine.
    Disable,
}

impl ServiceAction {
    /// systemd's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// The number of its primary group.
    pub gid: u32,
    /// For people.
    pub full_name: String,
    /// Its home.
    pub home: String,
    /// Its shell.
    pub shell: String,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub gid: u32,
    /// Who belongs to it beside those whose primary group it is.
    pub members: Vec<String>,
}

/// The hash of a password, which no message may have.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// What is set for a user that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserChange {
    /// Its number.
    Uid(u32),
    /// Its primary group.
    PrimaryGroup(String),
    /// What people call it.
    FullName(String),
    /// Its home, which is not moved.
    Home(String),
    /// Its shell.
    Shell(String),
    /// Groups beside those that it is in.
    MoreGroups(Vec<String>),
    /// All of its groups but the primary one.
    Groups(Vec<String>),
    /// The hash of its password.
    Password(PasswordHash),
    /// Its password is no longer taken.
    Locked,
}

/// A change that programs of the machine make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Installs a package: of this version, or the newest there is.
    Install(Package, Option<String>),
    /// Removes a package.
    Uninstall(Package),
    /// Does something to a service.
    Service(String, ServiceAction),
    /// Adds a user, without a home.
    AddUser(String),
    /// Deletes a user; its home stays.
    DeleteUser(String),
    /// Changes a user.
    ChangeUser(String, UserChange),
    /// Adds a group.
    AddGroup(String),
    /// Deletes a group.
    DeleteGroup(String),
    /// Has the kernel take all values from the files of `sysctl.d`.
    LoadKernelValues,
    /// Loads a module of the kernel.
    LoadModule(String),
    /// Unloads a module of the kernel.
    UnloadModule(String),
}

/// A request of HTTP of which the status counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET` and so on.
    pub method: String,
    /// Where to; it may have a password.
    pub url: String,
    /// `Name: value`; they may have a password.
    pub headers: Vec<String>,
}

/// A command for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command<'a> {
    /// The command.
    pub text: &'a str,
    /// How long it may take.
    pub limit: Duration,
    /// Bytes of its output that are wanted; of longer ones it is an error, of 0 nobody asks.
    pub output: usize,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// Its exit code.
    pub code: i32,
    /// Its output, if it was wanted.
    pub output: Vec<u8>,
}

/// What a machine knows and does beside its files. Reading takes `&self` here too, but for
/// commands, of which nobody knows. Each call fails where the machine cannot do it.
pub trait Machine {
    /// The installed packages of a name: several of some package managers.
    fn packages(&self, package: &Package) -> Result<Vec<Installed>, SystemError>;

    /// A version that is newer than the installed one and can be had; none if there is none.
    fn update(&self, package: &Package) -> Result<Option<String>, SystemError>;

    /// A service.
    fn service(&self, name: &str) -> Result<Service, SystemError>;

    /// A user by its name; none if there is none.
    fn user(&self, login: &str) -> Result<Option<User>, SystemError>;

    /// The names of all groups that a user is in, its primary one first.
    fn groups_of(&self, login: &str) -> Result<Vec<String>, SystemError>;

    /// The hash of a user's password.
    ///
    /// # Errors
    /// It cannot be found out, which takes root's rights.
    fn password(&self, login: &str) -> Result<PasswordHash, SystemError>;

    /// A group by its name; none if there is none.
    fn group(&self, name: &str) -> Result<Option<Group>, SystemError>;

    /// The value of a parameter of the kernel; none if it has no such parameter.
    fn kernel_value(&self, key: &str) -> Result<Option<String>, SystemError>;

    /// Is a module of the kernel loaded, or part of it?
    fn module_is_loaded(&self, name: &str) -> Result<bool, SystemError>;

    /// The status of an answer.
    ///
    /// # Errors
    /// There is no answer.
    fn status(&self, request: &Request) -> Result<u16, SystemError>;

    /// What an earlier run remembered by this key.
    fn remembered(&self, key: &str) -> Result<Option<String>, SystemError>;

    /// Remembers a text for later runs.
    fn remember(&mut self, key: &str, text: &str) -> Result<(), SystemError>;

    /// Changes the machine.
    ///
    /// # Errors
    /// It cannot be changed, or the program that does it failed.
    fn act(&mut self, act: &Act) -> Result<(), SystemError>;

    /// Runs a command by the shell.
    ///
    /// # Errors
    /// It cannot be run, does not end in time, or ends by a signal.
    fn command(&mut self, command: Command<'_>) -> Result<CommandResult, SystemError>;
}

/// A machine.
pub trait System: Files + Machine {}

impl<T: Files + Machine> System for T {}
