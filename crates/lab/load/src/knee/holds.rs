//! What the holds of a search were like, so that one of them can be shown.

use std::collections::VecDeque;
use std::time::Duration;

use super::Capacity;
use crate::generate::{Flow, Generate, GenerateError};
use crate::recording::{Recorded, Span};
use crate::segment::{Model, Segment};

/// Most recordings that are kept; the oldest go first.
const MOST: usize = 64;

/// A generator that keeps what it recorded, to be searched with.
pub struct Holds<'g> {
    generator: &'g mut dyn Generate,
    kept: VecDeque<Recorded>,
}

impl<'g> Holds<'g> {
    /// Keeps what `generator` records from now on.
    pub fn of(generator: &'g mut dyn Generate) -> Self {
        Self {
            generator,
            kept: VecDeque::new(),
        }
    }

    /// The longest hold at the highest rate that was good, or without one at the last rate
    /// that was held; of a search that was cut short before, what there is. `None`: nothing.
    pub fn best(mut self, capacity: &Capacity) -> Option<Recorded> {
        let good = capacity.points.iter().filter(|point| point.good);
        let good = good.map(|point| point.rate).max_by(f64::total_cmp);
        // Rests of the target are recorded too, at rates of their own.
        let rate = good.or_else(|| capacity.points.last().map(|point| point.rate));
        let asked = |recorded: &Recorded| match &recorded.segment.model {
            Model::Open(arrivals) => arrivals.rate_at(Duration::ZERO),
            Model::Closed { .. } => None,
        };
        let at = (0..self.kept.len())
            .filter(|&at| rate.is_some() && asked(&self.kept[at]) == rate)
            .max_by_key(|&at| self.kept[at].total.length);
        match at {
            Some(at) => self.kept.swap_remove_back(at),
            None => self.kept.pop_back(),
        }
    }
}

impl Generate for Holds<'_> {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        let recorded = self.generator.run(segment, watch)?;
        if self.kept.len() == MOST {
            self.kept.pop_front();
        }
        self.kept.push_back(recorded.clone());
        Ok(recorded)
    }
}
