//! What may be put on a connection, and what is refused.

use std::net::IpAddr;
use std::time::Duration;

/// Longest time that a toxic may hold a byte, a datagram or an end.
pub const LONGEST_DELAY: Duration = Duration::from_secs(3600);
/// Most toxics on one proxy at a time.
pub const MOST_TOXICS: usize = 64;

/// A way of the data through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the client to the server; toxiproxy's "upstream".
    ToServer,
    /// From the server to the client; toxiproxy's "downstream".
    ToClient,
}

impl Direction {
    /// Both, in the order in which they are counted.
    pub const ALL: [Self; 2] = [Self::ToServer, Self::ToClient];

    pub(super) fn index(self) -> usize {
        match self {
            Self::ToServer => 0,
            Self::ToClient => 1,
        }
    }
}

/// What a proxy carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// Whose data a toxic touches.
#[derive(Debug, Clone, PartialEq)]
pub enum Clients {
    /// Everybody's.
    All,
    /// That of clients with one of these addresses. On one machine they tell clients apart only
    /// if these bind different addresses of `127.0.0.0/8`.
    Addresses(Vec<IpAddr>),
    /// That of this share of connections, above 0 and at most 1; over UDP of clients. Each is
    /// drawn by itself, from the seed, the toxic's name and how many came before it.
    Share(f64),
}

/// How a delay varies from one segment or datagram to the next. No delay is ever negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// Evenly between so much less and so much more.
    Uniform(Duration),
    /// Normally, with this deviation, cut at three deviations.
    Normal(Duration),
    /// By an exponential time of this mean on top, cut at ten means: a long tail.
    Exponential(Duration),
}

/// Whose rate a throttle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateOf {
    /// That of all connections together, in each direction: a link.
    Link,
    /// That of every connection by itself: toxiproxy's "bandwidth".
    Connection,
}

/// When a connection is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetWhen {
    /// At once, and every new one as it comes.
    Now,
    /// When so many bytes have passed in the toxic's direction since it was put on.
    AfterBytes(u64),
    /// After an exponential time of this mean, drawn for each connection.
    AtRandom(Duration),
}

/// How a limited connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitEnd {
    /// In order: both sides see the other's end of stream.
    Close,
    /// Both sides see a reset.
    Reset,
}

/// What a toxic does. `docs/faults.md` says by what means, and what it cannot.
#[derive(Debug, Clone, PartialEq)]
pub enum ToxicKind {
    /// Nothing passes. TCP holds, UDP drops.
    Partition,
    /// Everything comes later.
    Delay {
        /// By so much.
        by: Duration,
        /// More or less.
        jitter: Jitter,
    },
    /// A share of TCP segments of [`SEGMENT`](super::SEGMENT) bytes, or of datagrams, is lost.
    /// A lost segment is sent again, so that it, and what comes after it, is late.
    Lose {
        /// Above 0; below 1 for TCP, where nothing would ever pass, and at most 1 for UDP.
        share: f64,
        /// TCP alone: when it is sent again for the first time; twice as long the next time.
        retransmit: Duration,
    },
    /// So much passes in a second.
    Throttle {
        /// At least 1.
        bytes_per_s: u64,
        /// What passes at once after a rest; at least 1.
        burst_bytes: u64,
        /// Whose rate it is.
        of: RateOf,
    },
    /// TCP alone: both sides see the connection reset.
    Reset(ResetWhen),
    /// TCP alone: bytes come in pieces.
    Slice {
        /// Mean size of a piece; at least 1.
        bytes: usize,
        /// How much a piece may be larger or smaller, evenly; below [`bytes`](Self::Slice::bytes).
        vary: usize,
        /// Time between two pieces.
        pause: Duration,
    },
    /// TCP alone: the end of a stream comes later than its last byte.
    CloseSlowly(Duration),
    /// After so many bytes in the toxic's direction since it was put on, TCP connections end
    /// and datagrams are dropped.
    Limit {
        /// So many.
        bytes: u64,
        /// How a TCP connection ends.
        end: LimitEnd,
    },
    /// UDP alone: a share of datagrams comes twice.
    Duplicate {
        /// Above 0, at most 1.
        share: f64,
    },
    /// UDP alone: a share of datagrams comes later than others, which so overtake it.
    Reorder {
        /// Above 0, at most 1.
        share: f64,
        /// By how much they are late.
        by: Duration,
    },
}

/// A toxic: what is done, to which direction, to whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Toxic {
    /// Unlike that of any other toxic of its proxy.
    pub name: String,
    /// What it does.
    pub kind: ToxicKind,
    /// `None`: both directions, each by itself.
    pub direction: Option<Direction>,
    /// Whose data it touches.
    pub clients: Clients,
}

/// Why a toxic is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ToxicError {
    /// The protocol does not know such a thing.
    #[error("put \"{name}\" on a {protocol:?} proxy: {found}; {instead}")]
    Protocol {
        /// The toxic.
        name: String,
        /// What the proxy carries.
        protocol: Protocol,
        /// Why it has no meaning there.
        found: &'static str,
        /// What would do instead.
        instead: &'static str,
    },
    /// A number is out of bounds.
    #[error("put \"{name}\" on a proxy: {found}; expected {expected}")]
    Bounds {
        /// The toxic.
        name: String,
        /// Which number, with its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// There are too many.
    #[error(
        "put \"{name}\" on a proxy: it has {MOST_TOXICS} toxics, and takes no more; take one off first"
    )]
    TooMany {
        /// The toxic.
        name: String,
    },
}

impl Toxic {
    /// Whether a proxy of this protocol can do it.
    ///
    /// # Errors
    /// When it has no meaning there or a number is out of bounds; the error says what would do
    /// instead.
    pub fn check(&self, protocol: Protocol) -> Result<(), ToxicError> {
        self.check_protocol(protocol)?;
        if let Clients::Share(share) = self.clients {
            self.share("the share of clients", share)?;
        }
        match &self.kind {
            ToxicKind::Partition | ToxicKind::Limit { .. } => Ok(()),
            ToxicKind::Delay { by, jitter } => {
                self.time("the delay", *by)?;
                match jitter {
                    Jitter::None => Ok(()),
                    Jitter::Uniform(by) | Jitter::Normal(by) | Jitter::Exponential(by) => {
                        self.time("the jitter", *by)
                    }
                }
            }
            ToxicKind::Lose { share, retransmit } => {
                self.share("the share that is lost", *share)?;
                let found = format!("a retransmission after {retransmit:?}");
                let sent_again = protocol == Protocol::Udp || !retransmit.is_zero();
                self.bounds(
                    sent_again,
                    found,
                    "more than nothing; Linux waits 200 ms at least",
                )?;
                self.time("the time to retransmission", *retransmit)
            }
            ToxicKind::Throttle {
                bytes_per_s,
                burst_bytes,
                ..
            } => {
                let found = format!("{bytes_per_s} bytes a second in bursts of {burst_bytes}");
                let good = *bytes_per_s > 0 && *burst_bytes > 0;
                self.bounds(
                    good,
                    found,
                    "at least 1 of each; a partition lets nothing pass",
                )
            }
            ToxicKind::Reset(ResetWhen::AtRandom(mean)) => {
                self.bounds(
                    !mean.is_zero(),
                    "a mean time of zero".into(),
                    "more; or reset at once",
                )?;
                self.time("the mean time", *mean)
            }
            ToxicKind::Reset(_) => Ok(()),
            ToxicKind::Slice { bytes, vary, pause } => {
                let found = format!("pieces of {bytes} bytes, {vary} more or less");
                self.bounds(vary < bytes, found, "less variation than bytes")?;
                self.time("the pause", *pause)
            }
            ToxicKind::CloseSlowly(by) => self.time("the delay", *by),
            ToxicKind::Duplicate { share } => self.share("the share that comes twice", *share),
            ToxicKind::Reorder { share, by } => {
                self.share("the share that comes late", *share)?;
                self.time("the delay", *by)
            }
        }
    }

    fn check_protocol(&self, protocol: Protocol) -> Result<(), ToxicError> {
        let refused = |found, instead| {
            Err(ToxicError::Protocol {
                name: self.name.clone(),
                protocol,
                found,
                instead,
            })
        };
        let instead_of_a_stream = "use partition, lose or delay";
        match (protocol, &self.kind) {
            (Protocol::Udp, ToxicKind::Reset(_)) => {
                refused("datagrams have no connection to reset", instead_of_a_stream)
            }
            (Protocol::Udp, ToxicKind::Slice { .. }) => {
                refused("a datagram comes whole or not at all", instead_of_a_stream)
            }
            (Protocol::Udp, ToxicKind::CloseSlowly(_)) => {
                refused("datagrams have no end of stream", instead_of_a_stream)
            }
            (Protocol::Tcp, ToxicKind::Duplicate { .. } | ToxicKind::Reorder { .. }) => refused(
                "TCP puts its bytes in order and drops doubles, so nobody would see it",
                "use delay with jitter, or lose",
            ),
            (Protocol::Tcp, ToxicKind::Lose { share, .. }) if *share >= 1.0 => refused(
                "every segment would be lost, again and again",
                "use partition",
            ),
            _ => Ok(()),
        }
    }

    fn share(&self, what: &str, share: f64) -> Result<(), ToxicError> {
        let good = share > 0.0 && share <= 1.0;
        self.bounds(
            good,
            format!("{what} is {share}"),
            "more than 0 and at most 1",
        )
    }

    fn time(&self, what: &str, time: Duration) -> Result<(), ToxicError> {
        self.bounds(
            time <= LONGEST_DELAY,
            format!("{what} is {time:?}"),
            "at most an hour",
        )
    }

    fn bounds(&self, good: bool, found: String, expected: &'static str) -> Result<(), ToxicError> {
        match good {
            true => Ok(()),
            false => Err(ToxicError::Bounds {
                name: self.name.clone(),
                found,
                expected,
            }),
        }
    }
}
