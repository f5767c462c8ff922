//! What is said about a run, with its evidence.

use std::fmt;

/// What limited a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// So many at once and never more, while others wait.
    Pool,
    /// A thread or a process uses all the processor time it can get, while processors idle.
    Processor,
    /// A queue grows for as long as was looked.
    Queue,
    /// Descriptors, ports or the like are nearly used up.
    Exhaustion,
    /// Work takes the longer the more there is of something.
    Growth,
    /// Everything stands still again and again, in a rhythm.
    Stalls,
    /// Connections are opened for requests instead of used again.
    Connections,
    /// Handshakes of TLS start anew instead of resuming a session.
    Handshakes,
    /// The kernel drops datagrams that nobody took in time.
    Drops,
    /// Requests are sent again so often that they add to the load.
    Retries,
    /// The generator, not the system.
    Generator,
    /// Processes outside of the run had the machine's processors, so that something cannot be told.
    Machine,
}

impl Kind {
    /// Its name, as it is stored.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Processor => "processor",
            Self::Queue => "queue",
            Self::Exhaustion => "exhaustion",
            Self::Growth => "growth",
            Self::Stalls => "stalls",
            Self::Connections => "connections",
            Self::Handshakes => "handshakes",
            Self::Drops => "drops",
            Self::Retries => "retries",
            Self::Generator => "generator",
            Self::Machine => "machine",
        }
    }
}

/// The chart of a report that shows the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chart {
    /// Entities and how many are in each phase.
    Lifecycle,
    /// Processor time.
    Processors,
    /// Requests a second and those that wait.
    Load,
    /// Latency over time.
    Latency,
    /// Descriptors, ports and memory.
    Resources,
    /// Durations of loops.
    Loops,
    /// Connections and handshakes.
    Connections,
    /// Datagrams.
    Datagrams,
}

/// Of what the effect of a finding is a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareOf {
    /// Of the time that was looked at.
    Time,
    /// Of the time that requests or entities took.
    Latency,
    /// Of requests, datagrams or sends.
    Work,
}

impl ShareOf {
    /// Its name, as it is stored.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Latency => "latency",
            Self::Work => "work",
        }
    }
}

/// A share of 0 to 1 and its interval of 95 %, over resamples of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The share.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One of the numbers from which a finding follows; its name says what it counts and its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// E.g. `waiting_max`, `slope_per_s`.
    pub name: &'static str,
    /// In base units: seconds, bytes, cores, shares of 1.
    pub value: f64,
}

/// One thing that limited a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// Of which system, as the experiment's file names it.
    pub system: String,
    /// Which part of it: a phase, a thread, a queue, a loop.
    pub part: String,
    /// Where the evidence begins, in seconds since the start of the run.
    pub from_s: f64,
    /// And ends.
    pub to_s: f64,
    /// Where it is drawn.
    pub chart: Chart,
    /// How much it matters.
    pub effect: Share,
    /// Of what that is a share.
    pub of: ShareOf,
    /// From which it follows.
    pub evidence: Vec<Number>,
    /// In words.
    pub sentence: String,
}

impl Finding {
    /// A number of the evidence.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        let numbers = self.evidence.iter();
        numbers
            .filter(|number| number.name == name)
            .map(|number| number.value)
            .next()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(&self.sentence)
    }
}
