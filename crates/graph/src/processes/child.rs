//! One child: from its start to its end.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use processes::{Leader, Lines, Program, Signal, StartError};
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};

use super::{Announcement, ProcessError, READY_WITHIN};
use crate::topology::ServiceId;

/// Longest line that is passed on; what is longer comes in pieces.
const LONGEST: usize = 64 << 10;

/// What a child does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It has ended, and how.
    Ended(String),
}

/// A child that is ready. Dropping it kills it.
#[derive(Debug)]
pub struct Child {
    /// Its service.
    pub service: ServiceId,
    /// Its number among the service's instances, counted from 0.
    pub replica: u32,
    /// For people.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Where it is.
    pub at: Announcement,
    state: watch::Receiver<State>,
    leader: Leader,
}

impl Drop for Child {
    fn drop(&mut self) {
        self.leader.signal(Signal::SIGKILL);
    }
}

impl Child {
    /// What it does now.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Signals it and all of its group.
    pub(super) fn signal(&self, signal: Signal) {
        self.leader.signal(signal);
    }

    /// Returns once it has ended; how.
    pub(super) async fn ended(&self) -> String {
        let mut state = self.state.clone();
        let ended = state.wait_for(|state| *state != State::Running).await;
        match ended.as_deref() {
            Ok(State::Ended(how)) => how.clone(),
            // Its watcher is gone, and the child with it.
            _ => String::new(),
        }
    }
}

/// A child that is not ready yet.
pub(super) struct Starting {
    child: Child,
    ready: oneshot::Receiver<Announcement>,
}

/// Takes the lines that a child prints.
pub(super) type OnOutput = Arc<dyn Fn(String) + Send + Sync>;

impl Starting {
    /// Starts it, in a process group of its own: what interrupts us at a terminal reaches
    /// us alone, and we stop the children in order.
    pub(super) fn start(
        name: String,
        service: ServiceId,
        replica: u32,
        mut program: Program,
        said: OnOutput,
    ) -> Result<Self, ProcessError> {
        let start = || -> Result<_, StartError> {
            // It says to standard error what we do.
            let errors = std::io::stderr().as_fd().try_clone_to_owned();
            let failed = |cause| StartError::needs("pass standard error on", cause);
            program.standard[2] = Some(errors.map_err(failed)?);
            let output = program.output()?;
            Ok((program.start()?, output))
        };
        let (mut process, mut output) = start().map_err(|found| ProcessError::Start {
            name: name.clone(),
            found,
        })?;
        let (tell_ready, ready) = oneshot::channel();
        let (tell_state, state) = watch::channel(State::Running);
        let leader = process.leader().clone();
        let reading = tokio::spawn(net::boxed(async move {
            let mut tell_ready = Some(tell_ready);
            let mut each = |line: &str| match Announcement::read(line) {
                Some(at) if tell_ready.is_some() => {
                    // Who waits may have given up.
                    let _ = tell_ready.take().map(|tell| tell.send(at));
                }
                _ => said(line.to_owned()),
            };
            let (mut lines, mut buffer) = (Lines::new(LONGEST), [0; 4096]);
            // An error is the end as well: nobody writes any more.
            while let Ok(read @ 1..) = output.read(&mut buffer).await {
                lines.push(&buffer[..read], &mut each);
            }
            lines.end(each);
        }));
        tokio::spawn(net::boxed(async move {
            let how = match process.ended().await {
                Ok(ended) => ended.to_string(),
                Err(error) => format!("its end is not known: {error}"),
            };
            // What it said last comes first. A process that it left behind may hold the
            // pipe open.
            let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
            let _ = tell_state.send(State::Ended(how));
        }));
        let nowhere = ([0, 0, 0, 0], 0).into();
        Ok(Self {
            child: Child {
                service,
                replica,
                name,
                pid: leader.id(),
                at: Announcement {
                    address: nowhere,
                    admin: nowhere,
                },
                state,
                leader,
            },
            ready,
        })
    }

    /// Kills it, and waits until it is gone.
    pub(super) async fn end(self) {
        self.child.signal(Signal::SIGKILL);
        self.child.ended().await;
    }

    /// Waits until it is ready.
    pub(super) async fn ready(mut self) -> Result<Child, ProcessError> {
        match tokio::time::timeout(READY_WITHIN, &mut self.ready).await {
            Ok(Ok(at)) => {
                self.child.at = at;
                Ok(self.child)
            }
            // Its output ended.
            Ok(Err(_)) => Err(ProcessError::Ended {
                how: self.child.ended().await,
                name: self.child.name.clone(),
            }),
            Err(_) => {
                let name = self.child.name.clone();
                self.end().await;
                Err(ProcessError::Late { name })
            }
        }
    }
}
