//! Feeds every line, read once, to all lifecycles and loops.

use crate::changes::Changes;
use crate::classify::Classifier;
use crate::collector::Collector;
use crate::definition::{Definition, DefinitionError, LoopDefinition};
use crate::fields::Fields;
use crate::line::{Format, MAX_LINE_BYTES, Scanner};
use crate::loops::LoopCollector;

/// How much of an unreadable line is kept.
const SAMPLE_BYTES: usize = 300;

/// Finds lifecycles and loops in log lines.
///
/// Lines may come from any number of files and in any order. Nothing that a line
/// contains is an error: what cannot be read is counted.
#[derive(Debug)]
pub struct Miner {
    scanner: Scanner,
    classifier: Classifier,
    lifecycles: Vec<Collector>,
    loops: Vec<LoopCollector>,
    counts: LineCounts,
    samples: Samples,
}

/// What happened to the lines that a [`Miner`] was fed with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineCounts {
    /// Lines, without blank ones.
    pub lines: u64,
    /// Their bytes, without line ends.
    pub bytes: u64,
    /// Lines in no known form, or without a time.
    pub unreadable: u64,
    /// The beginning of the first unreadable line.
    pub unreadable_sample: Option<String>,
    /// Lines longer than [`MAX_LINE_BYTES`], of which the rest was dropped.
    pub overlong: u64,
}

impl LineCounts {
    /// A line that is not blank.
    pub(crate) fn count(&mut self, line: &[u8]) {
        self.lines += 1;
        self.bytes += line.len() as u64;
        self.overlong += u64::from(line.len() > MAX_LINE_BYTES);
    }

    /// One of them that could not be read.
    pub(crate) fn count_unreadable(&mut self, line: &[u8]) {
        self.unreadable += 1;
        self.unreadable_sample.get_or_insert_with(|| {
            String::from_utf8_lossy(&line[..line.len().min(SAMPLE_BYTES)]).into_owned()
        });
    }
}

/// Lines that are kept as they are.
#[derive(Debug, Default)]
struct Samples {
    lines: Vec<Box<[u8]>>,
    seen: u64,
    shown: usize,
}

impl Samples {
    /// Most lines that are kept.
    const MOST: usize = 400;
    /// Lines that are kept because they showed something.
    const SHOWN: usize = 100;
    /// Bytes kept of a line; a longer one is not kept.
    const BYTES: usize = 4096;

    fn take(&mut self, line: &[u8], is_shown: bool) {
        self.seen += 1;
        let shows = is_shown && self.shown < Self::SHOWN;
        // The first hundred, then the lines whose numbers are squares.
        let root = self.seen.isqrt();
        let due = self.seen <= 100 || root * root == self.seen;
        if (shows || due) && self.lines.len() < Self::MOST && line.len() <= Self::BYTES {
            self.shown += usize::from(shows);
            self.lines.push(line.into());
        }
    }
}

impl Miner {
    /// A miner of these lifecycles and loops. Times in its tables count from the
    /// origin, in nanoseconds since the Unix epoch: the start of the run.
    pub fn new(
        origin_unix_ns: i64,
        lifecycles: &[Definition],
        loops: &[LoopDefinition],
    ) -> Result<Self, DefinitionError> {
        let mut fields = Fields::new();
        let mut miner = Self {
            scanner: Scanner::new(Fields::new()),
            classifier: Classifier::default(),
            lifecycles: Vec::with_capacity(lifecycles.len()),
            loops: Vec::with_capacity(loops.len()),
            counts: LineCounts::default(),
            samples: Samples::default(),
        };
        for definition in lifecycles {
            miner.classifier.add(definition.matchers()?, &mut fields);
            miner
                .lifecycles
                .push(Collector::new(definition, origin_unix_ns, &mut fields)?);
        }
        for definition in loops {
            miner.classifier.add(definition.matchers()?, &mut fields);
            miner
                .loops
                .push(LoopCollector::new(definition, origin_unix_ns, &mut fields));
        }
        miner.scanner = Scanner::new(fields);
        Ok(miner)
    }

    /// Takes in one line, given without or with its line end, of the only process.
    pub fn feed(&mut self, format: Format, line: &[u8]) {
        self.feed_from(0, format, line);
    }

    /// Takes in one line that the process with this number wrote.
    pub fn feed_from(&mut self, process: u32, format: Format, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        self.counts.count(line);
        let Ok(read) = self.scanner.scan(format, line) else {
            self.counts.count_unreadable(line);
            return;
        };
        let (of_lifecycles, of_loops) = self
            .classifier
            .classify(&read)
            .split_at(self.lifecycles.len());
        for (collector, shows) in self.lifecycles.iter_mut().zip(of_lifecycles) {
            collector.feed(&read, *shows);
        }
        for (collector, shows) in self.loops.iter_mut().zip(of_loops) {
            collector.feed(process, &read, *shows);
        }
        let is_shown = of_lifecycles
            .iter()
            .chain(of_loops)
            .any(|shows| *shows != 0);
        self.samples.take(line, is_shown);
    }

    /// Some of the lines that could be read, for whoever looks for a reason: the first
    /// ones, the first that showed anything, and ever fewer of those after them.
    pub fn samples(&self) -> impl Iterator<Item = &[u8]> {
        self.samples.lines.iter().map(|line| &**line)
    }

    /// What happened to the lines so far.
    pub fn counts(&self) -> &LineCounts {
        &self.counts
    }

    /// The lifecycles, in the order of their definitions.
    pub fn lifecycles(&self) -> &[Collector] {
        &self.lifecycles
    }

    /// From now on notes what changes, for [`Miner::changes`]. To be called before the first line.
    pub fn watch(&mut self) {
        self.lifecycles.iter_mut().for_each(Collector::watch);
    }

    /// Of each lifecycle the rows that are not as they were told before; nothing without [`Miner::watch`].
    pub fn changes(&mut self) -> Vec<Changes> {
        self.lifecycles.iter_mut().map(Collector::changes).collect()
    }

    #[cfg(test)]
    pub(crate) fn lifecycles_mut(&mut self) -> &mut [Collector] {
        &mut self.lifecycles
    }

    /// The loops, in the order of their definitions.
    pub fn loops(&self) -> &[LoopCollector] {
        &self.loops
    }
}

#[cfg(test)]
#[path = "miner_tests.rs"]
mod tests;
