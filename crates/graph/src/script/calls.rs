//! Calls: repeats, attempts, pauses between them.

use super::request::{Attempt, Purpose};
use super::turn::{End, Turn};
use super::verdict;
use super::{Command, Outcome, bound, drawing};
use crate::topology::{Call, Join};

impl Turn<'_> {
    /// Makes a call: all its repeats at once.
    pub(super) fn make(&mut self, node: usize, call: &Call) -> Option<End> {
        let step = self.program.nodes[node].step;
        if !self.by_chance(call.probability, step, drawing::CALLED) {
            return Some(End::Nothing);
        }
        let count = self.drawn(&call.count, step, drawing::COUNT, bound::COUNT.into());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bounded by COUNT"
        )]
        let count = count.round() as u32;
        let attempts = u64::from(call.retries.min(bound::RETRIES)) + 1;
        let mut until = self
            .now
            .saturating_add(call.timeout.saturating_mul(attempts));
        if call.wait {
            until = until.min(self.request.deadline);
        }
        for repeat in 0..count {
            let bytes = self.bytes(&call.request, step, drawing::BYTES + repeat);
            let attempt = Attempt {
                node,
                repeat,
                number: 0,
                bytes,
                until,
            };
            self.attempt(call, attempt);
        }
        if !call.wait || count == 0 {
            return Some(End::Nothing);
        }
        self.frame(node).running = count;
        None
    }

    /// Makes one attempt of a call.
    pub(super) fn attempt(&mut self, call: &Call, attempt: Attempt) {
        let step = self.program.nodes[attempt.node].step;
        let turn = attempt.repeat * (bound::RETRIES + 1) + attempt.number;
        let operation_id = self.open(Purpose::Attempt(attempt));
        let deadline = attempt.until.min(self.now.saturating_add(call.timeout));
        let span = self.child(step, turn);
        self.commands.push(Command::Call {
            operation_id,
            edge: call.edge,
            step,
            bytes: attempt.bytes,
            deadline,
            attempt: u8::try_from(attempt.number).unwrap_or(u8::MAX),
            span,
        });
    }

    /// Whether a failed attempt is followed by another one, which is then under way.
    fn again(&mut self, call: &Call, failed: Attempt, outcome: Outcome) -> bool {
        let number = failed.number + 1;
        let at = self.now.saturating_add(call.backoff);
        let may = number <= call.retries.min(bound::RETRIES) && at < failed.until;
        if !may || !verdict::may_improve(outcome) {
            return false;
        }
        let attempt = Attempt { number, ..failed };
        if call.backoff == 0 {
            self.attempt(call, attempt);
        } else {
            self.wait(Purpose::Pause(attempt), call.backoff, None);
        }
        true
    }

    pub(super) fn land_attempt(&mut self, attempt: Attempt, outcome: Outcome) {
        let Some(call) = self.call(attempt.node) else {
            return;
        };
        let end = match verdict::of_call(call.edge, outcome) {
            Some(_) if self.again(call, attempt, outcome) => return,
            Some(failing) => End::Failed(failing),
            None => End::Well,
        };
        self.frame(attempt.node).count(end);
        if let Some(end) = self.joined(attempt.node, Join::All) {
            self.ended(attempt.node, end);
        }
    }

    /// A call that nobody waits for: another attempt at most.
    pub(super) fn land_unawaited(&mut self, call: &Call, purpose: Purpose, outcome: Outcome) {
        match purpose {
            Purpose::Attempt(attempt) if verdict::of_call(call.edge, outcome).is_some() => {
                self.again(call, attempt, outcome);
            }
            Purpose::Pause(attempt) if self.now < attempt.until => self.attempt(call, attempt),
            _ => {}
        }
    }
}
