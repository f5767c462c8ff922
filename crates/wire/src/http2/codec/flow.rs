//! Windows (RFC 9113 sections 5.2 and 6.9).

use super::frames::MOST;
use crate::http2::Reason;

/// What the peer lets this side send. Below zero when the peer has taken back some of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Allowance(i64);

impl Allowance {
    pub(super) fn new(bytes: u32) -> Self {
        Self(i64::from(bytes))
    }

    /// Bytes that may be sent.
    #[inline]
    pub(super) fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Bytes were sent.
    #[inline]
    pub(super) fn spend(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// The peer lets more be sent, or less.
    ///
    /// # Errors
    /// When that would be more than there can be.
    pub(super) fn change(&mut self, by: i64) -> Result<(), Reason> {
        self.0 = self.0.saturating_add(by);
        match self.0 > i64::from(MOST) {
            true => Err(Reason::FLOW_CONTROL_ERROR),
            false => Ok(()),
        }
    }
}

/// What this side lets the peer send.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    left: u32,
    /// Bytes that were used up, and that the peer was not told of yet.
    used: u32,
    size: u32,
}

impl Window {
    pub(super) fn new(size: u32) -> Self {
        Self {
            left: size,
            used: 0,
            size,
        }
    }

    /// Bytes came.
    ///
    /// # Errors
    /// When they are more than was allowed.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Reason> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(Reason::FLOW_CONTROL_ERROR)?;
        Ok(())
    }

    /// Bytes that came were used up. Says how many more the peer is to be told of, once these are
    /// worth a frame.
    #[inline]
    pub(super) fn give_back(&mut self, bytes: usize) -> Option<u32> {
        self.used += u32::try_from(bytes).unwrap_or(0);
        if self.used == 0 || self.used < self.size / 2 {
            return None;
        }
        let used = std::mem::take(&mut self.used);
        self.left += used;
        Some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_can_be_overdrawn_and_not_too_large() {
        let mut allowance = Allowance::new(10);
        allowance.spend(10);
        assert_eq!(allowance.change(-5), Ok(()));
        assert_eq!(allowance.room(), 0);
        assert_eq!(allowance.change(6), Ok(()));
        assert_eq!(allowance.room(), 1);
        assert_eq!(
            allowance.change(i64::from(MOST)),
            Err(Reason::FLOW_CONTROL_ERROR)
        );
    }

    #[test]
    fn a_window_is_opened_again_by_halves() {
        let mut window = Window::new(10);
        assert_eq!(window.take(8), Ok(()));
        assert_eq!(window.take(3), Err(Reason::FLOW_CONTROL_ERROR));
        assert_eq!(window.give_back(4), None);
        assert_eq!(window.give_back(4), Some(8));
        assert_eq!(window.take(10), Ok(()));
    }
}
