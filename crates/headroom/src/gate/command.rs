//! A run of a command: its times, and the numbers that it prints.

use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab_judgement::Unit;
use measure::Clock;
use processes::{Program, Reaper, RunTag};
use tempfile::NamedTempFile;
use units::show_seconds;

use super::pairs::{Sample, Side};
use super::reading::{Place, Quantity, Reading, find};

/// Most that a command may print to one of its outputs, in bytes.
const PRINTED_MOST: u64 = 64 << 20;
/// Time between two looks at how much it printed.
const LOOK: Duration = Duration::from_millis(200);
/// How long a command that is asked to end may take.
const END_WITHIN: Duration = Duration::from_secs(2);
/// Last lines of each output that are shown of a command that failed.
const LINES: usize = 10;

/// Both commands. What they leave behind is ended with each run, and when this process is killed.
pub(crate) struct Commands<'a> {
    base: &'a str,
    new: &'a str,
    time_limit: Duration,
    readings: &'a [Reading],
    tag: RunTag,
    reaper: Reaper,
}

/// A run that ended well.
struct CompletedRun {
    cpu: Duration,
    wall: Duration,
    stdout: String,
    stderr: String,
}

impl<'a> Commands<'a> {
    pub(crate) fn new(
        [base, new]: [&'a str; 2],
        readings: &'a [Reading],
        time_limit: Duration,
    ) -> Result<Self> {
        let own = std::env::current_exe().context("find the path of this program")?;
        let reaper = Reaper::start(&[own.into(), "reaper".into()])?;
        let tag = RunTag::new("gate", Clock::start().origin_unix_ns());
        reaper.tag(&tag)?;
        Ok(Self {
            base,
            new,
            time_limit,
            readings,
            tag,
            reaper,
        })
    }

    /// A run of each, which warms up what both use and shows what there is to compare.
    pub(crate) fn units(&self) -> Result<Vec<Unit>> {
        let [base, new] = [Side::Base, Side::New].map(|side| self.quantities(side));
        let (base, new) = (base?, new?);
        let pairs = self.readings.iter().zip(base.iter().zip(&new));
        let units = pairs.map(|(reading, (base, new))| {
            if base.unit != new.unit {
                bail!(
                    "{}: the base has {} and the new one {}; compare what has the same unit",
                    reading.name,
                    base.unit.show(base.value),
                    new.unit.show(new.value)
                );
            }
            Ok(base.unit)
        });
        units.collect()
    }

    fn quantities(&self, side: Side) -> Result<Vec<Quantity>> {
        let command = self.command(side);
        let ran = self.run(side)?;
        let ran = ran.map_err(|why| anyhow::anyhow!("{}: {command}: {why}", side.word()))?;
        let each = self.readings.iter().map(|reading| {
            ran.quantity(reading).map_err(|why| {
                let (name, said) = (&reading.name, ran.last_lines());
                anyhow::anyhow!("{}: {command}: {name}: {why}{said}", side.word())
            })
        });
        each.collect()
    }

    /// A run of a pair.
    pub(crate) fn sample(&self, side: Side, units: &[Unit]) -> Result<Sample> {
        let ran = match self.run(side)? {
            Ok(ran) => ran,
            Err(why) => {
                return Ok(Sample {
                    values: vec![None; units.len()],
                    failure: Some(why),
                });
            }
        };
        let mut failure = None;
        let each = self.readings.iter().zip(units).map(|(reading, unit)| {
            let name = &reading.name;
            match ran.quantity(reading) {
                Ok(found) if found.unit == *unit => Some(found.value),
                Ok(found) => {
                    let found = found.unit.show(found.value);
                    failure = Some(format!("{name}: {found} is of another unit than before"));
                    None
                }
                Err(why) => {
                    failure = Some(format!("{name}: {why}{}", ran.last_lines()));
                    None
                }
            }
        });
        let values = each.collect();
        Ok(Sample { values, failure })
    }

    fn command(&self, side: Side) -> &str {
        match side {
            Side::Base => self.base,
            Side::New => self.new,
        }
    }

    /// Runs a command to its end; an inner error is the command's own, with what it said.
    fn run(&self, side: Side) -> Result<Result<CompletedRun, String>> {
        let outputs = Outputs::new()?;
        let mut program = Program::new("/bin/sh").args(["-c", self.command(side)]);
        let (name, value) = self.tag.variable();
        program.env.insert(name.into(), value.into());
        let [stdout, stderr] = outputs.0.each_ref().map(open);
        program.standard = [None, Some(stdout?), Some(stderr?)];
        let start = Instant::now();
        let mut process = program.spawn().context("start a shell")?;
        let until = start + self.time_limit;
        let ended = loop {
            let left = until.saturating_duration_since(Instant::now());
            let ended = process.ended_within(left.min(LOOK));
            let ended = ended.context("wait for the command")?;
            let why = match ended {
                Some(ended) => break Ok(ended),
                None if outputs.too_long() => {
                    format!("it printed more than {} MiB", PRINTED_MOST >> 20)
                }
                None if left.is_zero() => {
                    let limit = show_seconds(self.time_limit.as_secs_f64());
                    format!("it took longer than {limit}; --time-limit waits longer")
                }
                None => continue,
            };
            process.stop(END_WITHIN).context("end the command")?;
            break Err(why);
        };
        let wall = start.elapsed();
        self.tag.sweep();
        let (stdout, stderr) = outputs.read()?;
        let said = last_lines(&stdout, &stderr);
        Ok(match ended {
            Ok(ended) if ended.status.success() => Ok(CompletedRun {
                cpu: ended.cpu,
                wall,
                stdout,
                stderr,
            }),
            Ok(ended) => Err(format!("it ended with {ended}{said}")),
            Err(why) => Err(format!("{why}{said}")),
        })
    }
}

impl Drop for Commands<'_> {
    fn drop(&mut self) {
        self.tag.sweep();
        // What the kernel does not end now, nobody can.
        let _ = self.reaper.done();
    }
}

impl CompletedRun {
    fn quantity(&self, reading: &Reading) -> Result<Quantity, String> {
        let time = |time: Duration| {
            Ok(Quantity {
                value: time.as_secs_f64(),
                unit: Unit::Seconds,
            })
        };
        match &reading.place {
            Place::Cpu => time(self.cpu),
            Place::Wall => time(self.wall),
            place => find(place, &self.stdout, &self.stderr),
        }
    }

    fn last_lines(&self) -> String {
        last_lines(&self.stdout, &self.stderr)
    }
}

/// The last lines that a command printed, each on a line of its own below what is told of it.
fn last_lines(stdout: &str, stderr: &str) -> String {
    let last = |text: &str| -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(LINES);
        let shown = lines[from..].iter();
        shown
            .map(|line| lab_report::terminal::printable(line))
            .collect()
    };
    let lines = [last(stdout), last(stderr)].concat();
    match lines.is_empty() {
        true => "; it printed nothing".to_owned(),
        false => lines.iter().map(|line| format!("\n  {line}")).collect(),
    }
}

/// Files, and no pipes: whoever keeps one open after the end of the command keeps nobody waiting.
struct Outputs([NamedTempFile; 2]);

impl Outputs {
    fn new() -> Result<Self> {
        let file = || NamedTempFile::new().context("make a file for what the command prints");
        Ok(Self([file()?, file()?]))
    }

    fn too_long(&self) -> bool {
        let length = |file: &NamedTempFile| file.as_file().metadata().map_or(0, |it| it.len());
        self.0.iter().any(|file| length(file) > PRINTED_MOST)
    }

    fn read(self) -> Result<(String, String)> {
        let [stdout, stderr] = self.0.map(|file| {
            let mut bytes = Vec::new();
            let mut file = file.into_file();
            file.seek(SeekFrom::Start(0))
                .and_then(|_| file.take(PRINTED_MOST).read_to_end(&mut bytes))
                .context("read what the command printed")?;
            Ok::<_, anyhow::Error>(String::from_utf8_lossy(&bytes).into_owned())
        });
        Ok((stdout?, stderr?))
    }
}

fn open(file: &NamedTempFile) -> Result<std::os::fd::OwnedFd> {
    let file = file
        .reopen()
        .context("open the file for what the command prints")?;
    Ok(file.into())
}
