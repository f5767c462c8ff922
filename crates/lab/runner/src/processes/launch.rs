//! One process to start.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use processes::{AsyncProcess, Program, StartError};
use tokio::net::unix::pipe::{Receiver, Sender};

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

    /// Starts it in the folder `base`; see [`Program::spawn`] for the thread to call this
    /// from. Its pipes, if it has any.
    pub(super) fn spawn(&self, base: &Path) -> Result<(AsyncProcess, Option<Pipes>), StartError> {
        let needs = |doing: String| move |cause| StartError::Needs { doing, cause };
        let piped = || needs(format!("make pipes for {}", self.name));
        let append = |path: &PathBuf| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(needs(format!("open {}", path.display())))?;
            Ok(Some(OwnedFd::from(file)))
        };
        let mut pipes = None;
        let (stdin, stdout) = match &self.stdout {
            Output::File(path) => (None, append(path)?),
            Output::Pipes => {
                let (stdin, ours) = io::pipe().map_err(piped())?;
                let to = Sender::from_owned_fd(ours.into()).map_err(piped())?;
                let (ours, stdout) = io::pipe().map_err(piped())?;
                let from = Receiver::from_owned_fd(ours.into()).map_err(piped())?;
                pipes = Some((to, from));
                (Some(stdin.into()), Some(stdout.into()))
            }
        };
        let mut program = Program::new(&self.program).args(&self.args);
        program.env.extend(
            self.env
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        program.folder = Some(base.to_owned());
        program.standard = [stdin, stdout, append(&self.stderr)?];
        program.cpus.clone_from(&self.cpus);
        program.groups.extend(self.cgroup.clone());
        let process = AsyncProcess::new(program.spawn()?);
        Ok((
            process.map_err(needs(format!("watch {}", self.name)))?,
            pipes,
        ))
    }
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
