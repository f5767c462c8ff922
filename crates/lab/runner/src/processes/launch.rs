//! One process to start.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit};
use processes::{AsyncProcess, Program, StartError};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::installed::server;

/// Where a child's standard output goes.
#[derive(Debug, Clone)]
pub(crate) enum Output {
    /// Straight into a file, so that nothing is lost when we die.
    File(PathBuf),
    /// To us; its standard input comes from us as well.
    Pipes,
}

/// What a child is written to, and what it writes.
pub(crate) type Pipes = (Sender, Receiver);

/// A process to start.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// Its name in messages and events.
    pub(crate) name: String,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Added to our environment.
    pub(crate) env: Vec<(String, String)>,
    /// Processors it may run on; `None`: all.
    pub(crate) cpus: Option<Vec<u32>>,
    /// The cgroup it runs in.
    pub(crate) cgroup: Option<PathBuf>,
    pub(crate) stdout: Output,
    /// File of its standard error.
    pub(crate) stderr: PathBuf,
}

impl Launch {
    /// The command line as a person would type it.
    pub(crate) fn command_line(&self) -> String {
        std::iter::once(&self.program)
            .chain(&self.args)
            .map(|word| quoted(&word.to_string_lossy()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Files that hold its output.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        match &self.stdout {
            Output::File(stdout) => vec![stdout.clone(), self.stderr.clone()],
            Output::Pipes => vec![self.stderr.clone()],
        }
    }

    /// The program, by its path if it is none that its PATH leads to and stands where servers do.
    fn found(&self) -> OsString {
        let has_own_path = self.env.iter().any(|(name, _)| name == "PATH");
        let name = self.program.to_str().filter(|_| !has_own_path);
        match name.and_then(server) {
            Some(file) => file.into(),
            None => self.program.clone(),
        }
    }

    /// Starts it in the folder `base`; see [`Program::spawn`] for the thread to call this
    /// from. Its pipes, if it has any.
    pub(super) fn spawn(&self, base: &Path) -> Result<(AsyncProcess, Option<Pipes>), StartError> {
        let append = |path: &PathBuf| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let failed = |cause| StartError::needs(format!("open {}", path.display()), cause);
            Ok(Some(OwnedFd::from(file.map_err(failed)?)))
        };
        let mut program = Program::new(self.found()).args(&self.args);
        program.env.extend(
            self.env
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        program.folder = Some(base.to_owned());
        program.cpus.clone_from(&self.cpus);
        program.files_soft = files_at_first();
        program.groups.extend(self.cgroup.clone());
        program.standard[2] = append(&self.stderr)?;
        let mut pipes = None;
        match &self.stdout {
            Output::File(path) => program.standard[1] = append(path)?,
            Output::Pipes => pipes = Some((program.input()?, program.output()?)),
        }
        Ok((program.start()?, pipes))
    }
}

/// How many files this process might have open before a load of it raised that: a copy that is
/// started again shall have no more than it had before. `None`: the system does not say.
pub(super) fn files_at_first() -> Option<u64> {
    static FIRST: OnceLock<Option<u64>> = OnceLock::new();
    *FIRST.get_or_init(|| {
        let limits = getrlimit(Resource::RLIMIT_NOFILE);
        limits.ok().map(|(soft, _)| soft)
    })
}

/// A word in the form that a shell reads back as one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%{}".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The variable by which a system, and the command of a step, find this program.
pub(crate) fn itself(own_binary: &std::ffi::OsStr) -> [(String, String); 1] {
    let path = own_binary.to_string_lossy().into_owned();
    [("HEADROOM".to_owned(), path)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("--listen=127.0.0.1:80"), "--listen=127.0.0.1:80");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
