//! The numbers of a stored run over time, for the databases of others: as requests of Prometheus'
//! remote write, as requests of OTLP, and as a dashboard of Grafana that shows them.

mod dashboard;
mod gather;
pub mod otlp;
pub mod remote_write;
#[cfg(test)]
mod tests;

pub use dashboard::dashboard;
pub use gather::gather;

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, as Prometheus writes names: with the unit at its end.
    pub name: &'static str,
    /// Its unit, as UCUM writes units.
    pub unit: &'static str,
    /// What it tells.
    pub about: &'static str,
    /// It is true until the next sample: it is said again at times, so that nobody takes it
    /// for gone.
    held: bool,
}

const fn metric(name: &'static str, unit: &'static str, about: &'static str) -> Metric {
    Metric {
        name,
        unit,
        about,
        held: false,
    }
}

const fn held(name: &'static str, unit: &'static str, about: &'static str) -> Metric {
    Metric {
        held: true,
        ..metric(name, unit, about)
    }
}

/// Steps that go on.
pub const STEP: Metric = held("headroom_step", "1", "1 while a step goes on, then 0.");
/// Faults that go on.
pub const FAULT: Metric = held("headroom_fault", "1", "1 while a fault goes on, then 0.");
/// Entities in a state.
pub const ENTITIES: Metric = held("headroom_entities", "1", "Entities in a state.");
/// Rates of a load.
pub const LOAD_RATE: Metric = metric(
    "headroom_load_requests_per_second",
    "1/s",
    "Requests of a load: planned (due by its schedule), sent, good, failed.",
);
/// Latencies of a load.
pub const LOAD_LATENCY: Metric = metric(
    "headroom_load_latency_seconds",
    "s",
    "Latency from the moment at which a request was due; quantile 1 is the longest.",
);
/// Requests of a load in flight.
pub const LOAD_IN_FLIGHT: Metric = metric(
    "headroom_load_in_flight_requests",
    "1",
    "Most requests of a load that were in flight at once.",
);
/// Requests of a load that wait.
pub const LOAD_BACKLOG: Metric = metric(
    "headroom_load_backlog_requests",
    "1",
    "Most requests of a load that were due and not sent.",
);
/// Tries of a probe that went well.
pub const PROBE_UP: Metric = metric("headroom_probe_up", "1", "1: a try of a probe went well.");
/// Latencies of a probe.
pub const PROBE_LATENCY: Metric = metric(
    "headroom_probe_latency_seconds",
    "s",
    "How long the answer to a probe took, or was waited for.",
);
/// Values of a probe.
pub const PROBE_VALUE: Metric = metric(
    "headroom_probe_value",
    "1",
    "The number that a probe was answered.",
);
/// Turns of a loop.
pub const LOOP: Metric = metric(
    "headroom_loop_duration_seconds",
    "s",
    "How long a turn of recurring work took.",
);
/// Processors of a system.
pub const CORES: Metric = metric(
    "headroom_process_cpu_cores",
    "1",
    "Processors that a system and all that it started were busy with.",
);
/// Memory of a system.
pub const MEMORY: Metric = metric(
    "headroom_process_resident_memory_bytes",
    "By",
    "Resident memory of a system and all that it started.",
);
/// Descriptors of a system.
pub const DESCRIPTORS: Metric = metric(
    "headroom_process_open_descriptors",
    "1",
    "Open file descriptors of a system and all that it started.",
);
/// Threads of a system.
pub const THREADS: Metric = metric(
    "headroom_process_threads",
    "1",
    "Threads of a system and all that it started.",
);

/// Every number that a run may have.
pub const METRICS: [Metric; 15] = [
    STEP,
    FAULT,
    ENTITIES,
    LOAD_RATE,
    LOAD_LATENCY,
    LOAD_IN_FLIGHT,
    LOAD_BACKLOG,
    PROBE_UP,
    PROBE_LATENCY,
    PROBE_VALUE,
    LOOP,
    CORES,
    MEMORY,
    DESCRIPTORS,
    THREADS,
];

/// Names and values that tell the series of a metric apart, sorted by name.
pub type Labels = Vec<(&'static str, String)>;

/// A number over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is.
    pub metric: Metric,
    /// Of what.
    pub labels: Labels,
    /// In order of time, no two in the same millisecond. The last one ends the series.
    pub samples: Vec<Sample>,
}

/// A number at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Nanoseconds since 1970.
    pub unix_ns: i64,
    /// Finite; `None`: from here on there is no such number.
    pub value: Option<f64>,
}

/// The samples of all series in portions of at most `most`, each of one series.
fn portions(all: &[Series], most: usize) -> Vec<Vec<(&Series, &[Sample])>> {
    let mut portions = Vec::new();
    let (mut portion, mut room) = (Vec::new(), most);
    for series in all {
        let mut rest = &series.samples[..];
        while !rest.is_empty() {
            let (part, others) = rest.split_at(rest.len().min(room));
            portion.push((series, part));
            rest = others;
            room -= part.len();
            if room == 0 {
                portions.push(std::mem::take(&mut portion));
                room = most;
            }
        }
    }
    if !portion.is_empty() {
        portions.push(portion);
    }
    portions
}
