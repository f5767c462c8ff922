//! The faults of a step: begun, watched, and put right again.

mod background;
mod ballast;
mod copies;
mod custom;
mod exhaust;
mod network;
mod signals;
mod silence;
mod slow;

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use lab_experiment::plan::{Act, Every, Fault, FaultKind, ProcessFault, Step};
use lab_faults::recur::{self, Gaps, RecurError};
use lab_store::{EventKind, FaultRecord};
use measure::Clock;
use tokio::sync::watch;
use tokio::time::Instant;
use units::show_seconds;

use crate::calls::Calls;
use crate::probes::Probes;
use crate::processes::{Starting, Systems};
use crate::progress::OngoingActivity;
use crate::proxies::Proxies;
use crate::steps::StepError;
use crate::undoing::UndoLedger;
pub(crate) use background::Background;
use copies::{Hit, Remedy};
use custom::Done;
use network::Disturbed;
use silence::Silenced;
pub(crate) use slow::Slowed;

/// How far a step has come, as its faults need to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It makes entities, or holds.
    Holds,
    /// Its hold is over.
    Held,
    /// Everything else that it does is done.
    Done,
}

/// Waits until a step has come so far.
async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // Whoever tells lives as long as the step.
    let _ = phase.wait_for(|now| *now >= wanted).await;
}

/// How far turns are planned at a time.
const HORIZON: Duration = Duration::from_secs(24 * 3600);
/// About how many are planned at a time, at least and at most.
const LEAST_TURNS: u32 = 2;
const MOST_TURNS: u32 = 50_000;

/// When the turns of a fault begin and end, from the first moment at which it may. They do not end:
/// how long a step goes on is not known.
fn turns(
    every: Every,
    length: Duration,
    seed: u64,
    drawn: &str,
) -> impl Iterator<Item = Result<Range<Duration>, RecurError>> {
    let (gaps, gap) = match every {
        Every::Fixed(gap) => (Gaps::Fixed(gap), gap),
        Every::Exponential(gap) => (Gaps::Exponential(gap), gap),
    };
    let each = gap + length;
    let window = HORIZON.clamp(each * LEAST_TURNS, each * MOST_TURNS);
    (0_u32..).flat_map(move |number| {
        let begin = window * number;
        let name = match number {
            0 => drawn.to_owned(),
            _ => format!("{drawn} window {number}"),
        };
        match recur::turns(gaps, length, begin..begin + window, seed, &name) {
            Ok(turns) => turns.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        }
    })
}

/// What faults are made with.
#[derive(Clone, Copy)]
pub(crate) struct Faults<'a> {
    pub(crate) calls: Calls<'a>,
    pub(crate) systems: &'a Systems,
    pub(crate) probes: &'a Probes<'a>,
    pub(crate) proxies: &'a Proxies,
    pub(crate) starting: &'a Starting<'a>,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    /// Those that were made so far.
    pub(crate) made: &'a RefCell<Vec<FaultRecord>>,
    /// What undoes those that would outlast the laboratory.
    pub(crate) ledger: &'a RefCell<UndoLedger>,
    /// What undoes those of the file's own that are about the run, by their numbers.
    pub(crate) open: &'a RefCell<Vec<(usize, Act)>>,
    /// What goes on until the run ends.
    pub(crate) slowed: &'a RefCell<Vec<Slowed>>,
}

/// A fault that has begun.
struct ActiveFault {
    at: Instant,
    /// What was done, and to whom.
    text: String,
    /// Its place among those that were made.
    place: usize,
    /// Shows it until it is over, or nobody looks after it any more.
    _shown: OngoingActivity,
}

/// What a fault has broken.
enum InjectedFault<'a> {
    Copies { hit: Hit<'a>, remedy: Remedy },
    Connections(Disturbed<'a>),
    Agents(Silenced<'a>),
    Custom(Done<'a>),
}

impl<'a> Faults<'a> {
    /// Makes the faults of a step beside its work, which tells how far it has come. Returns
    /// when all of them are undone, or shall be kept, or go on in the background.
    ///
    /// # Errors
    /// When one cannot be made or undone. What the others broke is then left to the end of
    /// the run, which stops everything.
    pub(crate) async fn make(
        self,
        number: usize,
        step: &'a Step,
        phase: &watch::Receiver<Phase>,
        background: &Background<'a>,
    ) -> Result<(), StepError> {
        let began = Instant::now();
        let mut here = Vec::new();
        for (place, fault) in step.faults.iter().enumerate() {
            let drawn = format!("step {number} fault {place}");
            let make = |phase| self.one(fault, &step.name, drawn, began, phase);
            match &fault.through {
                None => here.push(make(phase.clone())),
                Some(through) => background.add(through, make),
            }
        }
        // What was added is to be looked at for the first time.
        tokio::task::yield_now().await;
        let held = async {
            reached(&mut phase.clone(), Phase::Held).await;
            background.held();
            tokio::task::yield_now().await;
            Ok(())
        };
        let here = futures_util::future::try_join_all(here);
        futures_util::future::try_join(here, held).await.map(drop)
    }

    async fn one(
        self,
        fault: &'a Fault,
        step: &str,
        drawn: String,
        step_began: Instant,
        mut phase: watch::Receiver<Phase>,
    ) -> Result<(), StepError> {
        match (fault.at, fault.every) {
            (Some(at), _) => tokio::time::sleep_until(step_began + at).await,
            // What recurs does so while the step holds, too.
            (None, Some(_)) => {}
            (None, None) => reached(&mut phase, Phase::Held).await,
        }
        let Some(every) = fault.every else {
            return self.turn(fault, step, (&drawn, 0), &mut phase).await;
        };
        let began = Instant::now();
        let turns = turns(every, fault.length.unwrap_or_default(), self.seed, &drawn);
        for (turn, at) in (0..).zip(turns) {
            let at = at.map_err(|error| StepError::Broken(error.to_string()))?;
            tokio::select! {
                () = tokio::time::sleep_until(began + at.start) => {}
                () = reached(&mut phase, Phase::Done) => break,
            }
            self.turn(fault, step, (&drawn, turn), &mut phase).await?;
        }
        Ok(())
    }

    /// One turn of a fault, from its start until it is undone.
    async fn turn(
        self,
        fault: &'a Fault,
        step: &str,
        drawn: (&str, u64),
        phase: &mut watch::Receiver<Phase>,
    ) -> Result<(), StepError> {
        let (what, begun) = self.begin(fault, step, drawn).await?;
        if fault.keep {
            if let Some(made) = self.made.borrow_mut().get_mut(begun.place) {
                "kept, as the file says".clone_into(&mut made.text);
            }
            match what {
                InjectedFault::Copies {
                    remedy: Remedy::FullSpeed(slowed),
                    ..
                } => self.slowed.borrow_mut().push(slowed),
                InjectedFault::Connections(disturbed) => disturbed.keep(),
                InjectedFault::Custom(done) => self.forget(&done),
                InjectedFault::Copies { .. } | InjectedFault::Agents(_) => {}
            }
            return Ok(());
        }
        let over = async {
            match fault.length {
                Some(length) => tokio::time::sleep_until(begun.at + length).await,
                // A restart lasts as long as it takes.
                None if fault.kind.is_restart() => {}
                None => reached(phase, Phase::Done).await,
            }
        };
        let right = match what {
            InjectedFault::Copies { hit, remedy } => {
                let right = self.put_right(&hit, remedy, over).await;
                hit.release();
                right
            }
            InjectedFault::Connections(disturbed) => {
                over.await;
                disturbed.end()
            }
            InjectedFault::Agents(silenced) => {
                over.await;
                silenced.end().await
            }
            InjectedFault::Custom(done) => {
                over.await;
                self.undo_act(&done).await
            }
        };
        let failed = |why| StepError::Broken(format!("end of \"{}\": {why}", begun.text));
        let text = right.map_err(failed)?;
        self.record_end(step, &begun, &text);
        Ok(())
    }

    async fn begin(
        self,
        fault: &'a Fault,
        step: &str,
        drawn: (&str, u64),
    ) -> Result<(InjectedFault<'a>, ActiveFault), StepError> {
        let word = fault.kind.word();
        let failed = |why: String| StepError::Broken(format!("{}: {why}", fault.kind));
        let mut at = Instant::now();
        let (what, text, place, shown) = match &fault.kind {
            FaultKind::Network {
                does,
                connections,
                part,
            } => {
                let names = connections.iter().map(ToString::to_string).collect();
                let (text, place, shown) = self.record_begin(word, step, names);
                let name = (drawn.0, self.seed);
                let disturbed = Disturbed::begin(self.proxies, connections, (*does, *part), name);
                let what = InjectedFault::Connections(disturbed.map_err(failed)?);
                (what, text, place, shown)
            }
            FaultKind::Process { does, system, who } => {
                let hit = self.find(system, who, drawn, |copy| !copy.is_under_fault.get());
                let hit = Hit::take(hit.await.map_err(failed)?);
                at = Instant::now();
                let (text, place, shown) = self.record_begin(word, step, hit.names());
                let is_timed = fault.length.is_some() || fault.keep;
                let remedy = self.hit(*does, (system, is_timed), &hit).await?;
                // How to undo it is on the disk before it is done, which may take a while: it lasts
                // from when it is.
                if !matches!(does, ProcessFault::Kill(_) | ProcessFault::Restart(_)) {
                    at = Instant::now();
                }
                (InjectedFault::Copies { hit, remedy }, text, place, shown)
            }
            FaultKind::Silence { .. } => {
                let mut silenced = Silenced::prepare(self, &fault.kind, drawn).map_err(failed)?;
                let (text, place, shown) = self.record_begin(word, step, vec![silenced.whom()]);
                silenced.begin(place + 1).await.map_err(failed)?;
                (InjectedFault::Agents(silenced), text, place, shown)
            }
            FaultKind::Custom { name, does, undo } => {
                let (text, place, shown) = self.record_begin(word, step, vec![name.clone()]);
                let done = self.act(does, undo, place + 1).await.map_err(failed)?;
                (InjectedFault::Custom(done), text, place, shown)
            }
        };
        let begun = ActiveFault {
            at,
            text,
            place,
            _shown: shown,
        };
        Ok((what, begun))
    }

    /// Records a fault's start; gives what is done in words, its place among those made, and what
    /// shows it until it is over.
    fn record_begin(
        self,
        word: &str,
        step: &str,
        targets: Vec<String>,
    ) -> (String, usize, OngoingActivity) {
        let text = format!("{word} {}", targets.join(", "));
        let starting = self.starting;
        let shown = starting.status.meanwhile(text.clone());
        starting.recorder.event(EventKind::FaultBegan, step, &text);
        let mut made = self.made.borrow_mut();
        made.push(FaultRecord {
            step: step.to_owned(),
            kind: word.to_owned(),
            targets,
            begin_s: self.clock.now_s(),
            end_s: None,
            text: "not over when the run ended".to_owned(),
            effects: Vec::new(),
        });
        (text, made.len() - 1, shown)
    }

    fn record_end(self, step: &str, begun: &ActiveFault, text: &str) {
        if let Some(made) = self.made.borrow_mut().get_mut(begun.place) {
            made.end_s = Some(self.clock.now_s());
            text.clone_into(&mut made.text);
        }
        let lasted = show_seconds(begun.at.elapsed().as_secs_f64());
        let text = format!("{} for {lasted}: {text}", begun.text);
        let recorder = self.starting.recorder;
        recorder.event(EventKind::FaultEnded, step, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_recurs_for_as_long_as_its_step_goes_on() {
        let hours = |hours: u64| Duration::from_secs(3600 * hours);
        let (second, ms) = (Duration::from_secs(1), Duration::from_millis);
        let begins = |every: Every, length: Duration, most: usize| -> Vec<Duration> {
            let found = turns(every, length, 1, "fault").take(most);
            found.map(|turn| turn.unwrap().start).collect()
        };
        let often = begins(Every::Fixed(ms(10)), ms(1), 120_000);
        assert_eq!((often.len(), often[0]), (120_000, ms(10)));
        let rare = begins(Every::Fixed(hours(48)), second, 3);
        assert_eq!(rare[..2], [hours(48), hours(96) + second]);
        let drawn = begins(Every::Exponential(hours(40)), second, 200);
        for begins in [often, rare, drawn] {
            assert!(begins.windows(2).all(|two| two[0] < two[1]));
        }
    }
}
