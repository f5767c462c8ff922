//! One child: from its start to its end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::sync::{oneshot, watch};

use super::lines::Lines;
use super::{Announcement, ProcessError, READY_WITHIN};
use crate::topology::ServiceId;

/// What a child does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It has ended, and how.
    Ended(String),
}

/// What a child is told. It only becomes more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum Order {
    Run,
    /// To end its requests and then itself.
    Stop,
    Kill,
}

/// A child that is ready. Dropping it kills it.
#[derive(Debug)]
pub struct Member {
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
    order: watch::Sender<Order>,
}

impl Member {
    /// What it does now.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(super) fn order(&self, order: Order) {
        self.order.send_if_modified(|before| {
            let more = *before < order;
            if more {
                *before = order;
            }
            more
        });
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
    name: String,
    service: ServiceId,
    replica: u32,
    pid: u32,
    ready: oneshot::Receiver<Announcement>,
    state: watch::Receiver<State>,
    order: watch::Sender<Order>,
}

/// Takes what a child says.
pub(super) type Said = Arc<dyn Fn(String) + Send + Sync>;

impl Starting {
    /// Starts it, in a process group of its own: what interrupts us at a terminal reaches
    /// us alone, and we stop the children in order.
    pub(super) fn start(
        name: String,
        service: ServiceId,
        replica: u32,
        mut command: Command,
        said: Said,
    ) -> Result<Self, ProcessError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|found| ProcessError::Start {
            name: name.clone(),
            found,
        })?;
        let (tell_ready, ready) = oneshot::channel();
        let (tell_state, state) = watch::channel(State::Running);
        let (order, orders) = watch::channel(Order::Run);
        let pid = child.id().unwrap_or(0);
        let output = child.stdout.take().map(Lines::new);
        let reading = tokio::spawn(net::boxed(async move {
            let mut tell_ready = Some(tell_ready);
            let Some(mut lines) = output else {
                return;
            };
            while let Some(line) = lines.next().await {
                match Announcement::read(&line) {
                    Some(at) if tell_ready.is_some() => {
                        // Who waits may have given up.
                        let _ = tell_ready.take().map(|tell| tell.send(at));
                    }
                    _ => said(line),
                }
            }
        }));
        tokio::spawn(net::boxed(async move {
            let how = watched(child, orders).await;
            // What it said last comes first. A process that it left behind may hold the
            // pipe open.
            let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
            let _ = tell_state.send(State::Ended(how));
        }));
        Ok(Self {
            name,
            service,
            replica,
            pid,
            ready,
            state,
            order,
        })
    }

    /// Kills it, and waits until it is gone.
    pub(super) async fn end(mut self) {
        // Whoever watches it may be gone, and the child with it.
        let _ = self.order.send(Order::Kill);
        let _ = self.state.wait_for(|state| *state != State::Running).await;
    }

    /// Waits until it is ready.
    pub(super) async fn ready(self) -> Result<Member, ProcessError> {
        let at = tokio::time::timeout(READY_WITHIN, self.ready).await;
        let mut member = Member {
            service: self.service,
            replica: self.replica,
            name: self.name,
            pid: self.pid,
            at: Announcement {
                address: ([0, 0, 0, 0], 0).into(),
                admin: ([0, 0, 0, 0], 0).into(),
            },
            state: self.state,
            order: self.order,
        };
        match at {
            Ok(Ok(at)) => {
                member.at = at;
                Ok(member)
            }
            // Its output ended.
            Ok(Err(_)) => Err(ProcessError::Ended {
                how: member.ended().await,
                name: member.name,
            }),
            Err(_) => {
                member.order(Order::Kill);
                member.ended().await;
                Err(ProcessError::Late { name: member.name })
            }
        }
    }
}

/// Passes orders on until it ends; how it did.
async fn watched(mut child: Child, mut orders: watch::Receiver<Order>) -> String {
    loop {
        let wanted = tokio::select! {
            status = child.wait() => return ended(status),
            wanted = orders.changed() => wanted.is_ok(),
        };
        let order = *orders.borrow_and_update();
        match (wanted, order) {
            (true, Order::Run) => {}
            (true, Order::Stop) => signal(&child, Signal::TERM),
            (true, Order::Kill) => signal(&child, Signal::KILL),
            // Nobody can give orders any more, so nobody wants it.
            (false, _) => {
                signal(&child, Signal::KILL);
                return ended(child.wait().await);
            }
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    // Not waited for yet, so the number is still its own.
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

fn ended(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => describe(status),
        Err(error) => format!("its end is not known: {error}"),
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}
