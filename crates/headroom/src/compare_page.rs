//! The page of a comparison.

use std::path::Path;

use anyhow::Result;
use lab_report::compared::{Compared, html, lifecycles};
use lab_store::RunFolder;

use crate::output::replace;

/// Writes the page; `base` and `new` are the runs whose lifecycles are drawn.
pub(crate) fn write(file: &Path, compared: &Compared, base: &Path, new: &Path) -> Result<()> {
    let pairs = lifecycles(&RunFolder::open(base)?, &RunFolder::open(new)?)?;
    replace(file, html(compared, &pairs).as_bytes())
}
