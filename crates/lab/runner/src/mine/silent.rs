//! Why a lifecycle or a loop found nothing: said aloud, with what was nearest.

use std::collections::BTreeMap;

use lab_experiment::plan::{Lifecycle, Loop};
use lab_lifecycle::{Collector, LoopCollector, Miner, field_names};
use serde_json::Value;
use units::{nearest, show_count};

use crate::processes::shown;

/// Characters shown of a message.
const MESSAGE: usize = 80;
/// Messages shown.
const MESSAGES: usize = 3;

/// What a person should know about lifecycles and loops that matched nothing.
pub(super) fn silent(miner: &Miner, lifecycles: &[Lifecycle], loops: &[Loop]) -> Vec<String> {
    let lines = miner.counts().lines;
    let fields = Fields::of(miner.samples());
    let of_lifecycles = lifecycles
        .iter()
        .zip(miner.lifecycles())
        .flat_map(|(plan, found)| of_lifecycle(plan, found, lines, &fields));
    let of_loops = loops
        .iter()
        .zip(miner.loops())
        .flat_map(|(plan, found)| of_loop(plan, found, lines));
    of_lifecycles.chain(of_loops).collect()
}

fn of_lifecycle(plan: &Lifecycle, found: &Collector, lines: u64, fields: &Fields) -> Vec<String> {
    let name = &plan.name;
    let all = show_count(lines as f64);
    if lines == 0 {
        return vec![format!(
            "lifecycle {name} found nothing: the systems wrote no log line"
        )];
    }
    let snapshot = found.snapshot();
    if snapshot.entities == 0 {
        let matched: u64 = found.matched().iter().sum();
        let why = match (found.keyed(), matched) {
            (0, _) => {
                let keys = plan.key.iter().map(|key| match key.starts_with('/') {
                    true => format!("a message that matches `{key}`"),
                    false => format!("the field `{key}`"),
                });
                let keys: Vec<String> = keys.collect();
                let keys = keys.join(" or ");
                format!("0 of {all} log lines have {keys}{}", fields.near(&plan.key))
            }
            (keyed, 0) => format!(
                "{} of {all} log lines have its key, and none of them matches a point; they say {}",
                show_count(keyed as f64),
                fields.messages(&plan.key)
            ),
            (keyed, matched) => format!(
                "{} of {all} log lines have its key and {} match a point, and none does both; \
                 the key may have another name in these{}",
                show_count(keyed as f64),
                show_count(matched as f64),
                fields.near(&plan.key)
            ),
        };
        return vec![format!("lifecycle {name} found nothing: {why}")];
    }
    let points = plan.points.iter().zip(found.matched());
    points
        .filter(|(_, matched)| **matched == 0)
        .map(|((point, matcher), _)| {
            format!(
                "lifecycle {name}: 0 of {all} log lines match its point {point}, `{}`",
                shown(matcher, MESSAGE)
            )
        })
        .collect()
}

fn of_loop(plan: &Loop, found: &LoopCollector, lines: u64) -> Option<String> {
    let turns = found.turns();
    if !turns.turns.is_empty() || lines == 0 {
        return None;
    }
    let (name, all) = (&plan.name, show_count(lines as f64));
    let none = |what: &str, matcher: &str| {
        format!(
            "loop {name} found nothing: 0 of {all} log lines match its {what}, `{}`",
            shown(matcher, MESSAGE)
        )
    };
    Some(match (turns.unmatched_starts, turns.unmatched_ends) {
        (0, 0) => {
            format!("loop {name} found nothing: 0 of {all} log lines match its start or its end")
        }
        (0, _) => none("start", &plan.start),
        (_, 0) => none("end", &plan.end),
        (starts, ends) => format!(
            "loop {name} found nothing: of {starts} starts and {ends} ends, no start is followed in \
             time by an end of the same process, source and session"
        ),
    })
}

/// Fields that lines have, as far as samples show.
#[derive(Debug, Default)]
struct Fields {
    /// Names, each with the number of sampled lines that have it.
    counts: BTreeMap<String, u64>,
    lines: Vec<(Vec<String>, String)>,
}

impl Fields {
    fn of<'l>(samples: impl Iterator<Item = &'l [u8]>) -> Self {
        let mut fields = Self::default();
        for line in samples {
            let text = String::from_utf8_lossy(line);
            let names = field_names(line);
            let message = match serde_json::from_str::<Value>(&text) {
                Ok(value) => {
                    let said = ["message", "msg", "event"];
                    let said = said.iter().find_map(|name| value.get(name)?.as_str());
                    said.unwrap_or_default().to_owned()
                }
                Err(_) => text.into_owned(),
            };
            for name in &names {
                *fields.counts.entry(name.clone()).or_insert(0) += 1;
            }
            fields.lines.push((names, message));
        }
        fields
    }

    /// The name that is most like one of these, in words.
    fn near(&self, keys: &[String]) -> String {
        let plain = |name: &str| -> String {
            let plain = name.chars().filter(|c| c.is_alphanumeric());
            plain.collect::<String>().to_lowercase()
        };
        let last = |name: &str| plain(name.rsplit('.').next().unwrap_or(name));
        // Of several, the one that most lines have.
        let most = |like: &dyn Fn(&str, &str) -> bool| {
            let names = self.counts.iter().filter(|(name, _)| {
                let last = last(name);
                keys.iter().any(|key| like(&last, &plain(key)))
            });
            names
                .max_by_key(|(_, count)| **count)
                .map(|(name, _)| &**name)
        };
        let names = || self.counts.keys().map(String::as_str);
        let near = most(&|name, key| key.len() >= 2 && name.contains(key))
            .or_else(|| keys.iter().find_map(|key| nearest(key, names())))
            .or_else(|| most(&|name, key| name.len() >= 2 && key.contains(name)));
        match near {
            Some(name) => format!("; the nearest is `{name}`"),
            None if self.counts.is_empty() => String::new(),
            None => {
                let mut most: Vec<(&String, &u64)> = self.counts.iter().collect();
                most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
                let names: Vec<String> = most
                    .iter()
                    .take(8)
                    .map(|(name, _)| format!("`{name}`"))
                    .collect();
                format!("; they have {}", names.join(", "))
            }
        }
    }

    /// Messages of lines that have one of these fields.
    fn messages(&self, keys: &[String]) -> String {
        let mut said: Vec<String> = Vec::new();
        for (names, message) in &self.lines {
            let message = format!("{:?}", shown(message, MESSAGE));
            let has = names.iter().any(|name| {
                keys.iter()
                    .any(|key| name == key || name.ends_with(&format!(".{key}")))
            });
            if has && !said.contains(&message) && said.len() < MESSAGES {
                said.push(message);
            }
        }
        match said.is_empty() {
            true => "other things".to_owned(),
            false => said.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(lines: &[&str], key: &str) -> String {
        let fields = Fields::of(lines.iter().map(|line| line.as_bytes()));
        fields.near(&[key.to_owned()])
    }

    #[test]
    fn the_nearest_name_is_one_that_has_the_other_in_it_or_a_misspelling() {
        let lager = r#"{"timestamp":"1","message":"m","data":{"process-guid":"a","index":1}}"#;
        assert_eq!(near(&[lager], "guid"), "; the nearest is `process-guid`");
        assert_eq!(near(&[lager], "indx"), "; the nearest is `index`");
        assert_eq!(
            near(&["ts=1 msg=m orderId=7"], "order_id"),
            "; the nearest is `orderId`"
        );
        let nested = r#"{"time":1,"msg":"m","order":{"id":"a"}}"#;
        assert_eq!(near(&[nested], "order-id"), "; the nearest is `order.id`");
        assert!(near(&[lager], "zebra").contains("they have `"));
        assert_eq!(near(&[], "guid"), "");
    }
}
