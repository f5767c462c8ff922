//! The file of a topology, and what shall be other than it says.

use anyhow::Result;
use document::{SetError, Source};

use super::args::TopologyArgs;

/// A topology's file as it was when it was read.
pub(super) struct TopologyFile {
    args: TopologyArgs,
    /// As it is written.
    pub(super) written: Source,
    /// With what shall be other.
    pub(super) source: Source,
}

impl TopologyFile {
    pub(super) fn read(args: &TopologyArgs) -> Result<Self> {
        let written = Source::read(&args.file)?;
        Ok(Self {
            source: with_settings(args, written.clone())?,
            args: args.clone(),
            written,
        })
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.args.file
    }

    /// Another text of the same file, with what shall be other.
    pub(super) fn with_settings(&self, written: Source) -> Result<Source, SetError> {
        with_settings(&self.args, written)
    }
}

fn with_settings(args: &TopologyArgs, mut source: Source) -> Result<Source, SetError> {
    for (path, value) in &args.set {
        source.set(path, value)?;
    }
    Ok(source)
}
