//! What coordinator and workers tell each other: packets, one in each NATS message, and
//! the orders and reports that requests carry. All of it is JSON.

use bytes::Bytes;
use lab_load::{GenerateError, Segment, Span, Workload};
use serde::{Deserialize, Serialize};

/// One NATS message: a line of JSON, and after it the content of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Packet {
    /// A worker offers itself; repeated until it is answered.
    Hello(Hello),
    /// The worker takes part.
    Welcome {
        /// Of this run; part of the subject that the coordinator listens on.
        token: u64,
        /// Milliseconds of silence after which each takes the other for lost.
        silence_ms: u64,
    },
    /// The worker does not take part, and why.
    Refused(String),
    /// A part of a message, or none: a heartbeat.
    Request(Request),
    /// The other side has taken a request.
    Reply(Reply),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Chosen at random; part of the subject that the worker listens on.
    pub(crate) id: u64,
    /// What people call it.
    pub(crate) name: String,
    /// Version of the program.
    pub(crate) version: String,
    /// Processors it may use.
    pub(crate) cores: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The worker's id, or the coordinator's token. Those of anyone else are ignored.
    pub(crate) sender: u64,
    /// Counts the sender's requests, from 0; the same when one is sent again.
    pub(crate) number: u64,
    /// Whether this part ends a message.
    pub(crate) last: bool,
    /// When it was sent this time, in nanoseconds of the sender's Unix time.
    pub(crate) sent_ns: i64,
    /// The part. Not JSON, but what follows it.
    #[serde(skip)]
    pub(crate) content: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// As in a request.
    pub(crate) sender: u64,
    /// Number of the request.
    pub(crate) number: u64,
    /// As in the request.
    pub(crate) sent_ns: i64,
    /// When the request came, in nanoseconds of the replier's Unix time.
    pub(crate) came_ns: i64,
}

/// Most bytes of a request before its content.
pub(crate) const HEAD_BYTES: usize = 160;

impl Packet {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Numbers and texts can always be written.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        if let Self::Request(request) = self {
            bytes.push(b'\n');
            bytes.extend_from_slice(&request.content);
        }
        bytes
    }

    /// Reads what [`Packet::to_bytes`] wrote; `None` for anything else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let head = bytes.iter().position(|byte| *byte == b'\n');
        let mut packet = serde_json::from_slice(&bytes[..head.unwrap_or(bytes.len())]).ok()?;
        match (&mut packet, head) {
            (Self::Request(request), Some(head)) => {
                request.content = Bytes::copy_from_slice(&bytes[head + 1..]);
            }
            (Self::Request(_), None) | (_, Some(_)) => return None,
            _ => {}
        }
        Some(packet)
    }
}

/// From the coordinator to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Get ready for this workload: open the connections.
    Prepare(Box<Workload>),
    /// Run a segment.
    Run {
        /// Number of the run; older ones are over.
        run: u64,
        /// What to run.
        segment: Segment,
        /// When, in nanoseconds of the worker's own Unix time.
        at_unix_ns: i64,
    },
    /// End that run; requests in flight are awaited.
    Stop {
        /// Its number.
        run: u64,
    },
    /// The session is over.
    Leave,
}

/// From a worker to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WorkerReport {
    /// The connections are open.
    Ready,
    /// They could not be opened.
    NotReady(GenerateError),
    /// A span of a run has ended. Spans come in the order of time.
    Span {
        /// Number of the run.
        run: u64,
        /// What was seen.
        span: Box<Span>,
    },
    /// The run is over.
    Done {
        /// Number of the run.
        run: u64,
        /// How it went.
        end: Result<End, GenerateError>,
    },
    /// The worker was told to end by its own user.
    Bye,
}

/// How a worker's part of a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    /// All of it; what the spans before it add up to, and what was not in them yet.
    pub(crate) total: Box<Span>,
    /// Why it ended before its time.
    pub(crate) cut: Option<String>,
    /// How much later than told it began, in nanoseconds.
    pub(crate) late_ns: u64,
    /// What a reader should know of how it was sent.
    pub(crate) notes: Vec<String>,
}

/// The subject on which workers say hello.
pub(crate) fn hello_subject(session: &str) -> String {
    format!("headroom.load.{session}.hello")
}

/// The subject that a worker listens on.
pub(crate) fn worker_subject(session: &str, id: u64) -> String {
    format!("headroom.load.{session}.worker.{id:016x}")
}

/// The subject that the coordinator of a run listens on.
pub(crate) fn run_subject(session: &str, token: u64) -> String {
    format!("headroom.load.{session}.run.{token:016x}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets() -> impl Strategy<Value = Packet> {
        let content = proptest::collection::vec(any::<u8>(), 0..100);
        let hello = (any::<u64>(), any::<String>(), any::<String>(), any::<u32>());
        prop_oneof![
            hello.prop_map(|(id, name, version, cores)| {
                Packet::Hello(Hello {
                    id,
                    name,
                    version,
                    cores,
                })
            }),
            any::<(u64, u64)>()
                .prop_map(|(token, silence_ms)| Packet::Welcome { token, silence_ms }),
            any::<String>().prop_map(Packet::Refused),
            (any::<(u64, u64, bool, i64)>(), content).prop_map(
                |((sender, number, last, sent_ns), content)| {
                    let content = content.into();
                    Packet::Request(Request {
                        sender,
                        number,
                        last,
                        sent_ns,
                        content,
                    })
                }
            ),
            any::<(u64, u64, i64, i64)>().prop_map(|(sender, number, sent_ns, came_ns)| {
                Packet::Reply(Reply {
                    sender,
                    number,
                    sent_ns,
                    came_ns,
                })
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(packet in packets()) {
            prop_assert_eq!(Packet::from_bytes(&packet.to_bytes()), Some(packet));
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            packet in packets(),
            cut in any::<prop::sample::Index>(),
            noise in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let whole = packet.to_bytes();
            let spoiled = [&whole[..cut.index(whole.len())], &noise].concat();
            for bytes in [noise, spoiled] {
                if let Some(packet) = Packet::from_bytes(&bytes) {
                    prop_assert_eq!(Packet::from_bytes(&packet.to_bytes()), Some(packet));
                }
            }
        }
    }

    #[test]
    fn no_head_is_longer_than_it_may_be() {
        let request = Request {
            sender: u64::MAX,
            number: u64::MAX,
            last: false,
            sent_ns: i64::MIN,
            content: Bytes::new(),
        };
        assert!(Packet::Request(request).to_bytes().len() <= HEAD_BYTES);
    }
}
