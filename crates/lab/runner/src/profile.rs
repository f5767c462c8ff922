//! Where the processor time of systems goes: stacks that the kernel samples while they run, and of
//! them those of the worst seconds, named.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_findings::profile::{Slot, Worst, busiest, folded, worst_of_loads};
use lab_load::Summary;
use lab_store::{ProfileRecord, RunFile, RunFolder, StoreError, SystemSamples};
use measure::{
    Clock, KernelSymbols, Maps, RawStack, SAMPLES_PER_SECOND, Sampled, StackSampler, Symbols,
};

/// Time between two looks at what the kernel has sampled.
const PERIOD: Duration = Duration::from_millis(100);
/// Most stacks that are told from one another, and most processes; the samples of further ones are
/// counted and not named.
const MOST_STACKS: usize = 100_000;
const MOST_PROCESSES: usize = 10_000;
/// Most processes of which it is known who started them.
const MOST_PARENTS: usize = 1_000_000;
/// Most files whose symbols are read.
const MOST_FILES: usize = 200;
/// Longest time between two looks at what a process has loaded, in seconds: at first they are as
/// far apart as it is old.
const MOST_BETWEEN_LOOKS_S: u32 = 60;
/// Most frames of a stack that are named, from the innermost.
const MOST_FRAMES: usize = 127;

/// A thread that takes what the kernel samples.
#[derive(Debug)]
pub(crate) struct Profiler {
    systems: Sender<(String, u32)>,
    thread: JoinHandle<Stacks>,
}

/// What was sampled, not yet named.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// Names of systems, by number.
    systems: Vec<String>,
    /// Stacks: whose, and their addresses with the kernel's marks.
    stacks: Vec<Stack>,
    /// By second of the run: how often each stack was seen.
    seconds: BTreeMap<u32, HashMap<u32, u32>>,
    processes: HashMap<u32, Process>,
    lost: u64,
    /// Why nothing or not all was sampled.
    note: Option<String>,
}

#[derive(Debug)]
struct Stack {
    pid: u32,
    kernel: Vec<u64>,
    program: Vec<u64>,
}

#[derive(Debug)]
struct Process {
    /// Number of its system.
    system: usize,
    /// `None`: it had ended before it was looked at.
    maps: Option<Maps>,
    /// The second of the run in which it was seen first.
    first: u32,
    /// The second from which on its memory is looked at again.
    again: u32,
}

impl Profiler {
    /// Starts, in the thread that starts the systems; where the kernel does not permit it, that is
    /// said at the end.
    pub(crate) fn start(clock: Clock) -> Self {
        let (systems, added) = mpsc::channel();
        let sampler = StackSampler::of_what_this_thread_starts();
        let thread = std::thread::spawn(move || match sampler {
            Ok(sampler) => Sampling::default().run(sampler, clock, &added),
            Err(error) => {
                let mut named = Stacks::default();
                named.systems.extend(added.iter().map(|(name, _)| name));
                named.note = Some(error.to_string());
                named
            }
        });
        Self { systems, thread }
    }

    /// A copy of a system that was just started is to be told of; who was not is left out.
    pub(crate) fn add(&self, name: &str, pid: u32) {
        // The thread does not end before us.
        let _ = self.systems.send((name.to_owned(), pid));
    }

    /// Samples nothing more.
    pub(crate) fn stop(self) -> Stacks {
        drop(self.systems);
        self.thread.join().unwrap_or_default()
    }
}

#[derive(Default)]
struct Sampling {
    sampled: Stacks,
    /// Numbers of stacks, by process and addresses.
    known: HashMap<(u32, Vec<u64>), u32>,
    /// The processes that were started, and the numbers of their systems.
    roots: HashMap<u32, usize>,
    /// Who started each process.
    parents: HashMap<u32, u32>,
}

impl Sampling {
    fn run(
        mut self,
        mut sampler: StackSampler,
        clock: Clock,
        added: &Receiver<(String, u32)>,
    ) -> Stacks {
        loop {
            match added.recv_timeout(PERIOD) {
                Ok((name, pid)) => {
                    self.add(name, pid);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.take(&mut sampler, clock.now_s() as u32);
        }
        self.take(&mut sampler, clock.now_s() as u32);
        self.sampled.lost += sampler.lost();
        self.sampled
    }

    fn add(&mut self, name: String, pid: u32) {
        let number = self.sampled.systems.iter().position(|known| *known == name);
        let number = number.unwrap_or_else(|| {
            self.sampled.systems.push(name);
            self.sampled.systems.len() - 1
        });
        self.roots.insert(pid, number);
    }

    fn take(&mut self, sampler: &mut StackSampler, second: u32) {
        sampler.drain(|sampled| match sampled {
            Sampled::Stack(stack) => self.count(&stack, second),
            Sampled::Started { pid, parent } => {
                if pid != parent && self.parents.len() < MOST_PARENTS {
                    self.parents.insert(pid, parent);
                }
            }
        });
    }

    fn count(&mut self, stack: &RawStack<'_>, second: u32) {
        if !self.process(stack.pid, second) {
            return;
        }
        let key = (stack.pid, stack.chain().collect::<Vec<u64>>());
        let number = match self.known.get(&key) {
            Some(number) => *number,
            None if self.known.len() < MOST_STACKS => {
                let number = self.known.len() as u32;
                let (kernel, program) = stack.addresses();
                let pid = stack.pid;
                self.sampled.stacks.push(Stack {
                    pid,
                    kernel,
                    program,
                });
                self.known.insert(key, number);
                number
            }
            None => {
                self.sampled.lost += 1;
                return;
            }
        };
        let seen = self.sampled.seconds.entry(second).or_default();
        *seen.entry(number).or_default() += 1;
    }

    /// Looks at a process when it is seen first, and again now and then: programs load more code.
    /// Whether it is one of a system's.
    fn process(&mut self, pid: u32, second: u32) -> bool {
        if let Some(process) = self.sampled.processes.get_mut(&pid) {
            if second >= process.again {
                process.maps = Maps::of(pid).or(process.maps.take());
                process.again = second + (second - process.first).clamp(1, MOST_BETWEEN_LOOKS_S);
            }
            return true;
        }
        let Some(system) = self.system_of(pid) else {
            return false;
        };
        if self.sampled.processes.len() >= MOST_PROCESSES {
            self.sampled.lost += 1;
            return false;
        }
        let process = Process {
            system,
            maps: Maps::of(pid),
            first: second,
            again: second + 1,
        };
        self.sampled.processes.insert(pid, process);
        true
    }

    /// The system whose processes started this one; `None`: all between have ended.
    fn system_of(&self, pid: u32) -> Option<usize> {
        let mut pid = pid;
        // Trees of processes are less deep; ids that go round end here.
        for _ in 0..64 {
            if let Some(system) = self.roots.get(&pid) {
                return Some(*system);
            }
            if let Some(known) = self.sampled.processes.get(&pid) {
                return Some(known.system);
            }
            pid = *self.parents.get(&pid)?;
        }
        None
    }
}

impl Stacks {
    /// Stores the stacks of the worst seconds of the run, named; nothing where nothing was sampled.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn store<'a>(
        &self,
        folder: &RunFolder,
        clock: Clock,
        loads: impl Iterator<Item = &'a Summary>,
    ) -> Result<(), StoreError> {
        let Some(worst) = self.worst(clock, loads) else {
            return match &self.note {
                Some(note) if !self.systems.is_empty() => {
                    folder.write_json(RunFile::Profile, &ProfileRecord::without(note))
                }
                _ => Ok(()),
            };
        };
        let mut counts: HashMap<u32, u64> = HashMap::new();
        for (number, count) in self.within(&worst).flatten() {
            *counts.entry(*number).or_default() += u64::from(*count);
        }
        let mut names = Names::default();
        let mut frames: Vec<(Vec<String>, u64)> = Vec::new();
        let mut of_systems: BTreeMap<&str, u64> = BTreeMap::new();
        for (number, count) in counts {
            let stack = &self.stacks[number as usize];
            let Some(process) = self.processes.get(&stack.pid) else {
                continue;
            };
            let system = self.systems[process.system].as_str();
            *of_systems.entry(system).or_default() += count;
            frames.push((names.frames(system, stack, process.maps.as_ref()), count));
        }
        let text = folded(frames.iter().map(|(frames, count)| (&**frames, *count)));
        folder.write(RunFile::Stacks, text.as_bytes())?;
        let mut systems: Vec<SystemSamples> = of_systems
            .into_iter()
            .map(|(system, samples)| SystemSamples {
                system: system.to_owned(),
                samples,
            })
            .collect();
        systems.sort_by_key(|one| std::cmp::Reverse(one.samples));
        let record = ProfileRecord {
            from_s: worst.from_s,
            to_s: worst.to_s,
            why: worst.why,
            per_second: SAMPLES_PER_SECOND,
            samples: systems.iter().map(|one| one.samples).sum(),
            lost: self.lost,
            systems,
            note: self.note.clone(),
        };
        folder.write_json(RunFile::Profile, &record)
    }

    /// What was seen in each second that a window touches.
    fn within(&self, worst: &Worst) -> impl Iterator<Item = &HashMap<u32, u32>> {
        let (from, to) = (worst.from_s.floor() as u32, worst.to_s.ceil() as u32);
        let seconds = self.seconds.range(from..to.max(from + 1));
        seconds.map(|(_, seen)| seen)
    }

    fn worst<'a>(&self, clock: Clock, loads: impl Iterator<Item = &'a Summary>) -> Option<Worst> {
        let loads: Vec<(String, Vec<Slot>)> = loads.map(|load| slots(load, clock)).collect();
        let seen = |worst: &Worst| self.within(worst).next().is_some();
        let sums = self.seconds.iter().map(|(second, seen)| {
            let sum: u64 = seen.values().map(|count| u64::from(*count)).sum();
            (*second, sum)
        });
        worst_of_loads(&loads)
            .filter(seen)
            .or_else(|| busiest(&sums.collect()))
    }
}

/// How a load fared over the run.
fn slots(load: &Summary, clock: Clock) -> (String, Vec<Slot>) {
    let began_s = (load.began_unix_ns - clock.origin_unix_ns()) as f64 / 1e9;
    let timeline = load.timeline.iter().filter(|slot| !slot.after_end);
    let slots = timeline.map(|slot| Slot {
        from_s: began_s + slot.t_s,
        length_s: slot.length_s,
        failed: slot.failed,
        p99_s: slot.p99,
    });
    (load.name.clone(), slots.collect())
}

/// Names of frames, with the symbols of every file that was met.
#[derive(Default)]
struct Names {
    files: HashMap<Arc<PathBuf>, Option<Symbols>>,
    kernel: Option<KernelSymbols>,
}

impl Names {
    /// A stack from its system to its innermost function.
    fn frames(&mut self, system: &str, stack: &Stack, maps: Option<&Maps>) -> Vec<String> {
        let mut frames = Vec::new();
        for address in stack.kernel.iter().take(MOST_FRAMES) {
            let kernel = self.kernel.get_or_insert_with(KernelSymbols::now);
            let name = kernel.at(*address).unwrap_or("[kernel]");
            push(&mut frames, format!("{name} (kernel)"));
        }
        for (depth, address) in stack.program.iter().take(MOST_FRAMES).enumerate() {
            // All but the innermost are where a call returns to, behind the call.
            let innermost = depth == 0 && stack.kernel.is_empty();
            let address = if innermost {
                *address
            } else {
                address.saturating_sub(1)
            };
            let name = match maps.map(|maps| maps.find(address)) {
                Some(Some((file, place))) => self.function(file, place),
                Some(None) => "[not of a file]".to_owned(),
                None => "[ended]".to_owned(),
            };
            push(&mut frames, name);
        }
        frames.push(system.replace([';', ' '], "_"));
        frames.reverse();
        frames
    }

    fn function(&mut self, file: &Arc<PathBuf>, place: u64) -> String {
        let room = self.files.len() < MOST_FILES;
        let symbols = self
            .files
            .entry(Arc::clone(file))
            .or_insert_with(|| room.then(|| Symbols::of(file)));
        if let Some(name) = symbols.as_ref().and_then(|symbols| symbols.at(place)) {
            return name.to_owned();
        }
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        format!("[{}]", file.replace([';', ' '], "_"))
    }
}

/// Adds a frame; of what has no name one stands for all in a row.
fn push(frames: &mut Vec<String>, name: String) {
    if !name.starts_with('[') || frames.last() != Some(&name) {
        frames.push(name);
    }
}
