//! A stored run as one self-contained HTML file and as a table in the terminal.

mod blob;
mod error;
pub mod load;
mod log_lines;
mod page_data;
mod page_loads;
mod page_probes;
mod series;
pub mod sweep;
pub mod terminal;
mod timelines;

use lab_load::Summary;
use lab_store::{Environment, RunFolder};
use serde::Serialize;

pub use error::ReportError;

use crate::page_data::PageData;

/// The page, built by `make web`.
const PAGE: &str = include_str!("../../../../web/dist/page.html");
/// Where the page takes its data.
const PLACE: &str = "<!--run-->";

/// The report of a run: one HTML file that needs nothing else.
///
/// A pure function of the stored run: the same folder gives the same bytes.
///
/// # Errors
///
/// Fails when the run's environment or verdict cannot be read or is not what its
/// format says. Of the other files, the report names those that are broken or missing.
pub fn html(run: &RunFolder) -> Result<String, ReportError> {
    let (data, columns) = PageData::of(run)?;
    filled(&data, &columns)
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
    let (data, columns) = PageData::of_loads(summaries, environment);
    filled(&data, &columns)
}

/// The page with its data.
fn filled(data: &impl Serialize, columns: &str) -> Result<String, ReportError> {
    let data = serde_json::to_string(data).map_err(ReportError::Encode)?;
    Ok(embed(PAGE, &data, columns))
}

/// Puts the data into the page.
///
/// In JSON a `<` stands only inside strings. Written as an escape, it can neither
/// close the script element nor open a comment in it, whatever a run's names hold.
fn embed(page: &str, json: &str, columns: &str) -> String {
    let json = json.replace('<', "\\u003c");
    let data = format!(
        "<script type=\"application/json\" id=\"run\">{json}</script>\n\
         <script type=\"text/plain\" id=\"columns\">{columns}</script>"
    );
    page.replacen(PLACE, &data, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_exactly_one_place_for_the_data() {
        assert_eq!(PAGE.matches(PLACE).count(), 1);
    }

    #[test]
    fn the_page_asks_for_nothing_from_outside() {
        for marker in ["src=\"", "href=\"http", "@import", "url(http"] {
            assert!(!PAGE.contains(marker), "the page contains {marker}");
        }
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let hostile = serde_json::json!(["</script><script>alert(1)</script>", "<!--", "]]>"]);
        let page = embed("<body><!--run--></body>", &hostile.to_string(), "AAAA");
        assert_eq!(page.matches("</script").count(), 2, "{page}");
        assert_eq!(page.matches("<!--").count(), 0, "{page}");
        let json = page
            .split("id=\"run\">")
            .nth(1)
            .unwrap()
            .split("</script>")
            .next()
            .unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(json).unwrap(),
            hostile
        );
    }
}
