//! What systems use of the machine's limits, sampled twice a second: processor time of each
//! thread, descriptors, ports, dropped datagrams. From these follows what limited a run.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use lab_store::{
    Appender, DatagramSample, LimitSample, MachineSample, RunFolder, StoreError, ThreadSample,
};
use measure::{
    CpuTimes, Machine, NetCounts, TcpSockets, ThreadTime, ThreadTimes, Threads, Trees,
    descriptors_of, ephemeral_ports, holder_of_socket, thread_name, udp_drops,
};
use nix::time::ClockId;

/// Time between two samples.
pub(crate) const PERIOD: Duration = Duration::from_millis(500);

/// Sampling takes at most one part in so many of a processor: samples are further apart
/// where there are very many threads and sockets.
pub(crate) const PART: u32 = 50;

/// Threads of a system that are kept one by one, and how busy these are at least, in
/// cores. The others are one line.
const KEPT: usize = 8;
const BUSY: f64 = 0.02;

/// What is named where no system is meant.
const MACHINE: &str = "machine";

/// Samples into `series/threads.csv`, `limits.csv`, `machine.csv` and `datagrams.csv`.
#[derive(Debug)]
pub(crate) struct Usage {
    threads: Appender<ThreadSample>,
    limits: Appender<LimitSample>,
    machine: Appender<MachineSample>,
    datagrams: Appender<DatagramSample>,
    /// Threads of each system, by the number of its tree.
    of_trees: Vec<Threads>,
    cores: f64,
    ephemeral: RangeInclusive<u16>,
    last: Option<Last>,
    /// What the sockets had dropped at the last look.
    dropped: Option<BTreeMap<(u64, u16), u64>>,
    /// Of which tree a socket is that dropped something; `None`: of none.
    holders: BTreeMap<u64, Option<usize>>,
    thread_names: ThreadNames,
}

/// Counts of the sample before.
#[derive(Debug, Clone, Copy)]
struct Last {
    t_s: f64,
    cpu: CpuTimes,
    own: Duration,
    net: NetCounts,
}

impl Usage {
    pub(crate) fn start(folder: &RunFolder) -> Result<Self, StoreError> {
        Ok(Self {
            threads: folder.appender()?,
            limits: folder.appender()?,
            machine: folder.appender()?,
            datagrams: folder.appender()?,
            of_trees: Vec::new(),
            cores: f64::from(Machine::detect().cores),
            ephemeral: ephemeral_ports(),
            last: None,
            dropped: None,
            holders: BTreeMap::new(),
            thread_names: ThreadNames::default(),
        })
    }

    /// Takes a sample of the systems that these trees are, in their order.
    pub(crate) fn sample(
        &mut self,
        t_s: f64,
        trees: &Trees,
        names: &[String],
    ) -> Result<(), StoreError> {
        self.of_trees.resize_with(names.len(), Threads::default);
        for (tree, name) in names.iter().enumerate() {
            let pids = trees.living(tree);
            if pids.is_empty() {
                continue;
            }
            let times = self.of_trees[tree].sample(pids);
            let known = &mut self.thread_names;
            let named = |pid, tid| known.take((pid, tid), thread_name(pid, tid));
            for sample in thread_samples(t_s, name, &times, named) {
                self.threads.append(&sample)?;
            }
            let each = pids.iter().filter_map(|pid| descriptors_of(*pid));
            let nearest = each.max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
            if let Some((used, most)) = nearest {
                self.limit(t_s, name, "descriptors", used, most)?;
            }
        }
        self.sample_machine(t_s)?;
        self.sample_datagrams(t_s, trees, names)
    }

    fn limit(
        &mut self,
        t_s: f64,
        of: &str,
        what: &str,
        used: u64,
        most: u64,
    ) -> Result<(), StoreError> {
        self.limits.append(&LimitSample {
            t_s,
            of: of.to_owned(),
            what: what.to_owned(),
            used,
            most,
        })
    }

    fn sample_machine(&mut self, t_s: f64) -> Result<(), StoreError> {
        let sockets = TcpSockets::now(&self.ephemeral);
        let most = self.ephemeral.len() as u64;
        let what = match sockets.towards {
            Some(remote) => format!("ports towards {remote}"),
            None => "ports".to_owned(),
        };
        self.limit(t_s, MACHINE, &what, sockets.ports, most)?;
        let now = Last {
            t_s,
            cpu: CpuTimes::now(),
            own: cpu_of_laboratory(),
            net: NetCounts::now(),
        };
        let Some(before) = self.last.replace(now) else {
            return Ok(());
        };
        let length_s = (t_s - before.t_s).max(f64::MIN_POSITIVE);
        let own = now.own.saturating_sub(before.own).as_secs_f64();
        let net = now.net.since(&before.net);
        self.machine.append(&MachineSample {
            t_s,
            idle_cores: now.cpu.share_idle_since(&before.cpu) * self.cores,
            own_cores: own / length_s,
            established: sockets.established,
            time_wait: sockets.time_wait,
            other: sockets.other + sockets.unread,
            opened: net.opened,
            received: net.received,
            dropped: net.dropped,
        })
    }

    fn sample_datagrams(
        &mut self,
        t_s: f64,
        trees: &Trees,
        names: &[String],
    ) -> Result<(), StoreError> {
        let now = udp_drops();
        let before = self.dropped.replace(now.clone());
        let Some(before) = before else { return Ok(()) };
        for ((inode, port), dropped) in now {
            let known = before.get(&(inode, port)).copied().unwrap_or(0);
            let Some(dropped) = dropped.checked_sub(known).filter(|more| *more > 0) else {
                continue;
            };
            let holder = self.holders.entry(inode).or_insert_with(|| {
                (0..names.len()).find(|tree| holder_of_socket(trees.living(*tree), inode).is_some())
            });
            let Some(system) = holder.and_then(|tree| names.get(tree)) else {
                continue;
            };
            self.datagrams.append(&DatagramSample {
                t_s,
                system: system.clone(),
                port,
                dropped,
            })?;
        }
        Ok(())
    }

    /// Writes everything that was sampled.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        self.threads.flush()?;
        self.limits.flush()?;
        self.machine.flush()?;
        self.datagrams.flush()
    }
}

/// Names of threads, by process and thread. A thread may get its name only after its start,
/// and has none any more when it has ended.
#[derive(Debug, Default)]
struct ThreadNames(BTreeMap<(u32, u32), String>);

impl ThreadNames {
    /// Most threads whose names are known; then they are learnt anew.
    const MOST: usize = 100_000;

    /// The name that a thread has now, or else had last.
    fn take(&mut self, thread: (u32, u32), now: Option<String>) -> Option<String> {
        let Some(now) = now else {
            return self.0.get(&thread).cloned();
        };
        if self.0.get(&thread) != Some(&now) {
            if self.0.len() >= Self::MOST {
                self.0.clear();
            }
            self.0.insert(thread, now.clone());
        }
        Some(now)
    }
}

/// The busiest threads of a system, each with a line, and one line for all others.
fn thread_samples(
    t_s: f64,
    system: &str,
    times: &ThreadTimes,
    mut name: impl FnMut(u32, u32) -> Option<String>,
) -> Vec<ThreadSample> {
    let busy = times.busy.iter().take(KEPT);
    let kept = busy.take_while(|thread| thread.cores >= BUSY).count();
    let (own, others) = times.busy.split_at(kept);
    let line = |pid, thread, name, cpu_cores, waited_cores| ThreadSample {
        t_s,
        system: system.to_owned(),
        pid,
        thread,
        name,
        cpu_cores,
        waited_cores,
    };
    let mut samples: Vec<ThreadSample> = own
        .iter()
        .map(|thread| {
            // One that has ended before anybody asked has no name any more.
            let name = name(thread.pid, thread.tid).unwrap_or_else(|| "ended".to_owned());
            line(thread.pid, thread.tid, name, thread.cores, thread.waited)
        })
        .collect();
    let count = others.len() as u64 + times.unread;
    // Of nothing the sum is -0, which is no number to store.
    let sum = |of: fn(&ThreadTime) -> f64| others.iter().map(of).sum::<f64>() + 0.0;
    let (cores, waited) = (sum(|thread| thread.cores), sum(|thread| thread.waited));
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    samples.push(line(0, count, "others".to_owned(), cores, waited));
    samples
}

/// Processor time of this process so far.
fn cpu_of_laboratory() -> Duration {
    let clock = ClockId::CLOCK_PROCESS_CPUTIME_ID;
    clock.now().map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use measure::Marks;

    use super::*;

    fn times(cores: &[f64]) -> ThreadTimes {
        let threads = cores.iter().enumerate();
        ThreadTimes {
            busy: threads
                .map(|(number, cores)| ThreadTime {
                    pid: 7,
                    tid: number as u32,
                    cores: *cores,
                    waited: 0.0,
                })
                .collect(),
            unread: 3,
        }
    }

    #[test]
    fn a_thread_that_has_ended_keeps_its_last_name() {
        let mut names = ThreadNames::default();
        let mut take = |tid, name: Option<&str>| names.take((7, tid), name.map(str::to_owned));
        assert_eq!(take(1, None), None);
        assert_eq!(take(1, Some("server")).as_deref(), Some("server"));
        assert_eq!(take(1, Some("burner")).as_deref(), Some("burner"));
        assert_eq!(take(1, None).as_deref(), Some("burner"));
        assert_eq!(take(2, None), None);
    }

    #[test]
    fn the_busiest_threads_are_kept_and_the_others_are_one_line() {
        let name = |_, tid| (tid != 1).then(|| format!("worker-{tid}"));
        let samples = thread_samples(1.0, "web", &times(&[0.9, 0.5, 0.01, 0.005]), name);
        let told: Vec<_> = samples
            .iter()
            .map(|sample| (sample.pid, sample.thread, &*sample.name))
            .collect();
        let expected = [(7, 0, "worker-0"), (7, 1, "ended"), (0, 5, "others")];
        assert_eq!(told, expected);
        assert!((samples[2].cpu_cores - 0.015).abs() < 1e-12);
        let many = thread_samples(1.0, "web", &times(&[0.1; 50]), name);
        assert_eq!((many.len(), many[KEPT].thread), (KEPT + 1, 45));
        let idle = thread_samples(1.0, "web", &times(&[]), name);
        assert_eq!(idle[0].cpu_cores.to_string(), "0");
    }

    /// What the documentation says of the cost: `cargo test -p lab-runner usage -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement: it says what a sample costs, and what that is depends on the machine"]
    fn cost_of_a_sample_of_50_threads_and_1000_sockets() {
        use std::net::{TcpListener, TcpStream};
        let idle = || std::thread::sleep(Duration::from_secs(3600));
        for _ in 0..50 {
            std::thread::spawn(idle);
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open: Vec<_> = (0..500)
            .map(|_| {
                (
                    TcpStream::connect(address).unwrap(),
                    listener.accept().unwrap(),
                )
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path(), "cost", jiff::Timestamp::now()).unwrap();
        let mut usage = Usage::start(&run).unwrap();
        let mut trees = Trees::new();
        trees.add(std::process::id(), Marks::default()).unwrap();
        let names = ["own".to_owned()];
        let cost = |what: &mut dyn FnMut()| {
            let began = cpu_of_laboratory();
            (0..100).for_each(|_| what());
            (cpu_of_laboratory() - began) / 100
        };
        let processes = cost(&mut || drop(trees.sample()));
        let limits = cost(&mut || usage.sample(0.0, &trees, &names).unwrap());
        let second = processes * 10 + limits * 2;
        println!(
            "processes {processes:?}, limits {limits:?}: {second:?} of processor time a second"
        );
        drop(open);
    }
}
