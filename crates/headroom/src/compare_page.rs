//! The page of a comparison.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use lab_report::compared::{Compared, html, lifecycles};
use lab_store::RunFolder;

/// Writes the page; `base` and `new` are the runs whose lifecycles are drawn.
pub(crate) fn write(file: &Path, compared: &Compared, base: &Path, new: &Path) -> Result<()> {
    let pairs = lifecycles(&RunFolder::open(base)?, &RunFolder::open(new)?)?;
    fs::write(file, html(compared, &pairs))
        .with_context(|| format!("write the page {}", file.display()))
}
