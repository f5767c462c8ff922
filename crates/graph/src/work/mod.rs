//! Work that services do, calibrated to this machine.

use crate::Nanos;

/// How a piece of work went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Time that passed.
    pub wall: Nanos,
    /// Processor time of the thread and of programs it waited for. The difference to
    /// `wall` of work that only computes is what others took.
    pub cpu: Nanos,
}
