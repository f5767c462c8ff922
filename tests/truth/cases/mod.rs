//! The truths that are planted.

mod disturbed;
mod limits;
mod systems;

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::claims::Claim;
use crate::measured::{self, Measured};
use crate::server::{Diary, Lateness, Plant, Server};

/// A truth, and how the binary is asked for it.
pub(crate) struct Case {
    pub(crate) name: String,
    /// What it needs of the machine.
    pub(crate) needs: Needs,
    /// Plants it in a folder of its own, and holds what is said against it.
    pub(crate) plant: Box<dyn Fn(&Path) -> Found + Sync + Send>,
}

/// What a planting needs of the machine, to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// It may run beside others.
    Nothing,
    /// No other runs beside it.
    Itself,
    /// No other runs beside it, and what it plants may be hidden by work of strangers: a thread
    /// that has no processor to itself is not limited by one. Planted once more, twice at most.
    Calm,
}

/// What the binary said of one planting.
pub(crate) struct Found {
    /// It claims to say something about the target, or was right not to.
    pub(crate) valid: bool,
    pub(crate) claims: Vec<Claim>,
    /// The exit code and the verdict are those that the truth asks for.
    pub(crate) verdict_is_right: bool,
    /// What was printed for people.
    pub(crate) words: String,
}

/// All of them, in the order in which they are planted.
pub(crate) fn all() -> Vec<Case> {
    let targets = targets().into_iter().flat_map(Target::cases);
    let others = disturbed::cases().into_iter().chain(systems::cases());
    targets.chain(others).chain(limits::cases()).collect()
}

/// A target that is loaded at a rate for a while.
#[derive(Clone)]
struct Target {
    name: &'static str,
    plant: Plant,
    per_second: u64,
    seconds: u64,
    /// An objective, in the words that `--expect` and experiments share.
    objectives: &'static [&'static str],
    /// Whether the target meets it.
    meets: bool,
    claims: fn(&Measured, &Diary) -> Vec<Claim>,
}

/// What a server that answers after 5 ms takes besides, before anybody may call it slow.
const SLACK_S: f64 = 0.003;

fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "nothing",
            plant: Plant {
                latency_ms: 5,
                ..Plant::default()
            },
            per_second: 200,
            seconds: 8,
            objectives: &["errors < 1%", "p50 < 100ms"],
            meets: true,
            claims: |told, diary| {
                let late = diary.lateness();
                vec![
                    failures(told, 0.0, 0.0),
                    good(told, 196.0 - slipped(late, 200.0, 8.0), 204.0),
                    median_of_5_ms(told, late),
                    retried(told, 0.0, 0.0),
                    Claim::says("notes", &told.notes(), "[]"),
                ]
            },
        },
        Target {
            name: "killed for 3 s of 12",
            plant: Plant {
                latency_ms: 5,
                dead_ms: Some((2000, 5000)),
                ..Plant::default()
            },
            per_second: 50,
            seconds: 12,
            objectives: &["errors < 1%"],
            meets: false,
            claims: |told, diary| {
                let at = |what| diary.first(what).unwrap_or_default();
                let least = at("starting") - at("killed");
                let most = at("back") - at("killing");
                vec![failures(told, least / 12.0 - 0.015, most / 12.0 + 0.015)]
            },
        },
        Target {
            name: "a pool of 20 that can do 1,000/s",
            plant: Plant {
                latency_ms: 20,
                pool: 20,
                ..Plant::default()
            },
            per_second: 1200,
            seconds: 5,
            objectives: &["p90 < 100ms"],
            meets: false,
            claims: |told, diary| {
                let slipped = slipped(diary.lateness(), 1000.0, 5.0);
                vec![
                    failures(told, 0.0, 0.0),
                    good(told, 900.0 - slipped, 1005.0),
                ]
            },
        },
        Target {
            name: "four freezes of 300 ms",
            plant: Plant {
                latency_ms: 5,
                freezes_ms: vec![(1500, 1800), (3500, 3800), (5500, 5800), (7500, 7800)],
                ..Plant::default()
            },
            per_second: 200,
            seconds: 10,
            objectives: &["p95 < 20ms"],
            meets: false,
            claims: |told, diary| {
                // Of 10 s, 1.2 s stand still: who comes then waits for the end. 1 % wait longer
                // than 300 ms less a quarter of 100 ms.
                let late = diary.lateness();
                vec![
                    failures(told, 0.0, 0.0),
                    latency(told, "p99", 0.255, 0.305 + late.p99_s + SLACK_S),
                    median_of_5_ms(told, late),
                    latency(told, "max", 0.285, 0.31 + late.max_s + SLACK_S),
                ]
            },
        },
        Target {
            name: "a slow start of 3 s of 12",
            plant: Plant {
                latency_ms: 5,
                slow_until_ms: 3000,
                slow_ms: 250,
                ..Plant::default()
            },
            per_second: 100,
            seconds: 12,
            objectives: &["p90 < 100ms"],
            meets: false,
            claims: |told, diary| {
                let late = diary.lateness();
                vec![
                    failures(told, 0.0, 0.0),
                    latency(told, "p90", 0.249, 0.25 + late.p99_s + SLACK_S),
                    median_of_5_ms(told, late),
                ]
            },
        },
        Target {
            name: "answers after the end",
            plant: Plant {
                latency_ms: 2000,
                ..Plant::default()
            },
            per_second: 100,
            seconds: 5,
            objectives: &["rate >= 90/s"],
            meets: false,
            // Of 5 s of requests, those of the first 3 s are answered within the window.
            claims: |told, diary| {
                let slipped = slipped(diary.lateness(), 100.0, 5.0);
                vec![failures(told, 0.0, 0.0), good(told, 56.0 - slipped, 61.0)]
            },
        },
        Target {
            name: "every tenth answer lies about its length",
            plant: Plant {
                latency_ms: 2,
                lie_every: 10,
                ..Plant::default()
            },
            per_second: 100,
            seconds: 6,
            objectives: &["errors < 1%"],
            meets: false,
            claims: |told, _| vec![failures(told, 0.095, 0.105)],
        },
        Target {
            name: "every answer is a redirect",
            plant: Plant {
                latency_ms: 5,
                redirects: true,
                ..Plant::default()
            },
            per_second: 100,
            seconds: 4,
            objectives: &["errors < 1%"],
            meets: true,
            claims: |told, _| {
                vec![
                    failures(told, 0.0, 0.0),
                    Claim::says("notes", &told.notes(), "redirect"),
                ]
            },
        },
        Target {
            name: "every tenth request finds its connection closed",
            plant: Plant {
                latency_ms: 5,
                close_every: 10,
                ..Plant::default()
            },
            per_second: 100,
            seconds: 6,
            objectives: &["errors < 3%"],
            meets: true,
            // Asked again, it is every tenth request once more. On a connection that is new, it fails.
            claims: |told, diary| {
                let slipped = slipped(diary.lateness(), 100.0, 6.0);
                vec![
                    Claim::number(
                        "retried and failed, of those planned",
                        told.number("/requests/retried")
                            .zip(told.number("/requests/failed"))
                            .map(|(retried, failed)| (retried + failed) / 600.0),
                        0.09,
                        0.12,
                    ),
                    good(told, 97.0 - slipped, 102.0),
                ]
            },
        },
        Target {
            name: "answers that take 20 ms longer each second",
            plant: Plant {
                latency_ms: 5,
                grows_ms: 20,
                ..Plant::default()
            },
            per_second: 100,
            seconds: 20,
            objectives: &["p50 < 100ms"],
            meets: false,
            claims: |told, diary| {
                let late = diary.lateness();
                vec![
                    failures(told, 0.0, 0.0),
                    latency(told, "p50", 0.2, 0.21 + late.p50_s + SLACK_S),
                    Claim::number(
                        "growth of the median in a second",
                        told.number("/steady/growth/per_s"),
                        0.018,
                        0.022,
                    ),
                    Claim::says("steady", &told.load["steady"]["state"].to_string(), "grow"),
                ]
            },
        },
    ]
}

fn retried(told: &Measured, least: f64, most: f64) -> Claim {
    Claim::number("retried", told.number("/requests/retried"), least, most)
}

/// The good answers a second that a load of so many a second lacks, because the machine made the last ones
/// so late that they came after its end.
fn slipped(late: Lateness, per_second: f64, seconds: f64) -> f64 {
    per_second * late.max_s / seconds
}

/// The median of a server that answers after 5 ms, however late the machine made it.
fn median_of_5_ms(told: &Measured, late: Lateness) -> Claim {
    latency(told, "p50", 0.0049, 0.005 + late.p50_s + SLACK_S)
}

/// A number of the latencies from the intended send, in seconds.
fn latency(told: &Measured, name: &str, least: f64, most: f64) -> Claim {
    let number = told.number(&format!("/latency/intended/{name}"));
    Claim::number(name, number, least, most)
}

fn failures(told: &Measured, least: f64, most: f64) -> Claim {
    Claim::number("share of failures", told.failed_share(), least, most)
}

fn good(told: &Measured, least: f64, most: f64) -> Claim {
    Claim::number(
        "good answers a second",
        told.number("/rate/good"),
        least,
        most,
    )
}

impl Target {
    /// Asked by `headroom load` and by `headroom run`.
    fn cases(self) -> [Case; 2] {
        let (load, run) = (self.clone(), self);
        [
            Case {
                needs: Needs::Nothing,
                name: format!("load: {}", load.name),
                plant: Box::new(move |folder| load.by_load(folder)),
            },
            Case {
                needs: Needs::Nothing,
                name: format!("run: {}", run.name),
                plant: Box::new(move |folder| run.by_run(folder)),
            },
        ]
    }

    fn by_load(&self, folder: &Path) -> Found {
        let server = Server::start(&self.plant, folder);
        let rate = format!("{}/s", self.per_second);
        let arguments = [
            ["--arrivals", &format!("constant {rate}")],
            ["--duration", &format!("{}s", self.seconds)],
            ["--expect", &self.objectives.join(", ")],
        ];
        let told = measured::load(
            folder,
            &format!("http://{}/", server.address),
            arguments.as_flattened(),
        );
        std::thread::sleep(BOOKS);
        let code = if self.meets { 0 } else { 1 };
        Found {
            valid: told.valid(),
            claims: (self.claims)(&told, &server.diary()),
            verdict_is_right: told.code == code,
            words: format!(
                "exit code {}\n{}{:#}",
                told.code, told.text, told.load["validity"]
            ),
        }
    }

    fn by_run(&self, folder: &Path) -> Found {
        let diary = folder.join("diary.jsonl");
        let file = folder.join("experiment.toml");
        fs::write(&file, self.experiment(folder, &diary)).expect("an experiment");
        let (told, verdict) = measured::run(folder, &file, "ask.web");
        let outcome = if self.meets { "pass" } else { "fail" };
        Found {
            valid: told.valid(),
            claims: (self.claims)(&told, &Diary::read(&diary)),
            verdict_is_right: verdict["outcome"] == outcome,
            words: format!("{}{verdict:#}\n{:#}", told.text, told.load["validity"]),
        }
    }

    fn experiment(&self, folder: &Path, diary: &Path) -> String {
        let Self {
            per_second,
            seconds,
            ..
        } = self;
        let system = system("target", &self.plant, folder, diary);
        let mut text = format!(
            r#"lab = 1
name = "truth"
{system}
[[load]]
name = "web"
http = "GET http://{{target.addr}}/"
arrivals = "constant"
max_connections = 1024

[[step]]
name = "ask"
load = {{ web = "{per_second}/s" }}
hold = "{seconds}s"
"#
        );
        for objective in self.objectives {
            text += &format!("[[expect]]\nthat = \"web {objective}\"\n");
        }
        text
    }
}

/// A server writes down how late it was five times a second.
const BOOKS: Duration = Duration::from_millis(300);

/// A planted server as a system of an experiment.
fn system(name: &str, plant: &Plant, folder: &Path, diary: &Path) -> String {
    let words = plant.arguments("{addr}", diary, folder);
    let program = std::env::current_exe().expect("this program");
    format!(
        r#"
[[system]]
name = "{name}"
run = "'{}' {}"
ready = "tcp"
"#,
        program.display(),
        words.join(" ")
    )
}
