//! Systems that are looked after while a run goes on: what ends and shall run is started
//! again.

use std::time::Duration;

use lab_experiment::plan::OnExit;
use lab_store::EventKind;
use tokio::time::Instant;

use super::copy::{Copy, Running, left, runs};
use super::systems::{Due, StartError, Starting, Systems, ready};
use super::tail::last_lines;

/// How often a copy is started again after it ended by itself; one that ends more often is
/// not supervised but broken.
const MOST_RESTARTS: u32 = 10_000;
/// Longest wait for what a process has left running, once it is to be started again.
const LEFT_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks whether that has ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);

impl Systems {
    /// Starts a copy again that a fault keeps down, and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, or is not ready in time.
    pub(crate) async fn bring_up(
        &self,
        copy: &Copy,
        starting: &Starting<'_>,
    ) -> Result<(), StartError> {
        self.start_again(copy, starting)?;
        copy.is_held.set(false);
        ready(copy, starting).await.map(drop)
    }

    /// Looks after the copies for as long as it is polled: those that end and shall run are
    /// started again. Returns the one whose end nobody expected.
    ///
    /// # Errors
    /// When a copy cannot be started again.
    pub(crate) async fn supervise(&self, starting: &Starting<'_>) -> Result<Running, StartError> {
        let mut ends = self.ends.1.lock().await;
        loop {
            let next = self.due.borrow().iter().map(|due| due.at).min();
            // Never, where nothing is due.
            let sleep = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = ends.recv() => {
                    // We hold a sender ourselves.
                    let Some((at, number)) = ended else { continue };
                    let copy = &self.started[at.0][at.1];
                    if copy.is_held.get() || number != copy.start() {
                        continue;
                    }
                    let on_exit = starting.systems[copy.system].on_exit;
                    let running = copy.running();
                    if on_exit == OnExit::Error {
                        return Ok(running);
                    }
                    if !copy.is_end_reported.replace(true) {
                        let ended = running.child.exit().await.to_string();
                        starting.recorder.event(EventKind::SystemExited, &copy.name, &ended);
                    }
                    if let OnExit::Restart(after) = on_exit {
                        if number > MOST_RESTARTS {
                            return Err(StartError::Unstable {
                                name: copy.name.clone(),
                                times: MOST_RESTARTS,
                                output: last_lines(&running.child.logs),
                            });
                        }
                        let due = Instant::now() + after;
                        self.due.borrow_mut().push(Due {
                            at: due,
                            end: (at, number),
                            left: left(&running, starting.watcher),
                            until: due + LEFT_WITHIN,
                        });
                    }
                }
                () = sleep => {
                    let now = Instant::now();
                    let due: Vec<Due> = {
                        let mut due = self.due.borrow_mut();
                        due.extract_if(.., |due| due.at <= now).collect()
                    };
                    for due in due {
                        if now < due.until && due.left.iter().any(runs) {
                            let at = now + LOOK_EVERY;
                            self.due.borrow_mut().push(Due { at, ..due });
                            continue;
                        }
                        let (at, number) = due.end;
                        let copy = &self.started[at.0][at.1];
                        // A fault may have taken charge of it meanwhile.
                        if copy.is_held.get() || number != copy.start() {
                            continue;
                        }
                        self.start_again(copy, starting)?;
                        let waited = ready(copy, starting);
                        let recorder = starting.recorder.clone();
                        tokio::spawn(net::boxed(async move {
                            // It is started again when it ends, and told as it is until then.
                            if let Err(StartError::NotReady { name, missing, .. }) = waited.await {
                                recorder.event(EventKind::SystemUnready, &name, &missing);
                            }
                        }));
                    }
                }
            }
        }
    }
}
