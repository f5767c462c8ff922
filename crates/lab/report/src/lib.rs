//! A stored run as one self-contained HTML file and as a table in the terminal.

mod blob;
pub mod compared;
mod error;
mod growing;
pub mod history;
mod ids;
pub mod load;
mod log_lines;
mod markup;
pub mod metrics;
mod moment;
mod page;
mod page_data;
mod page_events;
mod page_loads;
mod page_probes;
mod page_profile;
mod perfetto;
#[cfg(test)]
mod planted_run;
pub mod runs;
mod series;
mod seven_bits;
mod sparkline;
pub mod sweep;
pub mod terminal;
mod timelines;

use lab_load::Summary;
use lab_store::{Environment, RunFolder};

pub use error::ReportError;
pub use growing::Growing;
pub use page::{Page, Update};
pub use perfetto::{LeftOut, perfetto, perfetto_file};

use crate::page_data::PageData;

/// The report of a run: one HTML file that needs nothing else.
///
/// A pure function of the stored run: the same folder gives the same bytes.
///
/// # Errors
///
/// Fails when the run's environment or verdict cannot be read or is not what its
/// format says. Of the other files, the report names those that are broken or missing.
pub fn html(run: &RunFolder) -> Result<String, ReportError> {
    Ok(Page::of(run)?.html())
}

/// The report of loads that are no part of a run, in the order given: one HTML file
/// that needs nothing else.
///
/// A pure function of its arguments. `environment` says where and with what they were
/// made; its start is not looked at.
///
/// # Errors
///
/// Fails when the data have no JSON form.
pub fn load_html(summaries: &[Summary], environment: &Environment) -> Result<String, ReportError> {
    let page = Page::filled(PageData::of_loads(summaries, environment))?;
    Ok(page.html())
}
