//! Files that a result is written to. They are made before the load, so that one that
//! cannot be made costs no load. What an earlier load wrote there stays until this one begins.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lab_generator::SampleLog;
use lab_load::output::{csv, hdr_head, hdr_lines};
use lab_load::{Span, Summary};
use lab_store::{Environment, SCHEMA};
use measure::{Clock, Machine};

use super::args::LoadArgs;

/// The files of one load.
pub(super) struct Files {
    csv: Option<Open>,
    hdr: Option<Open>,
    report: Option<Open>,
    samples: Option<Open>,
    sample_log: Option<SampleLog>,
    /// The first line of the interval log that could not be written, or the samples.
    failed: Option<anyhow::Error>,
}

struct Open {
    path: PathBuf,
    file: File,
}

impl Open {
    fn create(path: Option<&Path>) -> Result<Option<Self>> {
        let create = |path: &Path| {
            let mut options = File::options();
            let made = options.write(true).create(true).truncate(false).open(path);
            let file = made.with_context(|| format!("create {}", path.display()))?;
            Ok(Self {
                path: path.to_owned(),
                file,
            })
        };
        path.map(create).transpose()
    }

    /// Makes it empty, if it is a file and no pipe.
    fn clear(&self) -> Result<()> {
        let writing = || format!("write {}", self.path.display());
        match self.file.metadata().with_context(writing)?.is_file() {
            true => self.file.set_len(0).with_context(writing),
            false => Ok(()),
        }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let writing = || format!("write {}", self.path.display());
        self.file.write_all(text.as_bytes()).with_context(writing)
    }
}

impl Files {
    pub(super) fn create(args: &LoadArgs) -> Result<Self> {
        let named = [&args.csv, &args.hdr, &args.report, &args.samples];
        let mut named: Vec<_> = named.into_iter().flatten().collect();
        named.sort_unstable();
        if let Some(twice) = named.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!(
                "{} is to hold two things; name a file for each of --csv, --hdr, --report and \
                 --samples",
                twice[0].display()
            );
        }
        Ok(Self {
            csv: Open::create(args.csv.as_deref())?,
            hdr: Open::create(args.hdr.as_deref())?,
            report: Open::create(args.report.as_deref())?,
            samples: Open::create(args.samples.as_deref())?,
            sample_log: None,
            failed: None,
        })
    }

    /// The target can be reached: what an earlier load wrote is replaced.
    pub(super) fn started(&self) -> Result<()> {
        let all = [&self.csv, &self.hdr, &self.report, &self.samples];
        all.into_iter().flatten().try_for_each(Open::clear)
    }

    /// The load begins now.
    pub(super) fn begin(&mut self) {
        let began = Clock::start().origin_unix_ns();
        let program = concat!("headroom ", env!("CARGO_PKG_VERSION"));
        self.log(|| Ok(hdr_head(program, began)));
    }

    /// A span has ended. What cannot be written is told at the end: the load goes on.
    pub(super) fn span(&mut self, span: &Span) {
        self.log(|| hdr_lines(span).context("write the interval log"));
    }

    fn log(&mut self, lines: impl FnOnce() -> Result<String>) {
        if let Some(hdr) = &mut self.hdr
            && self.failed.is_none()
            && let Err(error) = lines().and_then(|lines| hdr.write(&lines))
        {
            self.failed = Some(error);
        }
    }

    /// The file for samples, if there is to be one.
    pub(super) fn for_samples(&self) -> Result<Option<File>> {
        let copy = |open: &Open| {
            let copied = open.file.try_clone();
            copied.with_context(|| format!("open {} for writing", open.path.display()))
        };
        self.samples.as_ref().map(copy).transpose()
    }

    /// Samples are being written.
    pub(super) fn sampling(&mut self, log: SampleLog) {
        self.sample_log = Some(log);
    }

    /// Waits for samples to be written, and says what a reader of the result should know
    /// of them. To be called when the generator is gone.
    pub(super) fn sampled(&mut self) -> Option<String> {
        let (open, log) = (self.samples.as_ref()?, self.sample_log.take()?);
        let path = open.path.display();
        match log.finish() {
            Ok(counts) if counts.lost > 0 => Some(format!(
                "{} of {} requests are not in {path}: it could not be written as fast as they \
                 ended",
                counts.lost,
                counts.lost + counts.written
            )),
            Ok(_) => None,
            Err(error) => {
                let error = anyhow::Error::new(error).context(format!("write {path}"));
                self.failed.get_or_insert(error);
                Some(format!("{path} is not complete: it could not be written"))
            }
        }
    }

    /// Writes what is known only at the end.
    pub(super) fn finish(mut self, summary: &Summary) -> Result<()> {
        if let Some(file) = &mut self.csv {
            file.write(&csv(summary))?;
        }
        if let Some(file) = &mut self.report {
            let summaries = std::slice::from_ref(summary);
            let html = lab_report::load_html(summaries, &environment(summary));
            file.write(&html.context("build the report")?)?;
        }
        self.failed.map_or(Ok(()), Err)
    }
}

/// Where the load was made.
pub(super) fn environment(summary: &Summary) -> Environment {
    let machine = Machine::detect();
    Environment {
        schema: SCHEMA,
        run_id: summary.name.clone(),
        started_at_unix_ns: summary.began_unix_ns,
        command: std::env::args().collect(),
        headroom_version: env!("CARGO_PKG_VERSION").to_owned(),
        git_commit: None,
        cores: machine.cores,
        cpu_model: machine.cpu_model,
        memory_bytes: machine.memory_bytes,
        kernel: machine.kernel,
        versions: std::collections::BTreeMap::new(),
        made_from: None,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn what_an_earlier_load_wrote_stays_until_another_begins() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["seconds.csv", "samples.csv"].map(|name| folder.path().join(name));
        let texts = || {
            paths
                .clone()
                .map(|path| std::fs::read_to_string(path).unwrap())
        };
        for path in &paths {
            std::fs::write(path, "an earlier result").unwrap();
        }
        let [csv, samples] = paths.clone().map(|path| path.display().to_string());
        let words = [
            "headroom",
            "load",
            "http://127.0.0.1/",
            "--csv",
            csv.as_str(),
            "--samples",
            samples.as_str(),
        ];
        let Command::Load(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("not a load");
        };
        // Of a target that cannot be reached nothing more comes.
        let files = Files::create(&args).unwrap();
        files.for_samples().unwrap();
        assert_eq!(texts(), ["an earlier result"; 2]);
        files.started().unwrap();
        assert_eq!(texts(), [""; 2]);
    }
}
