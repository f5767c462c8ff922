//! Where a target is.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use lab_load::recording::Phase;
use lab_load::{GenerateError, Protocol, Workload};
use wire::poller::{Interest, Poller};
use wire::socket;

use super::advice;
use crate::engine::{Addresses, EngineError};

/// Addresses of one name that are tried; nobody has as many.
const MOST: usize = 64;
/// How long other addresses of a name may still take to answer when one has answered.
const OTHERS_WITHIN: Duration = Duration::from_secs(1);

/// An address, and what became of a connection to it.
type Tried = (SocketAddr, Result<(), &'static str>);

/// The target's addresses: of several those that answer and are of one family.
pub(super) fn addresses(workload: &Workload) -> Result<Addresses, GenerateError> {
    let mut found = resolve(workload)?;
    found.truncate(MOST);
    let Some((first, others)) = found.split_first() else {
        return Err(unresolved(workload, "no address has this name"));
    };
    if others.is_empty() {
        return Ok(Addresses::new(*first, Vec::new()));
    }
    let target = &workload.target;
    let within = workload.connections.connect_within;
    let tried = tried(target.protocol, &found, within);
    chosen(&target.host, &tried).map_err(|(address, cause)| {
        let trouble = EngineError::Connection(Phase::Connect, cause, 0);
        advice::explain(workload, &Addresses::new(address, Vec::new()), trouble)
    })
}

/// Connects to each of these addresses once, at the same time.
fn tried(protocol: Protocol, found: &[SocketAddr], within: Duration) -> Vec<Tried> {
    let (sender, outcomes) = channel();
    for (number, address) in found.iter().copied().enumerate() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let outcome = match protocol {
                Protocol::Udp => socket::connect_udp(address)
                    .map(drop)
                    .map_err(socket::cause),
                _ => answers(address, within),
            };
            // Nobody waits any more when it took too long.
            let _ = sender.send((number, outcome));
        });
    }
    drop(sender);
    let mut tried: Vec<Tried> = found
        .iter()
        .map(|address| (*address, Err("timeout")))
        .collect();
    let mut deadline = Instant::now() + within;
    while let Ok((number, outcome)) =
        outcomes.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    {
        if outcome.is_ok() {
            deadline = deadline.min(Instant::now() + OTHERS_WITHIN);
        }
        tried[number].1 = outcome;
    }
    tried
}

/// Those that answered. The resolver puts first what the machine prefers: the first says which
/// family is used, for addresses of the other are most often the same servers once more.
fn chosen(name: &str, tried: &[Tried]) -> Result<Addresses, (SocketAddr, &'static str)> {
    let mut good = tried.iter().filter(|(_, outcome)| outcome.is_ok());
    let Some((first, _)) = good.next() else {
        let mut causes = tried.iter().filter_map(|(address, outcome)| {
            let cause = outcome.as_ref().err()?;
            Some((*address, *cause))
        });
        // There is none where no address was tried, which nobody asks for.
        let nowhere = || (SocketAddr::from(([0, 0, 0, 0], 0)), "unreachable");
        return Err(causes.next().unwrap_or_else(nowhere));
    };
    let is_of_family = |address: &SocketAddr| address.is_ipv4() == first.is_ipv4();
    let others = good.map(|(address, _)| *address).filter(is_of_family);
    let mut addresses = Addresses::new(*first, others.collect());
    let left_out = tried.iter().filter_map(|(address, outcome)| match outcome {
        Ok(()) if is_of_family(address) => None,
        Ok(()) => Some(format!("{address} (of the other family)")),
        Err(cause) => Some(format!("{address} ({cause})")),
    });
    let left_out: Vec<String> = left_out.collect();
    let is_plain = tried.iter().all(|(address, _)| address.ip().is_loopback());
    addresses.note = match addresses.are_several() {
        // `localhost` is two addresses, of which one often has no listener.
        false if is_plain => None,
        false => Some(format!("connections to {name} went to {addresses}")),
        true => Some(format!(
            "connections to {name} went to its addresses in turn: {addresses}"
        )),
    };
    if let Some(note) = &mut addresses.note
        && !left_out.is_empty()
    {
        *note += &format!("; left out: {}", left_out.join(", "));
    }
    Ok(addresses)
}

/// The host in `name:port`, `[v6]:port` or without a port.
pub(super) fn name_of(authority: &str) -> &str {
    if let Some((address, _)) = authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return address;
    }
    match authority.split_once(':') {
        // Several colons: an address of IPv6 without a port.
        Some((_, rest)) if rest.contains(':') => authority,
        Some((name, _)) => name,
        None => authority,
    }
}

/// Asks the system's resolver, which can take much longer than anyone wants to wait
/// and cannot be interrupted: so another thread asks.
fn resolve(workload: &Workload) -> Result<Vec<SocketAddr>, GenerateError> {
    let within = workload.connections.connect_within;
    let (sender, receiver) = channel();
    let place = (workload.target.host.clone(), workload.target.port);
    std::thread::spawn(move || {
        let found = place.to_socket_addrs().map(Iterator::collect);
        // Nobody waits any more when it took too long.
        let _ = sender.send(found);
    });
    match receiver.recv_timeout(within) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(unresolved(workload, &error.to_string())),
        Err(_) => Err(unresolved(
            workload,
            &format!("no answer within {within:?}"),
        )),
    }
}

fn unresolved(workload: &Workload, found: &str) -> GenerateError {
    GenerateError::new(
        format!("resolve the target's name {:?}", workload.target.host),
        found,
    )
    .help("check the name, or give an address")
}

fn answers(address: SocketAddr, within: Duration) -> Result<(), &'static str> {
    let socket = socket::connect_tcp(address).map_err(socket::cause)?;
    let mut poller = Poller::new().map_err(|_| "no descriptors left")?;
    let added = poller.add(&socket, 0, Interest::Write);
    added.map_err(|_| "no descriptors left")?;
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poller.wait(Some(left)) {
            Ok(0) if !left.is_zero() => {}
            Ok(0) | Err(_) => return Err("timeout"),
            Ok(_) => return socket::outcome(&socket).map_err(socket::cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::time::Duration;

    use lab_load::Protocol;

    use super::{chosen, name_of, tried};

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn of_several_addresses_those_that_answer_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The whole of 127.0.0.0/8 is this machine; nobody listens on the second.
        let found = [
            SocketAddr::from(([127, 0, 0, 2], port)),
            SocketAddr::from(([127, 0, 0, 1], port)),
        ];
        let seen = tried(Protocol::Http1, &found, Duration::from_secs(60));
        assert_eq!(seen, [(found[0], Err("refused")), (found[1], Ok(()))]);
    }

    #[test]
    fn addresses_of_a_family_take_turns_and_the_others_are_told() {
        let (one, two) = (address("10.0.0.1:80"), address("10.0.0.2:80"));
        let (three, six) = (address("10.0.0.3:80"), address("[2001:db8::1]:80"));
        let tried = [
            (six, Err("network unreachable")),
            (one, Ok(())),
            (two, Ok(())),
            (three, Err("refused")),
        ];
        let addresses = chosen("api", &tried).unwrap();
        let turns: Vec<SocketAddr> = (0..4).map(|turn| addresses.of(turn)).collect();
        assert_eq!(turns, [one, two, one, two]);
        assert_eq!(
            addresses.note.as_deref(),
            Some(
                "connections to api went to its addresses in turn: 10.0.0.1:80, 10.0.0.2:80; left \
                 out: [2001:db8::1]:80 (network unreachable), 10.0.0.3:80 (refused)"
            )
        );

        let both = chosen("api", &[(six, Ok(())), (one, Ok(()))]).unwrap();
        assert_eq!((both.of(0), both.of(1)), (six, six));
        assert_eq!(
            both.note.as_deref(),
            Some(
                "connections to api went to [2001:db8::1]:80; left out: 10.0.0.1:80 (of the other \
                 family)"
            )
        );

        let none = chosen("api", &[(one, Err("timeout")), (two, Err("refused"))]);
        assert_eq!(none, Err((one, "timeout")));
    }

    #[test]
    fn of_a_localhost_with_one_listener_nothing_is_said() {
        let (four, six) = (address("127.0.0.1:80"), address("[::1]:80"));
        let addresses = chosen("localhost", &[(six, Err("refused")), (four, Ok(()))]).unwrap();
        assert_eq!((addresses.of(1), addresses.note), (four, None));
    }

    #[test]
    fn the_name_in_an_authority() {
        assert_eq!(name_of("example.org:8080"), "example.org");
        assert_eq!(name_of("example.org"), "example.org");
        assert_eq!(name_of("[::1]:80"), "::1");
        assert_eq!(name_of("::1"), "::1");
        assert_eq!(name_of("127.0.0.1:80"), "127.0.0.1");
    }
}
