//! Faults of connections: toxics on the proxies that stand in them.

use std::time::Duration;

use lab_experiment::plan::{self, Connection, NetworkFault, Part};
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

/// Proxies with a toxic on each.
pub(super) struct Disturbed<'a> {
    toxic: String,
    on: Vec<(&'a Proxy, ToxicHandle)>,
}

impl<'a> Disturbed<'a> {
    /// Puts a toxic on every connection.
    ///
    /// # Errors
    /// When a proxy cannot do it.
    pub(super) fn begin(
        proxies: &'a Proxies,
        connections: &[Connection],
        (fault, part): (NetworkFault, Part),
        name: &str,
    ) -> Result<Self, String> {
        let on = connections.iter().map(|connection| {
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
        })
    }

    /// Takes the toxics off; says what they did.
    pub(super) fn end(&self) -> String {
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
        direction: part.direction.map(|direction| match direction {
            plan::Direction::ToServer => Direction::ToServer,
            plan::Direction::ToClient => Direction::ToClient,
        }),
        clients: part.clients.map_or(Clients::All, Clients::Share),
    }
}
