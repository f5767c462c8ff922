//! Orders to nftables, from `linux/netfilter/nfnetlink.h` and `nf_tables.h`.

use rustix::net::netlink;

use super::message::{APPEND, Attributes, DUMP, NEW, answered, message};
use super::{KernelError, socket};

/// The subsystem of nftables, and its orders.
const SUBSYSTEM: u16 = 10 << 8;
const NEW_TABLE: u16 = 0;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const GET_RULE: u16 = 7;
const BATCH_BEGINS: u16 = 0x10;
const BATCH_ENDS: u16 = 0x11;
/// IPv4 alone: systems listen at 127.0.0.1.
const IPV4: u8 = 2;

fn head(family: u8, subsystem: u16) -> Vec<u8> {
    let [high, low] = subsystem.to_be_bytes();
    vec![family, 0, high, low]
}

/// Orders that are done together or not at all.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// What each is, to tell of it.
    orders: Vec<String>,
}

impl Batch {
    fn order(&mut self, order: u16, flags: u16, of: &Attributes, what: String) {
        self.orders.push(what);
        let number = self.orders.len() as u32;
        let (kind, head) = (SUBSYSTEM | order, head(IPV4, 0));
        let order = message(kind, answered(flags), number, &head, of);
        self.bytes.extend(order);
    }

    pub(super) fn table(&mut self, name: &str) {
        let what = format!("make the table {name} of nftables");
        let of = Attributes::default().text(1, name);
        self.order(NEW_TABLE, NEW, &of, what);
    }

    pub(super) fn without_table(&mut self, name: &str) {
        let what = format!("take the table {name} of nftables away");
        let of = Attributes::default().text(1, name);
        self.order(DELETE_TABLE, 0, &of, what);
    }

    pub(super) fn chain(
        &mut self,
        table: &str,
        (name, kind): (&str, &str),
        hook: u32,
        priority: i32,
    ) {
        let place = Attributes::default()
            .number(1, hook)
            .bytes(2, &priority.to_be_bytes());
        let of = Attributes::default().text(1, table).text(3, name);
        let of = of.nested(4, &place).text(7, kind);
        let what = format!("make the chain {name} of {table}");
        self.order(NEW_CHAIN, NEW, &of, what);
    }

    pub(super) fn rule(
        &mut self,
        table: &str,
        chain: &str,
        expressions: &[Attributes],
        what: String,
    ) {
        let element = 1;
        let list = expressions
            .iter()
            .fold(Attributes::default(), |list, one| list.nested(element, one));
        let of = Attributes::default().text(1, table).text(2, chain);
        self.order(NEW_RULE, APPEND, &of.nested(4, &list), what);
    }

    pub(super) fn done(self) -> Result<(), KernelError> {
        let head = head(0, SUBSYSTEM >> 8);
        let mark = |kind| message(kind, 0, 0, &head, &Attributes::default());
        let all = [mark(BATCH_BEGINS), self.bytes, mark(BATCH_ENDS)].concat();
        socket::order(
            Some(netlink::NETFILTER),
            &all,
            self.orders.len(),
            |number| {
                let order = self.orders.get((number as usize).wrapping_sub(1));
                order.or(self.orders.first()).cloned().unwrap_or_default()
            },
        )
    }
}

/// Every rule of a table as the kernel tells it, in its attributes.
///
/// # Errors
/// When the kernel refuses to.
pub(super) fn rules_of(table: &str) -> Result<Vec<Vec<u8>>, KernelError> {
    let of = Attributes::default().text(1, table);
    let question = message(SUBSYSTEM | GET_RULE, DUMP, 1, &head(IPV4, 0), &of);
    let what = || format!("count what {table} dropped");
    let rules = socket::list(Some(netlink::NETFILTER), &question, &what)?;
    let head = 4;
    let rules = rules.into_iter();
    Ok(rules
        .map(|rule| rule.get(head..).unwrap_or_default().to_vec())
        .collect())
}
