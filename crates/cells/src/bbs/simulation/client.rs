//! Who desires processes and tasks, waits for answers and hears of results.

use std::collections::BTreeMap;

use diego::error::Type;
use diego::models::{
    Action, DesireTaskRequest, DesiredLrp, DesiredLrpUpdate, RunAction, Task, TaskDefinition,
    UpdateDesiredLrpRequest, UpsertDomainRequest,
};
use rand::RngExt as _;

use super::Command;
use super::core::SECOND;
use super::event::Event as Happens;
use super::world::World;

pub(crate) enum Event {
    /// The next thing is asked for.
    Next,
    /// The request reaches the BBS, as the attempt of this number.
    Ask(u64),
    Answered(u64),
    Late(u64),
}

#[derive(Clone, Debug)]
enum Intent {
    /// So many instances of a process; 0: none, and it is not desired any more.
    Process(&'static str, i32),
    Task(String),
    Cancel(String),
    /// Fresh for so many seconds; 0: for ever.
    Domain(u32),
}

/// At most half of the room that there is, so that it suffices with cells down.
const PROCESSES: [&str; 3] = ["p", "q", "r"];
const INSTANCES: i32 = 5;
const TASKS: u64 = 12;

#[derive(Debug, PartialEq)]
struct Outcome {
    created_at: i64,
    failed: bool,
    reason: String,
}

/// How often a result is sent at least before it is forgotten after two minutes: passes are 30 s
/// apart, and each finds what is 30 s old.
const SENT: u32 = 3;

#[derive(Default)]
pub(crate) struct Client {
    intent: Option<Intent>,
    attempt: u64,
    /// What was acknowledged.
    desired: BTreeMap<&'static str, i32>,
    tasks: BTreeMap<String, Option<Outcome>>,
    /// How often a result was sent in vain.
    missed: BTreeMap<String, u32>,
    made: u64,
    /// The last domain was acknowledged.
    done: bool,
}

impl Client {
    pub(crate) fn desired(&self) -> impl Iterator<Item = (&'static str, i32)> {
        self.desired
            .iter()
            .map(|(guid, instances)| (*guid, *instances))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// A result arrives; what it says never changes. A task that was asked for again because
    /// the answer was lost, and was over by then, is another one.
    pub(crate) fn receive_result(&mut self, task: &Task) {
        let says = Outcome {
            created_at: task.created_at,
            failed: task.failed,
            reason: task.failure_reason.clone(),
        };
        let before = self.tasks.entry(task.task_guid.clone()).or_default();
        if let Some(before) = before
            .as_ref()
            .filter(|one| one.created_at == says.created_at)
        {
            assert_eq!(*before, says, "two outcomes of task {}", task.task_guid);
        }
        *before = Some(says);
    }

    /// A result is sent, and does not arrive.
    pub(crate) fn miss(&mut self, task: &Task) {
        *self.missed.entry(task.task_guid.clone()).or_default() += 1;
    }

    /// A task that was acknowledged and whose result was never heard of, although it was not sent in
    /// vain until it was forgotten.
    pub(crate) fn unreported_task(&self) -> Option<String> {
        let given_up = |guid| self.missed.get(guid).is_some_and(|missed| *missed >= SENT);
        let mut unheard = self.tasks.iter().filter(|(_, heard)| heard.is_none());
        let unheard = unheard.find(|(guid, _)| !given_up(*guid));
        unheard.map(|(guid, _)| format!("nobody heard of task {guid}"))
    }
}

fn action() -> Option<Action> {
    Some(Action::from(RunAction::default()))
}

impl World {
    pub(crate) fn happen_client(&mut self, event: Event) {
        match event {
            Event::Next => {
                let intent = self.intent();
                self.client.intent = Some(intent);
                self.ask_bbs();
            }
            Event::Ask(attempt) => {
                if self.bbs.up && self.carry_out() {
                    self.send(Happens::Client(Event::Answered(attempt)));
                }
            }
            Event::Answered(attempt) if attempt == self.client.attempt => {
                let intent = self.client.intent.take();
                self.client.attempt += 1;
                self.acknowledged(intent);
                // Longer than any message of before is on its way.
                let pause = self.rng.random_range(3 * SECOND..9 * SECOND);
                if !self.client.done {
                    self.after(pause, Happens::Client(Event::Next));
                }
            }
            Event::Late(attempt) if attempt == self.client.attempt => self.ask_bbs(),
            Event::Answered(_) | Event::Late(_) => {}
        }
    }

    /// Asks until there is an answer.
    fn ask_bbs(&mut self) {
        self.client.attempt += 1;
        let attempt = self.client.attempt;
        self.send(Happens::Client(Event::Ask(attempt)));
        self.after(5 * SECOND, Happens::Client(Event::Late(attempt)));
    }

    fn intent(&mut self) -> Intent {
        if !self.chaos() {
            return Intent::Domain(0);
        }
        match self.rng.random_range(0..8) {
            0 | 1 => Intent::Domain(self.rng.random_range(5..40)),
            2..5 => {
                let process = PROCESSES[self.rng.random_range(0..PROCESSES.len())];
                Intent::Process(process, self.rng.random_range(0..=INSTANCES))
            }
            5 if self.client.made > 0 => {
                Intent::Cancel(format!("t{}", self.rng.random_range(0..self.client.made)))
            }
            _ if self.client.made < TASKS => {
                self.client.made += 1;
                Intent::Task(format!("t{}", self.client.made - 1))
            }
            _ => Intent::Domain(20),
        }
    }

    /// The request at the BBS. One that was done before, and whose answer was lost, is done.
    fn carry_out(&mut self) -> bool {
        let trace = || "".into();
        let (command, done) = match self.client.intent.clone() {
            None => return false,
            Some(Intent::Domain(ttl)) => {
                let domain = "d".into();
                (
                    Command::UpsertDomain(UpsertDomainRequest { domain, ttl }),
                    None,
                )
            }
            Some(Intent::Process(guid, 0)) => {
                let remove = Command::RemoveLrp(guid.into(), trace());
                (remove, Some(Type::ResourceNotFound))
            }
            Some(Intent::Process(guid, instances)) if self.client.desired.contains_key(guid) => {
                let update = UpdateDesiredLrpRequest {
                    process_guid: guid.into(),
                    update: Some(DesiredLrpUpdate {
                        instances: Some(instances),
                        ..DesiredLrpUpdate::default()
                    }),
                };
                (Command::UpdateLrp(Box::new(update), trace()), None)
            }
            Some(Intent::Process(guid, instances)) => {
                let desired = DesiredLrp {
                    process_guid: guid.into(),
                    domain: "d".into(),
                    root_fs: "preloaded:x".into(),
                    instances,
                    action: action(),
                    ..DesiredLrp::default()
                };
                let desire = Command::DesireLrp(Box::new(desired), trace());
                (desire, Some(Type::ResourceExists))
            }
            Some(Intent::Task(task_guid)) => {
                let task = DesireTaskRequest {
                    task_guid,
                    domain: "d".into(),
                    task_definition: Some(TaskDefinition {
                        root_fs: "preloaded:x".into(),
                        action: action(),
                        completion_callback_url: "http://owner".into(),
                        ..TaskDefinition::default()
                    }),
                };
                let desire = Command::DesireTask(Box::new(task));
                (desire, Some(Type::ResourceExists))
            }
            Some(Intent::Cancel(guid)) => {
                // Any answer will do: it may be over, or on its way to its owner.
                let _ = self.command(Command::CancelTask(guid, trace()));
                return true;
            }
        };
        match self.command(command) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(
                    Some(error.r#type()),
                    done,
                    "{:?}: {error:?}",
                    self.client.intent
                );
                true
            }
        }
    }

    fn acknowledged(&mut self, intent: Option<Intent>) {
        let client = &mut self.client;
        match intent {
            Some(Intent::Process(guid, 0)) => drop(client.desired.remove(guid)),
            Some(Intent::Process(guid, instances)) => {
                client.desired.insert(guid, instances);
            }
            Some(Intent::Task(guid)) => drop(client.tasks.entry(guid).or_default()),
            Some(Intent::Domain(0)) => client.done = true,
            _ => {}
        }
    }
}
