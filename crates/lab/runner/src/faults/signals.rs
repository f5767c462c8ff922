//! Signals that a step sends, which nobody takes back.

use lab_experiment::plan::Step;
use lab_store::EventKind;

use super::Faults;
use super::copies::signal_of;
use crate::processes::Copy;
use crate::steps::StepError;

impl Faults<'_> {
    /// Sends the signals of a step, each to the first process of every copy that is chosen: it
    /// is the one that an operator would ask to do something.
    pub(crate) async fn send(self, number: usize, step: &Step) -> Result<(), StepError> {
        for (place, sent) in step.signals.iter().enumerate() {
            let drawn = format!("step {number} signal {place}");
            let signal = signal_of(sent.signal);
            let is_free = |copy: &Copy| !copy.is_paused();
            let hit = self.find(&sent.system, &sent.who, (&drawn, 0), is_free);
            let hit = hit
                .await
                .map_err(|why| StepError::Broken(format!("{sent}: {why}")))?;
            let names: Vec<&str> = hit.iter().map(|copy| copy.name.as_str()).collect();
            let text = format!("{} to {}", sent.signal.word(), names.join(", "));
            let starting = self.starting;
            starting
                .recorder
                .event(EventKind::Signalled, &step.name, &text);
            for copy in hit {
                copy.running().child.signal_alone(signal);
            }
        }
        Ok(())
    }
}
