//! A pass over what changed finds what a pass over everything finds.

use std::collections::HashSet;

use diego::models::actual_lrp::Presence;
use diego::models::*;
use proptest::prelude::*;

use super::{Cells, ConvergenceContext, Key};
use crate::bbs::apply::{Command, Evacuate, Evacuation};
use crate::bbs::model::convergence::Action;
use crate::bbs::simulation::core::{AGES, Core, SECOND, full};

const PROCESSES: [&str; 3] = ["p", "q", "r"];
const CELLS: [&str; 3] = ["a", "b", "c"];

/// What happens: to process, index and cell of these numbers.
#[derive(Debug, Clone, Copy)]
enum Step {
    Desire(i32),
    Update(i32),
    RemoveDesired,
    Claim,
    Start,
    Crash,
    Remove,
    Evacuate,
    Task,
    StartTask,
    CompleteTask,
    ResolveTask,
    /// Fresh for so many seconds.
    Domain(u32),
    /// Which cells are present from now on, a bit for each.
    Cells(u8),
    /// So many seconds pass.
    Wait(i64),
    /// A pass, which is acted upon or not.
    Pass(bool),
}

fn steps() -> impl Strategy<Value = Vec<(Step, usize, i32, usize)>> {
    use Step::*;
    let step = prop_oneof![
        (0..4i32).prop_map(Desire),
        (0..4i32).prop_map(Update),
        Just(RemoveDesired),
        Just(Claim),
        Just(Start),
        Just(Start),
        Just(Crash),
        Just(Remove),
        Just(Evacuate),
        Just(Task),
        Just(StartTask),
        Just(CompleteTask),
        Just(ResolveTask),
        (1..90u32).prop_map(Domain),
        (0..8u8).prop_map(Cells),
        (0..60i64).prop_map(Wait),
        (60..2000i64).prop_map(Wait),
        any::<bool>().prop_map(Pass),
        any::<bool>().prop_map(Pass),
    ];
    prop::collection::vec((step, 0..3usize, 0..4i32, 0..3usize), 1..80)
}

struct World {
    core: Core,
    present: u8,
    now: i64,
}

impl World {
    fn new() -> Self {
        Self {
            core: Core::new(),
            present: 7,
            now: 1_000_000 * SECOND,
        }
    }

    fn cells(&self) -> Cells {
        let present = CELLS.iter().enumerate();
        let present = present.filter(|(bit, _)| self.present & (1 << bit) != 0);
        let present: HashSet<String> = present.map(|(_, cell)| (*cell).to_owned()).collect();
        Cells::new(present, false)
    }

    fn step(&mut self, step: Step, process: usize, index: i32, cell: usize) {
        let guid = PROCESSES[process].to_owned();
        let (domain, task_guid) = (format!("d{process}"), format!("t{process}{index}"));
        let cell_id = CELLS[cell].to_owned();
        let key = ActualLrpKey {
            process_guid: guid.clone(),
            index,
            domain: domain.clone(),
        };
        let instance = ActualLrpInstanceKey {
            instance_guid: format!("{guid}-{index}-{cell_id}"),
            cell_id: cell_id.clone(),
        };
        let actual_lrp_key = Some(key.clone());
        let actual_lrp_instance_key = Some(instance.clone());
        let command = match step {
            Step::Desire(instances) => Command::DesireLrp(
                Box::new(DesiredLrp {
                    process_guid: guid,
                    domain,
                    instances,
                    ..DesiredLrp::default()
                }),
                "".into(),
            ),
            Step::Update(instances) => {
                let update = Some(DesiredLrpUpdate {
                    instances: Some(instances),
                    ..DesiredLrpUpdate::default()
                });
                let process_guid = guid;
                let request = UpdateDesiredLrpRequest {
                    process_guid,
                    update,
                };
                Command::UpdateLrp(Box::new(request), "".into())
            }
            Step::RemoveDesired => Command::RemoveLrp(guid, "".into()),
            Step::Claim => Command::Claim(ClaimActualLrpRequest {
                process_guid: guid,
                index,
                actual_lrp_instance_key,
            }),
            Step::Start => Command::Start(Box::new(StartActualLrpRequest {
                actual_lrp_key,
                actual_lrp_instance_key,
                ..StartActualLrpRequest::default()
            })),
            Step::Crash => Command::Crash(CrashActualLrpRequest {
                actual_lrp_key,
                actual_lrp_instance_key,
                error_message: "crash".into(),
            }),
            Step::Remove => Command::Remove(RemoveActualLrpRequest {
                process_guid: guid,
                index,
                actual_lrp_instance_key: None,
            }),
            Step::Evacuate => Command::Evacuate(Box::new(Evacuate {
                key,
                instance,
                what: Evacuation::Running(Box::default()),
            })),
            Step::Task => Command::DesireTask(Box::new(DesireTaskRequest {
                task_guid,
                domain,
                task_definition: Some(TaskDefinition {
                    completion_callback_url: if index % 2 == 0 { "" } else { "http://x" }.into(),
                    ..TaskDefinition::default()
                }),
            })),
            Step::StartTask => Command::StartTask(StartTaskRequest { task_guid, cell_id }),
            Step::CompleteTask => Command::CompleteTask(CompleteTaskRequest {
                task_guid,
                cell_id,
                ..CompleteTaskRequest::default()
            }),
            Step::ResolveTask => Command::ResolveTask(task_guid),
            Step::Domain(ttl) => Command::UpsertDomain(UpsertDomainRequest { domain, ttl }),
            Step::Cells(present) => {
                self.present = present;
                return;
            }
            Step::Wait(seconds) => {
                self.now += seconds * SECOND;
                return;
            }
            Step::Pass(act) => {
                let cells = self.cells();
                // It compares itself with a full pass.
                let keys = self.core.pass(&cells, self.now);
                if act {
                    self.core.converge(keys, cells, self.now);
                }
                return;
            }
        };
        // Many are refused, as they come in any order.
        let _ = self.core.apply(command, self.now);
        self.now += 1;
    }
}

proptest! {
    #[test]
    fn a_pass_over_what_changed_finds_what_a_full_one_finds(steps in steps()) {
        let mut world = World::new();
        for (step, process, index, cell) in steps {
            world.step(step, process, index, cell);
        }
        world.step(Step::Pass(true), 0, 0, 0);
        // What is done is not called for again at the same moment, but for what others must do,
        // and for results that are offered once more before they are forgotten.
        let cells = world.cells();
        let by = ConvergenceContext { cells: &cells, ages: &AGES, now: world.now };
        for (key, actions) in full(&world.core.state, by) {
            let left = |action: &Action| !matches!(
                action,
                Action::Place | Action::PlaceTask | Action::CallBack | Action::Forget
            );
            prop_assert!(!actions.iter().any(left), "{:?}: {:?}", key, actions);
        }
    }
}

/// One process whose instance runs on cell "a".
fn running() -> World {
    let mut world = World::new();
    for step in [Step::Desire(1), Step::Claim, Step::Start, Step::Pass(true)] {
        world.step(step, 0, 0, 0);
    }
    world
}

#[test]
fn a_quiet_pass_looks_at_nothing_and_finds_nothing() {
    let mut world = running();
    world.now += 3600 * SECOND;
    let cells = world.cells();
    assert_eq!(world.core.pass(&cells, world.now), []);
    assert_eq!(world.core.candidates(&cells, world.now), []);
}

#[test]
fn a_lost_cell_brings_up_what_was_on_it_alone() {
    let mut world = running();
    world.step(Step::Desire(1), 1, 0, 1);
    world.step(Step::Start, 1, 0, 1);
    world.step(Step::Pass(true), 0, 0, 0);
    world.present = 0b110;
    let cells = world.cells();
    let expected = [Key::Index("p".into(), 0)];
    assert_eq!(world.core.candidates(&cells, world.now), expected);
    world.core.converge(expected.to_vec(), cells, world.now);
    let slot = world.core.slot("p", 0);
    assert_eq!(slot.suspect.unwrap().presence(), Presence::Suspect);
    assert_eq!(slot.ordinary.unwrap().state, "UNCLAIMED");
}

/// A domain may go stale while a pass is under way, and be fresh again before the next.
#[test]
fn what_waits_for_a_domain_that_went_stale_within_a_pass_is_not_forgotten() {
    let mut world = running();
    world.step(Step::Domain(10), 0, 0, 0);
    // An index that nobody desires.
    world.step(Step::Start, 0, 1, 0);
    let cells = world.cells();
    let begin = world.now;
    world.now += 11 * SECOND;
    assert_eq!(world.core.long_pass(&cells, begin, world.now), []);
    world.step(Step::Domain(60), 0, 0, 0);
    // It compares itself with a full pass.
    let found = world.core.pass(&cells, world.now);
    assert_eq!(found, [Key::Index("p".into(), 1)]);
}

#[test]
fn without_any_cell_nothing_is_lost_unless_told_so() {
    let mut world = running();
    world.present = 0;
    let cells = world.cells();
    assert_eq!(world.core.pass(&cells, world.now), []);
    let cells = Cells::new(HashSet::new(), true);
    assert_eq!(
        world.core.pass(&cells, world.now),
        [Key::Index("p".into(), 0)]
    );
}

#[test]
#[should_panic(expected = "an incremental pass and a full one")]
fn a_change_that_it_is_not_told_of_is_missed() {
    let mut world = running();
    world.step(Step::Remove, 0, 0, 0);
    world.core.forget_touches();
    let cells = world.cells();
    world.core.pass(&cells, world.now);
}
