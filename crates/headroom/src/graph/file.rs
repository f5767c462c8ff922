//! The file of a topology, and what shall be other than it says.

use anyhow::Result;
use document::{SetError, Source, Value};

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
        if let Some(error) = misspelt(&source, path) {
            return Err(error);
        }
        source.set(path, value)?;
    }
    Ok(source)
}

/// A path of a service that is not there, while one of nearly this name is: it would be one
/// more, of which the file says nothing.
fn misspelt(source: &Source, path: &str) -> Option<SetError> {
    let (name, _) = path.strip_prefix("services.")?.split_once('.')?;
    let Value::Table(all) = document::parse_toml(source).ok()?.value else {
        return None;
    };
    let services = all.into_iter().find(|one| one.key == "services")?;
    let Value::Table(services) = services.node.value else {
        return None;
    };
    let mut names = services.iter().map(|one| &*one.key);
    if names.clone().any(|known| known == name) {
        return None;
    }
    let near = units::nearest(name, names.by_ref())?;
    Some(SetError::Nowhere {
        path: path.to_owned(),
        file: source.name.clone(),
        part: name.to_owned(),
        expected: format!("a service of the file; did you mean \"{near}\"?"),
    })
}
