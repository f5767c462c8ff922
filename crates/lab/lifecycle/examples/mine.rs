//! How fast logs are mined: writes a seeded log of the given size to a temporary
//! file, mines it, and prints the speed.
//!
//! `cargo run --release -p lab-lifecycle --example mine -- [megabytes] [seed]`

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use stats::SplitMix;

use lab_lifecycle::{Definition, Follower, Format, LoopDefinition, Miner, summarise};

const ORIGIN_UNIX_NS: i64 = 1_464_900_000_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let megabytes: u64 = args.next().map_or(Ok(100), |arg| arg.parse())?;
    let seed: u64 = args.next().map_or(Ok(1), |arg| arg.parse())?;

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("cluster.log");
    let entities = write_log(&path, megabytes * 1_000_000, seed)?;
    let bytes = std::fs::metadata(&path)?.len();

    let mut miner = Miner::new(ORIGIN_UNIX_NS, &[task(), instance()], &[convergence()])?;
    let (clock, cpu) = (Instant::now(), cpu_seconds()?);
    Follower::new([&path]).finish(|_, line| miner.feed(Format::Auto, line))?;
    let (wall, mining) = (clock.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let clock = Instant::now();
    let tables: Vec<_> = miner
        .lifecycles()
        .iter()
        .map(|lifecycle| lifecycle.table())
        .collect();
    let summaries: Vec<_> = tables.iter().map(summarise).collect();
    let summing = clock.elapsed().as_secs_f64();

    let counts = miner.counts();
    println!(
        "log: {} MB, {} lines, {entities} entities, seed {seed}",
        bytes / 1_000_000,
        counts.lines
    );
    for summary in &summaries {
        println!(
            "{}: {} entities, {} complete",
            summary.name, summary.entities, summary.complete
        );
    }
    println!(
        "unreadable: {}; turns: {}",
        counts.unreadable,
        miner.loops()[0].turns().turns.len()
    );
    println!("tables and summaries: {summing:.2} s");
    println!(
        "mining: {wall:.2} s, {mining:.2} s of CPU, {:.0} MB/s, {:.0} ns a line",
        bytes as f64 / 1e6 / wall,
        wall * 1e9 / counts.lines as f64
    );
    Ok(())
}

/// Processor time of this process so far; Linux counts it in hundredths.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let field = |index: usize| -> Result<f64, Box<dyn Error>> {
        Ok(after_name
            .split_whitespace()
            .nth(index)
            .unwrap_or_default()
            .parse()?)
    };
    Ok((field(11)? + field(12)?) / 100.0)
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn points(points: &[(&str, &str)]) -> Vec<(String, String)> {
    points
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn task() -> Definition {
    Definition {
        name: "task".into(),
        key: strings(&["task-guid", "container-guid", "guid", "handle"]),
        alias: Vec::new(),
        group: strings(&["cell-id", "cell_id"]),
        points: points(&[
            ("desired", "desire-task.starting"),
            ("persisted", "desire-task.succeeded-persisting-task"),
            ("auctioned", "desire-task.finished"),
            ("allocated", ".allocating-container"),
            ("running", "start-task.finished"),
            ("created", ".succeeded-creating-garden-container"),
            ("exited", "process-exit"),
            ("completed", ".succeeded-completing-task"),
            ("resolved", "resolved-task"),
        ]),
    }
}

fn instance() -> Definition {
    Definition {
        name: "lrp".into(),
        key: strings(&["instance-guid", "actual_lrp_instance_key.instance_guid"]),
        alias: vec![
            strings(&["process-guid", "index"]),
            strings(&["actual_lrp_key.process_guid", "actual_lrp_key.index"]),
        ],
        group: strings(&["cell-id", "actual_lrp_instance_key.cell_id"]),
        points: points(&[
            ("desired", "create-unclaimed-actual-lrp.starting"),
            ("claimed", "claim-actual-lrp.complete"),
            ("running", "/start-actual-lrp\\.complete$/"),
        ]),
    }
}

fn convergence() -> LoopDefinition {
    LoopDefinition {
        name: "convergence".into(),
        start: "converge-lrps.starting-convergence".into(),
        end: "converge-lrps.finished-convergence".into(),
    }
}

/// Writes a log of about this size as control plane and cells write it, most lines
/// of which show no point; returns how many entities are in it.
fn write_log(path: &Path, bytes: u64, seed: u64) -> Result<u64, Box<dyn Error>> {
    let mut log = Log {
        out: BufWriter::with_capacity(1 << 20, File::create(path)?),
        random: SplitMix::new(seed),
        at_ns: ORIGIN_UNIX_NS,
        session: 0,
        written: 0,
    };
    let mut entities = 0;
    while log.written < bytes {
        log.session += 1;
        if entities % 500 == 0 {
            log.line("bbs", "converge-lrps.starting-convergence", "")?;
            log.line("bbs", "converge-lrps.finished-convergence", "")?;
        }
        if entities % 2 == 0 {
            log.task()?
        } else {
            log.instance()?
        }
        entities += 1;
    }
    log.out.flush()?;
    Ok(entities)
}

struct Log {
    out: BufWriter<File>,
    random: SplitMix,
    at_ns: i64,
    session: u64,
    written: u64,
}

impl Log {
    fn guid(&mut self) -> String {
        let (a, b) = (self.random.bits(), self.random.bits());
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xffff,
            b >> 48,
            b & 0xffff_ffff_ffff
        )
    }

    fn line(&mut self, source: &str, message: &str, data: &str) -> Result<(), std::io::Error> {
        self.at_ns += (self.random.bits() % 100_000) as i64;
        let line = format!(
            r#"{{"timestamp":"{}.{:09}","source":"{source}","message":"{source}.{message}","log_level":1,"data":{{{data}{}"method":"POST","request":"/v1/{message}","session":"5.{}","trace-id":"{:032x}"}}}}"#,
            self.at_ns / 1_000_000_000,
            self.at_ns % 1_000_000_000,
            if data.is_empty() { "" } else { "," },
            self.session,
            self.random.bits(),
        );
        self.written += line.len() as u64 + 1;
        writeln!(self.out, "{line}")
    }

    fn noise(&mut self, source: &str, data: &str) -> Result<(), std::io::Error> {
        for message in [
            "request.serving",
            "request.done",
            "depot.fetching-container.done",
        ] {
            self.line(source, message, data)?;
        }
        Ok(())
    }

    fn task(&mut self) -> Result<(), std::io::Error> {
        let guid = self.guid();
        let cell = format!("cell-{}", self.random.bits() % 100);
        let data = format!(r#""task-guid":"{guid}""#);
        for message in ["starting", "succeeded-persisting-task", "finished"] {
            self.noise("bbs", "")?;
            self.line("bbs", &format!("request.desire-task.{message}"), &data)?;
        }
        let data = format!(r#""cell-id":"{cell}","container-guid":"{guid}""#);
        self.line("rep", "auction-delegate.allocating-container", &data)?;
        self.line(
            "bbs",
            "request.start-task.finished",
            &format!(r#""task_guid":"{guid}","task-guid":"{guid}","cell_id":"{cell}""#),
        )?;
        for message in [
            "succeeded-creating-garden-container",
            "run-step.process-exit",
        ] {
            self.noise("rep", &data)?;
            self.line("rep", &format!("executing-container.{message}"), &data)?;
        }
        self.line("rep", "processor.succeeded-completing-task", &data)?;
        self.line(
            "bbs",
            "request.resolved-task",
            &format!(r#""task-guid":"{guid}""#),
        )
    }

    fn instance(&mut self) -> Result<(), std::io::Error> {
        let (process, instance) = (self.guid(), self.guid());
        let (cell, index) = (self.random.bits() % 100, self.random.bits() % 8);
        let key = format!(
            r#""actual_lrp_key":{{"process_guid":"{process}","index":{index},"domain":"load"}}"#
        );
        self.noise("bbs", "")?;
        self.line(
            "bbs",
            "request.create-unclaimed-actual-lrp.starting",
            &format!(r#""process-guid":"{process}","index":{index}"#),
        )?;
        self.noise("bbs", &key)?;
        let both = format!(
            r#"{key},"actual_lrp_instance_key":{{"instance_guid":"{instance}","cell_id":"cell-{cell}"}}"#
        );
        self.line("bbs", "request.claim-actual-lrp.complete", &both)?;
        self.noise("rep", &both)?;
        self.line("bbs", "request.start-actual-lrp.complete", &both)
    }
}
