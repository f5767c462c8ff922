//! What happens when somebody wants the run to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::alarm::{Alarm, Cause};

/// Listens to `SIGINT` and `SIGTERM`. The first raises the alarm, which ends the
/// run in order; a second one says that order takes too long.
#[derive(Debug)]
pub(crate) struct Interrupts {
    again: watch::Receiver<bool>,
    listening: JoinHandle<()>,
}

impl Interrupts {
    pub(crate) fn listen(alarm: Alarm) -> io::Result<Self> {
        let mut int = signal(SignalKind::interrupt())?;
        let mut term = signal(SignalKind::terminate())?;
        let (tell, again) = watch::channel(false);
        let listening = tokio::spawn(net::boxed(async move {
            let mut first = true;
            loop {
                let name = tokio::select! {
                    _ = int.recv() => "SIGINT",
                    _ = term.recv() => "SIGTERM",
                };
                if !std::mem::replace(&mut first, false) {
                    tell.send_replace(true);
                }
                alarm.raise(Cause::Interrupted(name));
            }
        }));
        Ok(Self { again, listening })
    }

    /// Waits for a second signal.
    pub(crate) async fn again(&self) {
        let mut again = self.again.clone();
        if again.wait_for(|again| *again).await.is_err() {
            std::future::pending().await
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.listening.abort();
    }
}
