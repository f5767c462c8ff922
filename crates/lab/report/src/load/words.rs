//! Numbers and colours as this text has them.

use console::Style;
pub(super) use units::grouped;
use units::{show_rate, show_seconds};

/// Colours, where they are allowed.
pub(super) struct Paint(pub(super) bool);

impl Paint {
    fn with(&self, style: Style, text: &str) -> String {
        // Forced both ways: the caller decides, not the library's look at the terminal.
        style.force_styling(self.0).apply_to(text).to_string()
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.with(Style::new().dim(), text)
    }

    pub(super) fn bold(&self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    pub(super) fn good(&self, text: &str) -> String {
        self.with(Style::new().green().bold(), text)
    }

    pub(super) fn bad(&self, text: &str) -> String {
        self.with(Style::new().red().bold(), text)
    }

    pub(super) fn warn(&self, text: &str) -> String {
        self.with(Style::new().yellow(), text)
    }

    pub(super) fn first(&self, text: &str) -> String {
        self.with(Style::new().cyan(), text)
    }

    pub(super) fn second(&self, text: &str) -> String {
        self.with(Style::new().magenta(), text)
    }
}

/// So many a second; whole and grouped from a hundred on.
pub(super) fn rate(per_second: f64) -> String {
    match per_second >= 100.0 {
        true => format!("{} /s", grouped(per_second.round() as u64)),
        false => show_rate(per_second),
    }
}

/// A length of time with three digits.
pub(super) fn seconds(seconds: f64) -> String {
    show_seconds(seconds)
}

/// A length of time, or a dash.
pub(super) fn time(time: Option<f64>) -> String {
    time.map_or_else(|| "-".to_owned(), seconds)
}
