//! Queues with a known limit, as a generator sees them.

use std::time::Duration;

use stats::SplitMix;

use crate::arrivals::{Arrivals, Shape};
use crate::generate::{Flow, Generate, GenerateError};
use crate::recording::{Phase, Recorded, Span, Timeline};
use crate::segment::{Model, Segment};

/// Length of a span.
const SPAN: f64 = 1.0;

/// How long the work of one request takes, for a mean of 1.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    Exponential,
    Constant,
    /// Log-normal with this deviation of the logarithm.
    LogNormal(f64),
    /// Pareto's distribution with this exponent, above 1: a heavy tail.
    Pareto(f64),
}

/// A queue in front of several servers, first come first served: M/M/c or M/G/c.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    /// Requests a second that all servers together can work off.
    pub(super) capacity: f64,
    pub(super) servers: usize,
    pub(super) work: Work,
    /// Deviation of the logarithm of the capacity from one segment to the next.
    pub(super) drift: f64,
    /// Seconds until a request is given up; it is worked off all the same.
    pub(super) timeout: f64,
    /// Requests inside, beyond which one is refused.
    pub(super) room: usize,
    /// Whether what was left undone at the end of a segment delays the next one.
    pub(super) remembers: bool,
    random: SplitMix,
    /// When each server is free, from the start of the segment.
    free: Vec<f64>,
    /// Segments that were run: rate and length.
    pub(super) ran: Vec<(f64, f64)>,
}

impl Queue {
    pub(super) fn new(capacity: f64, servers: usize, work: Work, seed: u64) -> Self {
        Self {
            capacity,
            servers,
            work,
            drift: 0.0,
            timeout: 10.0,
            room: usize::MAX,
            remembers: false,
            random: SplitMix::new(seed),
            free: vec![0.0; servers],
            ran: Vec::new(),
        }
    }

    fn work(&mut self) -> f64 {
        match self.work {
            Work::Exponential => self.random.exponential(),
            Work::Constant => 1.0,
            Work::Pareto(tail) => (tail - 1.0) / tail * self.random.uniform().powf(-1.0 / tail),
            Work::LogNormal(deviation) => {
                (deviation * self.random.normal() - deviation * deviation / 2.0).exp()
            }
        }
    }
}

fn place(span: &mut Span, begin: f64, end: f64) {
    span.start = Duration::from_secs_f64(begin);
    span.length = Duration::from_secs_f64((end - begin).max(0.0));
}

impl Generate for Queue {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        let (
            Model::Open(Arrivals::Rate {
                shape: Shape::Constant(rate),
                ..
            }),
            Some(duration),
        ) = (&segment.model, segment.length.duration)
        else {
            panic!("only constant rates are simulated");
        };
        let length = duration.as_secs_f64();
        let capacity = self.capacity * (self.drift * self.random.normal()).exp();
        let mean = self.servers as f64 / capacity;
        let slots = (length / SPAN).ceil() as usize;
        let mut spans: Vec<Span> = (0..=slots).map(|_| Span::empty(1)).collect();
        let mut length = length;
        let mut told = 0;
        let mut at = 0.0;
        let mut last: f64 = 0.0;
        // As many as the real schedule has: Poisson's process, given their number.
        let mut left = (rate * length).round();
        let mut inside: Vec<f64> = Vec::new();
        loop {
            let gap = self.random.exponential();
            at = match left >= 1.0 {
                true => at + (duration.as_secs_f64() - at) * -(-gap / left).exp_m1(),
                false => duration.as_secs_f64(),
            };
            left -= 1.0;
            let slot = ((at / SPAN) as usize).min(slots);
            // What ends in a slot is known once arrivals have left it.
            while told < slot && length > told as f64 * SPAN {
                let end = ((told + 1) as f64 * SPAN).min(length);
                place(&mut spans[told], told as f64 * SPAN, end);
                if watch(&spans[told]) == Flow::Stop {
                    length = end;
                }
                told += 1;
            }
            if at >= length {
                break;
            }
            spans[slot].planned += 1;
            spans[slot].kinds[0].sent += 1;
            if self.room < usize::MAX {
                inside.retain(|done| *done > at);
                if inside.len() >= self.room {
                    let kind = &mut spans[slot].kinds[0];
                    kind.answered += 1;
                    kind.refuse("status");
                    kind.intended.record_ns(1000);
                    kind.actual.record_ns(1000);
                    continue;
                }
            }
            let server = (0..self.servers)
                .min_by(|a, b| self.free[*a].total_cmp(&self.free[*b]))
                .unwrap();
            let done = at.max(self.free[server]) + self.work() * mean;
            self.free[server] = done;
            if self.room < usize::MAX {
                inside.push(done);
            }
            let latency = done - at;
            let ended = at + latency.min(self.timeout);
            let end_slot = ((ended / SPAN) as usize).min(slots);
            let kind = &mut spans[end_slot].kinds[0];
            if latency > self.timeout {
                kind.fail(Phase::Timeout, "timeout");
            } else {
                kind.answered += 1;
                let nanos = (latency * 1e9) as u64;
                kind.intended.record_ns(nanos);
                kind.actual.record_ns(nanos);
            }
            for (index, span) in spans.iter_mut().enumerate().take(end_slot + 1).skip(slot) {
                let begin = at.max(index as f64 * SPAN);
                let until = if index == slots {
                    ended
                } else {
                    ended.min((index + 1) as f64 * SPAN)
                };
                span.in_flight_seconds += until - begin;
            }
            last = last.max(ended);
        }
        self.ran.push((*rate, length));
        let mut timeline = Timeline::default();
        let mut total = Span::empty(1);
        for (index, span) in spans.iter_mut().enumerate() {
            let begin = (index as f64 * SPAN).min(length.max(last));
            let end = (begin + SPAN).min(length.max(last));
            place(
                span,
                begin,
                if index == slots {
                    length.max(last)
                } else {
                    end
                },
            );
            if !span.length.is_zero() {
                total.append(span);
                timeline.push(span.clone());
            }
        }
        let past = total.length.as_secs_f64();
        for free in &mut self.free {
            *free = if self.remembers {
                (*free - past).max(0.0)
            } else {
                0.0
            };
        }
        Ok(Recorded {
            segment: segment.clone(),
            began_unix_ns: 0,
            total,
            timeline,
            cut: None,
            lost: Vec::new(),
            notes: Vec::new(),
        })
    }
}
