//! `--page`: the report of a load while it goes on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use lab_load::{Recorded, Segment, Span, Summary};
use lab_report::Page;
use measure::Clock;

use super::args::LoadArgs;
use super::files::environment;
use super::plan::Plan;
use crate::output::eprint;
use crate::page::{LivePage, ReadOnly};

/// What a load has recorded so far, for its page.
pub(super) struct Watched {
    recorded: Arc<Mutex<Recorded>>,
    page: LivePage,
}

impl Watched {
    /// Serves the page of a load that is about to begin, and says where.
    pub(super) fn start(
        args: &LoadArgs,
        url: &str,
        plan: &Plan,
        segment: &Segment,
    ) -> Result<Self> {
        let recorded = Arc::new(Mutex::new(Recorded::begun(segment.clone())));
        let shown = Arc::clone(&recorded);
        let (warm_up, workload) = (args.warm_up, plan.workload.clone());
        let (name, target) = (args.name.clone(), url.to_owned());
        let began = Instant::now();
        let look = move || {
            // The generator's thread must not wait for the sum.
            let recorded = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if recorded.timeline.spans().is_empty() {
                return None;
            }
            let summary = Summary::of(warm_up, &name, &target, &workload, &recorded).ok()?;
            let now_s = began.elapsed().as_secs_f64();
            Some(Page::of_load_so_far(
                &summary,
                &environment(&summary),
                now_s,
            ))
        };
        let page = LivePage::start(args.page_port, look, ReadOnly)?;
        eprint(format_args!("headroom: the load's page is {}", page.url()));
        Ok(Self { recorded, page })
    }

    /// A span has passed.
    pub(super) fn span(&self, span: &Span) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.pass(span, Clock::start().origin_unix_ns());
    }

    /// Shows the end to those who have the page open, and serves no more.
    pub(super) fn finish(self, summary: &Summary) -> Result<()> {
        let page = Page::of_load(summary, &environment(summary)).context("build the page")?;
        self.page.finish(page);
        Ok(())
    }
}
