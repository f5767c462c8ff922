//! A view as lines of text.

use console::{Style, measure_text_width, truncate_str};
use lab_store::{Event, EventKind};
use units::{show_bytes, show_cores, show_rate, show_seconds};

use super::status::{EntityView, LoadView, ProbeView, Progress, StepView, SystemView, View};

/// Systems that are shown; the busiest ones.
const SYSTEMS: usize = 8;
/// Loads that are shown.
const LOADS: usize = 8;
/// Probes that are shown.
const PROBES: usize = 8;
/// Width of the first column.
const LABEL: usize = 10;

/// Lines that steps may take.
const STEP_LINES: usize = 2;

struct Paint {
    color: bool,
    width: usize,
}

impl Paint {
    fn with(&self, style: Style, text: &str) -> String {
        style.force_styling(self.color).apply_to(text).to_string()
    }

    /// A label and the parts that belong to it, on as many lines as they need.
    fn lines(&self, label: &str, gap: &str, parts: &[String]) -> Vec<String> {
        let label = format!("{:LABEL$} ", truncate_str(label, LABEL, "…"));
        let room = self.width.saturating_sub(LABEL + 1);
        let mut texts: Vec<String> = Vec::new();
        for part in parts {
            match texts.last_mut() {
                Some(text) if measure_text_width(&format!("{text}{gap}{part}")) <= room => {
                    text.push_str(gap);
                    text.push_str(part);
                }
                _ => texts.push(part.clone()),
            }
        }
        let labels = std::iter::once(label).chain(std::iter::repeat(" ".repeat(LABEL + 1)));
        labels
            .zip(&texts)
            .map(|(label, text)| format!("{}{text}", self.with(Style::new().dim(), &label)))
            .collect()
    }
}

/// The lines that show `view`, none wider than `width` columns.
pub(super) fn render(view: &View, width: usize, color: bool) -> Vec<String> {
    let paint = Paint { color, width };
    let mut lines = vec![format!(
        "{}  {}",
        paint.with(Style::new().bold(), &view.name),
        seconds(view.elapsed_s)
    )];
    lines.extend(steps(view, &paint));
    let doing: Vec<String> = view.doing.split(' ').map(str::to_owned).collect();
    lines.extend(paint.lines("now", " ", &doing));
    for entity in &view.entities {
        lines.extend(paint.lines(&entity.what, "  ", &states(entity, &paint)));
    }
    for load in view.loads.iter().take(LOADS) {
        lines.extend(paint.lines(&load.name, "  ", &load_parts(load, &paint)));
    }
    for probe in view.probes.iter().take(PROBES) {
        lines.extend(paint.lines(&probe.name, "  ", &probe_parts(probe, &paint)));
    }
    lines.extend(systems(&view.systems, &paint));
    if view.lines > 0 || !view.lifecycles.is_empty() {
        lines.extend(paint.lines("logs", "  ", &logs(view)));
    }
    lines
        .iter()
        .map(|line| truncate_str(line, width, "…").into_owned())
        .collect()
}

/// Tenths are enough for the eye.
fn seconds(seconds: f64) -> String {
    show_seconds((seconds * 10.0).round() / 10.0)
}

/// The steps; where there are too many, those near the one under way.
fn steps(view: &View, paint: &Paint) -> Vec<String> {
    let (mut first, mut end) = (0, view.steps.len());
    loop {
        let mut parts = Vec::new();
        if first > 0 {
            parts.push(paint.with(Style::new().green(), &format!("✔ {first} done")));
        }
        let shown = view.steps.get(first..end).unwrap_or_default();
        parts.extend(shown.iter().map(|step| ribbon(step, view.elapsed_s, paint)));
        if end < view.steps.len() {
            let more = view.steps.len() - end;
            parts.push(paint.with(Style::new().dim(), &format!("· {more} more")));
        }
        let lines = paint.lines("steps", "  ", &parts);
        if lines.len() <= STEP_LINES || shown.len() <= 1 {
            return lines;
        }
        match shown.first() {
            Some(step) if matches!(step.progress, Progress::Done | Progress::Skipped) => first += 1,
            _ => end -= 1,
        }
    }
}

fn ribbon(step: &StepView, now_s: f64, paint: &Paint) -> String {
    let (mark, style) = match step.progress {
        Progress::Done => ("✔", Style::new().green()),
        Progress::Now => ("▶", Style::new().cyan().bold()),
        Progress::Failed => ("✘", Style::new().red().bold()),
        Progress::Next => ("·", Style::new().dim()),
        Progress::Skipped => ("–", Style::new().dim()),
    };
    let took = match step.progress {
        Progress::Next => String::new(),
        Progress::Skipped => " skipped".to_owned(),
        _ => format!(" {}", seconds(step.to_s.unwrap_or(now_s) - step.from_s)),
    };
    format!(
        "{}{took}",
        paint.with(style, &format!("{mark} {}", step.name))
    )
}

fn states(entity: &EntityView, paint: &Paint) -> Vec<String> {
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
    states.collect()
}

fn load_parts(load: &LoadView, paint: &Paint) -> Vec<String> {
    let mut parts = vec![
        format!("{} due", show_rate(load.due.round())),
        format!("{} good", show_rate(load.good.round())),
    ];
    parts.extend(load.p99.map(|p99| format!("p99 {}", show_seconds(p99))));
    if load.failed > 0 {
        let failed = format!("{} failed", load.failed);
        parts.push(paint.with(Style::new().red(), &failed));
    }
    parts
}

fn probe_parts(probe: &ProbeView, paint: &Paint) -> Vec<String> {
    let ok = match (probe.ok, probe.asked) {
        (1, 1) => "ok".to_owned(),
        (0, 1) => paint.with(Style::new().red(), "failed"),
        (ok, asked) => format!("{ok} of {asked} ok"),
    };
    let mut parts = vec![ok];
    if !probe.values.is_empty() {
        parts.push(format!("value {}", probe.values.join(" ")));
    }
    if !probe.error.is_empty() {
        parts.push(paint.with(Style::new().red(), &probe.error));
    }
    parts
}

fn systems(systems: &[SystemView], paint: &Paint) -> Vec<String> {
    let mut busiest: Vec<&SystemView> = systems.iter().collect();
    if busiest.len() > SYSTEMS {
        busiest.sort_by(|a, b| b.cpu_cores.total_cmp(&a.cpu_cores));
        busiest.truncate(SYSTEMS);
    }
    let mut lines: Vec<String> = busiest
        .iter()
        .flat_map(|system| {
            let cores = show_cores((system.cpu_cores * 100.0).round() / 100.0);
            let rss = show_bytes(system.rss_bytes as f64);
            let used = [format!("cpu {cores}"), format!("rss {rss}")];
            paint.lines(&system.name, "  ", &used)
        })
        .collect();
    if systems.len() > SYSTEMS {
        let more = systems.len() - SYSTEMS;
        lines.extend(paint.lines("", "", &[format!("and {more} systems that use less")]));
    }
    lines
}

fn logs(view: &View) -> Vec<String> {
    let mut parts = vec![format!("{} lines", view.lines)];
    parts.extend(view.lifecycles.iter().map(|lifecycle| {
        let (name, all) = (&lifecycle.name, lifecycle.entities);
        match lifecycle.reached.last() {
            Some((point, count)) => format!("{name}.{point} {count} of {all}"),
            None => format!("{name} {all}"),
        }
    }));
    parts
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
        EventKind::SystemUnready => format!("{name} is not ready yet: {}", event.text),
        EventKind::FaultBegan => format!("{name}: FAULT: {}", event.text),
        EventKind::FaultEnded => format!("{name}: fault over: {}", event.text),
        EventKind::StepStarted => format!("{name}: begins"),
        EventKind::StepEnded => format!("{name}: done in {}", event.text),
        EventKind::StepFailed => format!("{name}: FAILED: {}", event.text),
        EventKind::StepSkipped => format!("{name}: SKIPPED: {}", event.text),
        EventKind::Made => format!("{name}: made {}", event.text),
        EventKind::Said => {
            let first = event.text.lines().next().unwrap_or_default();
            format!("{name}: said {first}")
        }
        EventKind::Signalled => format!("{name}: signal {}", event.text),
        EventKind::Answered => format!("{name}: {}", event.text),
        EventKind::Measured => format!("{name}: measured {}", event.text),
        EventKind::TearDown => "stop the systems".to_owned(),
        EventKind::Noted => format!("noted: {}", event.text),
        EventKind::Interrupted => format!("interrupted by {}", event.text),
    };
    format!("{} {what}", stamp(event.t_s))
}

fn stamp(seconds: f64) -> String {
    format!("[{seconds:7.1} s]")
}

#[cfg(test)]
mod tests;
