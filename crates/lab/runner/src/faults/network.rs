//! Faults of connections: toxics on the proxies that stand in them, or rules of the kernel.

use std::time::Duration;

use lab_experiment::plan::{self, Connection, NetworkFault, Part};
use lab_faults::kernel::{Breaks, Rule, Rules};
use lab_faults::proxy::{
    Clients, Direction, Jitter, Proxy, RateOf, ResetWhen, Toxic, ToxicHandle, ToxicKind,
};

use crate::proxies::Proxies;

/// When a segment that was lost is sent again for the first time: the least that Linux waits.
const RETRANSMIT: Duration = Duration::from_millis(200);
/// What a throttle lets pass at once after a rest: a tenth of a second of its rate, and at
/// least a segment.
const BURST_PART: u64 = 10;
const LEAST_BURST: u64 = 1_448;

/// Proxies with a toxic on each, and rules of the kernel for other connections.
pub(super) struct Disturbed<'a> {
    toxic: String,
    on: Vec<(&'a Proxy, ToxicHandle)>,
    rules: Option<Rules>,
}

impl<'a> Disturbed<'a> {
    /// Breaks every connection. What is drawn is drawn by `name` and the seed.
    ///
    /// # Errors
    /// When a proxy, or the kernel, cannot do it.
    pub(super) fn begin(
        proxies: &'a Proxies,
        connections: &[Connection],
        (fault, part): (NetworkFault, Part),
        (name, seed): (&str, u64),
    ) -> Result<Self, String> {
        let led = connections
            .iter()
            .filter_map(|connection| proxies.lead(connection));
        let rules: Vec<Rule> = led
            .map(|lead| {
                Ok(Rule {
                    protocol: lead.protocol,
                    port: lead.from,
                    breaks: breaks(fault)?,
                    direction: part.direction.map(towards),
                    clients: part.clients,
                    seed,
                })
            })
            .collect::<Result<_, String>>()?;
        let rules = match rules.as_slice() {
            [] => None,
            rules => Some(Rules::put(name, rules).map_err(|error| error.to_string())?),
        };
        let proxied = connections
            .iter()
            .filter(|connection| proxies.lead(connection).is_none());
        let on = proxied.map(|connection| {
            let proxy = proxies.of(connection);
            let proxy = proxy.ok_or_else(|| format!("no proxy stands in {connection}"))?;
            let put = proxy
                .put(toxic(fault, part, name))
                .map_err(|error| error.to_string())?;
            Ok((proxy, put))
        });
        Ok(Self {
            toxic: name.to_owned(),
            on: on.collect::<Result<_, String>>()?,
            rules,
        })
    }

    /// Leaves toxics and rules as they are until the run ends.
    pub(super) fn keep(self) {
        if let Some(rules) = self.rules {
            rules.keep();
        }
    }

    /// Takes toxics and rules away; says what they did.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn end(mut self) -> Result<String, String> {
        let mut said = Vec::new();
        if let Some(rules) = self.rules.take() {
            let dropped = rules.end().map_err(|error| error.to_string())?;
            said.push(format!(
                "{} packets did not arrive, {}",
                units::show_count(dropped.packets as f64),
                units::show_bytes(dropped.bytes as f64)
            ));
        }
        if !self.on.is_empty() {
            said.push(self.take_off());
        }
        Ok(said.join("; "))
    }

    /// Takes the toxics off; says what they did.
    fn take_off(&self) -> String {
        let mut sum = [0_u64; 4];
        let mut connections = 0;
        for (proxy, toxic) in &self.on {
            let effects = Direction::ALL.map(|direction| toxic.effect(direction));
            // A connection has two directions.
            connections += effects
                .iter()
                .map(|effect| effect.connections)
                .max()
                .unwrap_or(0);
            for effect in effects {
                sum[0] += effect.bytes;
                sum[1] += effect.lost_segments;
                sum[2] += effect.reset_connections;
                sum[3] += effect.dropped_datagrams;
            }
            proxy.take_off(&self.toxic);
        }
        let [bytes, lost, reset, dropped] = sum;
        let mut text = format!(
            "{connections} connections, {} passed",
            units::show_bytes(bytes as f64)
        );
        if lost > 0 {
            text += &format!(", {lost} segments lost");
        }
        if reset > 0 {
            text += &format!(", {reset} connections reset");
        }
        if dropped > 0 {
            text += &format!(", {dropped} datagrams dropped");
        }
        text
    }
}

/// What rules do instead of a toxic.
fn breaks(fault: NetworkFault) -> Result<Breaks, String> {
    match fault {
        NetworkFault::Partition => Ok(Breaks::Partition),
        NetworkFault::Lose(share) => Ok(Breaks::Lose(share)),
        NetworkFault::Reset => Ok(Breaks::Reset),
        // The plan has a proxy stand there.
        NetworkFault::Delay { .. } | NetworkFault::Throttle(_) => {
            Err("the kernel's rules hold nothing back".to_owned())
        }
    }
}

fn towards(direction: plan::Direction) -> Direction {
    match direction {
        plan::Direction::ToServer => Direction::ToServer,
        plan::Direction::ToClient => Direction::ToClient,
    }
}

fn toxic(fault: NetworkFault, part: Part, name: &str) -> Toxic {
    let kind = match fault {
        NetworkFault::Partition => ToxicKind::Partition,
        NetworkFault::Delay { by, jitter } => ToxicKind::Delay {
            by,
            jitter: match jitter.is_zero() {
                true => Jitter::None,
                false => Jitter::Uniform(jitter),
            },
        },
        NetworkFault::Lose(share) => ToxicKind::Lose {
            share,
            retransmit: RETRANSMIT,
        },
        NetworkFault::Throttle(bytes_per_s) => ToxicKind::Throttle {
            bytes_per_s,
            burst_bytes: (bytes_per_s / BURST_PART).max(LEAST_BURST),
            of: RateOf::Link,
        },
        NetworkFault::Reset => ToxicKind::Reset(ResetWhen::Now),
    };
    Toxic {
        name: name.to_owned(),
        kind,
        direction: part.direction.map(towards),
        clients: part.clients.map_or(Clients::All, Clients::Share),
    }
}
