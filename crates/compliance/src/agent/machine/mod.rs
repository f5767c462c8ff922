//! What this machine knows and does beside its files, by its own programs: package managers,
//! systemd, the databases of users and groups, the kernel's files, curl, and the shell. What each
//! is asked and what its answer means is pure ([`packages`], [`accounts`], [`requests`]).

mod accounts;
mod kernel;
mod packages;
mod remembered;
mod requests;
mod services;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::disk::Disk;
use super::programs::{Call, Ended, PATH, run};
use super::system::{
    Act, Command, CommandResult, Files, Group, Installed, Machine, Manager, Package, PasswordHash,
    Request, Service, SystemError, User,
};
use accounts::{changed, entry, groups_of};
use packages::Args;

/// Longest time of a program that is only asked.
const ASKED: Duration = Duration::from_secs(60);
/// Longest time of one that changes a user, a group or the kernel.
const CHANGE: Duration = Duration::from_secs(60);
/// Longest time of one that does something to a service; systemd gives up after 90 s by default.
const SERVICE: Duration = Duration::from_secs(150);
/// Longest time of a package manager that changes something.
const PACKAGES: Duration = Duration::from_secs(900);
/// Longest time of a request.
const REQUEST: Duration = Duration::from_secs(30);
/// Bytes of an answer of a program.
const ANSWER: usize = 4 << 20;
/// Bytes of a database of users or groups below another root, or of a file of the kernel.
const DATABASE: usize = 16 << 20;

/// Where the machine's programs and its kernel's files are, and where the agent keeps what it
/// remembers.
#[derive(Debug)]
pub struct Site {
    /// The list of folders of programs.
    pub path: OsString,
    /// What `proc`, `sys` and `run` are below.
    pub kernel: PathBuf,
    /// The agent's own folder; none: it remembers nothing, and has no resources.
    pub folder: Option<PathBuf>,
    /// Do the programs know and change what is below the root, even if that is not `/`?
    pub of_root: bool,
    /// Does the package manager know since the start of this run what there is?
    learnt: AtomicBool,
}

impl Default for Site {
    fn default() -> Self {
        Self {
            path: PATH.into(),
            kernel: "/".into(),
            folder: None,
            of_root: false,
            learnt: AtomicBool::new(false),
        }
    }
}

impl Site {
    /// The machine's own places, and an agent's folder.
    pub fn with_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into()),
            ..Self::default()
        }
    }

    fn has(&self, program: &str) -> bool {
        std::env::split_paths(&self.path).any(|folder| folder.join(program).is_file())
    }
}

const ENVIRONMENT: [(&str, &str); 2] = [
    // Installing packages asks nobody.
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
];

impl Disk {
    /// What changes or knows the machine may not be asked for what is below another root.
    fn here(&self, doing: &'static str, what: &str, who: &str) -> Result<(), SystemError> {
        if self.is_the_machine() {
            return Ok(());
        }
        let root = self.root.display();
        let problem = format!(
            "this agent takes {root} for /; {who} on the machine itself only, which is left alone"
        );
        Err(SystemError::new(doing, what, problem))
    }

    fn run(
        &self,
        (doing, what): (&'static str, &str),
        args: &[String],
        input: &str,
        limit: Duration,
    ) -> Result<Ended, SystemError> {
        let all: Vec<&str> = args.iter().map(String::as_str).collect();
        let (program, args) = all.split_first().map_or(("", &[][..]), |(a, b)| (*a, b));
        let failed = |problem: String| {
            let problem = format!("{program}: {problem}");
            SystemError::new(doing, what, problem)
        };
        let call = Call {
            program,
            args,
            env: &ENVIRONMENT,
            input: input.as_bytes(),
            limit,
            kept: ANSWER,
        };
        let ended = run(&self.site.path, &call).map_err(|error| failed(error.to_string()))?;
        if ended.output.cut {
            return Err(failed(format!("it answered with more than {ANSWER} bytes")));
        }
        Ok(ended)
    }

    /// Runs a program that changes something, and must end with 0. What it says is told unless
    /// its input is secret.
    fn change(
        &self,
        (doing, what): (&'static str, &str),
        args: &[String],
        input: &str,
        limit: Duration,
    ) -> Result<(), SystemError> {
        let ended = self.run((doing, what), args, input, limit)?;
        if ended.status.success() {
            return Ok(());
        }
        let program = args.first().map_or("", String::as_str);
        let told = match input {
            "" => ended.describe(),
            _ => ended.status.to_string(),
        };
        Err(SystemError::new(doing, what, format!("{program}: {told}")))
    }

    fn manager(&self, package: &Package) -> Result<Manager, SystemError> {
        const DOING: &str = "finding the package manager for";
        self.here(DOING, &package.name, "packages are managed")?;
        if let Some(manager) = package.manager {
            return Ok(manager);
        }
        let mut all = Manager::ALL.into_iter();
        let found = all.find(|manager| self.site.has(manager.program()));
        found.ok_or_else(|| {
            let problem = format!(
                "there is none of apt-get, dnf, yum and zypper in {}",
                self.site.path.display()
            );
            SystemError::new(DOING, &package.name, problem)
        })
    }

    /// An entry of a database: asked for by `getent`, or read below another root.
    fn entry<T>(
        &self,
        database: &str,
        name: &str,
        read: impl for<'t> Fn(&'t str) -> Option<(&'t str, T)>,
    ) -> Result<Option<T>, SystemError> {
        const DOING: &str = "looking up";
        let text = if self.is_the_machine() {
            let asked = ["getent", database, name].map(str::to_owned);
            let ended = self.run((DOING, name), &asked, "", ASKED)?;
            match ended.status.code() {
                Some(0) => ended.text(),
                // No such entry.
                Some(2) => return Ok(None),
                _ => return Err(SystemError::new(DOING, name, ended.describe())),
            }
        } else {
            self.database(database)?
        };
        Ok(entry(&text, name, read))
    }

    /// A database below another root.
    fn database(&self, name: &str) -> Result<String, SystemError> {
        let content = self.read(&format!("/etc/{name}"), DATABASE)?;
        Ok(String::from_utf8_lossy(&content.unwrap_or_default()).into_owned())
    }

    fn install(&self, package: &Package, manager: Manager, args: &Args) -> Result<(), SystemError> {
        let what = ("installing", package.name.as_str());
        let Err(first) = self.change(what, args, "", PACKAGES) else {
            return Ok(());
        };
        let Some(learn) = packages::learn(manager) else {
            return Err(first);
        };
        // It may know too little of what there is: it learns once in a run.
        let learnt = self.site.learnt.swap(true, Ordering::Relaxed);
        if learnt || self.change(what, &learn, "", PACKAGES).is_err() {
            return Err(first);
        }
        self.change(what, args, "", PACKAGES)
    }
}

impl Machine for Disk {
    fn packages(&self, package: &Package) -> Result<Vec<Installed>, SystemError> {
        let manager = self.manager(package)?;
        let (doing, name) = ("looking up the package", package.name.as_str());
        let asked = packages::installed(manager, name);
        let ended = self.run((doing, name), &asked, "", ASKED)?;
        match ended.status.code() {
            // 1: none of this name.
            Some(0 | 1) => Ok(packages::of_list(&ended.text(), package)),
            _ => Err(SystemError::new(doing, name, ended.describe())),
        }
    }

    fn update(&self, package: &Package) -> Result<Option<String>, SystemError> {
        let manager = self.manager(package)?;
        let (doing, name) = ("asking for updates of", package.name.as_str());
        let asked = packages::updates(manager, package);
        let ended = self.run((doing, name), &asked, "", PACKAGES)?;
        if !packages::is_answer(manager, ended.status.code()) {
            return Err(SystemError::new(doing, name, ended.describe()));
        }
        Ok(packages::newer(manager, &ended.text(), package))
    }

    fn service(&self, name: &str) -> Result<Service, SystemError> {
        self.service_of_systemd(name)
    }

    fn user(&self, login: &str) -> Result<Option<User>, SystemError> {
        self.entry("passwd", login, accounts::user)
    }

    fn groups_of(&self, login: &str) -> Result<Vec<String>, SystemError> {
        const DOING: &str = "looking up the groups of";
        if self.is_the_machine() {
            let asked = ["id", "--groups", "--name", "--zero", "--", login].map(str::to_owned);
            let ended = self.run((DOING, login), &asked, "", ASKED)?;
            if !ended.status.success() {
                return Err(SystemError::new(DOING, login, ended.describe()));
            }
            let text = ended.text();
            let names = text.split('\0').filter(|name| !name.is_empty());
            return Ok(names.map(str::to_owned).collect());
        }
        let gid = self.user(login)?.map(|user| user.gid);
        let gid = gid.ok_or_else(|| SystemError::new(DOING, login, "there is no such user"))?;
        Ok(groups_of(&self.database("group")?, login, gid))
    }

    fn password(&self, login: &str) -> Result<PasswordHash, SystemError> {
        let found = self.entry("shadow", login, accounts::password)?;
        found.ok_or_else(|| {
            let problem = "its entry of shadow cannot be read; an agent needs root's rights for it";
            SystemError::new("looking up the password of", login, problem)
        })
    }

    fn group(&self, name: &str) -> Result<Option<Group>, SystemError> {
        self.entry("group", name, accounts::group)
    }

    fn kernel_value(&self, key: &str) -> Result<Option<String>, SystemError> {
        self.value_of_kernel(key)
    }

    fn module_is_loaded(&self, name: &str) -> Result<bool, SystemError> {
        self.has_module(name)
    }

    fn status(&self, request: &Request) -> Result<u16, SystemError> {
        let doing = "asking";
        // What follows may be secret.
        let shown = request.url.split(['?', '#']).next().unwrap_or_default();
        let shown = match (shown.split_once("://"), shown.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            _ => shown.to_owned(),
        };
        self.here(doing, &shown, "requests are made")?;
        let args = std::iter::once("curl").chain(requests::ARGS);
        let args: Vec<_> = args.map(str::to_owned).collect();
        let input = requests::input(request, REQUEST.as_secs());
        let ended = self.run((doing, &shown), &args, &input, REQUEST + ASKED)?;
        let code = ended.text().trim().parse().ok();
        match code.filter(|code| *code > 0) {
            Some(code) if ended.status.success() => Ok(code),
            _ => {
                // Its number is curl's, which has no secret; what it said may have the address.
                let problem = format!("curl: {}", ended.status);
                Err(SystemError::new(doing, &shown, problem))
            }
        }
    }

    fn remembered(&self, key: &str) -> Result<Option<String>, SystemError> {
        Ok(self.all_remembered(key)?.remove(key))
    }

    fn remember(&mut self, key: &str, text: &str) -> Result<(), SystemError> {
        self.keep(key, text)
    }

    fn act(&mut self, act: &Act) -> Result<(), SystemError> {
        const USERS: &str = "users are managed";
        const GROUPS: &str = "groups are managed";
        const KERNEL: &str = "the kernel is asked";
        let (who, doing, name, command) = match act {
            Act::Install(package, version) => {
                let manager = self.manager(package)?;
                let args = match version {
                    None if !self.packages(package)?.is_empty() => {
                        packages::upgrade(manager, package)
                    }
                    version => packages::install(manager, package, version.as_deref()),
                };
                return self.install(package, manager, &args);
            }
            Act::Uninstall(package) => {
                let manager = self.manager(package)?;
                let args = packages::remove(manager, package);
                return self.change(("removing", &package.name), &args, "", PACKAGES);
            }
            Act::Service(name, action) => {
                let word = action.word();
                self.here(word, name, "services are managed")?;
                let args = ["systemctl", word, "--", name.as_str()].map(str::to_owned);
                return self.change((word, name), &args, "", SERVICE);
            }
            Act::ChangeUser(login, change) => {
                self.here("changing the user", login, USERS)?;
                let (args, input) = changed(login, change);
                return self.change(("changing the user", login), &args, &input, CHANGE);
            }
            Act::LoadKernelValues => {
                self.here("loading", "sysctl.d", KERNEL)?;
                let args = ["sysctl", "--quiet", "--system"].map(str::to_owned);
                // It fails if any value of any file does; whether this one holds is looked up.
                let ended = self.run(("loading", "sysctl.d"), &args, "", CHANGE);
                return ended.map(drop);
            }
            Act::AddUser(login) => (USERS, "adding the user", login, "useradd --no-create-home"),
            Act::DeleteUser(login) => (USERS, "deleting the user", login, "userdel"),
            Act::AddGroup(name) => (GROUPS, "adding the group", name, "groupadd"),
            Act::DeleteGroup(name) => (GROUPS, "deleting the group", name, "groupdel"),
            Act::LoadModule(name) => (KERNEL, "loading the module", name, "modprobe"),
            Act::UnloadModule(name) => (KERNEL, "unloading the module", name, "modprobe --remove"),
        };
        self.here(doing, name, who)?;
        let args = command.split(' ').chain(["--", name.as_str()]);
        let args: Args = args.map(str::to_owned).collect();
        self.change((doing, name), &args, "", CHANGE)
    }

    fn command(&mut self, command: Command<'_>) -> Result<CommandResult, SystemError> {
        let text = command.text;
        let failed = |problem: String| SystemError::new("running", text, problem);
        self.here("running", text, "commands are run")?;
        let call = Call {
            program: "/bin/sh",
            args: &["-c", text],
            env: &[],
            input: b"",
            limit: command.limit,
            kept: command.output,
        };
        let ended = run(&self.site.path, &call).map_err(|error| failed(error.to_string()))?;
        if ended.output.cut {
            let most = command.output;
            return Err(failed(format!("its output is longer than {most} bytes")));
        }
        let code = ended.status.code();
        Ok(CommandResult {
            code: code.ok_or_else(|| failed(ended.status.to_string()))?,
            output: ended.output.bytes,
        })
    }
}
