//! A metric over the runs of a history, as a chart.

use std::fmt::Write as _;

use lab_judgement::Change;

use super::{HistoryMetric, HistoryRun};
use crate::markup::escaped;
use crate::sparkline::Frame;

/// Size of a chart in pixels, and what is left free at its edges.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 120.0;
const EDGE: f64 = 16.0;
/// More dots than these would touch each other; the line says it.
const DOTS_MOST: usize = 240;
/// Letters of a commit that are shown.
const COMMIT: usize = 12;

/// The runs from `first` on; empty when none of them has a value.
pub(super) fn chart(found: &HistoryMetric, runs: &[HistoryRun], first: usize) -> String {
    let values: Vec<Option<f64>> = found.values.iter().skip(first).copied().collect();
    let Some(frame) = frame(&values) else {
        return String::new();
    };
    let name = escaped(&found.metric.name);
    let mut text = format!(
        "<svg class=\"over\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{name}\">"
    );
    text += &marks(found, &frame, first);
    text += &line(&values, &frame);
    let unit = found.metric.unit;
    let _ = write!(
        text,
        "<text x=\"2\" y=\"12\">{}</text><text x=\"2\" y=\"{}\">{}</text>",
        escaped(&unit.show(frame.top)),
        HEIGHT - 3.0,
        escaped(&unit.show(frame.bottom))
    );
    // The whole height answers to the pointer, not the dot alone.
    let width = frame.step().min(WIDTH);
    for (at, (value, run)) in values.iter().zip(runs.iter().skip(first)).enumerate() {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            continue;
        };
        let commit: String = run.commit.chars().take(COMMIT).collect();
        let _ = write!(
            text,
            "<rect class=\"hit\" x=\"{:.1}\" y=\"0\" width=\"{width:.1}\" height=\"{HEIGHT}\"><title>{} ({}): {}</title></rect>",
            frame.x(at) - width / 2.0,
            escaped(&run.run),
            escaped(&commit),
            escaped(&unit.show(value)),
        );
    }
    text + "</svg>"
}

/// From the least value to the largest; `None` without any.
fn frame(values: &[Option<f64>]) -> Option<Frame> {
    let finite = || values.iter().flatten().filter(|value| value.is_finite());
    let bottom = finite().copied().reduce(f64::min)?;
    let top = finite().copied().reduce(f64::max)?;
    // A level line lies in the middle.
    let room = match top > bottom {
        true => 0.0,
        false if bottom == 0.0 => 1.0,
        false => bottom.abs() / 10.0,
    };
    Some(Frame {
        width: WIDTH,
        height: HEIGHT,
        edge: EDGE,
        count: values.len(),
        bottom: bottom - room,
        top: top + room,
    })
}

fn line(values: &[Option<f64>], frame: &Frame) -> String {
    let (mut path, mut dots) = (String::new(), String::new());
    let with_dots = values.len() <= DOTS_MOST;
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            continue;
        };
        let (x, y) = (frame.x(at), frame.y(value));
        let _ = write!(
            path,
            "{}{x:.1} {y:.1}",
            if path.is_empty() { "M" } else { "L" }
        );
        if with_dots {
            let _ = write!(
                dots,
                "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\"/>"
            );
        }
    }
    format!("<path class=\"value\" d=\"{path}\"/>{dots}")
}

/// Changes with the runs among which they are, levels between them, and drifts.
fn marks(found: &HistoryMetric, frame: &Frame, first: usize) -> String {
    let mut text = String::new();
    // A place among those that are drawn; what came before is at the left edge.
    let x = |at: usize| frame.x(at.saturating_sub(first).min(frame.count.saturating_sub(1)));
    let changes: Vec<&Change> = found.judgement.changes.iter().collect();
    for (number, change) in changes.iter().enumerate() {
        let since = number
            .checked_sub(1)
            .map_or(0, |before| changes[before].index);
        if change.index > first {
            level(
                &mut text,
                frame,
                x(since),
                x(change.index - 1),
                change.before,
            );
        }
        if number + 1 == changes.len() {
            level(
                &mut text,
                frame,
                x(change.index),
                frame.x(frame.count - 1),
                change.after,
            );
        }
        if change.index < first {
            continue;
        }
        let half = frame.step() / 2.0;
        let (from, to) = (
            x(change.earliest_index) - half,
            x(change.latest_index) + half,
        );
        let class = match (change.worse, change.certain) {
            (true, true) => "step no",
            (true, false) => "step no open",
            (false, true) => "step",
            (false, false) => "step open",
        };
        let _ = write!(
            text,
            "<rect class=\"band\" x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"{HEIGHT}\"/>\
             <line class=\"{class}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{HEIGHT}\"/>",
            to - from,
            at = x(change.index) - half,
        );
    }
    for drift in &found.judgement.drifts {
        let value = |at: usize| found.values.get(at).copied().flatten();
        if let (Some(from), Some(to)) = (value(drift.first_index), value(drift.last_index)) {
            let _ = write!(
                text,
                "<path class=\"drift{}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
                if drift.worse { " no" } else { "" },
                x(drift.first_index),
                frame.y(from),
                x(drift.last_index),
                frame.y(to)
            );
        }
    }
    text
}

fn level(text: &mut String, frame: &Frame, from: f64, to: f64, value: f64) {
    let y = frame.y(value);
    let _ = write!(
        text,
        "<line class=\"level\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
    );
}
