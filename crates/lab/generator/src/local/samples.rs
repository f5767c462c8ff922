//! The file with one line for each request.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use lab_load::GenerateError;

use crate::engine::{End, Sample, Sampler, Setup};

/// Batches of 512 samples that wait to be written: about 3 MB. A disk that is further
/// behind loses samples, and the load goes on.
const BATCHES: usize = 128;
const HEAD: &str = "intended_s,lateness_s,waited_s,latency_intended_s,latency_actual_s,\
                    kind,status,failure\n";

/// A file of samples that is being written.
#[derive(Debug)]
pub struct SampleLog {
    writer: JoinHandle<io::Result<u64>>,
    lost: Arc<AtomicU64>,
}

/// What became of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleCounts {
    /// Samples in the file.
    pub written: u64,
    /// Samples that are not: writing them was slower than the load.
    pub lost: u64,
}

impl SampleLog {
    /// Waits until everything is written. To be called when the generator is dropped:
    /// until then there may be more samples.
    ///
    /// # Errors
    /// When the file could not be written; then an unknown part of the samples is there.
    pub fn finish(self) -> io::Result<SampleCounts> {
        let written = self.writer.join();
        let written = written
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes has ended")))?;
        Ok(SampleCounts {
            written,
            lost: self.lost.load(Ordering::Relaxed),
        })
    }
}

/// Where the samplers of threads come from; with the last of them the file ends.
pub(super) struct Samplers {
    to: SyncSender<Vec<Sample>>,
    lost: Arc<AtomicU64>,
}

/// Samples that are yet to be written.
pub(super) struct Unwritten {
    from: Receiver<Vec<Sample>>,
    lost: Arc<AtomicU64>,
}

/// Both ends of a queue of samples.
pub(super) fn queue() -> (Samplers, Unwritten) {
    let (to, from) = sync_channel(BATCHES);
    let lost = Arc::new(AtomicU64::new(0));
    let samplers = Samplers {
        to,
        lost: Arc::clone(&lost),
    };
    (samplers, Unwritten { from, lost })
}

impl Samplers {
    pub(super) fn sampler(&self) -> Sampler {
        Sampler::new(self.to.clone(), Arc::clone(&self.lost))
    }
}

/// Begins to write samples to `out`.
pub(super) fn write_to(
    out: Box<dyn Write + Send>,
    samples: Unwritten,
    setup: Arc<Setup>,
) -> Result<SampleLog, GenerateError> {
    let Unwritten { from, lost } = samples;
    let names = move |end: &End, kind: usize| {
        let composer = &setup.composer;
        let name = |list: &[String], index: usize| list.get(index).cloned().unwrap_or_default();
        let refusal = match end {
            End::Answered {
                refusal: Some(refusal),
                ..
            } => Some(name(composer.refusals(), *refusal)),
            End::Answered {
                code: Some(code), ..
            } => Some(format!("error {}", code.as_str())),
            _ => None,
        };
        (name(composer.kinds(), kind), refusal)
    };
    let spawned = std::thread::Builder::new()
        .name("load-samples".to_owned())
        .spawn(move || write(BufWriter::new(out), &from, &names));
    let writer = spawned
        .map_err(|error| GenerateError::new("start the thread that writes samples", error))?;
    Ok(SampleLog { writer, lost })
}

/// The name of a kind, and in words why an answer was refused.
type Names = dyn Fn(&End, usize) -> (String, Option<String>) + Send;

/// Writes batches until there are no more, and says how many samples there were.
fn write(mut out: impl Write, from: &Receiver<Vec<Sample>>, names: &Names) -> io::Result<u64> {
    out.write_all(HEAD.as_bytes())?;
    let mut written = 0;
    for batch in from {
        for sample in &batch {
            line(&mut out, sample, names)?;
        }
        written += batch.len() as u64;
    }
    out.flush()?;
    Ok(written)
}

fn line(out: &mut impl Write, sample: &Sample, names: &Names) -> io::Result<()> {
    let seconds = |ns: Option<u64>| match ns {
        Some(ns) => format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
        None => String::new(),
    };
    let (kind, refusal) = names(&sample.end, sample.kind);
    let after = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
    let delayed = after(Some(sample.intended), sample.sent);
    let (at, status, failure) = match sample.end {
        End::Answered { at, status, .. } => (Some(at), status, refusal),
        End::Failed(phase, cause) => (None, None, Some(format!("{}: {cause}", phase.name()))),
    };
    writeln!(
        out,
        "{},{},{},{},{},{},{},{}",
        seconds(Some(sample.intended)),
        seconds(delayed.filter(|_| !sample.waited)),
        seconds(delayed.filter(|_| sample.waited)),
        seconds(after(Some(sample.intended), at)),
        seconds(after(sample.sent, at)),
        quoted(&kind),
        status.map_or(String::new(), |status| status.to_string()),
        quoted(&failure.unwrap_or_default()),
    )
}

/// A field of a line, in quotes where it needs them.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use lab_load::recording::Phase;

    use super::*;

    fn text(samples: Vec<Sample>) -> String {
        let (to, from) = sync_channel(1);
        to.send(samples).unwrap();
        drop(to);
        let mut out = Vec::new();
        let names = |end: &End, _: usize| match end {
            End::Answered {
                refusal: Some(_), ..
            } => ("get, all".to_owned(), Some("body \"ok\"".to_owned())),
            _ => ("get".to_owned(), None),
        };
        write(&mut out, &from, &names).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_for_each_request() {
        let sample = Sample {
            kind: 0,
            intended: 1_500_000_000,
            sent: Some(1_500_020_000),
            waited: false,
            end: End::Answered {
                at: 1_501_000_000,
                status: Some(200),
                refusal: None,
                code: None,
            },
        };
        let waited = Sample {
            waited: true,
            end: End::Answered {
                at: 1_501_000_000,
                status: Some(500),
                refusal: Some(0),
                code: None,
            },
            ..sample
        };
        let failed = Sample {
            sent: None,
            end: End::Failed(Phase::Connect, "refused"),
            ..sample
        };
        assert_eq!(
            text(vec![sample, waited, failed]),
            format!(
                "{HEAD}\
                 1.500000000,0.000020000,,0.001000000,0.000980000,get,200,\n\
                 1.500000000,,0.000020000,0.001000000,0.000980000,\"get, all\",500,\"body \"\"ok\"\"\"\n\
                 1.500000000,,,,,get,,connect: refused\n"
            )
        );
    }
}
