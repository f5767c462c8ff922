//! A machine that exists only in memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::system::{
    Act, Command, CommandResult, Files, Group, Installed, Kind, Machine, Package, PasswordHash,
    Request, Service, ServiceAction, Stat, SystemError, User, UserChange,
};

/// What a package manager of a machine in memory knows of a package.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct MemoryPackage {
    /// The version that is installed.
    pub(super) installed: Option<String>,
    /// Versions that can be had, the newest last.
    pub(super) known: Vec<String>,
}

/// A user of a machine in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemoryUser {
    /// What is in its entry.
    pub(super) entry: User,
    /// The hash of its password.
    pub(super) password: PasswordHash,
}

/// A machine in memory: what is not in it is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Memory {
    /// What is at each path, and the content of files.
    pub(super) files: BTreeMap<String, (Stat, Vec<u8>)>,
    /// Files that came with the agent.
    pub(super) resources: BTreeMap<String, Vec<u8>>,
    /// Packages.
    pub(super) packages: BTreeMap<String, MemoryPackage>,
    /// Services.
    pub(super) services: BTreeMap<String, Service>,
    /// Users.
    pub(super) users: BTreeMap<String, MemoryUser>,
    /// Groups.
    pub(super) groups: BTreeMap<String, Group>,
    /// Parameters of the kernel.
    pub(super) kernel: BTreeMap<String, String>,
    /// Modules of the kernel that are loaded.
    pub(super) modules: BTreeSet<String>,
    /// Statuses of answers by address.
    pub(super) statuses: BTreeMap<String, u16>,
    /// What earlier runs remembered.
    pub(super) memory: BTreeMap<String, String>,
    /// Exit codes and outputs of commands; others end with 127.
    pub(super) commands: BTreeMap<String, (i32, String)>,
    /// Commands and changes that were made, in their order.
    pub(super) ran: Vec<String>,
    /// Nothing can be changed at these names and paths.
    pub(super) broken: Vec<String>,
    /// Changes of these names are said to be made, and are not.
    pub(super) feigned: Vec<String>,
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
            owner: 0,
            group: 0,
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

    /// Adds a user with a group of its own, by the next numbers.
    pub(super) fn add_user(&mut self, login: &str) {
        self.add_group(login);
        let uid = 1_000 + u32::try_from(self.users.len()).unwrap_or_default();
        let entry = User {
            uid,
            gid: self.groups[login].gid,
            full_name: String::new(),
            home: format!("/home/{login}"),
            shell: "/bin/sh".into(),
        };
        let password = PasswordHash("!".into());
        self.users
            .insert(login.to_owned(), MemoryUser { entry, password });
    }

    /// Adds a group, by the next number.
    pub(super) fn add_group(&mut self, name: &str) {
        let gid = 1_000 + u32::try_from(self.groups.len()).unwrap_or_default();
        let members = Vec::new();
        self.groups
            .entry(name.to_owned())
            .or_insert(Group { gid, members });
    }

    fn change_user(&mut self, login: &str, change: &UserChange) -> Result<(), SystemError> {
        let error = |problem: &str| SystemError::new("changing the user", login, problem);
        let gid = match change {
            UserChange::PrimaryGroup(name) => {
                let group = self.groups.get(name);
                group.ok_or_else(|| error("there is no such group"))?.gid
            }
            _ => 0,
        };
        let user = self.users.get_mut(login);
        let user = user.ok_or_else(|| error("there is no such user"))?;
        match change {
            UserChange::Uid(uid) => user.entry.uid = *uid,
            UserChange::PrimaryGroup(_) => user.entry.gid = gid,
            UserChange::FullName(name) => user.entry.full_name.clone_from(name),
            UserChange::Home(home) => user.entry.home.clone_from(home),
            UserChange::Shell(shell) => user.entry.shell.clone_from(shell),
            UserChange::Password(hash) => user.password = hash.clone(),
            UserChange::Locked => user.password.0.insert(0, '!'),
            UserChange::MoreGroups(names) | UserChange::Groups(names) => {
                let all = matches!(change, UserChange::Groups(_));
                for (name, group) in &mut self.groups {
                    let wanted = names.contains(name);
                    let had = group.members.iter().any(|member| member == login);
                    if all && had && !wanted {
                        group.members.retain(|member| member != login);
                    } else if wanted && !had {
                        group.members.push(login.to_owned());
                    }
                }
            }
        }
        Ok(())
    }
}

impl Files for Memory {
    fn stat(&self, path: &str) -> Result<Option<Stat>, SystemError> {
        Ok(self.files.get(path).map(|(stat, _)| stat.clone()))
    }

    fn list(&self, path: &str, limit: usize) -> Result<Vec<String>, SystemError> {
        let within = format!("{}/", path.trim_end_matches('/'));
        let inside = self
            .files
            .keys()
            .filter_map(|one| one.strip_prefix(&within));
        let names: BTreeSet<_> = inside.filter(|name| !name.contains('/')).collect();
        if names.len() > limit {
            return Err(SystemError::new("listing", path, "it has too many entries"));
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn resource(&self, name: &str, _limit: usize) -> Result<Vec<u8>, SystemError> {
        let found = self.resources.get(name).cloned();
        found.ok_or_else(|| SystemError::new("reading the shared file", name, "there is none"))
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
        owner: Option<u32>,
        group: Option<u32>,
    ) -> Result<(), SystemError> {
        let stat = self.stat_mut("setting the owner of", path)?;
        stat.owner = owner.unwrap_or(stat.owner);
        stat.group = group.unwrap_or(stat.group);
        Ok(())
    }
}

impl Machine for Memory {
    fn packages(&self, package: &Package) -> Result<Vec<Installed>, SystemError> {
        let found = self.packages.get(&package.name);
        let version = found.and_then(|found| found.installed.clone());
        let installed = version.map(|version| Installed {
            version,
            architecture: "all".into(),
        });
        Ok(installed.into_iter().collect())
    }

    fn update(&self, package: &Package) -> Result<Option<String>, SystemError> {
        let found = self.packages.get(&package.name);
        Ok(found.and_then(|found| {
            let newest = found.known.last()?;
            (found.installed.as_ref() != Some(newest)).then(|| newest.clone())
        }))
    }

    fn service(&self, name: &str) -> Result<Service, SystemError> {
        let missing = || Service {
            loaded: "not-found".into(),
            active: "inactive".into(),
            at_boot: String::new(),
        };
        Ok(self.services.get(name).cloned().unwrap_or_else(missing))
    }

    fn user(&self, login: &str) -> Result<Option<User>, SystemError> {
        Ok(self.users.get(login).map(|user| user.entry.clone()))
    }

    fn groups_of(&self, login: &str) -> Result<Vec<String>, SystemError> {
        let user = self.users.get(login);
        let user = user.ok_or_else(|| SystemError::new("looking up", login, "no such user"))?;
        let (primary, others): (Vec<_>, Vec<_>) = self
            .groups
            .iter()
            .filter(|(_, group)| {
                group.gid == user.entry.gid || group.members.iter().any(|one| one == login)
            })
            .partition(|(_, group)| group.gid == user.entry.gid);
        let all = primary.into_iter().chain(others);
        Ok(all.map(|(name, _)| name.clone()).collect())
    }

    fn password(&self, login: &str) -> Result<PasswordHash, SystemError> {
        let user = self.users.get(login);
        let user = user.ok_or_else(|| SystemError::new("looking up", login, "no such user"))?;
        Ok(user.password.clone())
    }

    fn group(&self, name: &str) -> Result<Option<Group>, SystemError> {
        Ok(self.groups.get(name).cloned())
    }

    fn kernel_value(&self, key: &str) -> Result<Option<String>, SystemError> {
        Ok(self.kernel.get(key).cloned())
    }

    fn module_is_loaded(&self, name: &str) -> Result<bool, SystemError> {
        Ok(self.modules.contains(name))
    }

    fn status(&self, request: &Request) -> Result<u16, SystemError> {
        let found = self.statuses.get(&request.url).copied();
        found.ok_or_else(|| SystemError::new("asking", &request.url, "nobody answers"))
    }

    fn remembered(&self, key: &str) -> Result<Option<String>, SystemError> {
        Ok(self.memory.get(key).cloned())
    }

    fn remember(&mut self, key: &str, text: &str) -> Result<(), SystemError> {
        self.memory.insert(key.to_owned(), text.to_owned());
        Ok(())
    }

    fn act(&mut self, act: &Act) -> Result<(), SystemError> {
        let name = match act {
            Act::Install(package, _) | Act::Uninstall(package) => &package.name,
            Act::Service(name, _)
            | Act::AddUser(name)
            | Act::DeleteUser(name)
            | Act::ChangeUser(name, _)
            | Act::AddGroup(name)
            | Act::DeleteGroup(name)
            | Act::LoadModule(name)
            | Act::UnloadModule(name) => name,
            Act::LoadKernelValues => "sysctl.d",
        };
        let name = name.to_owned();
        let error = |problem: &str| SystemError::new("changing", &name, problem);
        self.changes("changing", &name)?;
        self.ran.push(format!("{act:?}"));
        if self.feigned.contains(&name) {
            return Ok(());
        }
        match act {
            Act::Install(_, version) => {
                let package = self.packages.get_mut(&name);
                let package = package.ok_or_else(|| error("nobody knows of it"))?;
                let version = version.as_ref().or(package.known.last());
                let known = version.filter(|version| package.known.contains(version));
                let known = known.ok_or_else(|| error("there is no such version"))?;
                package.installed = Some(known.clone());
            }
            Act::Uninstall(_) => {
                if let Some(package) = self.packages.get_mut(&name) {
                    package.installed = None;
                }
            }
            Act::Service(_, action) => {
                let service = self.services.get_mut(&name);
                let service = service.ok_or_else(|| error("there is no such service"))?;
                match action {
                    ServiceAction::Start | ServiceAction::Restart => {
                        service.active = "active".into();
                    }
                    ServiceAction::Stop => service.active = "inactive".into(),
                    ServiceAction::Reload => {}
                    ServiceAction::Enable => service.at_boot = "enabled".into(),
                    ServiceAction::Disable => service.at_boot = "disabled".into(),
                }
            }
            Act::AddUser(_) => self.add_user(&name),
            Act::DeleteUser(_) => {
                self.users.remove(&name);
            }
            Act::ChangeUser(_, change) => self.change_user(&name, change)?,
            Act::AddGroup(_) => self.add_group(&name),
            Act::DeleteGroup(_) => {
                self.groups.remove(&name);
            }
            Act::LoadKernelValues => {
                let files = self.files.iter();
                let files = files.filter(|(path, _)| path.starts_with("/etc/sysctl.d/"));
                for (_, (_, content)) in files {
                    let text = String::from_utf8_lossy(content);
                    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
                        if let Some(known) = self.kernel.get_mut(key.trim()) {
                            value.trim().clone_into(known);
                        }
                    }
                }
            }
            Act::LoadModule(_) => {
                self.modules.insert(name);
            }
            Act::UnloadModule(_) => {
                self.modules.remove(&name);
            }
        }
        Ok(())
    }

    fn command(&mut self, command: Command<'_>) -> Result<CommandResult, SystemError> {
        self.ran.push(command.text.to_owned());
        let found = self.commands.get(command.text).cloned();
        let (code, output) = found.unwrap_or((127, String::new()));
        Ok(CommandResult {
            code,
            output: output.into_bytes(),
        })
    }
}
