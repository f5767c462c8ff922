//! Records of what the machine and its parts were used for, sampled twice a second: from
//! them follows what limited a run.

/// One line of `series/threads.csv`: a thread of a system that was busy.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSample {
    /// When.
    pub t_s: f64,
    /// The system, as in [`crate::ProcessSample`].
    pub system: String,
    /// Its process; 0: the line stands for the other threads of the system.
    pub pid: u32,
    /// The thread; of the line that stands for others, how many these are.
    pub thread: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Processor time since the sample before, in cores.
    pub cpu_cores: f64,
    /// Time since the sample before in which it could have run and had no processor, by the
    /// same measure.
    pub waited_cores: f64,
}

/// One line of `series/limits.csv`: how much of something limited was in use.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitSample {
    /// When.
    pub t_s: f64,
    /// Whose: a system, or `machine`.
    pub of: String,
    /// What: `descriptors` (of the process that was nearest to its limit) or `ports`
    /// (towards the one remote address that most were used for).
    pub what: String,
    /// How many were in use.
    pub used: u64,
    /// How many there may be.
    pub most: u64,
}

/// One line of `series/machine.csv`: the machine, and the network namespace that the
/// laboratory is in. What others on the machine do is in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineSample {
    /// When.
    pub t_s: f64,
    /// Processors that nobody used since the sample before.
    pub idle_cores: f64,
    /// Processor time of the laboratory itself, its generators included, in cores.
    pub own_cores: f64,
    /// Connections of TCP.
    pub established: u64,
    /// Ends of connections that only keep their port.
    pub time_wait: u64,
    /// Sockets of TCP in other states.
    pub other: u64,
    /// Connections of TCP that were opened since the sample before.
    pub opened: u64,
    /// Datagrams that were handed to sockets since the sample before.
    pub received: u64,
    /// Datagrams that were dropped since the sample before, as a socket's buffer was full.
    pub dropped: u64,
}

/// One line of `series/datagrams.csv`: a socket of a system that dropped datagrams since
/// the sample before.
#[derive(Debug, Clone, PartialEq)]
pub struct DatagramSample {
    /// When.
    pub t_s: f64,
    /// The system.
    pub system: String,
    /// Port of the socket.
    pub port: u16,
    /// How many it dropped.
    pub dropped: u64,
}
