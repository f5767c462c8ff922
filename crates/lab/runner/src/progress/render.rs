//! A view as lines of text.

use console::{Style, truncate_str};
use lab_experiment::units::{show_bytes, show_cores, show_seconds};
use lab_store::{Event, EventKind};

use super::status::{EntityView, Progress, SystemView, View};

/// Systems that are shown; the busiest ones.
const SYSTEMS: usize = 8;
/// Width of the first column.
const LABEL: usize = 10;

struct Paint(bool);

impl Paint {
    fn with(&self, style: Style, text: &str) -> String {
        style.force_styling(self.0).apply_to(text).to_string()
    }

    fn line(&self, label: &str, text: &str) -> String {
        let label = format!("{:LABEL$} ", truncate_str(label, LABEL, "…"));
        format!("{}{text}", self.with(Style::new().dim(), &label))
    }
}

/// The lines that show `view`, none wider than `width` columns.
pub(super) fn render(view: &View, width: usize, color: bool) -> Vec<String> {
    let paint = Paint(color);
    let mut lines = vec![format!(
        "{}  {}",
        paint.with(Style::new().bold(), &view.name),
        show_seconds(round(view.elapsed_s))
    )];
    if !view.steps.is_empty() {
        lines.push(paint.line("steps", &ribbon(view, &paint)));
    }
    lines.push(paint.line("now", &view.doing));
    lines.extend(
        view.entities
            .iter()
            .map(|entity| paint.line(&entity.what, &states(entity, &paint))),
    );
    lines.extend(systems(&view.systems, &paint));
    if view.lines > 0 || !view.lifecycles.is_empty() {
        lines.push(paint.line("logs", &logs(view)));
    }
    lines
        .iter()
        .map(|line| truncate_str(line, width, "…").into_owned())
        .collect()
}

/// Tenths are enough for the eye.
fn round(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

fn ribbon(view: &View, paint: &Paint) -> String {
    let steps = view.steps.iter().map(|step| {
        let (mark, style) = match step.progress {
            Progress::Done => ("✔", Style::new().green()),
            Progress::Now => ("▶", Style::new().cyan().bold()),
            Progress::Failed => ("✘", Style::new().red().bold()),
            Progress::Next => ("·", Style::new().dim()),
        };
        paint.with(style, &format!("{mark} {}", step.name))
    });
    steps.collect::<Vec<_>>().join("  ")
}

fn states(entity: &EntityView, paint: &Paint) -> String {
    let states = entity.states.iter().map(|state| {
        let count = state
            .count
            .map_or_else(|| "?".to_owned(), |count| count.to_string());
        let rate = match state.rate.round() {
            0.0 => String::new(),
            rate => format!(" ({rate:+}/s)"),
        };
        format!(
            "{} {}{rate}",
            state.name,
            paint.with(Style::new().bold(), &count)
        )
    });
    states.collect::<Vec<_>>().join("  ")
}

fn systems(systems: &[SystemView], paint: &Paint) -> Vec<String> {
    let mut busiest: Vec<&SystemView> = systems.iter().collect();
    if busiest.len() > SYSTEMS {
        busiest.sort_by(|a, b| b.cpu_cores.total_cmp(&a.cpu_cores));
        busiest.truncate(SYSTEMS);
    }
    let mut lines: Vec<String> = busiest
        .iter()
        .map(|system| {
            let cores = show_cores((system.cpu_cores * 100.0).round() / 100.0);
            let rss = show_bytes(system.rss_bytes as f64);
            paint.line(&system.name, &format!("cpu {cores}  rss {rss}"))
        })
        .collect();
    if systems.len() > SYSTEMS {
        let more = systems.len() - SYSTEMS;
        lines.push(paint.line("", &format!("and {more} systems that use less")));
    }
    lines
}

fn logs(view: &View) -> String {
    let mut text = format!("{} lines", view.lines);
    for lifecycle in &view.lifecycles {
        let last = lifecycle.reached.last();
        let last = last.map_or(String::new(), |(point, count)| format!(", {point} {count}"));
        text.push_str(&format!(
            "  {} {}{last}",
            lifecycle.name, lifecycle.entities
        ));
    }
    text
}

/// One line that says where the run is.
pub(super) fn summary(view: &View) -> String {
    let step = view
        .steps
        .iter()
        .find(|step| step.progress == Progress::Now);
    let step = step.map_or(String::new(), |step| format!("{}: ", step.name));
    format!("{} {step}{}", stamp(view.elapsed_s), view.doing)
}

/// One line about an event.
pub(super) fn event(event: &Event) -> String {
    let name = &event.name;
    let what = match event.kind {
        EventKind::SystemStarted => format!("start {name}"),
        EventKind::SystemReady => format!("{name} is ready"),
        EventKind::SystemExited => format!("{name}: {}", event.text),
        EventKind::StepStarted => format!("{name}: begins"),
        EventKind::StepEnded => format!("{name}: done in {}", event.text),
        EventKind::StepFailed => format!("{name}: FAILED: {}", event.text),
        EventKind::Made => format!("{name}: made {}", event.text),
        EventKind::Interrupted => format!("interrupted by {}", event.text),
    };
    format!("{} {what}", stamp(event.t_s))
}

fn stamp(seconds: f64) -> String {
    format!("[{seconds:7.1} s]")
}

#[cfg(test)]
mod tests;
