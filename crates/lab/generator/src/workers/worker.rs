//! A worker's side of a session, without a clock and without a socket.

use std::time::Duration;

use super::connection::Connection;
use super::driver::{Core, Outgoing};
use super::message::{
    Hello, Order, Packet, WorkerReport, hello_subject, run_subject, worker_subject,
};

/// Time between hellos until one is answered.
const HELLO_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Worker {
    session: String,
    hello: Hello,
    max_payload: usize,
    meeting: Meeting,
}

#[derive(Debug)]
enum Meeting {
    /// No coordinator has answered; when a hello is due.
    Waiting(Duration),
    /// The coordinator did not want this worker.
    Refused(String),
    /// The run's token, and the connection to its coordinator.
    Joined(u64, Box<Connection<Order>>),
}

/// Why no more orders come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    /// The coordinator did not want this worker.
    Refused(String),
    /// The coordinator is gone, or cannot be understood.
    Lost(String),
}

impl Worker {
    pub(crate) fn new(session: String, hello: Hello, max_payload: usize) -> Self {
        Self {
            session,
            hello,
            max_payload,
            meeting: Meeting::Waiting(Duration::ZERO),
        }
    }

    /// Whether a coordinator has taken this worker in.
    pub(crate) fn has_joined(&self) -> bool {
        matches!(self.meeting, Meeting::Joined(..))
    }

    /// The next order, or why there will be none.
    pub(crate) fn receive(&mut self) -> Option<Result<Order, Over>> {
        match &mut self.meeting {
            Meeting::Waiting(_) => None,
            Meeting::Refused(why) => Some(Err(Over::Refused(why.clone()))),
            Meeting::Joined(_, connection) => {
                let order = connection.received().pop_front().map(Ok);
                order.or_else(|| Some(Err(Over::Lost(connection.lost()?.to_owned()))))
            }
        }
    }

    /// Whether a run shall go on. Orders that were not heard yet count.
    pub(crate) fn goes_on(&mut self, run: u64) -> bool {
        let Meeting::Joined(_, connection) = &mut self.meeting else {
            return false;
        };
        let ends = |order: &Order| match order {
            Order::Stop { run: stopped } => *stopped >= run,
            order => *order == Order::Leave,
        };
        connection.lost().is_none() && !connection.received().iter().any(ends)
    }

    /// Tells the coordinator something.
    pub(crate) fn send(&mut self, report: &WorkerReport) {
        if let Meeting::Joined(_, connection) = &mut self.meeting {
            connection.send(report);
        }
    }

    /// Whether the coordinator has taken everything.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.meeting {
            Meeting::Joined(_, connection) => connection.is_idle(),
            _ => true,
        }
    }
}

impl Core for Worker {
    fn subjects(&self) -> Vec<String> {
        vec![worker_subject(&self.session, self.hello.id)]
    }

    fn take(&mut self, packet: Packet, now: Duration) -> Option<Outgoing> {
        match (&mut self.meeting, packet) {
            (Meeting::Waiting(_), Packet::Refused(why)) => self.meeting = Meeting::Refused(why),
            (Meeting::Waiting(_), Packet::Welcome { token, silence_ms }) => {
                let silence = Duration::from_millis(silence_ms);
                let connection = Connection::new(self.hello.id, self.max_payload, silence, now);
                self.meeting = Meeting::Joined(token, Box::new(connection));
            }
            (Meeting::Joined(token, connection), Packet::Request(request))
                if request.sender == *token =>
            {
                let reply = connection.take_request(&request, now)?;
                return Some((run_subject(&self.session, *token), Packet::Reply(reply)));
            }
            (Meeting::Joined(token, connection), Packet::Reply(reply))
                if reply.sender == *token =>
            {
                connection.take_reply(&reply, now);
            }
            _ => {}
        }
        None
    }

    fn tick(&mut self, now: Duration) -> Vec<Outgoing> {
        let outgoing = match &mut self.meeting {
            Meeting::Waiting(due) if *due <= now => {
                *due = now + HELLO_EVERY;
                let hello = Packet::Hello(self.hello.clone());
                Some((hello_subject(&self.session), hello))
            }
            Meeting::Joined(token, connection) => connection.request(now).map(|request| {
                let subject = run_subject(&self.session, *token);
                (subject, Packet::Request(request))
            }),
            Meeting::Waiting(_) | Meeting::Refused(_) => None,
        };
        outgoing.into_iter().collect()
    }
}
