//! Sockets of a network namespace, from `/proc/net`: how many in which state, ports that
//! connections use, and datagrams that were dropped.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// Sockets of TCP at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpSockets {
    /// Connections.
    pub established: u64,
    /// Ends that wait until no late segment can come, which keeps their port.
    pub time_wait: u64,
    /// In any other state.
    pub other: u64,
    /// Most local ports of the range for outgoing connections that connections to one and
    /// the same remote address use: they are what can be used up.
    pub ports: u64,
    /// That remote address; of several, the lowest. `None`: there is no such connection.
    pub towards: Option<SocketAddr>,
    /// Sockets that were beyond [`TcpSockets::MOST`], and not looked at.
    pub unread: u64,
}

impl TcpSockets {
    /// Most sockets that are looked at.
    pub const MOST: u64 = 100_000;

    /// Those of the caller's namespace.
    pub fn now(ephemeral: &RangeInclusive<u16>) -> Self {
        let mut found = Self::default();
        let mut ports = HashMap::new();
        let mut left = Self::MOST;
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let Ok(file) = File::open(table) else {
                continue;
            };
            for line in BufReader::new(file).lines().map_while(Result::ok).skip(1) {
                if left == 0 {
                    found.unread += 1;
                    continue;
                }
                left -= 1;
                found.count(&line, ephemeral, &mut ports);
            }
        }
        found.most(ports);
        found
    }

    /// Keeps the remote address that most ports are used for.
    fn most(&mut self, ports: HashMap<String, u64>) {
        let known = ports.into_iter();
        let known = known.map(|(remote, count)| (count, std::cmp::Reverse(address(&remote))));
        let (count, remote) = known.max().unwrap_or((0, std::cmp::Reverse(None)));
        (self.ports, self.towards) = (count, remote.0);
    }

    fn count(
        &mut self,
        line: &str,
        ephemeral: &RangeInclusive<u16>,
        ports: &mut HashMap<String, u64>,
    ) {
        const LISTENS: &str = "0A";
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (Some(local), Some(remote), Some(state)) =
            (fields.next(), fields.next(), fields.next())
        else {
            return;
        };
        match state {
            "01" => self.established += 1,
            "06" => self.time_wait += 1,
            _ => self.other += 1,
        }
        if state != LISTENS && port(local).is_some_and(|port| ephemeral.contains(&port)) {
            *ports.entry(remote.to_owned()).or_insert(0) += 1;
        }
    }
}

/// The ports that outgoing connections get.
pub fn ephemeral_ports() -> RangeInclusive<u16> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = text
        .split_ascii_whitespace()
        .map_while(|end| end.parse().ok());
    match (ends.next(), ends.next()) {
        (Some(first), Some(last)) => first..=last,
        // What Linux has unless it is told otherwise.
        _ => 32_768..=60_999,
    }
}

/// What the kernel has counted since boot, of the caller's namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetCounts {
    /// Connections of TCP that were asked for from here.
    pub opened: u64,
    /// Datagrams that were handed to a socket.
    pub received: u64,
    /// Datagrams that were dropped as a socket's buffer was full.
    pub dropped: u64,
}

impl NetCounts {
    /// Those of now.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/net/snmp").unwrap_or_default();
        let text6 = fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
        let mut counts = Self::of_snmp(&text);
        counts.received += of_snmp6(&text6, "Udp6InDatagrams");
        counts.dropped += of_snmp6(&text6, "Udp6RcvbufErrors");
        counts
    }

    /// A line of names, and under it one of values, for each protocol.
    fn of_snmp(text: &str) -> Self {
        let mut lines = text.lines();
        let mut counts = Self::default();
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            let protocol = names.split(':').next().unwrap_or_default();
            let pairs = names
                .split_ascii_whitespace()
                .zip(values.split_ascii_whitespace());
            for (name, value) in pairs.skip(1) {
                let into = match (protocol, name) {
                    ("Tcp", "ActiveOpens") => &mut counts.opened,
                    ("Udp", "InDatagrams") => &mut counts.received,
                    ("Udp", "RcvbufErrors") => &mut counts.dropped,
                    _ => continue,
                };
                *into = value.parse().unwrap_or(0);
            }
        }
        counts
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            opened: self.opened.saturating_sub(before.opened),
            received: self.received.saturating_sub(before.received),
            dropped: self.dropped.saturating_sub(before.dropped),
        }
    }
}

fn of_snmp6(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let value = lines.find_map(|mut words| {
        let value = (words.next()? == name).then(|| words.next())?;
        value?.parse().ok()
    });
    value.unwrap_or(0)
}

/// Datagrams that were dropped since a socket was opened, by its inode and local port: of
/// the sockets of UDP of the caller's namespace that dropped any.
pub fn udp_drops() -> BTreeMap<(u64, u16), u64> {
    let mut drops = BTreeMap::new();
    for table in ["/proc/net/udp", "/proc/net/udp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        drops.extend(text.lines().skip(1).filter_map(dropped));
    }
    drops
}

fn dropped(line: &str) -> Option<((u64, u16), u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let dropped = fields
        .get(12)?
        .parse()
        .ok()
        .filter(|dropped| *dropped > 0)?;
    Some((
        (fields.get(9)?.parse().ok()?, port(fields.get(1)?)?),
        dropped,
    ))
}

/// An address in these tables: words of four bytes, each in the order of the machine, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, _) = text.rsplit_once(':')?;
    let words: Option<Vec<[u8; 4]>> = (0..host.len() / 8)
        .map(|word| {
            let digits = host.get(word * 8..word * 8 + 8)?;
            u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
        })
        .collect();
    let bytes = words?.concat();
    let host: IpAddr = match <[u8; 4]>::try_from(&*bytes) {
        Ok(four) => four.into(),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(&*bytes).ok()?).to_canonical(),
    };
    Some((host, port(text)?).into())
}

/// The port of an address in these tables.
fn port(address: &str) -> Option<u16> {
    u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn ports_towards_one_remote_address_are_what_is_counted() {
        let line = |local: &str, remote: &str, state: &str| {
            format!(
                "  0: 0100007F:{local} 0100007F:{remote} {state} 00000000:00000000 00:0 0 0 0 7"
            )
        };
        let (mut found, mut ports) = (TcpSockets::default(), HashMap::new());
        for text in [
            line("1F90", "0000", "0A"),
            line("9C40", "1F90", "01"),
            line("9C41", "1F90", "06"),
            line("9C42", "1F91", "01"),
            // The other ends: their local port is that of the server.
            line("1F90", "9C40", "01"),
            "nonsense".to_owned(),
        ] {
            found.count(&text, &(40_000..=50_000), &mut ports);
        }
        assert_eq!((found.established, found.time_wait, found.other), (3, 1, 1));
        found.most(ports);
        let towards = found.towards.map(|address| address.to_string());
        assert_eq!(
            (found.ports, towards.as_deref()),
            (2, Some("127.0.0.1:8080"))
        );
        found.most(HashMap::new());
        assert_eq!((found.ports, found.towards), (0, None));
    }

    /// As a little-endian machine shows them.
    #[cfg(target_endian = "little")]
    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let shown = |text| address(text).map(|address| address.to_string());
        assert_eq!(shown("0100007F:1F90").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(
            shown("0000000000000000FFFF00000100007F:0050").as_deref(),
            Some("127.0.0.1:80")
        );
        assert_eq!(
            shown("00000000000000000000000001000000:0050").as_deref(),
            Some("[::1]:80")
        );
        for text in [
            "",
            "0100007F",
            "0100007:1F90",
            "0100007G:1F90",
            "0100007F0100007F:1",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn own_connections_are_among_them_and_were_opened() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let before = NetCounts::now();
        let open: Vec<TcpStream> = (0..20)
            .map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap())
            .collect();
        let found = TcpSockets::now(&ephemeral_ports());
        assert!(found.established >= 20 && found.ports >= 20, "{found:?}");
        assert!(NetCounts::now().since(&before).opened >= 20);
        drop(open);
    }

    #[test]
    fn a_socket_that_nobody_reads_drops() {
        let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = deaf.local_addr().unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = NetCounts::now();
        for _ in 0..2000 {
            from.send_to(&[0; 1000], to).unwrap();
        }
        let found = udp_drops();
        let own = found.iter().find(|((_, port), _)| *port == to.port());
        assert!(own.is_some_and(|(_, dropped)| *dropped > 0), "{found:?}");
        assert!(NetCounts::now().since(&before).dropped > 0);
    }

    // Recorded from a Linux 6.18 kernel, and shortened.
    #[test]
    fn counts_stand_under_their_names() {
        let text = "Tcp: RtoAlgorithm RtoMin ActiveOpens PassiveOpens\nTcp: 1 200 77 12\n\
                    Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 9 1 3 8 2\n";
        let counts = NetCounts::of_snmp(text);
        let expected = NetCounts {
            opened: 77,
            received: 9,
            dropped: 2,
        };
        assert_eq!(counts, expected);
        assert_eq!(NetCounts::of_snmp("").opened, 0);
        assert_eq!(of_snmp6("Udp6InDatagrams  \t12\n", "Udp6InDatagrams"), 12);
        assert_eq!(dropped("nonsense"), None);
    }
}
