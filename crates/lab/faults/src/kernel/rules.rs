//! Rules of nftables, by netlink: no program has to be installed for them.

use super::KernelError;
use super::batch::{Batch, rules_of};
use super::expressions::{
    EQUAL, ONE, PARTS, TWO, VERDICT, compare, data, expression, is_below, of_connection, over,
    payload, put,
};
use super::message::{Attributes, attributes};
use crate::proxy::{Direction, Protocol};
use crate::seed;

/// Where chains stand: as packets arrive, before anything else looks at them; as they are
/// sent, where their destination may be changed.
const ARRIVE: u32 = 1;
const SEND: u32 = 3;
const BEFORE_FILTERS: i32 = -150;
const DESTINATION: i32 = -100;

/// The table in which connections are led on.
const LEADS: &str = "headroom-leads";

/// A port that does not exist: what connects to it is led to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// What goes over it.
    pub protocol: Protocol,
    /// The port that is told to who connects.
    pub from: u16,
    /// The port at which somebody listens.
    pub to: u16,
}

/// What a rule does to packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Breaks {
    /// None arrives.
    Partition,
    /// This share of them does not arrive, above 0 and below 1; the kernel draws.
    Lose(f64),
    /// Who sends one of a connection is told that there is none. Of TCP only.
    Reset,
}

/// What is broken of a connection that is led on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// What goes over it.
    pub protocol: Protocol,
    /// The port that was told to who connects.
    pub port: u16,
    /// What happens.
    pub breaks: Breaks,
    /// On one way alone.
    pub direction: Option<Direction>,
    /// To connections that are this share of all, above 0 and below 1, by the port from which
    /// they come.
    pub clients: Option<f64>,
    /// Draws which, with the name under which the rule is put.
    pub seed: u64,
}

/// What did not arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Packets.
    pub packets: u64,
    /// With their headers.
    pub bytes: u64,
}

/// Leads connections on, in the network of this thread, until that is gone.
///
/// # Errors
/// When the kernel refuses: it has no nftables, or no translation of addresses.
pub fn lead(leads: &[Lead]) -> Result<(), KernelError> {
    let mut batch = Batch::default();
    batch.table(LEADS);
    batch.chain(LEADS, ("lead", "nat"), SEND, DESTINATION);
    for one in leads {
        let expressions = [
            over(one.protocol),
            vec![
                payload(2, 2),
                compare(ONE, EQUAL, &one.from.to_be_bytes()),
                put(ONE, &one.to.to_be_bytes()),
                expression("redir", &Attributes::default().number(1, ONE)),
            ],
        ];
        let what = format!("lead port {} to port {}", one.from, one.to);
        batch.rule(LEADS, "lead", &expressions.concat(), what);
    }
    batch.done()
}

/// Rules that stand. They are taken away when this is dropped.
#[derive(Debug)]
pub struct Rules {
    table: String,
    stands: bool,
}

impl Rules {
    /// Puts rules, all at once or none, in the network of this thread. Of two with a name the
    /// second is refused.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn put(name: &str, rules: &[Rule]) -> Result<Self, KernelError> {
        let table = format!("headroom-fault-{}", name.replace(' ', "-"));
        let mut batch = Batch::default();
        batch.table(&table);
        batch.chain(&table, ("arrive", "filter"), ARRIVE, BEFORE_FILTERS);
        for rule in rules {
            let what = format!("break what passes by port {}", rule.port);
            batch.rule(&table, "arrive", &rule.expressions(name), what);
        }
        batch.done()?;
        Ok(Self {
            table,
            stands: true,
        })
    }

    /// Takes them away, and says what they dropped.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn end(mut self) -> Result<Dropped, KernelError> {
        let dropped = self.dropped();
        self.take_away()?;
        dropped
    }

    /// What they dropped so far.
    ///
    /// # Errors
    /// When the kernel refuses to say it.
    pub fn dropped(&self) -> Result<Dropped, KernelError> {
        let mut sum = Dropped::default();
        for rule in rules_of(&self.table)? {
            let rule = attributes(&rule);
            let is_own = rule.iter().any(|(kind, value)| {
                *kind == 1 && value.strip_suffix(&[0]) == Some(self.table.as_bytes())
            });
            if is_own {
                let counted = counted(&rule);
                sum.packets += counted.packets;
                sum.bytes += counted.bytes;
            }
        }
        Ok(sum)
    }

    /// Leaves them as they are until the network ends.
    pub fn keep(mut self) {
        self.stands = false;
    }

    fn take_away(&mut self) -> Result<(), KernelError> {
        if !std::mem::take(&mut self.stands) {
            return Ok(());
        }
        let mut batch = Batch::default();
        batch.without_table(&self.table);
        batch.done()
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        // What is left of it ends with the network.
        let _ = self.take_away();
    }
}

/// The counters of a rule.
fn counted(rule: &[(u16, &[u8])]) -> Dropped {
    let mut sum = Dropped::default();
    let lists = rule.iter().filter(|(kind, _)| *kind == 4);
    let expressions = lists.flat_map(|(_, list)| attributes(list));
    for (_, one) in expressions {
        let one = attributes(one);
        let find = |wanted: u16| one.iter().find(|(kind, _)| *kind == wanted);
        if find(1).is_none_or(|(_, name)| *name != b"counter\0") {
            continue;
        }
        for (kind, value) in find(2)
            .map(|(_, data)| attributes(data))
            .unwrap_or_default()
        {
            let number = value.try_into().map_or(0, u64::from_be_bytes);
            match kind {
                1 => sum.bytes += number,
                2 => sum.packets += number,
                _ => {}
            }
        }
    }
    sum
}

impl Rule {
    /// What the kernel does for it, in order; `name` draws, with the seed.
    fn expressions(&self, name: &str) -> Vec<Attributes> {
        let mut all = over(self.protocol);
        // Where it was to go before it was led on: the same for both ways of a connection.
        all.push(of_connection(12, ONE));
        all.push(compare(ONE, EQUAL, &self.port.to_be_bytes()));
        if let Some(direction) = self.direction {
            let back = match direction {
                Direction::ToServer => 0,
                Direction::ToClient => 1,
            };
            let way = Attributes::default().number(1, ONE).number(2, 1);
            all.push(expression("ct", &way));
            all.push(compare(ONE, EQUAL, &[back]));
        }
        if let Some(share) = self.clients {
            all.push(of_connection(11, ONE));
            let hash = Attributes::default()
                .number(1, ONE)
                .number(2, TWO)
                .number(3, 2)
                .number(4, PARTS)
                .number(5, seed::named(self.seed, name) as u32)
                .number(7, 0);
            all.push(expression("hash", &hash));
            all.extend(is_below(TWO, share));
        }
        match self.breaks {
            Breaks::Partition => {}
            Breaks::Lose(share) => {
                let draw = Attributes::default()
                    .number(1, ONE)
                    .number(2, PARTS)
                    .number(3, 1);
                all.push(expression("numgen", &draw));
                all.extend(is_below(ONE, share));
            }
            Breaks::Reset => {
                // A reset is let through, or it would tell nobody.
                all.push(payload(13, 1));
                let mask = Attributes::default()
                    .number(1, ONE)
                    .number(2, ONE)
                    .number(3, 1)
                    .nested(4, &data(&[0x04]))
                    .nested(5, &data(&[0]));
                all.push(expression("bitwise", &mask));
                all.push(compare(ONE, EQUAL, &[0]));
            }
        }
        all.push(expression("counter", &Attributes::default()));
        all.push(match self.breaks {
            Breaks::Partition | Breaks::Lose(_) => {
                let verdict = Attributes::default().number(1, 0);
                let drop = Attributes::default().nested(2, &verdict);
                let verdict = Attributes::default().number(1, VERDICT).nested(2, &drop);
                expression("immediate", &verdict)
            }
            Breaks::Reset => {
                let reset = Attributes::default().number(1, 1).bytes(2, &[0]);
                expression("reject", &reset)
            }
        });
        all
    }
}
