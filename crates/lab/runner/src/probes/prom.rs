//! One metric of a page in Prometheus' text format.
//!
//! A line is `name{label="value",…} number`, perhaps with a time behind; what begins with `#` is
//! a comment. The format is that of "Exposition formats" in Prometheus' documentation, of which
//! OpenMetrics is close enough for this.

use std::collections::BTreeMap;

use lab_experiment::plan::Aggregation;

/// What all series of a metric that have these labels, among others, come to together.
///
/// # Errors
/// When there is no such series, a line of the metric cannot be read, or its value is not finite.
pub(super) fn value(
    page: &str,
    metric: &str,
    labels: &BTreeMap<String, String>,
    series: Aggregation,
) -> Result<f64, String> {
    let (mut together, mut others) = (None, 0_usize);
    for line in page.lines().map(str::trim) {
        let Some(rest) = line.strip_prefix(metric) else {
            continue;
        };
        // A longer name begins with this one.
        if !rest.starts_with(|c: char| c == '{' || c.is_whitespace()) {
            continue;
        }
        let bad = || format!("the line {line:?} is no series of {metric}");
        let rest = rest.trim_start();
        let (own, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels_of(rest).ok_or_else(bad)?,
            None => (BTreeMap::new(), rest),
        };
        let has = |(label, value): (&String, &String)| own.get(label) == Some(value);
        if !labels.iter().all(has) {
            others += 1;
            continue;
        }
        let number = rest.split_whitespace().next().ok_or_else(bad)?;
        let number: f64 = number.parse().map_err(|_| bad())?;
        if !number.is_finite() {
            return Err(format!("{metric} is {number}"));
        }
        together = Some(match (together, series) {
            (None, _) => number,
            (Some(before), Aggregation::Sum) => before + number,
            (Some(before), Aggregation::Max) => f64::max(before, number),
            (Some(before), Aggregation::Min) => f64::min(before, number),
        });
    }
    match (together, others) {
        (Some(together), _) => Ok(together),
        (None, 0) => Err(format!("the page has no metric {metric}")),
        (None, others) => {
            let wanted: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v:?}")).collect();
            let wanted = wanted.join(", ");
            Err(format!(
                "none of the {others} series of {metric} has {wanted}"
            ))
        }
    }
}

/// The labels before a closing brace, and what follows it.
fn labels_of(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once('=')?;
        let (value, after) = quoted(after.trim_start().strip_prefix('"')?)?;
        labels.insert(name.trim().to_owned(), value);
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
}

/// A text up to its closing quote, and what follows that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "# HELP requests_total All of them.\n# TYPE requests_total counter\n\
        requests_total{code=\"200\",method=\"GET\"} 10 1700000000000\n\
        requests_total{ code = \"500\" , method=\"GET\",} 2.5\n\
        requests_total_created 5\nup 1\nodd{path=\"a\\\"}b\\\\\"} 7\nlost NaN\nbroken{x=\"1\" 3\n\
        apart {x=\"1\"} 4\napart\t{x=\"2\"}\t5\n";

    fn of(metric: &str, labels: &[(&str, &str)]) -> Result<f64, String> {
        let labels = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        value(PAGE, metric, &labels.collect(), Aggregation::Sum)
    }

    #[test]
    fn series_that_match_are_added_up() {
        assert_eq!(of("requests_total", &[]), Ok(12.5));
        assert_eq!(of("requests_total", &[("code", "200")]), Ok(10.0));
        assert_eq!(
            of("requests_total", &[("code", "500"), ("method", "GET")]),
            Ok(2.5)
        );
        assert_eq!(of("up", &[]), Ok(1.0));
        assert_eq!(of("odd", &[("path", "a\"}b\\")]), Ok(7.0));
        assert_eq!(of("apart", &[]), Ok(9.0));
        assert_eq!(of("apart", &[("x", "2")]), Ok(5.0));
    }

    #[test]
    fn one_of_several_series_is_chosen() {
        let of = |series| value(PAGE, "requests_total", &BTreeMap::new(), series);
        assert_eq!(of(Aggregation::Max), Ok(10.0));
        assert_eq!(of(Aggregation::Min), Ok(2.5));
    }

    #[test]
    fn what_is_missing_or_no_number_is_said() {
        assert!(of("requests", &[]).unwrap_err().contains("no metric"));
        let error = of("requests_total", &[("code", "404")]).unwrap_err();
        assert!(error.contains("none of the 2 series"), "{error}");
        assert!(of("lost", &[]).unwrap_err().contains("NaN"));
        assert!(of("broken", &[]).unwrap_err().contains("no series"));
    }

    proptest! {
        #[test]
        fn labels_are_read_back(values in prop::collection::vec("\\PC{0,8}", 0..4), number in 0_u32..1000) {
            let escape = |v: &String| v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let labels: BTreeMap<String, String> =
                values.iter().enumerate().map(|(n, v)| (format!("l{n}"), v.clone())).collect();
            let written: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escape(v))).collect();
            let page = format!("m{{{}}} {number}", written.join(","));
            prop_assert_eq!(value(&page, "m", &labels, Aggregation::Max), Ok(f64::from(number)));
        }

        #[test]
        fn no_page_panics(page in "(m|\\{|\\}|\"|=|\\\\|,| |1|\n|\\PC){0,40}") {
            let _ = value(&page, "m", &BTreeMap::new(), Aggregation::Min);
        }
    }
}
