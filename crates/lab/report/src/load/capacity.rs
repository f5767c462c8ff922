//! What a search for the knee found.

use console::truncate_str;
use lab_load::Summary;
use lab_load::knee::{Estimate, Point, Usl};
use units::{show_count, show_share};

use super::words::{rate, seconds, time};
use super::{LABEL, Page};

pub(super) fn lines(page: &Page, summary: &Summary) -> Vec<String> {
    let Some(capacity) = &summary.capacity else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let knee = match &capacity.knee {
        // Of a rate that held, and none that failed, there is no interval.
        Some(knee) if capacity.limit != "target" => {
            format!("at least {}, where {} holds", rate(knee.low), capacity.slo)
        }
        Some(knee) => format!("{}, where {} holds", estimate(knee), capacity.slo),
        None => format!("not found for {}", capacity.slo),
    };
    lines.extend(page.labelled("knee", &knee));
    if let Some(physical) = &capacity.physical {
        let text = format!(
            "{}; the target answers no more than that",
            estimate(physical)
        );
        lines.extend(page.labelled("physical", &text));
    }
    let found = capacity.knee.is_some();
    lines.extend(page.labelled("limit", &limit(&capacity.limit, found)));
    if !capacity.note.is_empty() {
        lines.extend(page.labelled("", &capacity.note));
    }
    lines.extend(page.labelled("scaling", &usl(&capacity.usl)));
    lines.push(String::new());
    lines.push(page.paint.dim(&format!(
        "{:<LABEL$}{:>11}{:>11}{:>11}{:>11}{:>11}{:>9}",
        "holds", "rate", "good", "p50", "p99", "in flight", "errors"
    )));
    let points = capacity.points.iter().map(|one| point_line(page, one));
    lines.extend(points.map(|line| truncate_str(&line, page.width, "…").into_owned()));
    lines
}

/// A hold as a line, for those who watch the search.
#[must_use]
pub fn point(point: &Point) -> String {
    let page = Page {
        width: 100,
        paint: super::Paint(false),
    };
    point_line(&page, point)
}

fn point_line(page: &Page, point: &Point) -> String {
    let outcome = match (point.invalid.is_empty(), point.good) {
        (false, _) => page
            .paint
            .warn(&format!("! invalid: {}", point.invalid.join(", "))),
        (true, true) => page.paint.good("✓ held"),
        (true, false) => page.paint.bad("✗ did not"),
    };
    format!(
        "  {:<width$}{:>11}{:>11}{:>11}{:>11}{:>11}{:>9}  {outcome}",
        point.purpose,
        rate(point.rate),
        rate(point.good_rate),
        time(point.p50),
        time(point.p99),
        show_count(point.in_flight),
        show_share(point.errors),
        width = LABEL - 2,
    )
}

fn estimate(estimate: &Estimate) -> String {
    let confidence = show_share(estimate.confidence);
    let (low, high) = (rate(estimate.low), rate(estimate.high));
    format!(
        "{} ({confidence} between {low} and {high})",
        rate(estimate.rate)
    )
}

fn limit(limit: &str, found: bool) -> String {
    match limit {
        "target" => "the target".to_owned(),
        "generator" if found => {
            "the generator, or the machine it shares: the target holds at least this. Give it \
             processors of its own (--cpus, --threads), or more machines (--workers)"
                .to_owned()
        }
        "generator" => "the generator, or the machine it shares: no rate is known that holds. \
                        Begin lower (--from), on a quiet machine or on others (--workers)"
            .to_owned(),
        "range" => "none was found: the highest rate that was tried held".to_owned(),
        "unsure" => {
            "too little is known between the rates that held and those that failed: search \
             longer (--thorough), from a lower rate (--from), or on a quieter machine"
                .to_owned()
        }
        "none" => "no rate held".to_owned(),
        other => other.to_owned(),
    }
}

fn usl(usl: &Usl) -> String {
    match usl {
        Usl::Refused(why) => format!("no law fitted: {why}"),
        Usl::Fit {
            lambda,
            alpha,
            beta,
            peak,
            note,
        } => {
            let peak = peak.map_or(String::new(), |peak| {
                let count = show_count(peak.rate);
                format!(", peak at {count} in flight")
            });
            let each = seconds(1.0 / lambda.max(f64::MIN_POSITIVE));
            format!(
                "{each} a request alone, contention {}, coherency {}{peak}; {note}",
                show_share(*alpha),
                show_share(*beta)
            )
        }
    }
}
