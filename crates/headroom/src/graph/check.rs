//! `headroom graph check`.

use anyhow::Result;

use super::args::CheckArgs;
use crate::output::{print, tell};

pub(super) fn check(args: &CheckArgs) -> Result<()> {
    let (_, checked) = super::read(&args.file)?;
    for warning in &checked.warnings {
        tell(format_args!("warning: {warning}"));
    }
    let topology = &checked.topology;
    let text = format!(
        "{}: {} services, {} edges\n",
        topology.name,
        topology.services.len(),
        topology.edges.len()
    );
    print(&text)
}
