//! What is simulated, and its bounds.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::auctioneer::placement::Options;
use crate::rep::Mebibytes;

/// Most cells of a scenario.
const CELLS_MOST: u32 = 100_000;
/// Most zones of a scenario.
const ZONES_MOST: u64 = 1000;
/// Most instances of a scenario; they take about 1 GB when they come in one batch.
const INSTANCES_MOST: u32 = 10_000_000;
/// Most rounds of which containers are starting, and most times that a refused instance is
/// asked for again.
const ROUNDS_MOST: u32 = 1000;

/// Cells, work and settings of an auction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Cells, in order of their ids.
    pub cells: Vec<CellKind>,
    /// Zones that the cells are spread over, one after the other.
    pub zones: u32,
    /// Instances in all.
    pub instances: u32,
    /// Kinds of processes; which one a process is of is drawn.
    pub processes: Vec<ProcessKind>,
    /// Most instances of a round; 0: all at once.
    pub batch: u32,
    /// Order in which instances are asked for.
    pub order: Order,
    /// Rounds for which a container counts as starting after the one that placed it.
    pub starting_rounds: u32,
    /// Times that a refused instance is asked for again, after all others.
    pub retries: u32,
    /// Weights and limits of the auctioneer.
    #[serde(serialize_with = "write_options")]
    pub options: Options,
    /// Seed of everything that is drawn.
    pub seed: u64,
}

fn write_options<S: Serializer>(options: &Options, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Written {
        starting_container_weight: f64,
        starting_container_count_maximum: u32,
        bin_pack_first_fit_weight: f64,
    }
    Written {
        starting_container_weight: options.starting_weight,
        starting_container_count_maximum: options.starting_max,
        bin_pack_first_fit_weight: options.first_fit_weight,
    }
    .serialize(serializer)
}

/// Cells that are alike: `90*16GiB/64GiB/250` are 90 of 16 GiB memory, 64 GiB disk and 250
/// containers each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CellKind {
    /// How many there are.
    pub count: u32,
    /// Memory in MiB.
    pub memory_mb: i32,
    /// Disk in MiB.
    pub disk_mb: i32,
    /// Containers.
    pub containers: i32,
}

/// Processes that are alike: `50*256MiB/1GiB*1-4` are 50 parts of all processes, with 1 to 4
/// instances of 256 MiB memory and 1 GiB disk each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProcessKind {
    /// Parts of all processes.
    pub parts: u32,
    /// Memory of an instance in MiB.
    pub memory_mb: i32,
    /// Disk of an instance in MiB.
    pub disk_mb: i32,
    /// Fewest instances of a process.
    pub least: u32,
    /// Most instances of a process.
    pub most: u32,
}

/// Order in which instances are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Process after process, each with all its instances.
    ByProcess,
    /// In any order, as drawn.
    Mixed,
}

/// A scenario that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: expected {expected}, found {found}")]
pub struct ScenarioError {
    /// The setting, named as its flag.
    pub setting: &'static str,
    /// What may stand there.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

impl Default for Scenario {
    /// 10,000 instances of small and large processes on 100 equal cells.
    fn default() -> Self {
        let kind = |parts, memory_mb, disk_mb, least, most| ProcessKind {
            parts,
            memory_mb,
            disk_mb,
            least,
            most,
        };
        Self {
            cells: vec![CellKind {
                count: 100,
                memory_mb: 64 << 10,
                disk_mb: 256 << 10,
                containers: 250,
            }],
            zones: 2,
            instances: 10_000,
            processes: vec![
                kind(50, 256, 1024, 1, 4),
                kind(30, 512, 1024, 2, 10),
                kind(15, 1024, 1024, 2, 20),
                kind(5, 2048, 4096, 10, 100),
            ],
            batch: 0,
            order: Order::Mixed,
            starting_rounds: 1,
            retries: 0,
            options: Options::default(),
            seed: 0,
        }
    }
}

impl Scenario {
    /// Cells of all kinds.
    pub fn cell_count(&self) -> u64 {
        self.cells.iter().map(|kind| u64::from(kind.count)).sum()
    }

    /// Is everything within its bounds?
    ///
    /// # Errors
    /// When something is not; the first of it.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let within = |setting, found: u64, least: u64, most: u64| {
            let wrong = || ScenarioError {
                setting,
                expected: format!("a number from {least} to {most}"),
                found: found.to_string(),
            };
            (least..=most)
                .contains(&found)
                .then_some(())
                .ok_or_else(wrong)
        };
        within("--cells", self.cell_count(), 1, CELLS_MOST.into())?;
        let zones = self.cell_count().min(ZONES_MOST);
        within("--zones", self.zones.into(), 1, zones)?;
        within(
            "--instances",
            self.instances.into(),
            1,
            INSTANCES_MOST.into(),
        )?;
        let rounds = u64::from(ROUNDS_MOST);
        within("--starting-rounds", self.starting_rounds.into(), 0, rounds)?;
        within("--retries", self.retries.into(), 0, rounds)?;
        let wrong = |setting, expected: &str, found: String| ScenarioError {
            setting,
            expected: expected.to_owned(),
            found,
        };
        let empty = |kind: &CellKind| kind.memory_mb < 1 || kind.disk_mb < 1 || kind.containers < 1;
        if let Some(kind) = self.cells.iter().find(|kind| empty(kind)) {
            let expected = "memory, disk and containers above 0";
            return Err(wrong("--cell", expected, kind.to_string()));
        }
        let parts: u64 = self
            .processes
            .iter()
            .map(|kind| u64::from(kind.parts))
            .sum();
        if parts == 0 {
            let expected = "a process with parts above 0";
            return Err(wrong("--process", expected, "none".to_owned()));
        }
        for kind in &self.processes {
            if kind.least < 1 || kind.least > kind.most {
                let expected = "at least 1 instance, and a range that rises";
                return Err(wrong("--process", expected, kind.to_string()));
            }
            if kind.memory_mb < 0 || kind.disk_mb < 0 {
                let expected = "memory and disk of 0 or more";
                return Err(wrong("--process", expected, kind.to_string()));
            }
        }
        for (setting, weight) in [
            ("--starting-container-weight", self.options.starting_weight),
            ("--bin-pack-first-fit-weight", self.options.first_fit_weight),
        ] {
            if !weight.is_finite() || weight < 0.0 {
                return Err(wrong(setting, "a number of 0 or more", weight.to_string()));
            }
        }
        Ok(())
    }
}

impl fmt::Display for CellKind {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, disk) = (Mebibytes(self.memory_mb), Mebibytes(self.disk_mb));
        write!(text, "{}*{memory}/{disk}/{}", self.count, self.containers)
    }
}

impl fmt::Display for ProcessKind {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, disk) = (Mebibytes(self.memory_mb), Mebibytes(self.disk_mb));
        write!(text, "{}*{memory}/{disk}*{}", self.parts, self.least)?;
        match self.most == self.least {
            true => Ok(()),
            false => write!(text, "-{}", self.most),
        }
    }
}

fn number<T: FromStr>(text: &str, of: &str) -> Result<T, String> {
    let wrong = |_| format!("expected a whole number of {of}, found {text:?}");
    text.trim().parse().map_err(wrong)
}

fn size(text: &str) -> Result<i32, String> {
    let size: Result<Mebibytes, _> = text.parse();
    size.map(|size| size.0).map_err(|error| error.to_string())
}

impl FromStr for CellKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!("expected COUNT*MEMORY/DISK/CONTAINERS, as 90*16GiB/64GiB/250, found {text:?}")
        };
        let (count, room) = text.split_once('*').ok_or_else(form)?;
        let [memory, disk, containers] = room.split('/').collect::<Vec<_>>()[..] else {
            return Err(form());
        };
        Ok(Self {
            count: number(count, "cells")?,
            memory_mb: size(memory)?,
            disk_mb: size(disk)?,
            containers: number(containers, "containers")?,
        })
    }
}

impl FromStr for ProcessKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!("expected PARTS*MEMORY/DISK*INSTANCES, as 50*256MiB/1GiB*1-4, found {text:?}")
        };
        let [parts, sizes, instances] = text.split('*').collect::<Vec<_>>()[..] else {
            return Err(form());
        };
        let (memory, disk) = sizes.split_once('/').ok_or_else(form)?;
        let (least, most) = instances.split_once('-').unwrap_or((instances, instances));
        Ok(Self {
            parts: number(parts, "parts")?,
            memory_mb: size(memory)?,
            disk_mb: size(disk)?,
            least: number(least, "instances")?,
            most: number(most, "instances")?,
        })
    }
}
