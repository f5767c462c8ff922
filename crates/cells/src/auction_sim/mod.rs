//! The auction without a network: work of a scenario is placed on cells of a scenario, by the
//! auctioneer's own placement, and what became of it is told in numbers.
//!
//! The same scenario always has the same outcome, apart from the processor time, which the
//! caller's clock tells.

mod evenness;
mod make;
mod page;
mod rounds;
mod scenario;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use serde::Serialize;

pub use evenness::{Stacking, Summary, ZoneSpread};
pub use scenario::{CellKind, Order, ProcessKind, Scenario, ScenarioError};

/// What became of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// What was asked for.
    pub scenario: Scenario,
    /// Cells.
    pub cells: usize,
    /// Processes that the instances are of.
    pub processes: usize,
    /// Instances that were to be placed.
    pub instances: usize,
    /// Instances that have a cell.
    pub placed: usize,
    /// Instances that have none in the end.
    pub refused: usize,
    /// Why, the most frequent reason first, in the words of the last placement error.
    pub reasons: Vec<Reason>,
    /// Rounds of placement, those for instances that were refused before included.
    pub rounds: Vec<Round>,
    /// Used share of each cell's memory, from 0 to 1.
    pub memory: Summary,
    /// Used share of each cell's disk, from 0 to 1.
    pub disk: Summary,
    /// Instances of each cell.
    pub containers: Summary,
    /// How evenly the instances of each process are spread over the zones.
    pub zones: ZoneSpread,
    /// Cells with several instances of one process.
    pub stacking: Stacking,
    /// Processor time of the placement; everything else does not depend on the machine.
    pub time: Time,
    /// Used share of the memory of each cell, and its instances, in order of the cells' ids.
    #[serde(skip)]
    pub by_cell: Vec<(f64, u32)>,
}

/// Instances that were refused with the same text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The placement error.
    pub text: String,
    /// Instances.
    pub instances: usize,
}

/// One round of placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Instances that were to be placed.
    pub asked: usize,
    /// Those of them that had been refused before.
    pub again: usize,
    /// Those that were placed.
    pub placed: usize,
}

/// Processor time, in seconds unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Time {
    /// Of all rounds.
    pub total: f64,
    /// Of all rounds for each instance asked for, in µs.
    pub per_instance_us: f64,
    /// Of a round.
    pub round: Summary,
    /// Of each round, in order.
    pub rounds: Vec<f64>,
}

/// Places the work of a scenario. `processor_time` tells the time that this thread has used.
///
/// # Errors
/// When the scenario asks for something that is out of bounds.
pub fn run(
    scenario: &Scenario,
    processor_time: impl FnMut() -> Duration,
) -> Result<Outcome, ScenarioError> {
    scenario.check()?;
    Ok(rounds::run(scenario, processor_time))
}
