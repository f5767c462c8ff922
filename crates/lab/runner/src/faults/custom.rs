//! Faults of the file's own: what it says how to do, and how to undo.

use std::time::Duration;

use lab_experiment::plan::Act;
use lab_faults::undo::{Entry, Undo};

use super::Faults;

/// How long a command may run.
const WITHIN: Duration = Duration::from_secs(60);
/// How long undoing may take when the run breaks off.
const AT_THE_END: Duration = Duration::from_secs(10);
/// Runs a command as the laboratory does: in its folder, and with the variable by which it is
/// found.
const SHELL: &str = r#"cd "$0" && HEADROOM="$1" exec sh -c "$2""#;

/// A fault that was done.
pub(super) struct Done<'a> {
    undo: &'a Act,
    /// What the guardian undoes; `None`: it concerns only what ends with the run.
    entry: Option<Entry>,
    /// Number of the fault among all.
    number: usize,
}

impl Faults<'_> {
    /// Does what the file says, once what undoes it is on the disk.
    pub(super) async fn act<'p>(
        self,
        does: &Act,
        undo: &'p Act,
        number: usize,
    ) -> Result<Done<'p>, String> {
        let entry = match undo {
            Act::Command(command) if !undo.is_about_the_run() => {
                let starting = self.starting;
                let command = self.calls.kept.render(starting.addresses, command);
                let base = starting.children.base().to_string_lossy().into_owned();
                let own_binary = starting.own_binary.to_string_lossy().into_owned();
                let undo = Undo::Run {
                    program: "sh".to_owned(),
                    arguments: vec!["-c".to_owned(), SHELL.to_owned(), base, own_binary, command],
                };
                Some(self.ledger.borrow_mut().record(undo)?)
            }
            Act::Command(_) | Act::Request(_) => {
                self.open.borrow_mut().push((number, undo.clone()));
                None
            }
        };
        self.make_act(does, &format!("fault-{number}-do")).await?;
        Ok(Done {
            undo,
            entry,
            number,
        })
    }

    /// Undoes it; says how that went.
    pub(super) async fn undo_act(self, done: &Done<'_>) -> Result<String, String> {
        let log = format!("fault-{}-undo", done.number);
        let text = self.make_act(done.undo, &log).await?;
        match done.entry {
            Some(entry) => self.ledger.borrow_mut().settle(entry)?,
            None => self.forget(done),
        }
        Ok(text)
    }

    /// What a fault did is not undone any more.
    pub(super) fn forget(self, done: &Done<'_>) {
        let mut open = self.open.borrow_mut();
        open.retain(|(number, _)| *number != done.number);
    }

    /// Undoes what is about the run and not over while the run ends, as long as its systems are
    /// there; what the guardian undoes is none of it. Gives what could not be undone.
    pub(crate) async fn undo_open(self) -> Vec<String> {
        let open = std::mem::take(&mut *self.open.borrow_mut());
        if open.is_empty() {
            return Vec::new();
        }
        // One that is still being done could not be undone for good.
        self.starting.children.dropped_commands().await;
        let mut wrong = Vec::new();
        for (number, undo) in open.iter().rev() {
            let log = format!("fault-{number}-undo");
            let undone = tokio::time::timeout(AT_THE_END, self.make_act(undo, &log)).await;
            let why = match undone {
                Ok(Ok(_)) => continue,
                Ok(Err(why)) => why,
                Err(_) => format!("{undo} took too long"),
            };
            wrong.push(format!("fault {number} was not undone at the end: {why}"));
        }
        wrong
    }

    async fn make_act(self, act: &Act, log: &str) -> Result<String, String> {
        match act {
            Act::Command(command) => {
                self.calls.run(log, command, (WITHIN, "")).await?;
                Ok("undone by its command".to_owned())
            }
            Act::Request(call) => {
                let answered = self.calls.perform(call).await?;
                Ok(format!("undone, answered {answered}"))
            }
        }
    }
}
