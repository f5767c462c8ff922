//! One NATS message: who sent it, and a part of what it has to say.

use thiserror::Error;

/// Bytes before the content of a [`Body::Data`], the largest head of any frame.
pub(crate) const HEAD_BYTES: usize = 1 + 16 + 8 + 8;

/// What a coordinator and a worker send each other once they have met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The worker's id, or the coordinator's token. Frames of anyone else are ignored.
    pub(crate) sender: u128,
    /// What it says.
    pub(crate) body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// A part of a message, and thanks for what came from the other side.
    Data {
        /// Position in the stream of parts, from 0.
        number: u64,
        /// Parts taken from the other side so far.
        acknowledged: u64,
        /// Whether this part ends a message.
        last: bool,
        /// The part.
        content: Vec<u8>,
    },
    /// A sign of life without content.
    Beat {
        /// Parts taken from the other side so far.
        acknowledged: u64,
    },
    /// A question for the time. Nanoseconds of the asker's Unix time.
    Ping {
        /// When it was asked.
        asked: i64,
    },
    /// The answer.
    Pong {
        /// As in the ping.
        asked: i64,
        /// When the ping came, by the answerer's clock.
        came: i64,
        /// When the answer left, by the answerer's clock.
        left: i64,
    },
}

/// Bytes that are no frame.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read a frame: {0}")]
pub(crate) struct Malformed(&'static str);

const DATA: u8 = 1;
const LAST_DATA: u8 = 2;
const BEAT: u8 = 3;
const PING: u8 = 4;
const PONG: u8 = 5;

impl Frame {
    /// The bytes of this frame: a kind, the sender, numbers in network order, content.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (kind, numbers, content): (u8, Vec<u64>, &[u8]) = match &self.body {
            Body::Data {
                number,
                acknowledged,
                last,
                content,
            } => {
                let kind = if *last { LAST_DATA } else { DATA };
                (kind, vec![*number, *acknowledged], content)
            }
            Body::Beat { acknowledged } => (BEAT, vec![*acknowledged], &[]),
            Body::Ping { asked } => (PING, vec![asked.cast_unsigned()], &[]),
            Body::Pong { asked, came, left } => {
                let times = [*asked, *came, *left].map(i64::cast_unsigned);
                (PONG, times.to_vec(), &[])
            }
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len());
        bytes.push(kind);
        bytes.extend(self.sender.to_be_bytes());
        for number in numbers {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(content);
        bytes
    }

    /// Reads what [`Frame::to_bytes`] wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        let [kind] = take::<1>(&mut rest)?;
        let sender = u128::from_be_bytes(take(&mut rest)?);
        let mut number = || take(&mut rest).map(u64::from_be_bytes);
        let body = match kind {
            DATA | LAST_DATA => Body::Data {
                number: number()?,
                acknowledged: number()?,
                last: kind == LAST_DATA,
                content: std::mem::take(&mut rest).to_vec(),
            },
            BEAT => Body::Beat {
                acknowledged: number()?,
            },
            PING => Body::Ping {
                asked: number()?.cast_signed(),
            },
            PONG => Body::Pong {
                asked: number()?.cast_signed(),
                came: number()?.cast_signed(),
                left: number()?.cast_signed(),
            },
            _ => return Err(Malformed("its first byte names no kind")),
        };
        match rest.is_empty() {
            true => Ok(Self { sender, body }),
            false => Err(Malformed("it goes on after its end")),
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (head, tail) = rest
        .split_first_chunk::<N>()
        .ok_or(Malformed("it ends too early"))?;
    *rest = tail;
    Ok(*head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bodies() -> impl Strategy<Value = Body> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..100);
        prop_oneof![
            (any::<u64>(), any::<u64>(), any::<bool>(), bytes).prop_map(
                |(number, acknowledged, last, content)| Body::Data {
                    number,
                    acknowledged,
                    last,
                    content,
                }
            ),
            any::<u64>().prop_map(|acknowledged| Body::Beat { acknowledged }),
            any::<i64>().prop_map(|asked| Body::Ping { asked }),
            any::<[i64; 3]>().prop_map(|[asked, came, left]| Body::Pong { asked, came, left }),
        ]
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(sender in any::<u128>(), body in bodies()) {
            let frame = Frame { sender, body };
            prop_assert_eq!(Frame::from_bytes(&frame.to_bytes()), Ok(frame));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(frame) = Frame::from_bytes(&bytes) {
                prop_assert_eq!(frame.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn a_head_is_as_large_as_it_says() {
        let body = Body::Data {
            number: 1,
            acknowledged: 2,
            last: true,
            content: Vec::new(),
        };
        assert_eq!(Frame { sender: 7, body }.to_bytes().len(), HEAD_BYTES);
    }
}
