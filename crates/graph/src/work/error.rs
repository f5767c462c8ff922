//! Why work could not be done. A failure of one request, never of the service.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a piece of work was not done, or not to its end.
#[derive(Debug, Error)]
pub enum WorkError {
    /// What it was for had been given up before it began, or a wait of it was longer than
    /// the request may last.
    #[error("{doing}: the deadline of the request passed; give it more time or less work")]
    Late {
        /// What was begun or waited for.
        doing: &'static str,
    },
    /// The service is being stopped.
    #[error("the service stops, its work is given up")]
    Stopped,
    /// More was asked for than this machine or this program can do.
    #[error("{what} is {found}, at most {most} is possible here; ask for less")]
    TooMuch {
        /// What.
        what: &'static str,
        /// As asked for.
        found: u64,
        /// The bound.
        most: u64,
    },
    /// A processor that is not there, or that this process may not use.
    #[error("pin to processor {found}: this process may use {allowed}; name some of those")]
    NoProcessor {
        /// As asked for.
        found: u32,
        /// Such as `0-1,3`.
        allowed: String,
    },
    /// The job file of stress-ng is not there.
    #[error("read the job file {} of stress-ng: {found}", path.display())]
    NoJob {
        /// The file.
        path: PathBuf,
        /// What the system said.
        found: io::Error,
    },
    /// A program could not be started.
    #[error("start the program `{program}`: {found}; is it installed and in the PATH?")]
    NoProgram {
        /// Its name.
        program: String,
        /// What the system said.
        found: io::Error,
    },
    /// A program ended badly.
    #[error(
        "the program `{program}` ended with {status}, 0 was expected{}",
        stderr_text(stderr)
    )]
    Program {
        /// Its name.
        program: String,
        /// `status 1` or `signal 9`.
        status: String,
        /// The begin of what it wrote to standard error.
        stderr: String,
    },
    /// The system refused something.
    #[error("{doing}: {found}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        found: io::Error,
    },
    /// Work panicked, which is a defect of this program.
    #[error("the work panicked; this is a defect, please report it")]
    Panicked,
}

fn stderr_text(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!("; it said: {text}"),
    }
}

impl WorkError {
    /// The reason in a word, for metrics and answers.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Late { .. } => "late",
            Self::Stopped => "stopped",
            Self::TooMuch { .. } => "too-much",
            Self::NoProcessor { .. } => "no-processor",
            Self::NoJob { .. } => "no-job-file",
            Self::NoProgram { .. } => "no-program",
            Self::Program { .. } => "program",
            Self::System { .. } => "system",
            Self::Panicked => "panic",
        }
    }

    /// An error of the system while doing something.
    pub(crate) fn system(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |found| Self::System { doing, found }
    }
}
