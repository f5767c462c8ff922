//! When a node's agent runs.

use serde::{Deserialize, Serialize};

use super::node::NodeKind;

/// Seconds of a day.
const DAY: u32 = 86_400;

/// How often agents run, and over how long their starts are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(
    default,
    expecting = "{interval: 5, startHour: 0, startMinute: 0, splaytime: 4}"
)]
pub struct AgentRun {
    /// Minutes from one run to the next: below 60, or whole hours up to a day.
    #[serde(rename = "i", alias = "interval")]
    pub interval: u16,
    /// Minute of the hour of the first run.
    #[serde(rename = "sm", alias = "startMinute")]
    pub start_minute: u16,
    /// Hour of the day of the first run.
    #[serde(rename = "sh", alias = "startHour")]
    pub start_hour: u16,
    /// Minutes over which the starts of nodes are spread.
    #[serde(rename = "st", alias = "splaytime")]
    pub splay: u16,
}

impl Default for AgentRun {
    fn default() -> Self {
        Self {
            interval: 5,
            start_minute: 0,
            start_hour: 0,
            // Nodes whose schedule says nothing of it must not all start at once.
            splay: 4,
        }
    }
}

/// An agent run that no schedule can be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Neither minutes below an hour nor whole hours up to a day.
    #[error("agents cannot run every {0} min; expected 1 to 59 min, or whole hours up to 1440 min")]
    Interval(u16),
    /// No time of the day.
    #[error("agents cannot start at {0}:{1:02}; expected 0:00 to 23:59")]
    Start(u16, u16),
    /// More than a day.
    #[error("starts cannot be spread over {0} min; expected at most 1440 min")]
    Splay(u16),
}

impl AgentRun {
    /// Can a schedule be made of it?
    ///
    /// # Errors
    /// Says which number is out of bounds.
    pub fn check(&self) -> Result<(), ScheduleError> {
        let hours = self.interval.is_multiple_of(60) && self.interval <= 1440;
        if self.interval == 0 || !(self.interval < 60 || hours) {
            return Err(ScheduleError::Interval(self.interval));
        }
        if self.start_hour > 23 || self.start_minute > 59 {
            return Err(ScheduleError::Start(self.start_hour, self.start_minute));
        }
        if self.splay > 1440 {
            return Err(ScheduleError::Splay(self.splay));
        }
        Ok(())
    }

    /// What holds on a node of this kind: the root runs every five minutes at once, relays a
    /// minute later spread over two, other nodes as they or all nodes are set.
    pub fn for_node(kind: NodeKind, global: Self, node: Option<Self>) -> Self {
        let server = |start_minute, splay| Self {
            interval: 5,
            start_minute,
            start_hour: 0,
            splay,
        };
        match kind {
            NodeKind::Root => server(0, 0),
            NodeKind::Relay => server(1, 2),
            NodeKind::Node => node.unwrap_or(global),
        }
    }

    /// Seconds after midnight of the node's first run of a day. Of a run by minutes only the
    /// start minute counts, of one by hours the start hour is taken within the interval.
    ///
    /// # Errors
    /// Those of [`AgentRun::check`].
    pub fn first_run(&self, node_id: &str) -> Result<u32, ScheduleError> {
        self.check()?;
        let start = if self.interval < 60 {
            u32::from(self.start_minute % self.interval) * 60
        } else {
            let hour = self.start_hour % (self.interval / 60);
            u32::from(hour) * 3600 + u32::from(self.start_minute) * 60
        };
        let spread = splay_seconds(
            node_id,
            u32::from(self.interval) * 60,
            u32::from(self.splay) * 60,
        );
        Ok((start + spread) % DAY)
    }
}

/// Seconds by which a node starts late: its id's bytes as one big-endian number, modulo the
/// shorter of splay and interval (both in seconds), modulo a day. 0 without an id, splay or
/// interval.
pub fn splay_seconds(node_id: &str, interval: u32, splay: u32) -> u32 {
    let over = u64::from(splay.min(interval));
    if over == 0 {
        return 0;
    }
    let rest = node_id
        .bytes()
        .fold(0, |rest, byte| (rest * 256 + u64::from(byte)) % over);
    // Below u32::MAX: it is less than `over`.
    rest as u32 % DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "365ceac5-a766-48f1-83d9-283f867b2d3d";
    const B: &str = "6daff2fe-0e49-4200-8b8f-0724b59c9dca";

    /// The expected seconds are those of Rudder's own test of its splay.
    #[test]
    fn splay_is_rudders() {
        assert_eq!(splay_seconds(A, 300, 300), 128);
        assert_eq!(splay_seconds(B, 300, 300), 61);
        assert_eq!(splay_seconds(A, 21_600, 21_600), 3 * 3600 + 37 * 60 + 8);
        assert_eq!(splay_seconds(A, 300, 600), 128);
        assert_eq!(splay_seconds(A, 600, 300), 128);
        assert_eq!(splay_seconds("", 300, 300), 0);
        assert_eq!(splay_seconds(A, 300, 0), 0);
        assert_eq!(splay_seconds(A, 0, 300), 0);
    }

    #[test]
    fn the_first_run_of_a_day() {
        let run = |interval, start_hour, start_minute, splay| AgentRun {
            interval,
            start_minute,
            start_hour,
            splay,
        };
        assert_eq!(run(5, 3, 0, 5).first_run(A), Ok(128));
        assert_eq!(run(5, 0, 7, 0).first_run(A), Ok(120));
        assert_eq!(run(360, 8, 30, 0).first_run(A), Ok(2 * 3600 + 30 * 60));
        assert_eq!(run(1440, 23, 59, 5).first_run(A), Ok(86_340 + 128 - 86_400));
        assert_eq!(
            run(90, 0, 0, 0).first_run(A),
            Err(ScheduleError::Interval(90))
        );
        assert_eq!(
            run(0, 0, 0, 0).first_run(A),
            Err(ScheduleError::Interval(0))
        );
        assert_eq!(
            run(5, 24, 0, 0).first_run(A),
            Err(ScheduleError::Start(24, 0))
        );
        assert_eq!(
            run(5, 0, 0, 2000).first_run(A),
            Err(ScheduleError::Splay(2000))
        );
    }

    #[test]
    fn servers_have_a_schedule_of_their_own() {
        let global = AgentRun::default();
        let own = AgentRun {
            interval: 30,
            ..global
        };
        assert_eq!(AgentRun::for_node(NodeKind::Node, global, None), global);
        assert_eq!(AgentRun::for_node(NodeKind::Node, global, Some(own)), own);
        let root = AgentRun::for_node(NodeKind::Root, own, Some(own));
        assert_eq!((root.interval, root.start_minute, root.splay), (5, 0, 0));
        let relay = AgentRun::for_node(NodeKind::Relay, own, Some(own));
        assert_eq!((relay.interval, relay.start_minute, relay.splay), (5, 1, 2));
    }
}
