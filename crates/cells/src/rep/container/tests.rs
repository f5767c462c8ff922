use proptest::prelude::*;

use super::*;

fn failed(reason: &str) -> Completion {
    Completion {
        failed: true,
        reason: reason.into(),
        ..Completion::default()
    }
}

/// Feeds events and returns the commands after the last one.
fn feed(container: &mut Container, events: impl IntoIterator<Item = Event>) -> Vec<Command> {
    events
        .into_iter()
        .map(|event| container.on(event))
        .last()
        .unwrap_or_default()
}

fn done() -> Event {
    Event::Answered(Answer::Done)
}

fn refused() -> Event {
    Event::Answered(Answer::Refused)
}

fn running(kind: Kind) -> Container {
    let mut container = Container::new(kind);
    let events = [
        Event::Reserved,
        done(),
        done(),
        Event::Created(Ok(())),
        Event::Started,
    ];
    feed(&mut container, events);
    if kind == Kind::Lrp {
        assert_eq!(feed(&mut container, [done()]), []);
    }
    assert_eq!(container.phase(), &Phase::Running);
    container
}

#[test]
fn a_task_is_claimed_fetched_run_and_completed() {
    let mut task = Container::new(Kind::Task);
    assert_eq!(task.on(Event::Reserved), [Command::Call(Call::StartTask)]);
    assert_eq!(task.on(done()), [Command::Call(Call::Fetch)]);
    assert_eq!(task.on(done()), [Command::Create]);
    assert_eq!(task.on(Event::Created(Ok(()))), [Command::Run]);
    assert_eq!(task.on(Event::Started), []);
    let end = Completion {
        result: "42".into(),
        ..Completion::default()
    };
    let complete = Command::Call(Call::CompleteTask(end.clone()));
    assert_eq!(task.on(Event::Ended(end)), [complete]);
    assert_eq!(task.on(done()), [Command::Delete]);
    assert_eq!(task.phase(), &Phase::Deleted);
}

#[test]
fn an_instance_is_claimed_reported_and_its_crash_told() {
    let mut lrp = running(Kind::Lrp);
    let crash = Command::Call(Call::CrashLrp("APP: Exited with status 1".into()));
    assert_eq!(
        lrp.on(Event::Ended(failed("APP: Exited with status 1"))),
        [crash]
    );
    assert_eq!(
        lrp.on(refused()),
        [Command::Delete],
        "an unknown crash is nobody's business"
    );
}

#[test]
fn a_stopped_instance_is_killed_and_its_record_removed() {
    let mut lrp = running(Kind::Lrp);
    assert_eq!(lrp.on(Event::Stop), [Command::Kill]);
    assert_eq!(lrp.on(Event::Stop), [], "once is enough");
    let end = Event::Ended(Completion::default());
    assert_eq!(lrp.on(end), [Command::Call(Call::RemoveLrp)]);
    assert_eq!(lrp.on(done()), [Command::Delete]);
}

#[test]
fn a_stop_while_it_is_claimed_waits_for_the_answer() {
    let mut lrp = Container::new(Kind::Lrp);
    lrp.on(Event::Reserved);
    assert_eq!(lrp.on(Event::Stop), []);
    assert_eq!(lrp.on(done()), [Command::Call(Call::RemoveLrp)]);
}

#[test]
fn work_of_another_cell_is_dropped() {
    for kind in [Kind::Lrp, Kind::Task] {
        let mut container = Container::new(kind);
        assert_eq!(
            feed(&mut container, [Event::Reserved, refused()]),
            [Command::Delete]
        );
    }
    let mut lrp = Container::new(Kind::Lrp);
    feed(
        &mut lrp,
        [
            Event::Reserved,
            done(),
            done(),
            Event::Created(Ok(())),
            Event::Started,
        ],
    );
    assert_eq!(lrp.on(refused()), [Command::Kill]);
    assert_eq!(
        lrp.on(Event::Ended(Completion::default())),
        [Command::Delete]
    );
}

#[test]
fn a_failed_creation_gives_a_task_back_and_crashes_an_instance() {
    let created = || {
        [
            Event::Reserved,
            done(),
            done(),
            Event::Created(Err("no room".into())),
        ]
    };
    let reason = "no room".to_owned();
    let commands = feed(&mut Container::new(Kind::Task), created());
    assert_eq!(commands, [Command::Call(Call::RejectTask(reason.clone()))]);
    let commands = feed(&mut Container::new(Kind::Lrp), created());
    assert_eq!(commands, [Command::Call(Call::CrashLrp(reason))]);
}

#[test]
fn a_refused_completion_is_told_again_as_failed_once() {
    let mut task = running(Kind::Task);
    task.on(Event::Ended(Completion::default()));
    let again = Command::Call(Call::CompleteTask(failed("invalid state transition")));
    assert_eq!(task.on(refused()), [again]);
    assert_eq!(task.on(refused()), [Command::Delete]);
}

#[test]
fn a_missing_definition_fails_the_task_and_removes_the_instance() {
    let commands = feed(
        &mut Container::new(Kind::Task),
        [Event::Reserved, done(), refused()],
    );
    let complete = Call::CompleteTask(failed("failed to run container"));
    assert_eq!(commands, [Command::Call(complete)]);
    let commands = feed(
        &mut Container::new(Kind::Lrp),
        [Event::Reserved, done(), refused()],
    );
    assert_eq!(commands, [Command::Call(Call::RemoveLrp)]);
}

#[test]
fn failed_calls_are_made_again_after_growing_pauses() {
    let mut lrp = Container::new(Kind::Lrp);
    lrp.on(Event::Reserved);
    for failures in 1..4 {
        let again = lrp.on(Event::Answered(Answer::Failed));
        assert_eq!(again, [Command::RetryAfter(failures)]);
        assert_eq!(lrp.on(Event::Refresh), [], "not before the pause is over");
        assert_eq!(lrp.on(Event::Retry), [Command::Call(Call::ClaimLrp)]);
    }
    assert_eq!(lrp.on(done()), [Command::Call(Call::Fetch)]);
    let again = lrp.on(Event::Answered(Answer::Failed));
    assert_eq!(
        again,
        [Command::RetryAfter(1)],
        "an answer starts the count anew"
    );
}

#[test]
fn a_refresh_reports_a_running_instance_again() {
    let mut lrp = running(Kind::Lrp);
    assert_eq!(lrp.on(Event::Refresh), [Command::Call(Call::StartLrp)]);
    assert_eq!(lrp.on(done()), []);
    lrp.on(Event::Refresh);
    assert_eq!(lrp.on(Event::Refresh), [], "it waits for the answer");
    assert_eq!(
        lrp.on(done()),
        [Command::Call(Call::StartLrp)],
        "and is not lost"
    );
    assert_eq!(running(Kind::Task).on(Event::Refresh), []);
}

#[test]
fn what_may_be_routed_to_is_reported_when_it_changes() {
    let start = || vec![Command::Call(Call::StartLrp)];
    let mut lrp = Container::new(Kind::Lrp);
    let created = Event::Created(Ok(()));
    feed(&mut lrp, [Event::Reserved, done(), done(), created]);
    assert!(lrp.routable(), "what has no check of it is");
    assert_eq!(lrp.on(Event::Routable(false)), []);
    assert_eq!(lrp.on(Event::Started), start());
    assert_eq!(lrp.on(Event::Routable(true)), [], "it waits for the answer");
    assert_eq!(lrp.on(done()), start());
    assert_eq!(lrp.on(done()), []);
    assert_eq!(lrp.on(Event::Routable(true)), [], "that is no news");
    assert_eq!(
        lrp.on(Event::Evacuate),
        [Command::Call(Call::EvacuateRunning)]
    );
    assert_eq!(lrp.on(keep()), []);
    let told = [Command::Call(Call::EvacuateRunning)];
    assert_eq!(lrp.on(Event::Routable(false)), told);
}

fn keep() -> Event {
    Event::Answered(Answer::Keep)
}

#[test]
fn a_running_instance_leaves_an_evacuated_cell_once_it_is_replaced() {
    let mut lrp = running(Kind::Lrp);
    let ask = || vec![Command::Call(Call::EvacuateRunning)];
    assert_eq!(lrp.on(Event::Evacuate), ask());
    assert_eq!(lrp.on(keep()), [], "not before it is time to ask again");
    // The ordinary record is another cell's to take: no report takes it back.
    assert_eq!(lrp.on(Event::Refresh), ask());
    assert_eq!(lrp.on(keep()), []);
    assert_eq!(lrp.on(Event::Evacuate), ask());
    let failed = lrp.on(Event::Answered(Answer::Failed));
    assert_eq!(failed, [Command::RetryAfter(1)]);
    assert_eq!(lrp.on(Event::Retry), ask());
    assert_eq!(lrp.on(done()), [Command::Kill]);
    let end = Event::Ended(Completion::default());
    assert_eq!(lrp.on(end), [Command::Delete], "no record is left");
}

#[test]
fn a_report_under_way_is_answered_before_the_instance_is_handed_over() {
    let mut lrp = Container::new(Kind::Lrp);
    let created = Event::Created(Ok(()));
    feed(&mut lrp, [Event::Reserved, done(), done(), created]);
    assert_eq!(lrp.on(Event::Started), [Command::Call(Call::StartLrp)]);
    assert_eq!(lrp.on(Event::Evacuate), []);
    let hand_over = [Command::Call(Call::EvacuateRunning)];
    assert_eq!(lrp.on(done()), hand_over);
}

#[test]
fn an_instance_that_does_not_run_yet_is_given_back() {
    let back = || vec![Command::Call(Call::EvacuateClaimed)];
    // Being claimed, which has to be answered first.
    let mut lrp = Container::new(Kind::Lrp);
    lrp.on(Event::Reserved);
    assert_eq!(lrp.on(Event::Evacuate), []);
    assert_eq!(lrp.on(done()), back());
    assert_eq!(lrp.on(done()), [Command::Delete]);
    // Being fetched.
    let mut lrp = Container::new(Kind::Lrp);
    feed(&mut lrp, [Event::Reserved, done(), Event::Evacuate]);
    assert_eq!(lrp.on(done()), back(), "nothing is created");
    // Being created: given back at once, and deleted when that is possible.
    let mut lrp = Container::new(Kind::Lrp);
    feed(&mut lrp, [Event::Reserved, done(), done()]);
    assert_eq!(lrp.on(Event::Evacuate), back());
    assert_eq!(lrp.on(done()), []);
    assert_eq!(lrp.on(Event::Created(Ok(()))), [Command::Delete]);
    // Being started.
    let mut lrp = Container::new(Kind::Lrp);
    let created = Event::Created(Ok(()));
    feed(&mut lrp, [Event::Reserved, done(), done(), created]);
    assert_eq!(lrp.on(Event::Evacuate), back());
    assert_eq!(lrp.on(Event::Started), [], "it is not reported any more");
    assert_eq!(lrp.on(refused()), [Command::Kill]);
}

#[test]
fn the_end_of_an_instance_on_an_evacuated_cell_is_told_as_such() {
    let evacuated = || {
        let mut lrp = running(Kind::Lrp);
        feed(&mut lrp, [Event::Evacuate, keep()]);
        lrp
    };
    let mut lrp = evacuated();
    assert_eq!(lrp.on(Event::Stop), [Command::Kill]);
    let end = Event::Ended(Completion::default());
    assert_eq!(lrp.on(end), [Command::Call(Call::EvacuateStopped)]);
    assert_eq!(lrp.on(done()), [Command::Delete]);
    let mut lrp = evacuated();
    let crashed = [Command::Call(Call::EvacuateCrashed("why".into()))];
    assert_eq!(lrp.on(Event::Ended(failed("why"))), crashed);
    assert_eq!(lrp.on(refused()), [Command::Delete]);
}

#[test]
fn a_task_runs_on_while_its_cell_is_evacuated() {
    let mut task = running(Kind::Task);
    assert_eq!(task.on(Event::Evacuate), []);
    let end = Completion::default();
    let complete = [Command::Call(Call::CompleteTask(end.clone()))];
    assert_eq!(task.on(Event::Ended(end)), complete);
    let mut task = Container::new(Kind::Task);
    feed(&mut task, [Event::Reserved, Event::Evacuate]);
    assert_eq!(task.on(done()), [Command::Call(Call::Fetch)]);
}

/// A shell that answers commands at random, and what it saw.
#[derive(Default)]
struct Shell {
    calling: bool,
    /// The call under way asks whether an instance has been replaced.
    asking: bool,
    evacuating: bool,
    handed_over: bool,
    pausing: bool,
    creating: bool,
    processes: u32,
    started: bool,
    kills: u32,
    deleted: bool,
}

impl Shell {
    /// Checks that commands keep the promises of this module.
    fn take(&mut self, commands: Vec<Command>) -> Result<(), TestCaseError> {
        for command in commands {
            prop_assert!(!self.deleted, "{command:?} after the end");
            match command {
                Command::Call(call) => {
                    prop_assert!(!self.calling, "two calls at once");
                    self.calling = true;
                    self.asking = call == Call::EvacuateRunning;
                    self.handed_over |= self.asking;
                    let evacuates = matches!(
                        call,
                        Call::EvacuateClaimed
                            | Call::EvacuateRunning
                            | Call::EvacuateStopped
                            | Call::EvacuateCrashed(_)
                    );
                    prop_assert!(self.evacuating || !evacuates, "{call:?} of no evacuation");
                    let takes = matches!(call, Call::ClaimLrp | Call::StartLrp);
                    prop_assert!(
                        !self.handed_over || !takes,
                        "{call:?} after it was handed over"
                    );
                }
                Command::RetryAfter(_) => {
                    prop_assert!(!self.pausing && !self.calling);
                    self.pausing = true;
                }
                Command::Create => self.creating = true,
                Command::Run => {
                    prop_assert_eq!(self.processes, 0, "two processes");
                    self.processes = 1;
                }
                Command::Kill => {
                    prop_assert_eq!(self.processes, 1, "nothing to kill");
                    self.kills += 1;
                    prop_assert!(self.kills <= 1);
                }
                Command::Delete => {
                    prop_assert_eq!(self.processes, 0, "deleted while its process runs");
                    prop_assert!(!self.creating, "deleted while it is created");
                    self.deleted = true;
                }
            }
        }
        Ok(())
    }

    /// The event that choice number `choice` brings, if it can happen now.
    fn event(&mut self, choice: u8, progress_only: bool) -> Option<Event> {
        match choice % 12 {
            11 => Some(Event::Routable(choice >= 128)),
            9 if !progress_only => {
                self.evacuating = true;
                Some(Event::Evacuate)
            }
            10 if self.calling && self.asking && !progress_only => {
                self.calling = false;
                Some(Event::Answered(Answer::Keep))
            }
            0 if !progress_only => Some(Event::Stop),
            1 if !progress_only => Some(Event::Refresh),
            2 if self.calling && !progress_only => {
                self.calling = false;
                Some(Event::Answered(Answer::Failed))
            }
            3 if self.calling && !progress_only => {
                self.calling = false;
                Some(Event::Answered(Answer::Refused))
            }
            4 if self.calling => {
                self.calling = false;
                Some(Event::Answered(Answer::Done))
            }
            5 if self.pausing => {
                self.pausing = false;
                Some(Event::Retry)
            }
            6 if self.creating => {
                self.creating = false;
                let failed = !progress_only && choice >= 128;
                Some(Event::Created(if failed {
                    Err("broken".into())
                } else {
                    Ok(())
                }))
            }
            7 if self.processes == 1 && !self.started => {
                self.started = true;
                Some(Event::Started)
            }
            8 if self.processes == 1 && (!progress_only || self.kills > 0) => {
                self.processes = 0;
                let failed = choice >= 128;
                Some(Event::Ended(Completion {
                    failed,
                    ..Completion::default()
                }))
            }
            _ => None,
        }
    }
}

proptest! {
    /// Whatever happens, promises are kept; and from any state a stop, answered
    /// calls and an executor that does its work lead to the end.
    #[test]
    fn every_life_keeps_the_rules_and_can_end(
        lrp: bool, choices in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut container = Container::new(if lrp { Kind::Lrp } else { Kind::Task });
        let mut shell = Shell::default();
        shell.take(container.on(Event::Reserved))?;
        for choice in choices {
            if let Some(event) = shell.event(choice, false) {
                shell.take(container.on(event))?;
            }
        }
        shell.take(container.on(Event::Stop))?;
        for step in 0..200_u8 {
            if let Some(event) = shell.event(step, true) {
                shell.take(container.on(event))?;
            }
        }
        prop_assert!(shell.deleted, "{container:?}");
    }
}
