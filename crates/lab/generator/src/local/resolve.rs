//! Where a target is.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use lab_load::recording::Phase;
use lab_load::{GenerateError, Protocol, Workload};
use wire::poller::{Interest, Poller};
use wire::socket;

use super::advice;
use crate::engine::Trouble;

/// The target's address; of several, the first that answers.
pub(super) fn address(workload: &Workload) -> Result<SocketAddr, GenerateError> {
    let found = resolve(workload)?;
    let [first, others @ ..] = found.as_slice() else {
        return Err(unresolved(workload, "no address has this name"));
    };
    if others.is_empty() || workload.target.protocol == Protocol::Udp {
        return Ok(*first);
    }
    let within = workload.connections.connect_within;
    let mut trouble = None;
    for address in &found {
        match answers(*address, within) {
            Ok(()) => return Ok(*address),
            Err(cause) => trouble = trouble.or(Some((*address, cause))),
        }
    }
    let (address, cause) = trouble.unwrap_or((*first, "unreachable"));
    let trouble = Trouble::Connection(Phase::Connect, cause, 0);
    Err(advice::explain(workload, address, trouble))
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
    use super::name_of;

    #[test]
    fn the_name_in_an_authority() {
        assert_eq!(name_of("example.org:8080"), "example.org");
        assert_eq!(name_of("example.org"), "example.org");
        assert_eq!(name_of("[::1]:80"), "::1");
        assert_eq!(name_of("::1"), "::1");
        assert_eq!(name_of("127.0.0.1:80"), "127.0.0.1");
    }
}
