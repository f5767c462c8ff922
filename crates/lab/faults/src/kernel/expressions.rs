//! Expressions of nftables, from `linux/netfilter/nf_tables.h`. A rule is a list of them: each puts
//! something into a register, or goes on only if a register is as it should be, or does something.

use super::message::Attributes;
use crate::proxy::Protocol;

/// Registers.
pub(super) const VERDICT: u32 = 0;
pub(super) const ONE: u32 = 1;
pub(super) const TWO: u32 = 2;

/// Comparisons.
pub(super) const EQUAL: u32 = 0;
pub(super) const LESS: u32 = 2;

/// Parts of what a share is drawn from.
pub(super) const PARTS: u32 = 1_000_000;

pub(super) fn expression(name: &str, of: &Attributes) -> Attributes {
    Attributes::default().text(1, name).nested(2, of)
}

/// Goes on for one protocol.
pub(super) fn over(protocol: Protocol) -> Vec<Attributes> {
    let number = match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
    };
    let meta = Attributes::default().number(1, ONE).number(2, 16);
    vec![expression("meta", &meta), compare(ONE, EQUAL, &[number])]
}

/// What is remembered of a connection as it began.
pub(super) fn of_connection(what: u32, register: u32) -> Attributes {
    let from_the_beginning = [0];
    let of = Attributes::default().number(1, register).number(2, what);
    expression("ct", &of.bytes(3, &from_the_beginning))
}

/// So many bytes behind the beginning of a packet of TCP or UDP.
pub(super) fn payload(offset: u32, length: u32) -> Attributes {
    let transport = 2;
    let of = Attributes::default().number(1, ONE).number(2, transport);
    expression("payload", &of.number(3, offset).number(4, length))
}

/// Goes on if a number below [`PARTS`] is in a share of them.
pub(super) fn is_below(register: u32, share: f64) -> [Attributes; 2] {
    // A number of the machine's order, which is compared as bytes.
    let to_network = Attributes::default()
        .number(1, register)
        .number(2, register)
        .number(3, 1)
        .number(4, 4)
        .number(5, 4);
    let below = (share * f64::from(PARTS)).round() as u32;
    [
        expression("byteorder", &to_network),
        compare(register, LESS, &below.clamp(1, PARTS).to_be_bytes()),
    ]
}

pub(super) fn compare(register: u32, how: u32, value: &[u8]) -> Attributes {
    let of = Attributes::default().number(1, register).number(2, how);
    expression("cmp", &of.nested(3, &data(value)))
}

pub(super) fn put(register: u32, value: &[u8]) -> Attributes {
    let of = Attributes::default().number(1, register);
    expression("immediate", &of.nested(2, &data(value)))
}

pub(super) fn data(value: &[u8]) -> Attributes {
    Attributes::default().bytes(1, value)
}
