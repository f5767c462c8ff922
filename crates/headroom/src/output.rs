//! Both outputs. Either may be a pipe that was closed (`| head`): that is no failure.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes a result to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("print the result")
        }
        _ => Ok(()),
    }
}

/// Tells a person something on standard error; if nobody listens, nobody hears it.
pub(crate) fn tell(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}
