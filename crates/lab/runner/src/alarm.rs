//! What ends a run before its steps do.

use std::sync::Arc;

use tokio::sync::watch;

/// Why a run ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Somebody asked for it, with this signal.
    Interrupted(&'static str),
    /// Something that the run needs broke.
    Broken(String),
}

/// Raised at most once; everyone can hear it. The first cause is kept, as later
/// ones are mostly its consequences.
#[derive(Debug, Clone)]
pub(crate) struct Alarm(Arc<watch::Sender<Option<Cause>>>);

impl Alarm {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::channel(None).0))
    }

    pub(crate) fn raise(&self, cause: Cause) {
        self.0.send_if_modified(|raised| {
            let first = raised.is_none();
            raised.get_or_insert(cause);
            first
        });
    }

    /// Raises it because something broke.
    pub(crate) fn broken(&self, what: impl ToString) {
        self.raise(Cause::Broken(what.to_string()));
    }

    /// The cause, if it was raised.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.0.borrow().clone()
    }

    /// Waits until it is raised.
    pub(crate) async fn raised(&self) -> Cause {
        let mut listener = self.0.subscribe();
        // We hold the sender ourselves, so the wait ends with a cause.
        match listener
            .wait_for(Option::is_some)
            .await
            .map(|cause| cause.clone())
        {
            Ok(Some(cause)) => cause,
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_cause_is_kept_and_heard_at_any_time() {
        let alarm = Alarm::new();
        assert_eq!(alarm.cause(), None);
        let hears = alarm.clone();
        let early = tokio::spawn(net::boxed(async move { hears.raised().await }));
        alarm.broken("first");
        alarm.raise(Cause::Interrupted("SIGINT"));
        assert_eq!(early.await.unwrap(), Cause::Broken("first".into()));
        assert_eq!(alarm.raised().await, Cause::Broken("first".into()));
    }
}
