//! Made-up entities whose shapes are those of a real scheduler under load.

use stats::SplitMix;

/// What samples are drawn from: they must not change.
pub(crate) struct Dice(SplitMix);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    /// Log-normal around `median`; `spread` is the factor of one standard deviation.
    pub(crate) fn around(&mut self, median: f64, spread: f64) -> f64 {
        let normal: f64 = (0..12).map(|_| self.0.unit()).sum::<f64>() - 6.0;
        median * spread.powf(normal)
    }

    /// The time until the next of independent events, with a mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.0.unit()).ln()
    }

    /// Something that happens with a probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.unit() < probability
    }

    /// Hexadecimal text in the form of a GUID.
    pub(crate) fn guid(&mut self) -> String {
        let mut part = |digits: usize| -> String {
            (0..digits)
                .map(|_| char::from_digit((self.0.unit() * 16.0) as u32, 16).unwrap_or('0'))
                .collect()
        };
        [part(8), part(4), part(4), part(4), part(12)].join("-")
    }

    /// A whole number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.0.unit() * end as f64) as usize
    }
}

/// Servers that work one piece after the other.
struct Pool(Vec<f64>);

impl Pool {
    fn new(workers: usize) -> Self {
        Self(vec![0.0; workers])
    }

    /// When work that arrives at `at` and takes `for_s` is begun and done.
    fn serve(&mut self, at: f64, for_s: f64) -> f64 {
        let Some(free) = self.0.iter_mut().min_by(|a, b| a.total_cmp(b)) else {
            return at;
        };
        *free = free.max(at) + for_s;
        *free
    }
}

/// One row: group, then seconds for each point.
pub(crate) struct Life {
    pub(crate) id: String,
    pub(crate) cell: usize,
    pub(crate) at: Vec<Option<f64>>,
}

pub(crate) const TASK_POINTS: [&str; 9] = [
    "desired",
    "persisted",
    "auctioned",
    "allocated",
    "started",
    "created",
    "exited",
    "completed",
    "resolved",
];
pub(crate) const LRP_POINTS: [&str; 8] = [
    "desired",
    "auctioned",
    "claimed",
    "allocated",
    "created",
    "running",
    "stopping",
    "removed",
];

/// Tasks that are asked for from `start` on, in rounds of the auction, on `cells`
/// cells that create five containers at a time; results pass a pool of 20 workers.
pub(crate) fn tasks(dice: &mut Dice, count: usize, cells: usize, start: f64) -> Vec<Life> {
    let mut creators: Vec<Pool> = (0..cells).map(|_| Pool::new(5)).collect();
    let mut callbacks = Pool::new(20);
    let mut lives: Vec<(Life, f64)> = (0..count)
        .map(|i| {
            let cell = dice.below(cells);
            let desired = start + i as f64 * 1.5 / 4000.0 + dice.around(0.002, 1.5);
            let persisted = desired + dice.around(0.012, 1.9);
            let round = ((persisted - start) / 0.35).ceil() * 0.35 + start;
            let auctioned = round + dice.around(0.05, 1.3);
            let allocated = auctioned + dice.around(0.02, 1.6);
            let started = allocated + dice.around(0.015, 1.7);
            let slow = if i == count * 5 / 8 { 8.0 } else { 1.0 };
            let created = creators[cell].serve(started, dice.around(0.75, 1.45) * slow);
            let exited = created + dice.around(0.11, 1.5);
            let completed = exited + dice.around(0.018, 1.6);
            let at = [
                desired, persisted, auctioned, allocated, started, created, exited, completed,
            ];
            (
                Life {
                    id: dice.guid(),
                    cell,
                    at: at.map(Some).to_vec(),
                },
                completed,
            )
        })
        .collect();
    let mut by_end: Vec<usize> = (0..count).collect();
    by_end.sort_by(|&a, &b| lives[a].1.total_cmp(&lives[b].1));
    for index in by_end {
        let completed = lives[index].1;
        let resolved = callbacks.serve(completed, dice.around(0.035, 1.3));
        lives[index].0.at.push(Some(resolved));
    }
    let mut lives: Vec<Life> = lives.into_iter().map(|(life, _)| life).collect();
    for index in [count / 3, count / 2] {
        lives[index].at[7] = None;
    }
    let skewed = &mut lives[count / 5].at;
    skewed[3] = skewed[2].map(|at| at - 0.0021);
    lives
}

/// Instances of one long-running process: all are stopped once all run.
pub(crate) fn lrps(dice: &mut Dice, count: usize, cells: usize, start: f64) -> Vec<Life> {
    let mut writers = Pool::new(40);
    let mut creators: Vec<Pool> = (0..cells).map(|_| Pool::new(5)).collect();
    let mut lives: Vec<Life> = (0..count)
        .map(|_| {
            let cell = dice.below(cells);
            let desired = writers.serve(start, dice.around(0.008, 1.5));
            let round = ((desired - start) / 0.4).ceil() * 0.4 + start;
            let auctioned = round + dice.around(0.06, 1.4);
            let claimed = auctioned + dice.around(0.05, 1.7);
            let allocated = claimed + dice.around(0.02, 1.7);
            let created = creators[cell].serve(allocated, dice.around(0.9, 1.5));
            let running = created + dice.around(0.35, 1.5);
            let at = [desired, auctioned, claimed, allocated, created, running];
            Life {
                id: dice.guid(),
                cell,
                at: at.map(Some).to_vec(),
            }
        })
        .collect();
    let all_run = lives
        .iter()
        .filter_map(|life| life.at[5])
        .fold(0.0, f64::max);
    let mut stoppers = Pool::new(30);
    for life in &mut lives {
        let stopping = stoppers.serve(all_run + 0.4, dice.around(0.012, 1.4));
        life.at.push(Some(stopping));
        life.at.push(Some(stopping + dice.around(0.14, 1.6)));
    }
    lives
}
