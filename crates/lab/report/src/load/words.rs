//! Numbers and colours as this text has them.

use console::Style;
pub(super) use units::grouped;
use units::{show_rate, show_seconds};

/// What a result says of itself. The page has the same words in `web/src/data/words.ts`.
pub(super) const VALID: &str = "VALID";
pub(super) const INVALID: &str = "INVALID";
pub(super) const WITHHELD: &str = "withheld";
pub(super) const UNTIL_THEN: &str = "the numbers are those until then";
pub(super) const LOST: &str =
    "requests had no answer: they count as slower than every answer, and no mean has them";
pub(super) const LATE: &str = "the generator was late itself, so of";
pub(super) const ONLY_KNOWN: &str = "it is only known:";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_uses_the_same_words() {
        let page = include_str!("../../../../../web/src/data/words.ts");
        let no_answer = seconds(f64::INFINITY);
        let words = [
            ("VALID", VALID),
            ("INVALID", INVALID),
            ("WITHHELD", WITHHELD),
            ("NO_ANSWER", &no_answer),
            ("UNTIL_THEN", UNTIL_THEN),
            ("LOST", LOST),
            ("LATE", LATE),
            ("ONLY_KNOWN", ONLY_KNOWN),
        ];
        let lines: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("export"))
            .collect();
        let own = words.map(|(name, word)| format!("export const {name} = '{word}';"));
        assert_eq!(lines, own);
    }

    /// The page's test reads the same shares.
    #[test]
    fn the_page_shows_the_same_shares() {
        let shares = include_str!("../../../../../web/test/shares.json");
        let shares: Vec<(f64, String)> = serde_json::from_str(shares).unwrap();
        for (share, text) in shares {
            assert_eq!(units::show_share(share), text);
        }
    }
}
