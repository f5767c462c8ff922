//! What a poller tells of one thing that it watches, so that the kernel is called only where
//! that changes.

use std::io;

use super::{Interest, Poller, Watched};

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Registration {
    token: u64,
    interest: Option<Interest>,
}

impl Registration {
    /// Of something that is not watched yet, of which the poller will tell with this token.
    pub fn new(token: u64) -> Self {
        let interest = None;
        Self { token, interest }
    }

    /// Of something that [`Poller::add`] was called for.
    pub fn added(token: u64, interest: Interest) -> Self {
        let interest = Some(interest);
        Self { token, interest }
    }

    /// Whether it is watched.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.interest.is_some()
    }

    /// Whether it is told that writing makes progress.
    #[inline]
    pub fn tells_writable(&self) -> bool {
        matches!(self.interest, Some(Interest::Write | Interest::Both))
    }

    /// Has this told from now on of `what`, the same as long as it is watched; `None`: it is
    /// not watched any more.
    ///
    /// # Errors
    /// As [`Poller::add`]; nothing has changed then.
    #[inline]
    pub fn set(
        &mut self,
        what: impl Watched,
        wanted: Option<Interest>,
        poller: &Poller,
    ) -> io::Result<()> {
        match (self.interest, wanted) {
            (before, after) if before == after => return Ok(()),
            (None, Some(interest)) => poller.add(what, self.token, interest)?,
            (Some(_), Some(interest)) => poller.change(what, self.token, interest)?,
            (_, None) => poller.remove(what)?,
        }
        self.interest = wanted;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::socket;

    #[test]
    fn a_registration_says_what_is_told() {
        let (mut poller, other) = (Poller::new().unwrap(), Poller::new().unwrap());
        let (near, _far) = socket::pair().unwrap();
        let mut registration = Registration::new(9);
        let mut told = |registration: &mut Registration, wanted| {
            registration.set(&near, wanted, &poller).unwrap();
            assert_eq!(registration.is_watched(), wanted.is_some());
            poller.wait(Some(Duration::ZERO)).unwrap();
            let event = poller.next_event();
            event.map(|event| (event.token, event.writable))
        };
        assert_eq!(told(&mut registration, None), None);
        for (wanted, writable) in [
            (Interest::Read, None),
            (Interest::Both, Some((9, true))),
            (Interest::Both, Some((9, true))),
            (Interest::Nothing, None),
            (Interest::Write, Some((9, true))),
        ] {
            assert_eq!(told(&mut registration, Some(wanted)), writable);
            assert_eq!(registration.tells_writable(), writable.is_some());
        }
        assert_eq!(told(&mut registration, None), None);
        assert!(!registration.tells_writable());
        // What fails changes nothing.
        let mut added = Registration::added(9, Interest::Read);
        assert!(added.set(&near, Some(Interest::Both), &other).is_err());
        assert!(added.is_watched() && !added.tells_writable());
    }
}
