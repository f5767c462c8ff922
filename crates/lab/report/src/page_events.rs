//! What the events of a run tell the page: steps, faults, and what somebody noted.

use lab_store::{Event, EventKind, FaultRecord};
use serde::Serialize;

/// A step on the time axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    /// When everything it asked for had been asked for.
    pub(crate) made_s: Option<f64>,
    pub(crate) failed: bool,
    pub(crate) text: String,
}

/// A step that was left out, as what it builds on was missing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SkippedStep {
    pub(crate) name: String,
    /// When it would have begun.
    pub(crate) t_s: f64,
    /// What was missing, in the words of the terminal.
    pub(crate) why: String,
}

/// Something that a step broke, and what that did.
#[derive(Debug, Serialize)]
pub(crate) struct Fault {
    pub(crate) step: String,
    pub(crate) kind: String,
    pub(crate) targets: Vec<String>,
    pub(crate) start_s: f64,
    pub(crate) end_s: Option<f64>,
    pub(crate) text: String,
    pub(crate) effects: Vec<FaultEffect>,
}

/// What a fault did to one measure, in words.
#[derive(Debug, Serialize)]
pub(crate) struct FaultEffect {
    pub(crate) of: String,
    pub(crate) text: String,
    pub(crate) seen: Option<bool>,
}

impl From<FaultRecord> for Fault {
    fn from(record: FaultRecord) -> Self {
        let effects = record.effects.into_iter();
        Self {
            step: record.step,
            kind: record.kind,
            targets: record.targets,
            start_s: record.begin_s,
            end_s: record.end_s,
            text: record.text,
            effects: effects
                .map(|effect| FaultEffect {
                    of: effect.of,
                    text: effect.text,
                    seen: effect.seen,
                })
                .collect(),
        }
    }
}

/// What somebody noted who watched the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Note {
    pub(crate) t_s: f64,
    pub(crate) text: String,
}

/// Notes, in order.
pub(crate) fn notes(events: &[Event]) -> Vec<Note> {
    let noted = events.iter().filter(|event| event.kind == EventKind::Noted);
    noted
        .map(|event| Note {
            t_s: event.t_s,
            text: event.text.clone(),
        })
        .collect()
}

/// Steps that were left out, in order.
pub(crate) fn skipped(events: &[Event]) -> Vec<SkippedStep> {
    let mut skipped = Vec::new();
    for event in events {
        if event.kind == EventKind::StepSkipped {
            skipped.push(SkippedStep {
                name: event.name.clone(),
                t_s: event.t_s,
                why: event.text.clone(),
            });
        }
    }
    skipped
}

/// Faults as they are known while a run goes on: what they did is found at its end.
pub(crate) fn faults_so_far(events: &[Event]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for event in events {
        match event.kind {
            EventKind::FaultBegan => faults.push(Fault {
                step: event.name.clone(),
                kind: "fault".to_owned(),
                targets: Vec::new(),
                start_s: event.t_s,
                end_s: None,
                text: event.text.clone(),
                effects: Vec::new(),
            }),
            EventKind::FaultEnded => {
                // Of several in one step, the first to begin is taken to end first.
                let mut open = faults.iter_mut();
                let open = open.find(|fault| fault.step == event.name && fault.end_s.is_none());
                if let Some(fault) = open {
                    fault.end_s = Some(event.t_s);
                    fault.text.clone_from(&event.text);
                }
            }
            _ => {}
        }
    }
    faults
}

/// Steps with their starts and ends, and what comes after the last one.
pub(crate) fn steps(events: &[Event], run_end_s: f64) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for event in events {
        if event.kind == EventKind::TearDown {
            // What comes now is drawn, and not judged.
            for step in &mut steps {
                step.end_s = step.end_s.min(event.t_s);
            }
            steps.push(Step {
                name: "teardown".to_owned(),
                start_s: event.t_s,
                end_s: run_end_s.max(event.t_s),
                made_s: None,
                failed: false,
                text: "Systems are being stopped: not judged.".to_owned(),
            });
        } else if event.kind == EventKind::StepStarted {
            steps.push(Step {
                name: event.name.clone(),
                start_s: event.t_s,
                // A step without an end was cut short by the end of the run.
                end_s: run_end_s.max(event.t_s),
                made_s: None,
                failed: false,
                text: String::new(),
            });
        } else if let Some(step) = steps.iter_mut().rev().find(|step| step.name == event.name) {
            match event.kind {
                EventKind::Made => step.made_s = Some(event.t_s),
                EventKind::StepEnded => step.end_s = event.t_s,
                EventKind::StepFailed => {
                    step.end_s = event.t_s;
                    step.failed = true;
                    step.text.clone_from(&event.text);
                }
                _ => {}
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(t_s: f64, kind: EventKind, name: &str, text: &str) -> Event {
        Event {
            t_s,
            kind,
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_step_that_was_left_out_is_told_with_its_reason_and_takes_no_time() {
        let why =
            "50 % of the knee is asked for, and \"search\" is INVALID: the generator was late";
        let events = [
            event(0.5, EventKind::StepStarted, "search", ""),
            event(9.0, EventKind::StepEnded, "search", "8.5 s"),
            event(9.1, EventKind::StepSkipped, "soak", why),
            event(9.2, EventKind::TearDown, "", ""),
        ];
        let left_out = skipped(&events);
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].name, "soak");
        assert_eq!(left_out[0].t_s, 9.1);
        assert_eq!(left_out[0].why, why);
        let drawn = steps(&events, 10.0);
        let names: Vec<&str> = drawn.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["search", "teardown"]);
    }

    #[test]
    fn where_nothing_was_left_out_nothing_is_told() {
        let events = [
            event(0.5, EventKind::StepStarted, "search", ""),
            event(9.0, EventKind::StepFailed, "search", "no answer"),
        ];
        assert_eq!(skipped(&events), []);
    }
}
