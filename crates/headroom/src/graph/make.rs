//! `headroom graph import` and `headroom graph generate`: topologies from elsewhere.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use document::Source;
use graph::topology::generate::{RandomShape, chain, random, tree};
use graph::topology::import::{self, Imported, RowLimits};

use super::args::{Form, GenerateCommand, ImportArgs};
use crate::output::print;

/// Prints the topology that a file of another tool describes.
pub(super) fn import(args: &ImportArgs) -> Result<()> {
    let imported = imported(args.form, &args.file)?;
    super::warn(&imported.warnings);
    print(&imported.topology.to_toml())
}

fn imported(form: Form, file: &Path) -> Result<Imported> {
    let reading = || format!("import {}", file.display());
    let name = file.file_stem().and_then(|name| name.to_str());
    let name = name.unwrap_or("imported");
    Ok(match form {
        Form::Isotope => {
            let source = Source::read(file)?;
            import::isotope(&source)?
        }
        Form::Calls => {
            let opened = File::open(file).with_context(reading)?;
            let rows = BufReader::new(opened);
            import::rows(name, rows, RowLimits::default()).with_context(reading)?
        }
        Form::Spans => {
            let spans = crate::traces::of_file(file)?;
            import::spans(name, &spans).with_context(reading)?
        }
    })
}

/// Prints a topology of a shape.
pub(super) fn generate(command: &GenerateCommand) -> Result<()> {
    let topology = match command {
        GenerateCommand::Chain { services } => chain(*services)?,
        GenerateCommand::Tree { levels, branches } => tree(*levels, *branches)?,
        GenerateCommand::Random { services, seed } => {
            let shape = RandomShape {
                services: *services,
                ..RandomShape::default()
            };
            random(&shape, *seed)?
        }
    };
    print(&topology.to_toml())
}

/// Reads a whole file of at most so many bytes.
pub(crate) fn whole(file: &Path, most: u64) -> Result<Vec<u8>> {
    let reading = || format!("read {}", file.display());
    let opened = File::open(file).with_context(reading)?;
    let mut bytes = Vec::new();
    let mut bounded = opened.take(most + 1);
    bounded.read_to_end(&mut bytes).with_context(reading)?;
    if bytes.len() as u64 > most {
        bail!(
            "read {}: it has more than {}; expected at most that, take fewer traces",
            file.display(),
            units::write_bytes(most)
        );
    }
    Ok(bytes)
}
