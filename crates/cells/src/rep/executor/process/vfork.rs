//! Starting a program without copying the rep.
//!
//! `fork` copies the page tables of the whole rep, and each page that the rep
//! writes afterwards is copied as well: milliseconds per child in a large process.
//! Here the child borrows the rep's memory instead, on a stack of its own and with
//! the starting thread held, until it becomes the program; `posix_spawn` does the
//! same but cannot tie the child's life to ours.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use nix::errno::Errno;
use nix::libc::{self, c_char, c_int};
use nix::sched::{CloneFlags, clone};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd::{AccessFlags, Pid, access};

/// Bytes of the stack on which a child lives until it becomes the program.
const STACK_BYTES: usize = 64 * 1024;
/// Status of a child that could not become the program.
const NOT_STARTED: c_int = 127;

/// A stack for children, used by one at a time.
pub(super) struct Stack(Vec<u8>);

impl Stack {
    pub(super) fn new() -> Self {
        Self(vec![0; STACK_BYTES])
    }
}

/// A program with all that it starts with, in the form that the kernel takes.
pub(super) struct Program {
    path: CString,
    args: Vec<CString>,
    env: Vec<CString>,
    folder: CString,
    files_max: Option<u64>,
    input: OwnedFd,
    output: Option<OwnedFd>,
}

impl Program {
    /// The program at `path`, to start in `folder` with exactly this environment. A
    /// relative path with a slash is taken from `home`, a bare name is looked up in
    /// the environment's `PATH`.
    ///
    /// # Errors
    /// When there is no such program, or a text holds a NUL.
    pub(super) fn new(
        home: &Path,
        path: &str,
        args: &[String],
        folder: &Path,
        env: BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let found = if path.contains('/') {
            home.join(path)
        } else {
            look_up(path, env.get("PATH").map_or("", String::as_str))?
        };
        let mut all = vec![text(OsStr::new(path))?];
        for arg in args {
            all.push(text(OsStr::new(arg))?);
        }
        let pairs = env
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"));
        Ok(Self {
            path: text(found.as_os_str())?,
            args: all,
            env: pairs
                .map(|pair| text(OsStr::new(&pair)))
                .collect::<io::Result<_>>()?,
            folder: text(folder.as_os_str())?,
            files_max: None,
            input: File::open("/dev/null")?.into(),
            output: None,
        })
    }

    /// Bounds the files that it may have open.
    pub(super) fn limit_files(mut self, most: Option<u64>) -> Self {
        self.files_max = most;
        self
    }

    /// Where its output and errors go; nowhere otherwise.
    pub(super) fn write_to(&mut self, output: OwnedFd) {
        self.output = Some(output);
    }

    /// Starts it as the leader of a new process group that the kernel kills when
    /// the calling thread ends, and returns a descriptor to wait with.
    ///
    /// # Errors
    /// What the kernel said to the step that failed.
    pub(super) fn spawn(&self, stack: &mut Stack) -> io::Result<(Pid, OwnedFd)> {
        let args = pointers(&self.args);
        let env = pointers(&self.env);
        let limit = self.files_max.map(|files| libc::rlimit {
            rlim_cur: files,
            rlim_max: files,
        });
        let input = self.input.as_raw_fd();
        let output = self.output.as_ref().map_or(input, AsRawFd::as_raw_fd);
        let mut failed: c_int = 0;
        let failure = ptr::addr_of_mut!(failed);
        let child = || -> isize {
            // SAFETY: the child shares our memory while this thread is held in
            // `clone`. It makes system calls only, which neither allocate nor take
            // locks, reads what was prepared above, and writes `failed`.
            unsafe {
                *failure = become_program(
                    self.path.as_ptr(),
                    args.as_ptr(),
                    env.as_ptr(),
                    self.folder.as_ptr(),
                    limit.as_ref(),
                    [input, output, output],
                );
                libc::_exit(NOT_STARTED)
            }
        };
        // A signal must not run one of our handlers in the child.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: `stack` belongs to the child alone until it has become the program
        // or ended, which is when `clone` returns.
        let cloned = unsafe { clone(Box::new(child), &mut stack.0, flags, Some(libc::SIGCHLD)) };
        before.thread_set_mask()?;
        let pid = cloned?;
        // SAFETY: the child wrote `failed`, if at all, before `clone` returned.
        let failed = unsafe { ptr::read_volatile(failure) };
        if failed != 0 {
            nix::sys::wait::waitpid(pid, None)?;
            return Err(Errno::from_raw(failed).into());
        }
        Ok((pid, watch(pid)?))
    }
}

/// A descriptor that becomes readable when the process ends. The process has not
/// been waited for, so the number is still its own.
fn watch(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    let fd = Errno::result(fd)?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(c_int::try_from(fd).map_err(io::Error::other)?) })
}

/// Turns the child into the program; returns the error number of what failed.
///
/// # Safety
/// Only in a child that nobody else's memory depends on; pointers must be valid and
/// lists must end with a null pointer.
unsafe fn become_program(
    path: *const c_char,
    args: *const *const c_char,
    env: *const *const c_char,
    folder: *const c_char,
    limit: Option<&libc::rlimit>,
    standard: [c_int; 3],
) -> c_int {
    // SAFETY: plain system calls with valid arguments, see above.
    unsafe {
        // Rust ignores this one, and what is ignored stays so in a program.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let limited = |limit| libc::setrlimit(libc::RLIMIT_NOFILE, limit) >= 0;
        let prepared = libc::setpgid(0, 0) >= 0
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) >= 0
            && libc::chdir(folder) >= 0
            && limit.is_none_or(|limit| limited(limit))
            && (0..)
                .zip(standard)
                .all(|(number, fd)| libc::dup2(fd, number) >= 0);
        if !prepared {
            return Errno::last_raw();
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        libc::execve(path, args, env);
        Errno::last_raw()
    }
}

/// The file that a bare name stands for.
fn look_up(name: &str, path: &str) -> io::Result<PathBuf> {
    let places = path.split(':').filter(|place| !place.is_empty());
    places
        .map(|place| Path::new(place).join(name))
        .find(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("not found in {path}")))
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::other)
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    let texts = texts.iter().map(|text| text.as_ptr());
    texts.chain([ptr::null()]).collect()
}
