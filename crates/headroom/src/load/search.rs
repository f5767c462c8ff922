//! The search for the knee, as the command shows it.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Context, Result};
use lab_load::knee::{Event, Search, search};
use lab_load::{Flow, Generate, GenerateError, Recorded, Segment, Span, Workload, guard};
use lab_report::load::capacity_point;
use units::show_seconds;

use super::{Done, Watched};

/// Searches, and keeps the hold at the highest rate that held.
pub(super) fn run(
    generator: &mut dyn Generate,
    settings: &Search,
    workload: &Workload,
    watched: &mut Watched<'_>,
) -> Result<Done> {
    let last = Rc::new(RefCell::new(None));
    let mut keeping = Keeping {
        generator,
        last: Rc::clone(&last),
    };
    let mut best: Option<(f64, Recorded)> = None;
    let mut latest: Option<Recorded> = None;
    let guard = |recorded: &Recorded| -> Vec<String> {
        let reasons = guard::check(workload, recorded).reasons;
        reasons.into_iter().map(|reason| reason.check).collect()
    };
    let capacity = search(&mut keeping, settings, &guard, &mut |event| {
        match event {
            Event::Hold {
                number,
                rate,
                length,
                purpose,
            } => {
                let doing = format!("hold {number}: {purpose} at {rate:.0}/s");
                watched.live.begin(&doing, Some(*length));
            }
            Event::Passed(span) => return watched.span(span),
            Event::Held(point) => {
                watched.screen.line(capacity_point(point));
                let recorded = last.borrow_mut().take();
                let higher = best.as_ref().is_none_or(|(rate, _)| point.rate >= *rate);
                match recorded {
                    Some(recorded) if point.good && higher => best = Some((point.rate, recorded)),
                    Some(recorded) => latest = Some(recorded),
                    None => {}
                }
            }
            Event::Rest { rate, most } => {
                let most = show_seconds(most.as_secs_f64());
                watched
                    .screen
                    .line(format!("  rest at {rate:.0}/s, {most} at most"));
            }
            Event::Believed(_) => {}
        }
        match watched.interrupt.pressed() {
            true => Flow::Stop,
            false => Flow::Continue,
        }
    })?;
    let recorded = best.map(|(_, recorded)| recorded).or(latest);
    let recorded = recorded.or_else(|| last.borrow_mut().take());
    Ok(Done {
        recorded: recorded.context("the search ended before its first hold")?,
        capacity: Some(capacity),
    })
}

/// A generator whose last recording is kept.
struct Keeping<'g> {
    generator: &'g mut dyn Generate,
    last: Rc<RefCell<Option<Recorded>>>,
}

impl Generate for Keeping<'_> {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        let recorded = self.generator.run(segment, watch)?;
        *self.last.borrow_mut() = Some(recorded.clone());
        Ok(recorded)
    }
}
