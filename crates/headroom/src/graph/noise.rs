//! `headroom graph noise`.

use anyhow::{Context, Result};
use graph::noise::Noise;

use super::args::NoiseArgs;
use crate::output::print;

pub(super) fn noise(args: &NoiseArgs) -> Result<()> {
    let noise = Noise::measure(args.length).context("measure the machine's noise")?;
    match args.json {
        true => print(&(serde_json::to_string_pretty(&noise)? + "\n")),
        false => print(&format!("{noise}\n")),
    }
}
