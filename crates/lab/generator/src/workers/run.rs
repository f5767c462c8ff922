//! One run of all workers.

use std::time::{Duration, Instant};

use lab_load::recording::Timeline;
use lab_load::{Flow, Generate, GenerateError, Recorded, Segment, Span};

use super::message::{End, WorkerReport};
use super::remote::{LEAD, Remote, WorkerFacts};
use crate::merge::Merge;

/// A run while it goes on.
struct Run {
    merge: Merge,
    parts: Vec<RunPart>,
}

/// One worker's part of it.
struct RunPart {
    /// What its spans add up to.
    sum: Span,
    /// How it ended; a lost one ends with what it had said.
    end: Option<Result<End, GenerateError>>,
    /// When it last said something about this run.
    heard: Instant,
}

impl Run {
    fn new(workers: usize, threads: usize) -> Self {
        let heard = Instant::now() + LEAD;
        let part = || RunPart {
            sum: Span::empty(0),
            end: None,
            heard,
        };
        Self {
            merge: Merge::new(workers, threads),
            parts: std::iter::repeat_with(part).take(workers).collect(),
        }
    }

    fn span(&mut self, worker: usize, span: Box<Span>) {
        let part = &mut self.parts[worker];
        part.heard = Instant::now();
        part.sum.append(&span);
        self.merge.add(worker, span);
    }

    fn end(&mut self, worker: usize, end: Result<End, GenerateError>) {
        self.parts[worker].end.get_or_insert(end);
        self.merge.end(worker);
    }

    /// A worker is lost: what it said counts.
    fn lost(&mut self, worker: usize) {
        let sum = &mut self.parts[worker].sum;
        let end = End {
            total: Box::new(std::mem::replace(sum, Span::empty(0))),
            cut: None,
            late_ns: 0,
            notes: Vec::new(),
        };
        self.end(worker, Ok(end));
    }

    fn is_over(&self) -> bool {
        self.parts.iter().all(|part| part.end.is_some())
    }
}

impl Generate for Remote {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        self.run += 1;
        if self.workers().iter().all(|facts| facts.lost.is_some()) {
            let help = "start workers and this again";
            return Err(GenerateError::new("run a segment", "every worker is lost").help(help));
        }
        let began_unix_ns = self.begin(segment);
        let mut run = Run::new(self.began_late.len(), self.threads);
        let mut timeline = Timeline::default();
        let mut stopped = false;
        while !run.is_over() {
            for (worker, report) in self.reports() {
                match report {
                    WorkerReport::Span { run: number, span } if number == self.run => {
                        run.span(worker, span);
                    }
                    WorkerReport::Done { run: number, end } if number == self.run => {
                        if end.is_err() {
                            self.stop();
                        }
                        run.end(worker, end);
                    }
                    // Of an older run.
                    _ => {}
                }
            }
            self.look_for_losses(&mut run);
            while let Some(span) = run.merge.next() {
                if watch(&span) == Flow::Stop && !stopped {
                    stopped = true;
                    self.stop();
                }
                timeline.push(span);
            }
        }
        self.recorded(segment, began_unix_ns, run, timeline)
    }
}

impl Remote {
    /// Ends the parts of workers that are lost, or said nothing of the run for too long.
    fn look_for_losses(&self, run: &mut Run) {
        for (worker, facts) in self.workers().iter().enumerate() {
            let part = &run.parts[worker];
            let quiet = part.heard.elapsed();
            let is_quiet = quiet > self.report_within;
            if part.end.is_some() || facts.lost.is_none() && !is_quiet {
                continue;
            }
            if is_quiet {
                let quiet = quiet.as_secs();
                let why = format!("alive, but said nothing of its load for {quiet} s");
                self.driver
                    .with(|core| core.workers[worker].connection.lose(why));
            }
            run.lost(worker);
        }
    }

    fn recorded(
        &mut self,
        segment: &Segment,
        began_unix_ns: i64,
        run: Run,
        timeline: Timeline,
    ) -> Result<Recorded, GenerateError> {
        let facts = self.workers();
        let mut total = Span::empty(0);
        let mut cut = None;
        // Most workers find the same.
        let mut notes: Vec<String> = Vec::new();
        for (worker, part) in run.parts.into_iter().enumerate() {
            let end = match part.end {
                None => continue,
                Some(Err(error)) => {
                    return Err(self.driver.with(|core| core.of_worker(worker, error)));
                }
                Some(Ok(end)) => end,
            };
            total.merge(&end.total);
            let is_there = facts[worker].lost.is_none();
            self.began_late[worker] = is_there.then(|| Duration::from_nanos(end.late_ns));
            cut = cut.or(end.cut);
            for note in end.notes {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        // The sum of peaks that were not at the same time would be too high.
        let peak = |of: fn(&Span) -> u64| timeline.spans().iter().map(of).max();
        total.backlog = peak(|span| span.backlog).unwrap_or(total.backlog);
        total.in_flight = peak(|span| span.in_flight).unwrap_or(total.in_flight);
        let lost = facts.iter().filter(|facts| facts.lost.is_some());
        let lost: Vec<String> = lost.map(WorkerFacts::to_string).collect();
        if lost.len() == facts.len() {
            cut = Some("every worker was lost".into());
        }
        Ok(Recorded {
            segment: segment.clone(),
            began_unix_ns,
            total,
            timeline,
            cut,
            lost,
            notes,
        })
    }
}
