//! Limits of processes that leave them little of a resource.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::process::{Pid, Rlimit, prlimit};

use crate::undo::{ProcessId, Resource, Undo};

/// A limit of a process that is to be lowered, as it is now and as it shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lowering {
    /// Whose.
    pub process: ProcessId,
    /// Which.
    pub resource: Resource,
    /// What the process may use now; `None`: no limit.
    pub soft: Option<u64>,
    /// How far it may raise that itself; `None`: no limit.
    pub hard: Option<u64>,
    /// What it may use then.
    pub to: u64,
}

impl Lowering {
    /// What leaves a process so much more of a resource than it has now, descriptors or bytes.
    /// `None`: it has ended, or its limit is that low already.
    ///
    /// # Errors
    /// What could not be read of it.
    pub fn to_leave(
        process: ProcessId,
        resource: Resource,
        left: u64,
    ) -> Result<Option<Self>, String> {
        let Some((soft, hard)) = limits(process, resource)? else {
            return Ok(None);
        };
        let used = match resource {
            Resource::Descriptors => open(process)?.map(|open| limit_of_numbers(&open, left)),
            Resource::AddressSpace => mapped(process)?.map(|bytes| bytes.saturating_add(left)),
        };
        let Some(to) = used.filter(|to| soft.is_none_or(|soft| *to < soft)) else {
            return Ok(None);
        };
        Ok(Some(Self {
            process,
            resource,
            soft,
            hard,
            to,
        }))
    }

    /// What puts the limit back.
    pub fn undo(&self) -> Undo {
        Undo::RestoreLimit {
            process: self.process,
            resource: self.resource,
            soft: self.soft,
            hard: self.hard,
        }
    }

    /// Lowers it, once what undoes it is written down. A process that has ended is left alone.
    ///
    /// # Errors
    /// Why the kernel refused.
    pub fn make(&self) -> Result<(), String> {
        let pid = Pid::from_raw(self.process.pid).filter(|_| self.process.is_alive());
        let Some(pid) = pid else {
            return Ok(());
        };
        let limit = Rlimit {
            current: Some(self.to),
            maximum: self.hard,
        };
        match prlimit(Some(pid), self.resource.of_kernel(), limit) {
            Ok(_) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(format!(
                "lower a limit of process {}: {error}",
                self.process.pid
            )),
        }
    }

    /// How much is left of it now that it was lowered; `None`: the process has ended.
    ///
    /// # Errors
    /// What could not be read of it.
    pub fn left(&self) -> Result<Option<u64>, String> {
        Ok(match self.resource {
            Resource::Descriptors => open(self.process)?.map(|open| {
                let taken = open.range(..self.to).count() as u64;
                self.to - taken
            }),
            Resource::AddressSpace => {
                mapped(self.process)?.map(|bytes| self.to.saturating_sub(bytes))
            }
        })
    }

    /// The same for a process that was started meanwhile by one whose limit was lowered, and
    /// has inherited that; `None`: it has another limit.
    ///
    /// # Errors
    /// What could not be read of it.
    pub fn inherited(&self, process: ProcessId) -> Result<Option<Self>, String> {
        let found = limits(process, self.resource)?;
        let has_it = found.is_some_and(|(soft, _)| soft == Some(self.to));
        Ok(has_it.then_some(Self { process, ..*self }))
    }
}

/// The limit on the numbers of descriptors below which `left` are free: a new one takes the
/// lowest free number.
fn limit_of_numbers(open: &BTreeSet<u64>, left: u64) -> u64 {
    let (mut limit, mut free) = (0, 0);
    for number in open {
        let gap = number - limit;
        if free + gap > left {
            break;
        }
        free += gap;
        limit = number + 1;
    }
    limit + (left - free)
}

/// Numbers of its open descriptors; `None`: it has ended.
fn open(process: ProcessId) -> Result<Option<BTreeSet<u64>>, String> {
    let path = format!("/proc/{}/fd", process.pid);
    let read = fs::read_dir(&path).and_then(|entries| {
        let names = entries.map(|entry| Ok(entry?.file_name()));
        names.collect::<io::Result<Vec<_>>>()
    });
    let names = of_process(process, &path, read)?;
    let numbers = |names: Vec<std::ffi::OsString>| {
        let numbers = names.iter();
        let numbers = numbers.filter_map(|name| name.to_str()?.parse().ok());
        numbers.collect()
    };
    Ok(names.map(numbers))
}

/// Bytes of its address space; `None`: it has ended.
fn mapped(process: ProcessId) -> Result<Option<u64>, String> {
    let path = format!("/proc/{}/statm", process.pid);
    let text = of_process(process, &path, fs::read_to_string(&path))?;
    let pages = |text: &str| text.split_ascii_whitespace().next()?.parse::<u64>().ok();
    let page = rustix::param::page_size() as u64;
    text.map(|text| {
        let pages = pages(&text).ok_or_else(|| format!("read {path}: found {text:?}"))?;
        Ok(pages.saturating_mul(page))
    })
    .transpose()
}

type Limits = (Option<u64>, Option<u64>);

/// Soft and hard limit; `None`: it has ended.
fn limits(process: ProcessId, resource: Resource) -> Result<Option<Limits>, String> {
    let path = format!("/proc/{}/limits", process.pid);
    let text = of_process(process, &path, fs::read_to_string(&path))?;
    let found = |text: String| {
        parse_limits(&text, resource).ok_or_else(|| format!("read {path}: found {text:?}"))
    };
    text.map(found).transpose()
}

/// What was read of a process; `None` when it has ended, whatever was read.
fn of_process<T>(process: ProcessId, path: &str, read: io::Result<T>) -> Result<Option<T>, String> {
    match read {
        Ok(read) => Ok(process.is_alive().then_some(read)),
        Err(_) if !process.is_alive() => Ok(None),
        Err(error) => Err(format!("read {path}: {error}")),
    }
}

/// A row of `/proc/PID/limits`, proc_pid_limits(5).
fn parse_limits(text: &str, resource: Resource) -> Option<Limits> {
    let name = match resource {
        Resource::Descriptors => "Max open files ",
        Resource::AddressSpace => "Max address space ",
    };
    let row = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut values = row.split_ascii_whitespace().map(|value| match value {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    });
    Some((values.next()??, values.next()??))
}

#[cfg(test)]
mod tests;
