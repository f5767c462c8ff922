//! A load over time, as one line for each number.

use lab_load::Summary;
use lab_load::summary::Slot;

use super::words::{grouped, rate, seconds};
use super::{LABEL, Page};

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns after a line, for its range.
const RANGE: usize = 26;

pub(super) fn lines(page: &Page, summary: &Summary) -> Vec<String> {
    let slots = &summary.timeline;
    if slots.len() < 3 {
        return Vec::new();
    }
    let room = page.width - LABEL - RANGE;
    let groups = groups(slots, room);
    let of = |number: fn(&Slot) -> f64| -> Vec<f64> {
        groups
            .iter()
            .map(|group| group.iter().map(number).fold(0.0, f64::max))
            .collect()
    };
    let per_second = |slot: &Slot| slot.sent as f64 / slot.length_s.max(f64::MIN_POSITIVE);
    let mut lines = vec![
        row(page, "sent", &of(per_second), rate),
        row(page, "p50", &of(|slot| slot.p50.unwrap_or(0.0)), seconds),
        row(page, "p99", &of(|slot| slot.p99.unwrap_or(0.0)), seconds),
    ];
    if slots.iter().any(|slot| slot.failed > 0) {
        lines.push(row(page, "failed", &of(|slot| slot.failed as f64), whole));
    }
    if slots.iter().any(|slot| slot.backlog > 0) {
        lines.push(row(page, "backlog", &of(|slot| slot.backlog as f64), whole));
    }
    if summary.steady.from_s > 0.0 {
        let cut = groups
            .iter()
            .filter(|group| ends_before(group, summary.steady.from_s))
            .count();
        let text = format!("{:LABEL$}{}", "", "╌".repeat(cut.max(1)));
        let from = seconds(summary.steady.from_s);
        lines.push(page.paint.warn(&format!(
            "{text} warm-up, {from} left out of the numbers above"
        )));
    }
    lines
}

fn whole(number: f64) -> String {
    grouped(number as u64)
}

fn ends_before(group: &[Slot], time: f64) -> bool {
    group
        .last()
        .is_some_and(|slot| slot.t_s + slot.length_s <= time + 1e-9)
}

/// As many groups of neighbours as fit, as equal as they can be.
fn groups(slots: &[Slot], most: usize) -> Vec<&[Slot]> {
    slots
        .chunks(slots.len().div_ceil(most.max(1)).max(1))
        .collect()
}

/// A line of bars from 0 to the highest, with the range beside it.
fn row(page: &Page, label: &str, values: &[f64], show: fn(f64) -> String) -> String {
    let high = values.iter().copied().fold(0.0, f64::max);
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let bars: String = values
        .iter()
        .map(|value| {
            let level = (value / high.max(f64::MIN_POSITIVE) * 8.0).ceil() as usize;
            if level == 0 {
                ' '
            } else {
                LEVELS[level.min(8) - 1]
            }
        })
        .collect();
    let range = match show(low) == show(high) {
        true => show(high),
        false => format!("{} to {}", show(low), show(high)),
    };
    let label = page.paint.dim(&format!("{label:LABEL$}"));
    format!(
        "{label}{}  {}",
        page.paint.first(&bars),
        page.paint.dim(&range)
    )
}
