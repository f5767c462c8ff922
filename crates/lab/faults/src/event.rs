//! A fault as an event of a run: plain data that is stored, drawn and read back.

use serde::{Deserialize, Serialize};

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A signal ends a process.
    Kill,
    /// A process is ended and started again.
    Restart,
    /// A process stands still.
    Pause,
    /// A process has a share of a processor.
    Slow,
    /// A process runs out of descriptors, memory or disk.
    Exhaust,
    /// Nothing passes on connections.
    Partition,
    /// What passes comes later.
    Delay,
    /// Part of what passes is lost.
    Lose,
    /// Less passes in a second.
    Throttle,
    /// Connections are reset.
    Reset,
    /// What passes comes in small pieces.
    Slice,
    /// Connections take long to close.
    CloseSlowly,
    /// Connections end after so many bytes.
    Limit,
    /// Datagrams come twice.
    Duplicate,
    /// Datagrams come in another order.
    Reorder,
    /// A program reads another time.
    Clock,
    /// Simulated agents misbehave.
    Agent,
}

/// One turn of a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultEvent {
    /// Its name in the experiment; a fault that recurs has the same in every turn.
    pub name: String,
    /// Which turn of it, from 0.
    pub turn: u64,
    /// What it does.
    pub kind: FaultKind,
    /// The things that it hits, by name; for a connection `from -> to`.
    pub targets: Vec<String>,
    /// By what it does so, in words: "SIGSTOP", "the laboratory's proxy".
    pub means: String,
    /// When it was on, in seconds since the beginning of the run.
    pub begin_s: f64,
    /// When it was no longer on, as [`FaultEvent::begin_s`]; `None`: it still was when this was
    /// written.
    pub end_s: Option<f64>,
    /// What it did.
    pub effect: Effect,
    /// What became of it.
    pub undone: Undone,
}

/// What a fault did, in words and in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// One sentence for people, without the numbers' names.
    pub text: String,
    /// The same for programs.
    pub numbers: Vec<EffectNumber>,
}

/// One number of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectNumber {
    /// What is counted, in `snake_case`, for example `dropped_datagrams`.
    pub name: String,
    /// How much.
    pub value: f64,
    /// `1` for a count, `s`, `B` or `B/s`.
    pub unit: String,
}

/// What became of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Undone {
    /// It was still on when this was written.
    NotYet,
    /// It was taken off.
    Undone,
    /// It has nothing to take off: a signal that ended a process.
    Nothing,
    /// It was left on because the experiment says so.
    Kept,
    /// It could not be taken off.
    Failed {
        /// What was being done and what was found.
        why: String,
    },
}

impl FaultEvent {
    /// How long it was on, in seconds; `None` while it is.
    pub fn lasted_s(&self) -> Option<f64> {
        self.end_s.map(|end| (end - self.begin_s).max(0.0))
    }

    /// Whether it was on at an instant of the run. A turn that took no time was on at that
    /// instant alone.
    pub fn is_on_at(&self, at_s: f64) -> bool {
        at_s >= self.begin_s
            && self
                .end_s
                .is_none_or(|end| at_s < end || end <= self.begin_s && at_s == self.begin_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> FaultEvent {
        FaultEvent {
            name: "cut the database off".into(),
            turn: 2,
            kind: FaultKind::CloseSlowly,
            targets: vec!["api -> db".into()],
            means: "the laboratory's proxy".into(),
            begin_s: 10.0,
            end_s: Some(12.5),
            effect: Effect {
                text: "two connections stood still".into(),
                numbers: vec![EffectNumber {
                    name: "connections".into(),
                    value: 2.0,
                    unit: "1".into(),
                }],
            },
            undone: Undone::Failed {
                why: "the proxy is gone".into(),
            },
        }
    }

    #[test]
    fn is_read_back_as_it_was_written() {
        let text = serde_json::to_string(&event()).unwrap();
        assert_eq!(
            text,
            r#"{"name":"cut the database off","turn":2,"kind":"close_slowly","targets":["api -> db"],"means":"the laboratory's proxy","begin_s":10.0,"end_s":12.5,"effect":{"text":"two connections stood still","numbers":[{"name":"connections","value":2.0,"unit":"1"}]},"undone":{"state":"failed","why":"the proxy is gone"}}"#
        );
        assert_eq!(serde_json::from_str::<FaultEvent>(&text).unwrap(), event());
        let unknown = text.replace("close_slowly", "close_quickly");
        assert!(serde_json::from_str::<FaultEvent>(&unknown).is_err());
    }

    #[test]
    fn is_on_from_its_beginning_until_just_before_its_end() {
        let on = |at| event().is_on_at(at);
        assert_eq!([9.9, 10.0, 12.4, 12.5].map(on), [false, true, true, false]);
        assert_eq!(event().lasted_s(), Some(2.5));
        let open = FaultEvent {
            end_s: None,
            ..event()
        };
        assert!(open.is_on_at(1e9) && open.lasted_s().is_none());
        let moment = FaultEvent {
            end_s: Some(10.0),
            ..event()
        };
        assert!(moment.is_on_at(10.0) && !moment.is_on_at(10.1));
    }
}
