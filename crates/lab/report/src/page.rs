//! The page with the data of a run: as a file, and as a server gives it out.

use lab_load::Summary;
use lab_store::{Environment, RunFolder, SoFar};

use crate::ReportError;
use crate::growing::Growing;
use crate::page_data::PageData;
use crate::seven_bits::written;

/// The page, built by `make web`.
const PAGE: &str = include_str!("../../../../web/dist/page.html");
/// Where the page takes its data.
const PLACE: &str = "<!--run-->";
/// The end of the page's security policy.
const POLICY_END: &str = "img-src data:\"";
/// The same of a page that asks its server for newer data.
const POLICY_END_SERVED: &str = "img-src data:; connect-src 'self'\"";

/// What a page shows of a run, at its end or at a moment before it.
#[derive(Debug, Clone)]
pub struct Page {
    json: String,
    /// Deflated.
    columns: Vec<u8>,
    /// The lifecycles of a run that goes on, which are no part of the others.
    growing: Option<Growing>,
}

/// What an open page lacks.
#[derive(Debug, Clone)]
pub struct Update {
    /// What it is sent.
    pub bytes: Vec<u8>,
    /// The moment of the lifecycles that it has then; see [`Page::update`].
    pub lifecycles: u32,
}

impl Page {
    /// Of a run that is over.
    ///
    /// # Errors
    /// As [`crate::html`].
    pub fn of(run: &RunFolder) -> Result<Self, ReportError> {
        Self::filled(PageData::of(run)?)
    }

    /// Of a run that goes on: everything that can be told before its end, by the same code.
    /// Expectations, findings, what faults did, and the log lines of slow entities come with
    /// the end. The lifecycles are those of `growing` at the moment of each [`Page::update`].
    ///
    /// # Errors
    /// When the run's environment cannot be read, and when the data have no JSON form.
    pub fn so_far(run: &RunFolder, so_far: &SoFar, growing: &Growing) -> Result<Self, ReportError> {
        let page = Self::filled(PageData::so_far(run, so_far)?)?;
        Ok(Self {
            growing: Some(growing.clone()),
            ..page
        })
    }

    /// Of a load that is no part of a run.
    ///
    /// # Errors
    /// As [`crate::load_html`].
    pub fn of_load(summary: &Summary, environment: &Environment) -> Result<Self, ReportError> {
        let summaries = std::slice::from_ref(summary);
        Self::filled(PageData::of_loads(summaries, environment))
    }

    /// Of such a load while it goes on, so many seconds after its start.
    ///
    /// # Errors
    /// As [`crate::load_html`].
    pub fn of_load_so_far(
        summary: &Summary,
        environment: &Environment,
        now_s: f64,
    ) -> Result<Self, ReportError> {
        let summaries = std::slice::from_ref(summary);
        let (data, columns) = PageData::of_loads(summaries, environment);
        Self::filled((data.underway(now_s, "load"), columns))
    }

    pub(crate) fn filled((data, columns): (PageData, Vec<u8>)) -> Result<Self, ReportError> {
        let json = serde_json::to_string(&data).map_err(ReportError::Encode)?;
        Ok(Self::new(&json, columns))
    }

    /// In JSON a `<` stands only inside strings. Written as an escape, it can neither
    /// close the script element nor open a comment in it, whatever a run's names hold.
    fn new(json: &str, columns: Vec<u8>) -> Self {
        Self {
            json: json.replace('<', "\\u003c"),
            columns,
            growing: None,
        }
    }

    /// One HTML file that needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        self.embedded_in(PAGE)
    }

    /// The same page, which may ask the server that it came from for newer data.
    #[must_use]
    pub fn served(&self) -> String {
        self.embedded_in(&PAGE.replacen(POLICY_END, POLICY_END_SERVED, 1))
    }

    /// What a page that is open needs to show this: everything but the lifecycles, and of these what has
    /// changed since the moment that the page has; `None`: it has none.
    ///
    /// The bytes are: the lengths of the three parts that follow, each as four bytes, the lowest first; the
    /// JSON; the deflated columns; a JSON list of what the lifecycles have become, filled up with spaces to
    /// a multiple of four bytes from the start; and then their numbers. Without lifecycles that go on the
    /// third part is empty.
    ///
    /// # Errors
    /// When the data have no JSON form.
    pub fn update(&self, known: Option<u32>) -> Result<Update, ReportError> {
        let (mut heads, mut numbers, mut lifecycles) = (String::new(), Vec::new(), 0);
        if let Some(growing) = &self.growing {
            let grown;
            (grown, numbers, lifecycles) = growing.since(known);
            heads = serde_json::to_string(&grown).map_err(ReportError::Encode)?;
            let before = 12 + self.json.len() + self.columns.len() + heads.len();
            heads.extend(std::iter::repeat_n(
                ' ',
                before.next_multiple_of(4) - before,
            ));
        }
        // A part that could not be told in four bytes is none that a browser could open.
        let length = |part: usize| u32::try_from(part).unwrap_or(u32::MAX).to_le_bytes();
        let parts = [self.json.as_bytes(), &self.columns, heads.as_bytes()];
        let lengths = parts.map(|part| length(part.len())).concat();
        let bytes = [&lengths, parts[0], parts[1], parts[2], &numbers].concat();
        Ok(Update { bytes, lifecycles })
    }

    /// Puts the data into a page.
    fn embedded_in(&self, page: &str) -> String {
        let data = format!(
            "<script type=\"application/json\" id=\"run\">{}</script>\n\
             <script type=\"text/plain\" id=\"columns\">{}</script>",
            self.json,
            written(&self.columns)
        );
        page.replacen(PLACE, &data, 1)
    }
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
    fn only_a_page_that_is_served_may_ask_and_only_its_own_server() {
        assert_eq!(PAGE.matches(POLICY_END).count(), 1);
        let page = Page::new("{}", Vec::new());
        assert!(!page.html().contains("connect-src"));
        assert_eq!(page.served().matches("connect-src 'self'\"").count(), 1);
        assert_eq!(
            page.served().replace("; connect-src 'self'", ""),
            page.html()
        );
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let hostile = serde_json::json!(["</script><script>alert(1)</script>", "<!--", "]]>"]);
        let page = Page::new(&hostile.to_string(), b"<<<<".to_vec());
        let html = page.embedded_in("<body><!--run--></body>");
        assert_eq!(html.matches("</script").count(), 2, "{html}");
        assert_eq!(html.matches("<!--").count(), 0, "{html}");
        let json = html.split("id=\"run\">").nth(1).unwrap();
        let json = json.split("</script>").next().unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(json).unwrap(),
            hostile
        );
        let Update { bytes, lifecycles } = page.update(None).unwrap();
        let (lengths, rest) = bytes.split_at(12);
        assert_eq!(
            (&lengths[4..], lifecycles),
            (&[4, 0, 0, 0, 0, 0, 0, 0][..], 0)
        );
        let (json, columns) = rest.split_at(rest.len() - 4);
        let json: serde_json::Value = serde_json::from_slice(json).unwrap();
        assert_eq!(json, hostile);
        assert_eq!(columns, b"<<<<");
    }
}
