//! Metrics in Prometheus' text form.

use std::fmt::{self, Display, Write};

/// Content type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises, from zero at the start of the process. Its name ends in `_total`.
    Counter,
    /// What is measured at the moment of asking.
    Gauge,
    /// How many values were at most so large.
    Histogram,
}

impl Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// A page of metrics. Names consist of letters, digits and `_` and carry their
/// unit; help texts are one sentence.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// A page without metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a counter.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) -> &mut Self {
        self.head(Kind::Counter, name, help);
        self.line(format_args!("{name} {value}"))
    }

    /// Adds a gauge.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) -> &mut Self {
        self.head(Kind::Gauge, name, help);
        self.line(format_args!("{name} {value}"))
    }

    /// Adds a metric with one sample for each value of `label`. The values of the
    /// label must differ.
    pub fn family<L: AsRef<str>, V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        label: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) -> &mut Self {
        let samples = samples.into_iter().map(|(of, value)| ([of], value));
        self.table(kind, name, help, [label], samples)
    }

    /// Adds a metric with one sample for each set of values of `labels`. The sets must
    /// differ.
    pub fn table<const N: usize, L: AsRef<str>, V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        labels: [&str; N],
        samples: impl IntoIterator<Item = ([L; N], V)>,
    ) -> &mut Self {
        self.head(kind, name, help);
        for (of, value) in samples {
            let pairs = pairs(labels, &of);
            self.line(format_args!("{name}{{{pairs}}} {value}"));
        }
        self
    }

    /// Adds a histogram for each set of values of `labels`, of which there is at least
    /// one. The sets must differ.
    pub fn histograms<const N: usize, L: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
        samples: impl IntoIterator<Item = ([L; N], Distribution)>,
    ) -> &mut Self {
        self.head(Kind::Histogram, name, help);
        for (of, values) in samples {
            let pairs = pairs(labels, &of);
            let (count, sum) = (values.count, values.sum);
            for (bound, below) in values.buckets {
                self.line(format_args!(
                    "{name}_bucket{{{pairs},le=\"{bound}\"}} {below}"
                ));
            }
            self.line(format_args!(
                "{name}_bucket{{{pairs},le=\"+Inf\"}} {count}\n\
                 {name}_sum{{{pairs}}} {sum}\n{name}_count{{{pairs}}} {count}"
            ));
        }
        self
    }

    /// Adds a histogram: each upper bound with the number of values up to it, then the
    /// number of all values and their sum.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) -> &mut Self {
        self.head(Kind::Histogram, name, help);
        for (bound, below) in buckets {
            self.line(format_args!("{name}_bucket{{le=\"{bound}\"}} {below}"));
        }
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {count}"));
        self.line(format_args!("{name}_sum {sum}\n{name}_count {count}"))
    }

    /// The page's text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn head(&mut self, kind: Kind, name: &str, help: &str) {
        let help = Escaped::help(help);
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
        self
    }
}

/// The values of one histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Each upper bound with the number of values up to it.
    pub buckets: Vec<(f64, u64)>,
    /// The number of all values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

/// Labels with their values, as a sample has them.
fn pairs<const N: usize, L: AsRef<str>>(labels: [&str; N], of: &[L; N]) -> String {
    let pairs = labels.iter().zip(of);
    let pairs = pairs.map(|(label, of)| format!("{label}=\"{}\"", Escaped::label(of.as_ref())));
    pairs.collect::<Vec<_>>().join(",")
}

/// A text whose special characters are escaped when it is written.
struct Escaped<'a> {
    text: &'a str,
    quotes: bool,
}

impl<'a> Escaped<'a> {
    fn label(text: &'a str) -> Self {
        Self { text, quotes: true }
    }

    fn help(text: &'a str) -> Self {
        Self {
            text,
            quotes: false,
        }
    }
}

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.text.chars() {
            match character {
                '\\' => formatter.write_str("\\\\")?,
                '\n' => formatter.write_str("\\n")?,
                '"' if self.quotes => formatter.write_str("\\\"")?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_reads_as_prometheus_wants_it() {
        let mut page = Page::new();
        page.counter("a_rounds_total", "Rounds.", 3)
            .gauge("a_queued", "Work that waits.", 0.5)
            .family(Kind::Gauge, "a_cells", "Cells.", "zone", [("z\"1", 2)]);
        let expected = "# HELP a_rounds_total Rounds.\n# TYPE a_rounds_total counter\n\
            a_rounds_total 3\n\
            # HELP a_queued Work that waits.\n# TYPE a_queued gauge\na_queued 0.5\n\
            # HELP a_cells Cells.\n# TYPE a_cells gauge\na_cells{zone=\"z\\\"1\"} 2\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn a_histogram_has_its_bounds_its_sum_and_its_count() {
        let mut page = Page::new();
        page.histogram("a_seconds", "Times.", [(0.5, 1), (1.0, 3)], 4, 7.25);
        let expected = "# HELP a_seconds Times.\n# TYPE a_seconds histogram\n\
            a_seconds_bucket{le=\"0.5\"} 1\na_seconds_bucket{le=\"1\"} 3\n\
            a_seconds_bucket{le=\"+Inf\"} 4\na_seconds_sum 7.25\na_seconds_count 4\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn histograms_of_a_family_differ_by_their_labels() {
        let mut page = Page::new();
        let values = |count| Distribution {
            buckets: vec![(0.5, 1)],
            count,
            sum: 2.0,
        };
        let samples = [(["x", "y"], values(1)), (["x", "z\n"], values(3))];
        page.histograms("a_seconds", "Times.", ["of", "at"], samples);
        let expected = "# HELP a_seconds Times.\n# TYPE a_seconds histogram\n\
            a_seconds_bucket{of=\"x\",at=\"y\",le=\"0.5\"} 1\n\
            a_seconds_bucket{of=\"x\",at=\"y\",le=\"+Inf\"} 1\n\
            a_seconds_sum{of=\"x\",at=\"y\"} 2\na_seconds_count{of=\"x\",at=\"y\"} 1\n\
            a_seconds_bucket{of=\"x\",at=\"z\\n\",le=\"0.5\"} 1\n\
            a_seconds_bucket{of=\"x\",at=\"z\\n\",le=\"+Inf\"} 3\n\
            a_seconds_sum{of=\"x\",at=\"z\\n\"} 2\na_seconds_count{of=\"x\",at=\"z\\n\"} 3\n";
        assert_eq!(page.into_text(), expected);
    }

    /// Reads a label's value back: the text, and what follows its closing quote.
    fn unescape(text: &str) -> Option<(String, &str)> {
        let (mut value, mut rest) = (String::new(), text.chars());
        loop {
            match rest.next()? {
                '"' => return Some((value, rest.as_str())),
                '\\' => value.push(match rest.next()? {
                    'n' => '\n',
                    other @ ('\\' | '"') => other,
                    _ => return None,
                }),
                '\n' => return None,
                other => value.push(other),
            }
        }
    }

    proptest! {
        #[test]
        fn any_label_and_help_are_read_back(
            labels in proptest::collection::vec("(\\PC|[\"\\\\\n]){0,12}", 0..5),
            help in "(\\PC|[\"\\\\\n]){0,20}",
        ) {
            let mut page = Page::new();
            let samples = labels.iter().enumerate().map(|(value, label)| (label, value));
            page.family(Kind::Counter, "m_total", &help, "of", samples);
            let text = page.into_text();
            let mut lines = text.split('\n');
            let told = lines.next().and_then(|line| line.strip_prefix("# HELP m_total "));
            let told = format!("{}\"", told.unwrap_or_default().replace('"', "\\\""));
            prop_assert_eq!(unescape(&told), Some((help, "")));
            prop_assert_eq!(lines.next(), Some("# TYPE m_total counter"));
            for (value, label) in labels.iter().enumerate() {
                let line = lines.next().and_then(|line| line.strip_prefix("m_total{of=\""));
                let rest = format!("}} {value}");
                let read = unescape(line.unwrap_or_default());
                prop_assert_eq!(read, Some((label.clone(), rest.as_str())));
            }
            prop_assert_eq!(lines.collect::<Vec<_>>(), [""]);
        }
    }
}
