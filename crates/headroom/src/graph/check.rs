//! `headroom graph check`.

use anyhow::Result;
use graph::topology::budget::{self, Budget};
use graph::topology::{Machine, Topology};
use serde_json::json;

use super::args::CheckArgs;
use super::file::TopologyFile;
use crate::output::print;

/// Requests that are run in virtual time: enough for a p99.
const REQUESTS: u64 = 10_000;

pub(super) fn check(args: &CheckArgs) -> Result<()> {
    let source = TopologyFile::read(&args.topology)?.source;
    let machine = Machine {
        rate: args.rate,
        ..super::machine()
    };
    let checked = super::checked(&source, Some(&machine))?;
    super::warn(&checked.warnings);
    let topology = &checked.topology;
    let budgets = budgets(topology, args)?;
    if args.json {
        let json = json!({
            "name": topology.name,
            "services": topology.services.len(),
            "edges": topology.edges.len(),
            "warnings": checked.warnings,
            "budgets": budgets,
        });
        return print(&format!("{json:#}\n"));
    }
    let mut text = format!(
        "{}: {} services, {} edges\n",
        topology.name,
        topology.services.len(),
        topology.edges.len()
    );
    for budget in budgets {
        text += &format!("\n{budget}");
    }
    print(&text)
}

/// What is expected of each path of the entry.
fn budgets(topology: &Topology, args: &CheckArgs) -> Result<Vec<Budget>> {
    let costs = super::costs(super::nanos(args.hop));
    let entry = topology.service(topology.entry);
    let paths = entry.into_iter().flat_map(|entry| &entry.endpoints);
    let budgets = paths
        .filter(|endpoint| endpoint.path != "*")
        .map(|endpoint| budget::expect(topology, &endpoint.path, &costs, REQUESTS));
    Ok(budgets.collect::<Result<_, _>>()?)
}
