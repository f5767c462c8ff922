//! A stored run as what comparisons and histories look at.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};
use lab_judgement::{Fingerprint, Record};
use lab_store::{Event, EventKind, Outcome, RunFile, RunFolder, Verdict};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What stands for the commit of a run that was made outside a repository.
const UNKNOWN: &str = "unknown";

/// A run with its plan.
pub(crate) struct Recorded {
    pub(crate) record: Record,
    pub(crate) plan: Value,
}

/// A run that was read.
pub(crate) enum Read {
    /// It was measured.
    Measured(Box<Recorded>),
    /// Its load was INVALID, so that nothing of it says anything: why.
    Invalid(String),
}

/// Reads a run that has ended and was measured.
pub(crate) fn recorded(path: &Path) -> Result<Recorded> {
    match read(path)? {
        Read::Measured(recorded) => Ok(*recorded),
        Read::Invalid(why) => bail!("read {}: {why}", path.display()),
    }
}

/// Reads a run that has ended.
pub(crate) fn read(path: &Path) -> Result<Read> {
    let folder = RunFolder::open(path)?;
    let metrics = folder.metrics()?;
    let shown = path.display();
    let verdict = folder.verdict()?;
    if let (Outcome::Error, Some(reason)) = (verdict.outcome, &verdict.reason) {
        bail!("read {shown}: the run did not come to its end: {reason}");
    }
    if metrics.is_empty() {
        if verdict.outcome == Outcome::Invalid {
            return Ok(Read::Invalid(invalid(&verdict)));
        }
        bail!(
            "read {shown}: it holds no metrics; either nothing that [[expect]] and [[gate]] of its file are \
             about was measured, or an older version of headroom made it: run it again"
        );
    }
    let environment = folder.environment()?;
    let plan: Value = folder.read_json(RunFile::Plan)?;
    let fingerprint = Fingerprint {
        plan_hash: hash(&plan),
        cpu_model: environment.cpu_model,
        cores: environment.cores,
        memory_bytes: environment.memory_bytes,
        kernel: environment.kernel,
        headroom_version: environment.headroom_version,
        versions: environment.versions,
        by_hand: by_hand(&folder.records::<Event>()?),
    };
    let commit = environment.git_commit;
    Ok(Read::Measured(Box::new(Recorded {
        record: Record::new(
            folder.id(),
            commit.unwrap_or_else(|| UNKNOWN.to_owned()),
            environment.started_at_unix_ns,
            fingerprint,
            metrics,
        ),
        plan,
    })))
}

/// Why nothing of a run can be used, as its verdict has it.
fn invalid(verdict: &Verdict) -> String {
    let mut notes = verdict.expectations.iter().map(|one| one.note.as_str());
    let why = verdict.reason.as_deref();
    let why = why.or_else(|| notes.find(|note| !note.is_empty()));
    match why {
        Some(why) => format!("its load was INVALID, so nothing of it counts: {why}"),
        None => "its load was INVALID, so nothing of it counts".to_owned(),
    }
}

/// What somebody did to a run: a changed rate, an early end. A note changes nothing.
fn by_hand(events: &[Event]) -> Vec<String> {
    let each = events.iter().filter_map(|event| match event.kind {
        // What is noted of a load is that its rate was changed.
        EventKind::Noted if !event.name.is_empty() => Some(event.text.clone()),
        EventKind::Interrupted => Some(format!("ended early by {}", event.text)),
        _ => None,
    });
    let mut done: Vec<String> = each.take(BY_HAND_MOST + 1).collect();
    if done.len() > BY_HAND_MOST {
        done.truncate(BY_HAND_MOST);
        done.push("and more".to_owned());
    }
    done
}

/// Most changes by hand that are kept of a run.
const BY_HAND_MOST: usize = 10;

/// SHA-256 of a plan, in hexadecimal: keys of objects are in order, whoever wrote it.
fn hash(plan: &Value) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(plan.to_string()) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Most differences of two plans that are told.
const DIFFERENCES_MOST: usize = 10;

/// Where two plans differ, as `systems.0.args.1: "old" became "new"`; what is left out is counted in
/// the last one.
pub(crate) fn plan_differences(base: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    differ(base, new, "", &mut found);
    let left_out = found.len().saturating_sub(DIFFERENCES_MOST);
    found.truncate(DIFFERENCES_MOST);
    if left_out > 0 {
        found.push(format!("and {left_out} more"));
    }
    found
}

fn differ(base: &Value, new: &Value, at: &str, found: &mut Vec<String>) {
    let below = |key: &str| match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    };
    match (base, new) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let [a, b] = [a, b].map(|it| it.get(key).unwrap_or(&Value::Null));
                differ(a, b, &below(key), found);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for place in 0..a.len().max(b.len()) {
                let [a, b] = [a, b].map(|it| it.get(place).unwrap_or(&Value::Null));
                differ(a, b, &below(&place.to_string()), found);
            }
        }
        (a, b) if a != b => {
            let [a, b] = shown(a, b);
            found.push(format!("{at}: {a} became {b}"));
        }
        _ => {}
    }
}

/// Two values, cut where they are long: around the place from which on they differ.
fn shown(a: &Value, b: &Value) -> [String; 2] {
    /// Longest value that is shown whole, in characters.
    const MOST: usize = 60;
    /// What is shown of that which both begin with.
    const BEFORE: usize = 20;
    let texts = [a, b].map(|value| match value {
        Value::Null => "nothing".to_owned(),
        value => value.to_string(),
    });
    let same = texts[0].chars().zip(texts[1].chars());
    let same = same.take_while(|(a, b)| a == b).count();
    texts.map(|text| {
        let length = text.chars().count();
        if length <= MOST {
            return text;
        }
        let from = same.saturating_sub(BEFORE).min(length - MOST);
        let mut cut: String = text.chars().skip(from).take(MOST).collect();
        if from > 0 {
            cut.insert(0, '…');
        }
        if from + MOST < length {
            cut.push('…');
        }
        cut
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_done_by_hand_is_kept_and_a_note_is_not() {
        let event = |kind, name: &str, text: &str| Event {
            t_s: 1.0,
            kind,
            name: name.into(),
            text: text.into(),
        };
        let events = [
            event(EventKind::StepStarted, "soak", ""),
            event(EventKind::Noted, "", "deployed"),
            event(EventKind::Noted, "users", "users at 80/s from its page"),
            event(EventKind::Interrupted, "web", "its page"),
        ];
        assert_eq!(
            by_hand(&events),
            ["users at 80/s from its page", "ended early by its page"]
        );
        assert!(by_hand(&events[..2]).is_empty());
        let many = vec![events[2].clone(); 30];
        assert_eq!(by_hand(&many).len(), BY_HAND_MOST + 1);
    }

    #[test]
    fn why_a_run_is_invalid_is_what_its_verdict_says() {
        let mut verdict: Verdict = serde_json::from_value(json!({
            "outcome": "invalid", "duration_s": 3.0,
            "expectations": [{
                "that": "users p50 < 1s", "measured": "", "outcome": "invalid",
                "note": "requests were sent late"
            }]
        }))
        .unwrap();
        assert!(invalid(&verdict).ends_with(": requests were sent late"));
        verdict.expectations.clear();
        assert!(invalid(&verdict).ends_with("nothing of it counts"));
    }

    #[test]
    fn plans_differ_where_they_do() {
        let base = json!({"a": [1, {"b": "x"}], "c": 1, "same": [1, 2]});
        let new = json!({"a": [1, {"b": "y"}, 3], "d": 2, "same": [1, 2]});
        assert_eq!(
            plan_differences(&base, &new),
            [
                "a.1.b: \"x\" became \"y\"",
                "a.2: nothing became 3",
                "c: 1 became nothing",
                "d: nothing became 2"
            ]
        );
        assert!(plan_differences(&base, &base).is_empty());
        // Of long texts that differ at their end, the ends are shown.
        let long = |end: &str| json!({"run": format!("{}{end}", "x".repeat(200))});
        let found = plan_differences(&long("--rate 1"), &long("--rate 2 --burst 3"));
        let [before, after] = ["--rate 1", "--rate 2 --burst 3"];
        let told = found[0].split_once(" became ").unwrap();
        assert!(told.0.ends_with(&format!("x{before}\"")), "{told:?}");
        assert!(told.1.ends_with(&format!("x{after}\"")), "{told:?}");
        assert!(told.0.starts_with("run: …x") && told.1.chars().count() < 70);
        let many = |value: u32| Value::from(vec![value; 20]);
        let found = plan_differences(&many(1), &many(2));
        assert_eq!((found.len(), found[10].as_str()), (11, "and 10 more"));
        assert_ne!(hash(&base), hash(&new));
        assert_eq!(hash(&base).len(), 64);
    }
}
