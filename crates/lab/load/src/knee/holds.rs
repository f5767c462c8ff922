//! What the holds of a search were like, so that one of them can be shown.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Capacity, Point};
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

    /// The longest of the good holds at the highest rate, without one the last hold that counts,
    /// and without one of these the last; of a search that was cut short before, what there is.
    /// `None`: nothing.
    pub fn best(mut self, capacity: &Capacity) -> Option<Recorded> {
        let held = self.held(capacity);
        let length = |at: usize| self.kept[at].total.length;
        let good = held.iter().filter(|(point, _)| point.good);
        let good = good.max_by(|(a, at), (b, other)| {
            let rates = a.rate.total_cmp(&b.rate);
            rates.then_with(|| length(*at).cmp(&length(*other)))
        });
        let counted = || held.iter().find(|(point, _)| point.invalid.is_empty());
        let best = good.or_else(counted).or_else(|| held.first());
        match best.map(|(_, at)| *at) {
            Some(at) => self.kept.swap_remove_back(at),
            None => self.kept.pop_back(),
        }
    }

    /// The points whose recordings are kept, with where these are; the last one first.
    fn held<'c>(&self, capacity: &'c Capacity) -> Vec<(&'c Point, usize)> {
        let asked = |recorded: &Recorded| match &recorded.segment.model {
            Model::Open(arrivals) => arrivals.rate_at(Duration::ZERO),
            Model::Closed { .. } => None,
        };
        // Rests of the target are recorded too, at rates of their own.
        let mut places = (0..self.kept.len()).rev();
        let points = capacity.points.iter().rev();
        let held = points.map_while(|point| {
            let at = places.find(|at| {
                let recorded = &self.kept[*at];
                recorded.cut.is_none() && asked(recorded) == Some(point.rate)
            });
            Some((point, at?))
        });
        held.collect()
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
