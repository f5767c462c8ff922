//! The auction simulator's command: a scenario from flags, an outcome for people or programs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use cells::auction_sim::{CellKind, Order, ProcessKind, Scenario, run};
use cells::rep::Mebibytes;
use clap::{Args, ValueEnum};
use nix::time::ClockId;

use crate::output::{eprint, replace, show};

#[derive(Debug, Args)]
pub(crate) struct AuctionSimArgs {
    /// Equal cells
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "cell")]
    cells: u32,
    /// Memory of each cell
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64GiB",
        conflicts_with = "cell"
    )]
    capacity_memory: Mebibytes,
    /// Disk of each cell
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256GiB",
        conflicts_with = "cell"
    )]
    capacity_disk: Mebibytes,
    /// Most containers of each cell
    #[arg(long, value_name = "N", default_value_t = 250, conflicts_with = "cell")]
    capacity_containers: i32,
    /// Cells of one kind instead, as 90*16GiB/64GiB/250: how many, memory, disk, containers;
    /// once for each kind
    #[arg(long, value_name = "KIND")]
    cell: Vec<CellKind>,
    /// Cells are spread over this many zones
    #[arg(long, value_name = "N", default_value_t = 2)]
    zones: u32,
    /// Instances to place
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    instances: u32,
    /// Processes of one kind, as 50*256MiB/1GiB*1-4: parts of all processes, memory, disk,
    /// instances; once for each kind [default: a mix of small and large ones]
    #[arg(long, value_name = "KIND")]
    process: Vec<ProcessKind>,
    /// Most instances of a round; 0: all at once
    #[arg(long, value_name = "N", default_value_t = 0)]
    batch: u32,
    /// Order in which instances are requested
    #[arg(long, value_enum, default_value = "mixed")]
    order: ArrivalOrder,
    /// Rounds for which a container counts as starting after the one that placed it
    #[arg(long, value_name = "N", default_value_t = 1)]
    starting_rounds: u32,
    /// How often a refused instance is requested again, after all others
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// How much a container that is still starting weighs against its cell
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.25)]
    starting_container_weight: f64,
    /// Most containers that may be starting at once, over all cells; 0: no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    starting_container_count_maximum: u32,
    /// How much a cell's position weighs, to fill the first cells first; 0: not at all
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.0)]
    bin_pack_first_fit_weight: f64,
    /// Seed of everything random: the same seed gives the same outcome
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print JSON instead, sizes in MiB and times in seconds
    #[arg(long)]
    json: bool,
    /// Write a page with pictures to this file as well
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ArrivalOrder {
    /// Process after process, each with all its instances
    ByProcess,
    /// In random order
    Mixed,
}

/// Simulates what the flags ask for.
pub(crate) fn simulate(args: &AuctionSimArgs) -> Result<()> {
    let outcome = run(&scenario(args), processor_time)?;
    if let Some(file) = &args.report {
        replace(file, outcome.page().as_bytes())?;
        eprint(format_args!("the page is {}", file.display()));
    }
    show(&outcome, args.json)
}

fn scenario(args: &AuctionSimArgs) -> Scenario {
    let usual = Scenario::default();
    let mut scenario = Scenario {
        cells: args.cell.clone(),
        zones: args.zones,
        instances: args.instances,
        processes: args.process.clone(),
        batch: args.batch,
        order: match args.order {
            ArrivalOrder::ByProcess => Order::ByProcess,
            ArrivalOrder::Mixed => Order::Mixed,
        },
        starting_rounds: args.starting_rounds,
        retries: args.retries,
        seed: args.seed,
        ..usual.clone()
    };
    if scenario.cells.is_empty() {
        scenario.cells.push(CellKind {
            count: args.cells,
            memory_mb: args.capacity_memory.0,
            disk_mb: args.capacity_disk.0,
            containers: args.capacity_containers,
        });
    }
    if scenario.processes.is_empty() {
        scenario.processes = usual.processes;
    }
    scenario.options.starting_weight = args.starting_container_weight;
    scenario.options.starting_max = args.starting_container_count_maximum;
    scenario.options.first_fit_weight = args.bin_pack_first_fit_weight;
    scenario
}

/// Processor time of the calling thread so far.
fn processor_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock.now().map_or(Duration::ZERO, Duration::from)
}
