//! What is seen while a load runs.

use std::time::Duration;

use lab_load::recording::{Latencies, Recording};
use lab_load::summary::heat;
use lab_load::validity::Between;
use lab_load::{GuardLimits, Span};
use units::{show_count, show_seconds};

use super::words::{Paint, grouped, rate, time};
use super::{LABEL, Page, WIDTH};
use crate::terminal::{Style, printable};

/// Heat lines that are kept.
const HEAT_LINES: usize = 12;
/// Bins of latency on a heat line: from 10 µs to 100 s.
const BINS: usize = 70;
/// Errors that are named.
const ERRORS: usize = 4;
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

/// What has been seen so far. Takes the same memory however long a load runs.
#[derive(Debug, Clone)]
pub struct Live {
    /// Target and model, as a heading.
    title: String,
    /// How long the load shall last, when that is known.
    length: Option<Duration>,
    /// What is tried at the moment, in a search.
    doing: String,
    all: Span,
    last: Span,
    /// Answers by bin of latency, of the last seconds: the newest at the end.
    heat: Vec<(Duration, Vec<(u8, u64)>)>,
}

impl Live {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(title: &str, length: Option<Duration>) -> Self {
        Self {
            title: printable(title),
            length,
            doing: String::new(),
            all: Span::empty(0),
            last: Span::empty(0),
            heat: Vec::new(),
        }
    }

    /// Says what is tried now; what was seen so far is forgotten.
    pub fn begin(&mut self, doing: &str, length: Option<Duration>) {
        self.doing = printable(doing);
        self.length = length;
        self.all = Span::empty(0);
        self.last = Span::empty(0);
    }

    /// Adds the span that has just ended.
    pub fn add(&mut self, span: &Span) {
        self.all.append(span);
        // The last answers, in however short a time, are no rate.
        if !span.after_end {
            self.last = span.clone();
        }
        self.heat
            .push((span.end(), heat(&span.requests().intended)));
        if self.heat.len() > HEAT_LINES {
            self.heat.remove(0);
        }
    }

    /// Time since the start of the load.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.all.end()
    }
}

/// A block of lines that is drawn again and again in its place.
#[must_use]
pub fn live_block(live: &Live, style: Style) -> Vec<String> {
    let page = Page {
        width: style.width.clamp(WIDTH.0, WIDTH.1),
        paint: Paint(style.color),
    };
    let mut lines = vec![page.paint.bold(&live.title)];
    lines.push(progress(&page, live));
    let (last, all) = (live.last.requests(), live.all.requests());
    lines.extend(page.labelled("rate", &rates(&live.last, &last)));
    lines.push(page.paint.dim(&percentile_heads()));
    lines.push(percentile_row(&page, "  last second", &last));
    lines.push(percentile_row(&page, "  so far", &all));
    if let Some(doubt) = doubt(&all) {
        lines.extend(page.labelled("late", &doubt));
    }
    lines.extend(page.labelled("failed", &failed(&all)));
    lines.extend(heat_lines(&page, live));
    lines
        .iter()
        .map(|line| console::truncate_str(line, style.width.max(1), "…").into_owned())
        .collect()
}

/// One line for a log: what the last second was like.
#[must_use]
pub fn live_line(live: &Live) -> String {
    let requests = live.last.requests();
    let at = |share| time(Latencies::intended(&requests).percentile(share));
    let doing = match live.doing.is_empty() {
        true => String::new(),
        false => format!("{}  ", live.doing),
    };
    let all = live.all.requests();
    let doubt = doubt(&all).map_or(String::new(), |doubt| format!("  ({doubt})"));
    format!(
        "[{:7.1} s] {doing}{}  p50 {}  p99 {}  max {}  failed {}{doubt}",
        live.elapsed().as_secs_f64(),
        rates(&live.last, &requests),
        at(0.5),
        at(0.99),
        at(1.0),
        failed(&all),
    )
}

/// Which numbers would be withheld if the load ended now.
fn doubt(all: &Recording) -> Option<String> {
    let between = Between::intended(all);
    let spoiled = PERCENTILES.iter().filter(|(_, q)| {
        let bounds = between.bounds(|latencies| latencies.percentile(*q));
        bounds.is_some_and(|bounds| bounds.withheld(GuardLimits::default().late_after))
    });
    let names: Vec<&str> = spoiled.map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("the generator was late: withheld {}", names.join(", ")))
}

fn progress(page: &Page, live: &Live) -> String {
    let elapsed = live.elapsed();
    let mut text = format!("{:LABEL$}", seconds_whole(elapsed));
    if let Some(length) = live.length.filter(|length| !length.is_zero()) {
        let room = page.width.saturating_sub(LABEL + 12).min(40);
        let share = (elapsed.as_secs_f64() / length.as_secs_f64()).min(1.0);
        let full = (share * room as f64).round() as usize;
        text += &page.paint.first(&"━".repeat(full));
        text += &page.paint.dim(&"─".repeat(room - full));
        text += &format!(" {}", seconds_whole(length));
    }
    if !live.doing.is_empty() {
        text += &format!("  {}", live.doing);
    }
    text
}

/// Tenths are enough for the eye.
fn seconds_whole(time: Duration) -> String {
    show_seconds((time.as_secs_f64() * 10.0).round() / 10.0)
}

fn rates(span: &Span, requests: &Recording) -> String {
    let length = span.length.as_secs_f64().max(f64::MIN_POSITIVE);
    let each = |count: u64| rate(count as f64 / length);
    let in_flight = show_count((span.in_flight_seconds / length * 10.0).round() / 10.0);
    let mut text = format!(
        "asked {}, sent {}, good {}, in flight {in_flight}",
        each(span.planned),
        each(requests.sent),
        each(requests.good())
    );
    if span.backlog > 0 {
        text += &format!(", waiting {}", grouped(span.backlog));
    }
    text
}

fn percentile_heads() -> String {
    let heads: String = PERCENTILES
        .iter()
        .map(|(name, _)| format!("{name:>11}"))
        .collect();
    format!("{:<14}{heads}", "latency")
}

fn percentile_row(page: &Page, label: &str, requests: &Recording) -> String {
    let latencies = Latencies::intended(requests);
    let times = PERCENTILES
        .iter()
        .map(|(_, q)| format!("{:>11}", time(latencies.percentile(*q))));
    let times: String = times.collect();
    format!("{}{times}", page.paint.dim(&format!("{label:<14}")))
}

fn failed(requests: &Recording) -> String {
    let total = requests.refused + requests.failed();
    let mut kinds: Vec<(u64, String)> = requests
        .errors
        .iter()
        .map(|(failure, count)| {
            (
                *count,
                format!("{} {}", failure.phase.name(), failure.cause),
            )
        })
        .chain(
            requests
                .refusals
                .iter()
                .map(|(name, count)| (*count, name.clone())),
        )
        .collect();
    kinds.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    kinds.truncate(ERRORS);
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(count, what)| format!("{} × {what}", grouped(count)))
        .collect();
    match (total, kinds.is_empty()) {
        (0, _) => "0".to_owned(),
        (total, true) => grouped(total),
        (total, false) => format!("{} ({})", grouped(total), kinds.join(", ")),
    }
}

/// A line for each of the last seconds: one character for each bin of latency, darker
/// where more answers fell.
fn heat_lines(page: &Page, live: &Live) -> Vec<String> {
    if live.heat.is_empty() {
        return Vec::new();
    }
    let bins = BINS.min(page.width - LABEL);
    let mut lines = vec![page.paint.dim(&format!("{:LABEL$}{}", "heat", scale(bins)))];
    for (end, counts) in live.heat.iter().rev() {
        let most = counts
            .iter()
            .map(|(_, count)| *count)
            .max()
            .unwrap_or(1)
            .max(1);
        let mut shades = vec![SHADES[0]; bins];
        for (bin, count) in counts {
            if let Some(shade) = shades.get_mut(usize::from(*bin)) {
                // Also a single slow answer must be seen: shades are logarithmic.
                let dark = ((*count as f64).ln_1p() / (most as f64).ln_1p() * 4.0).ceil();
                *shade = SHADES[(dark as usize).clamp(1, SHADES.len() - 1)];
            }
        }
        let label = page.paint.dim(&format!(
            "{:>width$}  ",
            seconds_whole(*end),
            width = LABEL - 2
        ));
        let shades: String = shades.into_iter().collect();
        lines.push(format!("{label}{}", page.paint.first(shades.trim_end())));
    }
    lines
}

/// Where the decades begin.
fn scale(bins: usize) -> String {
    let decades = ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"];
    let scale: String = decades.iter().map(|name| format!("├{name:<9}")).collect();
    scale.chars().take(bins).collect()
}
