//! Records of what the machine and its parts were used for, sampled twice a second: from
//! them follows what limited a run.

use csv::{Cell, push_record};

use crate::folder::RunFile;
use crate::line::{Record, finite, number, time};

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

impl Record for ThreadSample {
    const FILE: RunFile<'static> = RunFile::Threads;
    const COLUMNS: Option<&'static [&'static str]> = Some(&[
        "t_s",
        "system",
        "pid",
        "thread",
        "name",
        "cpu_cores",
        "waited_cores",
    ]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let fields = [
            finite("t_s", self.t_s)?,
            self.system.clone(),
            self.pid.to_string(),
            self.thread.to_string(),
            self.name.clone(),
            finite("cpu_cores", self.cpu_cores)?,
            finite("waited_cores", self.waited_cores)?,
        ];
        push_record(out, fields.iter().map(String::as_str));
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        Ok(Self {
            t_s: time(fields, 0)?,
            system: fields[1].text.clone(),
            pid: number::<Self, _>(fields, 2)?,
            thread: number::<Self, _>(fields, 3)?,
            name: fields[4].text.clone(),
            cpu_cores: number::<Self, f64>(fields, 5)?,
            waited_cores: number::<Self, f64>(fields, 6)?,
        })
    }
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

impl Record for LimitSample {
    const FILE: RunFile<'static> = RunFile::Limits;
    const COLUMNS: Option<&'static [&'static str]> = Some(&["t_s", "of", "what", "used", "most"]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let fields = [
            finite("t_s", self.t_s)?,
            self.of.clone(),
            self.what.clone(),
            self.used.to_string(),
            self.most.to_string(),
        ];
        push_record(out, fields.iter().map(String::as_str));
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        Ok(Self {
            t_s: time(fields, 0)?,
            of: fields[1].text.clone(),
            what: fields[2].text.clone(),
            used: number::<Self, _>(fields, 3)?,
            most: number::<Self, _>(fields, 4)?,
        })
    }
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

impl Record for MachineSample {
    const FILE: RunFile<'static> = RunFile::Machine;
    const COLUMNS: Option<&'static [&'static str]> = Some(&[
        "t_s",
        "idle_cores",
        "own_cores",
        "established",
        "time_wait",
        "other",
        "opened",
        "received",
        "dropped",
    ]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let fields = [
            finite("t_s", self.t_s)?,
            finite("idle_cores", self.idle_cores)?,
            finite("own_cores", self.own_cores)?,
            self.established.to_string(),
            self.time_wait.to_string(),
            self.other.to_string(),
            self.opened.to_string(),
            self.received.to_string(),
            self.dropped.to_string(),
        ];
        push_record(out, fields.iter().map(String::as_str));
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        Ok(Self {
            t_s: time(fields, 0)?,
            idle_cores: number::<Self, f64>(fields, 1)?,
            own_cores: number::<Self, f64>(fields, 2)?,
            established: number::<Self, _>(fields, 3)?,
            time_wait: number::<Self, _>(fields, 4)?,
            other: number::<Self, _>(fields, 5)?,
            opened: number::<Self, _>(fields, 6)?,
            received: number::<Self, _>(fields, 7)?,
            dropped: number::<Self, _>(fields, 8)?,
        })
    }
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

impl Record for DatagramSample {
    const FILE: RunFile<'static> = RunFile::Datagrams;
    const COLUMNS: Option<&'static [&'static str]> = Some(&["t_s", "system", "port", "dropped"]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let fields = [
            finite("t_s", self.t_s)?,
            self.system.clone(),
            self.port.to_string(),
            self.dropped.to_string(),
        ];
        push_record(out, fields.iter().map(String::as_str));
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        Ok(Self {
            t_s: time(fields, 0)?,
            system: fields[1].text.clone(),
            port: number::<Self, _>(fields, 2)?,
            dropped: number::<Self, _>(fields, 3)?,
        })
    }
}
