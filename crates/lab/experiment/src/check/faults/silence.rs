//! Agents of fleets that fall silent: `silence = "agents", pick = "10%"`.

use std::time::Duration;

use document::Problem;

use super::super::fields::{Field, Fields};
use super::super::process::Found;
use super::super::values::Reader;
use super::Named;
use super::pick::{target, who};
use crate::plan::{Back, CopySelector, FaultKind};

/// Ways of coming back.
const BACK: [(&str, Back); 2] = [("at once", Back::AtOnce), ("in turn", Back::InTurn)];
/// Shortest and longest turn of agents that flap.
const FLAPS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(86_400);

/// Reads `{ silence = "agents", pick = "10%", flap = "5s", back = "in turn" }`.
pub(super) fn kind(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    named: Named<'_>,
) -> Option<FaultKind> {
    let flap = fields.optional("flap", |field| reader.duration(field, FLAPS));
    let back = fields.value_or("back", Back::AtOnce, |field| reader.choice(field, &BACK));
    let agents: fn(&Found) -> u32 = |found| found.system.agents.unwrap_or(0);
    let (fleet, agent) = target(reader, field, named.systems, ("agents", agents))?;
    let name = &fleet.system.name;
    let Some(agents) = fleet.system.agents else {
        let message = format!("{name} is no fleet, so it has no agents that could fall silent");
        let problem = Problem::new(field.span(), message);
        let help = format!("pause = \"{name}\" stops it; partition = \"{name}\" cuts it off");
        return reader.refuse(problem.help(help));
    };
    let who = who(
        reader,
        fields,
        (name, agents, "agents", agent),
        named.probes,
    )?;
    if let (CopySelector::Probe { .. }, Some(field)) = (&who, fields.get("pick")) {
        let message = "probes ask processes, and a fleet is one";
        let problem = Problem::new(field.span(), message);
        return reader
            .refuse(problem.help("pick a number of agents, a share such as \"10%\", or \"all\""));
    }
    Some(FaultKind::Silence {
        fleet: name.clone(),
        agents,
        who,
        flap: flap?,
        back: back?,
    })
}
