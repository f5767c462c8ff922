//! Starting a program without copying this process.
//!
//! `fork` copies the page tables of the whole process, and each page that is written
//! afterwards is copied as well: milliseconds per child of a large one. Here the child
//! borrows our memory instead, on a stack of its own and with the starting thread held,
//! until it becomes the program; `posix_spawn` does the same but cannot tie the child's
//! life to ours.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{self, c_char, c_int};
use nix::sched::{CloneFlags, CpuSet, clone};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd::{AccessFlags, Gid, Pid, Uid, access, fchown};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::account::Account;
use crate::process::{AsyncProcess, Process};

/// Bytes of the stack on which a child lives until it becomes the program.
const STACK_BYTES: usize = 64 * 1024;
/// Status of a child that could not become the program.
const NOT_STARTED: c_int = 127;

/// How long a program's file may be open for writing before that is an error, and the time between
/// two tries. Who unpacks a program and then starts it has closed its file; a child that was begun
/// meanwhile holds it until it has become its own program: milliseconds, on a busy machine some tens.
const WRITTEN_FOR: Duration = Duration::from_secs(1);
const WRITTEN_PAUSE: Duration = Duration::from_millis(5);

thread_local! {
    /// A stack for children of this thread, used by one at a time.
    static STACK: RefCell<Vec<u8>> = RefCell::new(vec![0; STACK_BYTES]);
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program itself is not there, or may not be executed.
    #[error("{0}")]
    Program(#[source] io::Error),
    /// Something else that it needs is not to be had.
    #[error("{doing}: {cause}")]
    Needs {
        /// What was being done, with which file.
        doing: String,
        /// What the system said.
        cause: io::Error,
    },
}

impl StartError {
    /// What was being done, with which file, and what the system said.
    pub fn needs(doing: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        Self::Needs {
            doing: doing.into(),
            cause: cause.into(),
        }
    }
}

/// A program with all that it starts with.
#[derive(Debug, Default)]
pub struct Program {
    path: OsString,
    args: Vec<OsString>,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// The folder that it starts in; `None`: ours.
    pub folder: Option<PathBuf>,
    /// Where a relative path of the program begins; `None`: in `folder`.
    pub home: Option<PathBuf>,
    /// Its standard input, output and errors; `None`: `/dev/null`.
    pub standard: [Option<OwnedFd>; 3],
    /// Files that it may have open; `None`: as many as we.
    pub files_max: Option<u64>,
    /// Files that it may have open until it asks for more, which it may as far as we may; `None`:
    /// as many as we. Without effect beside `files_max`.
    pub files_soft: Option<u64>,
    /// Processors that it may run on; `None`: those that we may.
    pub cpus: Option<Vec<u32>>,
    /// Folders of control groups that it is put into.
    pub groups: Vec<PathBuf>,
    /// The file of its network namespace; `None`: ours.
    pub network: Option<PathBuf>,
    /// Whom it runs as, which only root may say; `None`: as we.
    pub account: Option<Account>,
}

impl Program {
    /// The program at `path`, with our environment. A bare name is looked up in the `PATH`
    /// of its environment.
    pub fn new(path: impl Into<OsString>) -> Self {
        Self {
            env: std::env::vars_os().collect(),
            ..Self::without_environment(path)
        }
    }

    /// The program at `path`, with no environment.
    pub fn without_environment(path: impl Into<OsString>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }

    /// With further arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// What it writes: its output, and its errors as well if they go nowhere else. Ours to
    /// read within a runtime.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn output(&mut self) -> Result<Receiver, StartError> {
        let piped = |cause| StartError::needs("make a pipe for its output", cause);
        let (ours, output) = io::pipe().map_err(piped)?;
        if self.standard[2].is_none() {
            self.standard[2] = Some(output.try_clone().map_err(piped)?.into());
        }
        self.standard[1] = Some(output.into());
        Receiver::from_owned_fd(ours.into()).map_err(piped)
    }

    /// Its input, ours to write within a runtime.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn input(&mut self) -> Result<Sender, StartError> {
        let piped = |cause| StartError::needs("make a pipe for its input", cause);
        let (input, ours) = io::pipe().map_err(piped)?;
        self.standard[0] = Some(input.into());
        Sender::from_owned_fd(ours.into()).map_err(piped)
    }

    /// [Starts](Self::spawn) it for tasks of the runtime that wait for it.
    ///
    /// # Errors
    /// See [`Program::spawn`].
    pub fn start(self) -> Result<AsyncProcess, StartError> {
        let process = AsyncProcess::new(self.spawn()?);
        process.map_err(|cause| StartError::needs("watch it", cause))
    }

    /// Starts it as the leader of a new process group that the kernel kills when the
    /// calling thread ends: call it from one that lasts as long as the program may. Returns once it
    /// is the program, which takes a second at most where its file is still being written.
    ///
    /// # Errors
    /// Says which step failed, with which file.
    pub fn spawn(self) -> Result<Process, StartError> {
        let null = open(OpenOptions::new().read(true).write(true), "/dev/null")?;
        let file = self.file().map_err(StartError::Program)?;
        let text = |text: &OsStr| CString::new(text.as_bytes());
        let texts = || -> Result<_, std::ffi::NulError> {
            let args = std::iter::once(&self.path).chain(&self.args);
            let env = self.env.iter().map(|(name, value)| {
                let pair = [name.as_bytes(), value.as_bytes()].join(&b'=');
                CString::new(pair)
            });
            Ok((
                text(file.as_os_str())?,
                args.map(|arg| text(arg)).collect::<Result<Vec<_>, _>>()?,
                env.collect::<Result<Vec<_>, _>>()?,
                self.folder
                    .as_ref()
                    .map(|it| text(it.as_os_str()))
                    .transpose()?,
            ))
        };
        let (file, args, env, folder) =
            texts().map_err(|cause| StartError::needs("pass its words on", cause))?;
        let (args, env) = (pointers(&args), pointers(&env));
        let procs =
            |group: &PathBuf| open(OpenOptions::new().write(true), group.join("cgroup.procs"));
        let groups = self
            .groups
            .iter()
            .map(procs)
            .collect::<Result<Vec<_>, _>>()?;
        let groups: Vec<RawFd> = groups.iter().map(AsRawFd::as_raw_fd).collect();
        let network = self.network.as_ref();
        let network = network
            .map(|it| open(OpenOptions::new().read(true), it))
            .transpose()?;
        let cpus = self.cpus.as_deref().map(cpu_set).transpose()?;
        if let Some(account) = &self.account {
            let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
            for fd in self.standard.iter().flatten() {
                // A program may open what it was given once more, as `/dev/stdout`.
                let given = fchown(fd, Some(uid), Some(gid));
                given.map_err(|cause| StartError::needs("give it its output", cause))?;
            }
        }
        let files = self.files()?;
        let standard = self.standard.each_ref();
        let standard = standard.map(|fd| fd.as_ref().map_or(null.as_raw_fd(), AsRawFd::as_raw_fd));
        let start = Start {
            file: file.as_ptr(),
            args: args.as_ptr(),
            env: env.as_ptr(),
            folder: folder
                .as_ref()
                .map_or(ptr::null(), |folder| folder.as_ptr()),
            standard,
            files,
            cpus,
            groups: &groups,
            network: network.as_ref().map(AsRawFd::as_raw_fd),
            account: self.account.as_ref(),
            parent: Pid::this().as_raw(),
        };
        let started = start.child();
        match started {
            Ok(pid) => Process::watch(pid).map_err(|cause| StartError::needs("watch it", cause)),
            Err((Step::Execute, cause)) => Err(StartError::Program(cause)),
            Err((step, cause)) => Err(StartError::needs(self.describe(step), cause)),
        }
    }

    /// How many files it may have open; `None`: as many as we.
    fn files(&self) -> Result<Option<libc::rlimit>, StartError> {
        if let Some(most) = self.files_max {
            return Ok(Some(libc::rlimit {
                rlim_cur: most,
                rlim_max: most,
            }));
        }
        let Some(soft) = self.files_soft else {
            return Ok(None);
        };
        let limits = getrlimit(Resource::RLIMIT_NOFILE);
        let (_, rlim_max) =
            limits.map_err(|cause| StartError::needs("ask how many files may be open", cause))?;
        Ok(Some(libc::rlimit {
            rlim_cur: soft.min(rlim_max),
            rlim_max,
        }))
    }

    /// The file of the program.
    fn file(&self) -> io::Result<PathBuf> {
        if self.path.as_bytes().contains(&b'/') {
            let home = self.home.as_ref().or(self.folder.as_ref());
            return Ok(home.map_or_else(|| PathBuf::from(&self.path), |home| home.join(&self.path)));
        }
        let path = self.env.get(OsStr::new("PATH"));
        let path = path.map_or(OsStr::new(""), |path| path.as_os_str());
        std::env::split_paths(path)
            .filter(|place| !place.as_os_str().is_empty())
            .map(|place| place.join(&self.path))
            .find(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok())
            .ok_or_else(|| {
                let said = format!("not found in {}", path.display());
                io::Error::new(io::ErrorKind::NotFound, said)
            })
    }

    /// What a step of the child does, for messages.
    fn describe(&self, step: Step) -> String {
        let file = |path: &Option<PathBuf>| path.clone().unwrap_or_default();
        match step {
            Step::Begin => "start a process".to_owned(),
            Step::Tie => "tie it to this process".to_owned(),
            Step::Group => format!("put it into a control group of {:?}", self.groups),
            Step::Network => format!("enter the namespace {}", file(&self.network).display()),
            Step::Folder => format!("enter the folder {}", file(&self.folder).display()),
            Step::Processors => {
                let cpus = self.cpus.as_deref().unwrap_or_default();
                format!("keep it to the processors {cpus:?}")
            }
            Step::Files => "bound and open its files".to_owned(),
            Step::Account => {
                let account = self.account.as_ref();
                let uid = account.map_or(0, |account| account.uid);
                format!("become the user {uid}")
            }
            Step::Execute => format!("execute {}", self.path.display()),
        }
    }
}

fn open(options: &OpenOptions, path: impl AsRef<Path>) -> Result<File, StartError> {
    let path = path.as_ref();
    let opened = options.open(path);
    opened.map_err(|cause| StartError::needs(format!("open {}", path.display()), cause))
}

fn cpu_set(cpus: &[u32]) -> Result<CpuSet, StartError> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        let set = set.set(*cpu as usize);
        set.map_err(|cause| StartError::needs(format!("keep it to processor {cpu}"), cause))?;
    }
    Ok(set)
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    let texts = texts.iter().map(|text| text.as_ptr());
    texts.chain([ptr::null()]).collect()
}

/// What a child does on its way to the program.
#[derive(Debug, Clone, Copy)]
enum Step {
    Begin,
    Tie,
    Group,
    Network,
    Folder,
    Processors,
    Files,
    Account,
    Execute,
}

/// A program in the form that the kernel takes. Lists end with a null pointer.
struct Start<'a> {
    file: *const c_char,
    args: *const *const c_char,
    env: *const *const c_char,
    /// May be null.
    folder: *const c_char,
    standard: [RawFd; 3],
    files: Option<libc::rlimit>,
    cpus: Option<CpuSet>,
    groups: &'a [RawFd],
    network: Option<RawFd>,
    account: Option<&'a Account>,
    parent: libc::pid_t,
}

impl Start<'_> {
    /// A child that has become the program. A program that somebody writes is tried again for
    /// [`WRITTEN_FOR`].
    fn child(&self) -> Result<Pid, (Step, io::Error)> {
        let deadline = Instant::now() + WRITTEN_FOR;
        loop {
            let started = STACK.with_borrow_mut(|stack| match self.account {
                None => self.clone(stack),
                Some(_) => dumpable_as_before(|| self.clone(stack)),
            });
            match started {
                // Not in the child: it may in turn hold the file that another one waits for.
                Err((Step::Execute, cause))
                    if cause.kind() == io::ErrorKind::ExecutableFileBusy
                        && Instant::now() < deadline =>
                {
                    thread::sleep(WRITTEN_PAUSE);
                }
                started => return started,
            }
        }
    }

    fn clone(&self, stack: &mut [u8]) -> Result<Pid, (Step, io::Error)> {
        let mut failed: Option<(Step, c_int)> = None;
        let failure = ptr::addr_of_mut!(failed);
        let child = || -> isize {
            // SAFETY: the child shares our memory while this thread is held in
            // `clone`. It makes system calls only, which neither allocate nor take
            // locks, reads what was prepared above, and writes `failed`.
            unsafe {
                *failure = Some(self.become_program());
                libc::_exit(NOT_STARTED)
            }
        };
        let begin = |cause: Errno| (Step::Begin, cause.into());
        // A signal must not run one of our handlers in the child.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
        let before = before.map_err(begin)?;
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: `stack` belongs to the child alone until it has become the program
        // or ended, which is when `clone` returns.
        let cloned = unsafe { clone(Box::new(child), stack, flags, Some(libc::SIGCHLD)) };
        before.thread_set_mask().map_err(begin)?;
        let pid = cloned.map_err(begin)?;
        // SAFETY: the child wrote `failed`, if at all, before `clone` returned.
        match unsafe { ptr::read_volatile(failure) } {
            None => Ok(pid),
            Some((step, number)) => {
                nix::sys::wait::waitpid(pid, None).map_err(begin)?;
                Err((step, Errno::from_raw(number).into()))
            }
        }
    }

    /// Turns the child into the program; returns the step that failed, with its error
    /// number.
    ///
    /// # Safety
    /// Only in a child that nobody else's memory depends on; pointers must be valid and
    /// lists must end with a null pointer.
    unsafe fn become_program(&self) -> (Step, c_int) {
        // SAFETY: plain system calls with valid arguments, see above.
        unsafe {
            // Rust ignores this one, and what is ignored stays so in a program.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            if libc::setpgid(0, 0) < 0 {
                return (Step::Tie, Errno::last_raw());
            }
            if let Err(number) = self.tie() {
                return (Step::Tie, number);
            }
            for group in self.groups {
                // 0: whoever writes.
                if libc::write(*group, c"0".as_ptr().cast(), 1) < 0 {
                    return (Step::Group, Errno::last_raw());
                }
            }
            let entered = |network| libc::setns(network, libc::CLONE_NEWNET) >= 0;
            if !self.network.is_none_or(entered) {
                return (Step::Network, Errno::last_raw());
            }
            let pinned = |cpus| nix::sched::sched_setaffinity(Pid::from_raw(0), cpus).is_ok();
            if !self.cpus.as_ref().is_none_or(pinned) {
                return (Step::Processors, Errno::last_raw());
            }
            let limited = |limit: &libc::rlimit| libc::setrlimit(libc::RLIMIT_NOFILE, limit) >= 0;
            let files = self.files.as_ref().is_none_or(limited)
                && (0..)
                    .zip(self.standard)
                    .all(|(number, fd)| libc::dup2(fd, number) >= 0);
            if !files {
                return (Step::Files, Errno::last_raw());
            }
            if let Some(account) = self.account {
                if !become_account(account) {
                    return (Step::Account, Errno::last_raw());
                }
                // With another user the kernel forgets the tie.
                if let Err(number) = self.tie() {
                    return (Step::Tie, number);
                }
            }
            // As the user that it is now: another may not enter it.
            if !self.folder.is_null() && libc::chdir(self.folder) < 0 {
                return (Step::Folder, Errno::last_raw());
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
            libc::execve(self.file, self.args, self.env);
            (Step::Execute, Errno::last_raw())
        }
    }

    /// Has the child killed when the thread that started it ends.
    ///
    /// # Safety
    /// See [`Start::become_program`].
    unsafe fn tie(&self) -> Result<(), c_int> {
        // SAFETY: plain system calls.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
                return Err(Errno::last_raw());
            }
            // If we died before the line above, the kernel would never tell the child.
            match libc::getppid() == self.parent {
                true => Ok(()),
                false => Err(libc::ESRCH),
            }
        }
    }
}

/// Takes the account for good; false: the kernel refused.
///
/// # Safety
/// See [`Start::become_program`].
unsafe fn become_account(account: &Account) -> bool {
    let Account { uid, gid, groups } = account;
    // SAFETY: system calls with valid arguments. The library's functions would change every
    // thread of the process whose memory this is.
    unsafe {
        libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) >= 0
            && libc::syscall(libc::SYS_setresgid, *gid, *gid, *gid) >= 0
            && libc::syscall(libc::SYS_setresuid, *uid, *uid, *uid) >= 0
    }
}

/// A child that takes another user makes the memory that it borrows private, and that is ours.
fn dumpable_as_before<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: this reads and writes nothing but a flag of this process.
    let before = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) };
    let started = start();
    if before == 1 {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
    }
    started
}

#[cfg(test)]
mod tests;
