//! A load over time, as one line for each number.

use lab_load::Summary;
use lab_load::summary::Slot;

use super::words::{grouped, rate, seconds};
use super::{LABEL, Page};

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns after a line, for its range.
const RANGE: usize = 26;
/// A slot shorter than this share of the one before it is no whole one.
const PARTIAL: f64 = 0.75;

pub(super) fn lines(page: &Page, summary: &Summary) -> Vec<String> {
    let slots = &summary.timeline;
    if slots.len() < 3 {
        return Vec::new();
    }
    let room = page.width - LABEL - RANGE;
    let each = slots.len().div_ceil(room.max(1)).max(1);
    let of = |values: Vec<Option<f64>>| -> Vec<Option<f64>> {
        let highest = |group: &[Option<f64>]| group.iter().copied().flatten().reduce(f64::max);
        values.chunks(each).map(highest).collect()
    };
    let number = |of: fn(&Slot) -> Option<f64>| slots.iter().map(of).collect();
    let mut lines = vec![
        row(page, "sent", &of(sent_rates(slots)), rate),
        row(
            page,
            "p50",
            &of(number(|slot| slot.latency(|slot| slot.p50))),
            seconds,
        ),
        row(
            page,
            "p99",
            &of(number(|slot| slot.latency(|slot| slot.p99))),
            seconds,
        ),
    ];
    if slots.iter().any(|slot| slot.failed > 0) {
        let failed = of(number(|slot| Some(slot.failed as f64)));
        lines.push(row(page, "failed", &failed, whole));
    }
    if slots.iter().any(|slot| slot.backlog > 0) {
        let backlog = of(number(|slot| Some(slot.backlog as f64)));
        lines.push(row(page, "backlog", &backlog, whole));
    }
    let from = summary.steady.from_s;
    if from > 0.0 {
        let before = slots.chunks(each).filter(|group| ends_before(group, from));
        let text = format!("{:LABEL$}{}", "", "╌".repeat(before.count().max(1)));
        let from = seconds(from);
        let what = match summary.warm_up_s > 0.0 {
            true => format!("warm-up, {from} left out of the latency above"),
            false => format!("unlike the rest, {from}; part of all numbers above"),
        };
        lines.push(page.paint.warn(&format!("{text} {what}")));
    }
    lines
}

/// Requests sent in a second, slot by slot. What follows the end has no rate. A slot that is
/// much shorter than the others takes a part of the one before it: a few requests in a
/// fraction of a second are no rate.
fn sent_rates(slots: &[Slot]) -> Vec<Option<f64>> {
    let mut before: Option<&Slot> = None;
    slots
        .iter()
        .map(|slot| {
            if slot.after_end || slot.length_s <= 0.0 {
                return None;
            }
            let whole = before.replace(slot);
            let own = slot.sent as f64;
            Some(match whole {
                Some(whole) if slot.length_s < whole.length_s * PARTIAL => {
                    let rest = whole.length_s - slot.length_s;
                    (own + whole.sent as f64 * rest / whole.length_s) / whole.length_s
                }
                _ => own / slot.length_s,
            })
        })
        .collect()
}

fn whole(number: f64) -> String {
    grouped(number as u64)
}

fn ends_before(group: &[Slot], time: f64) -> bool {
    group
        .last()
        .is_some_and(|slot| slot.t_s + slot.length_s <= time + 1e-9)
}

/// A line of bars from 0 to the highest, with the range beside it.
fn row(page: &Page, label: &str, values: &[Option<f64>], show: fn(f64) -> String) -> String {
    let known = || values.iter().copied().flatten();
    let finite = known().filter(|value| value.is_finite());
    let scale = finite.fold(f64::MIN_POSITIVE, f64::max);
    let high = known().fold(0.0, f64::max);
    let low = known().reduce(f64::min).unwrap_or(0.0);
    let bars: String = values
        .iter()
        .map(|value| {
            let value = value.unwrap_or(0.0);
            let level = (value / scale * 8.0).ceil() as usize;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(t_s: f64, length_s: f64, sent: u64) -> Slot {
        Slot {
            t_s,
            length_s,
            planned: sent,
            sent,
            good: sent,
            in_flight: 1,
            ..Slot::default()
        }
    }

    /// A request in four milliseconds is no 250 a second.
    #[test]
    fn a_partial_slot_makes_no_spike() {
        let mut slots = vec![slot(0.0, 1.0, 20), slot(1.0, 1.0, 20), slot(2.0, 0.004, 1)];
        let rates = sent_rates(&slots);
        assert!(
            rates
                .iter()
                .all(|rate| rate.is_some_and(|rate| rate < 21.0))
        );
        slots[2] = slot(2.0, 0.9, 9);
        assert_eq!(
            sent_rates(&slots)[2],
            Some(10.0),
            "a slot that is nearly whole"
        );
        slots[2].after_end = true;
        assert_eq!(sent_rates(&slots)[2], None);
    }
}
