//! Truths about what limits a system: experiments/planted, each with one flaw or none, made by
//! the real binary with real processes. The flaw has to be named first, with its number.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Case, Found, Needs};
use crate::claims::Claim;
use crate::measured;

/// What a run has to say first: kind and part of the finding, a word of its sentence, and one
/// of its numbers, by its pointer, with its bounds.
struct Truth {
    kind: &'static str,
    part: &'static str,
    word: &'static str,
    number: (&'static str, f64, f64),
}

/// An experiment, the load that says whether anything disturbed the generator, and its truth.
struct Planted {
    experiment: &'static str,
    few_ports: bool,
    load: Option<&'static str>,
    truth: Option<Truth>,
}

pub(crate) fn cases() -> Vec<Case> {
    let planted = |experiment, load, kind, part, word, number| Planted {
        experiment,
        few_ports: false,
        load,
        truth: Some(Truth {
            kind,
            part,
            word,
            number,
        }),
    };
    let nothing = |experiment, load| Planted {
        experiment,
        few_ports: false,
        load: Some(load),
        truth: None,
    };
    let all = [
        planted(
            "pool",
            Some("too_much.users"),
            "pool",
            "began→ended",
            "a pool of 20",
            ("/evidence/level", 20.0, 20.0),
        ),
        planted(
            "processor",
            Some("too_much.users"),
            "processor",
            "burner",
            "limited by one processor",
            ("/evidence/limit_cores", 1.0, 1.0),
        ),
        planted(
            "queue",
            Some("too_much.users"),
            "queue",
            "in flight",
            "still growing",
            // 500 a second come, and four at a time take 10 ms and what waking up takes.
            ("/evidence/slope_per_s", 70.0, 200.0),
        ),
        planted(
            "descriptors",
            Some("as_usual.users"),
            "exhaustion",
            "descriptors",
            "of 200 descriptors",
            ("/evidence/limit", 200.0, 200.0),
        ),
        planted(
            "connections",
            Some("as_usual.users"),
            "connections",
            "users",
            "a connection of their own",
            ("/effect", 0.95, 1.0),
        ),
        planted(
            "stalls",
            Some("as_usual.users"),
            "stalls",
            "users",
            "stalled every 1 s",
            ("/evidence/period_s", 0.99, 1.01),
        ),
        // Its load is not up to its task, and rightly says so.
        planted(
            "generator",
            None,
            "generator",
            "generator",
            "as the load allows",
            ("/effect", 0.9, 1.0),
        ),
        planted(
            "loop-linear",
            Some("more_and_more.users"),
            "growth",
            "round",
            "grows as n",
            // Rounds wait for a processor, the long ones more often.
            ("/evidence/power", 0.75, 1.25),
        ),
        planted(
            "loop-square",
            Some("more_and_more.users"),
            "growth",
            "round",
            "grows as n²",
            ("/evidence/power", 1.75, 2.25),
        ),
        planted(
            "datagrams",
            None,
            "drops",
            "port",
            "faster than server took them",
            ("/effect", 0.7, 0.85),
        ),
        planted(
            "handshakes",
            Some("as_usual.users"),
            "handshakes",
            "users",
            "started anew",
            // Every eighth request.
            ("/effect", 0.1, 0.15),
        ),
        planted(
            "retries",
            Some("too_much.users"),
            "retries",
            "users",
            "calls that were sent again",
            // Three attempts at most, and hardly any in time.
            ("/evidence/calls_per_request_max", 1.8, 3.1),
        ),
        Planted {
            few_ports: true,
            ..planted(
                "ports",
                None,
                "exhaustion",
                "ports towards 127.0.0.1:",
                "of 400 ports",
                ("/evidence/limit", 400.0, 400.0),
            )
        },
        nothing("nothing", "as_usual.users"),
        // As many connections, where there are ports for thousands.
        nothing("ports", "as_usual.users"),
        nothing("nothing-called", "many.users"),
        nothing("nothing-resumed", "as_usual.users"),
        nothing("nothing-closed", "visitors.visitors"),
    ];
    let few_ports = measured::may_have_few_ports();
    if !few_ports {
        eprintln!(
            "limit: ports is not planted: this machine lets nobody make a network (unshare, ip)"
        );
    }
    all.into_iter()
        .filter(|planted| few_ports || !planted.few_ports)
        .map(|planted| Case {
            needs: match planted.truth {
                Some(_) => Needs::Calm,
                None => Needs::Itself,
            },
            name: match planted.truth {
                Some(_) => format!("limit: {}", planted.experiment),
                None => format!("no limit: {}", planted.experiment),
            },
            plant: Box::new(move |folder| planted.made(folder)),
        })
        .collect()
}

/// An experiment of the project.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../experiments/planted")
        .join(name)
        .with_extension("toml")
}

impl Planted {
    fn made(&self, folder: &Path) -> Found {
        let load = self.load.unwrap_or("none");
        let run = match self.few_ports {
            true => measured::run_with_few_ports,
            false => measured::run,
        };
        let (told, verdict) = run(folder, &file(self.experiment), load);
        let found = verdict["findings"].as_array().cloned();
        let claims = match (&self.truth, found) {
            (_, None) => vec![Claim::says("findings", &verdict.to_string(), "findings")],
            (None, Some(found)) => {
                let names: Vec<&str> = accused(&found)
                    .filter_map(|one| one["text"].as_str())
                    .collect();
                vec![Claim::says("findings", &format!("{names:?}"), "[]")]
            }
            (Some(truth), Some(found)) => truth.claims(&found),
        };
        Found {
            // Of any load, the step before the one in question included.
            valid: verdict["outcome"] != "invalid",
            claims,
            verdict_is_right: verdict["outcome"] == "pass",
            words: format!("{}{verdict:#}", told.text),
        }
    }
}

/// Findings without the machine's: that it had too much else to do accuses nobody.
fn accused(found: &[Value]) -> impl Iterator<Item = &Value> {
    found.iter().filter(|one| one["kind"] != "machine")
}

impl Truth {
    fn claims(&self, found: &[Value]) -> Vec<Claim> {
        let nothing = Value::Null;
        let first = accused(found).next().unwrap_or(&nothing);
        let text = |field: &str| first[field].as_str().unwrap_or_default();
        let (pointer, least, most) = self.number;
        let number = first.pointer(pointer).and_then(Value::as_f64);
        let own = accused(found).filter(|one| one["explained_by"].is_null());
        vec![
            Claim::says("first finding", text("kind"), self.kind),
            Claim::says("part", text("part"), self.part),
            Claim::says("sentence", text("text"), self.word),
            Claim::number(pointer, Some(number.unwrap_or(f64::NAN)), least, most),
            // Nothing else is accused, but for what follows from it.
            Claim::number("causes", Some(own.count() as f64), 1.0, 1.0),
        ]
    }
}
