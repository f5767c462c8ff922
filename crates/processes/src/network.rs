//! A network namespace for each instance, joined by a bridge.
//!
//! Made and removed by `ip` of iproute2. Everything has a name with the process that made
//! it, so that what is left behind when that is killed is removed by the next one.

use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Most instances: a bridge of Linux has 1024 ports.
pub const MOST_INSTANCES: usize = 1000;

/// The network for benchmarks of networks (RFC 2544, appendix C): 198.18.0.0/15, of which
/// each graph takes a part of 4096 addresses.
const FIRST: u32 = 0xC612_0000;
const PARTS: u32 = 32;
const PART_BITS: u32 = 12;

/// Where the names of namespaces are.
const NAMES: &str = "run/netns";

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// Not for everybody.
    #[error(
        "make network namespaces: this needs root, and the process runs as user {0}; run as root, or leave out --namespaces"
    )]
    NotRoot(u32),
    /// There is no `ip`.
    #[error(
        "make network namespaces: start the program ip: {0}; install iproute2, or leave out --namespaces"
    )]
    NoProgram(#[source] io::Error),
    /// It refused.
    #[error("make network namespaces: {command}: {said}")]
    Refused {
        /// What it was asked for.
        command: String,
        /// What it said.
        said: String,
    },
    /// More than a bridge can join.
    #[error(
        "make network namespaces: the graph has {0} instances, and a bridge joins at most {MOST_INSTANCES}; leave out --namespaces"
    )]
    TooMany(usize),
    /// Every part of the network is taken.
    #[error(
        "make network namespaces: all {PARTS} parts of 198.18.0.0/15 are in use; stop other graphs, or leave out --namespaces"
    )]
    NoAddresses,
}

/// Namespaces and their bridge. Dropping it removes them.
#[derive(Debug)]
pub struct Network {
    owner: u32,
    part: u32,
    instances: usize,
}

impl Network {
    /// Makes a namespace for each of so many instances. What other processes left behind
    /// is removed.
    ///
    /// # Errors
    /// See [`NetworkError`]; nothing is left behind.
    pub fn make(owner: u32, instances: usize) -> Result<Self, NetworkError> {
        let user = nix::unistd::geteuid();
        if !user.is_root() {
            return Err(NetworkError::NotRoot(user.as_raw()));
        }
        if instances > MOST_INSTANCES {
            return Err(NetworkError::TooMany(instances));
        }
        remove_left_behind(Path::new("/"));
        let taken = ip(&["-4", "-o", "addr", "show"], "")?;
        let part = free_part(&taken, owner).ok_or(NetworkError::NoAddresses)?;
        let network = Self {
            owner,
            part,
            instances,
        };
        ip(&["-batch", "-"], &network.script())?;
        for instance in 0..instances {
            let name = namespace_name(owner, instance);
            let inside = network.script_inside(instance);
            ip(&["-n", &name, "-batch", "-"], &inside)?;
        }
        Ok(network)
    }

    /// Has instances reach all addresses of this machine, by way of the bridge.
    ///
    /// # Errors
    /// See [`NetworkError`].
    pub fn route_out(&self) -> Result<(), NetworkError> {
        let gateway = self.gateway().to_string();
        for instance in 0..self.instances {
            let name = namespace_name(self.owner, instance);
            let route = ["-n", &name, "route", "add", "default", "via", &gateway];
            ip(&route, "")?;
        }
        Ok(())
    }

    /// The address of the bridge: where instances reach what runs outside.
    pub fn gateway(&self) -> Ipv4Addr {
        address(self.part, 1)
    }

    /// The address of an instance, counted from 0.
    pub fn address(&self, instance: usize) -> Ipv4Addr {
        address(self.part, host(instance))
    }

    /// The namespace of an instance: see [`crate::Program::network`].
    pub fn namespace(&self, instance: usize) -> PathBuf {
        let name = namespace_name(self.owner, instance);
        Path::new("/").join(NAMES).join(name)
    }

    /// What is made outside.
    fn script(&self) -> String {
        let bridge = bridge_name(self.owner);
        let prefix = 32 - PART_BITS;
        let mut script = format!(
            "link add name {bridge} type bridge\naddr add {}/{prefix} dev {bridge}\nlink set {bridge} up\n",
            self.gateway()
        );
        for instance in 0..self.instances {
            let name = namespace_name(self.owner, instance);
            let port = port_name(self.owner, instance);
            script += &format!(
                "netns add {name}\nlink add {port} type veth peer name eth0 netns {name}\nlink set {port} master {bridge} up\n"
            );
        }
        script
    }

    /// What is made inside of a namespace.
    fn script_inside(&self, instance: usize) -> String {
        let prefix = 32 - PART_BITS;
        let address = self.address(instance);
        format!("link set lo up\naddr add {address}/{prefix} dev eth0\nlink set eth0 up\n")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove(Path::new("/"), self.owner);
    }
}

fn host(instance: usize) -> u32 {
    u32::try_from(instance)
        .unwrap_or(u32::MAX)
        .saturating_add(2)
}

fn address(part: u32, host: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST + (part << PART_BITS) + host)
}

/// Names of interfaces have at most 15 characters; a process's number has at most 7.
fn bridge_name(owner: u32) -> String {
    format!("hr{owner}")
}

fn port_name(owner: u32, instance: usize) -> String {
    format!("hr{owner}v{instance}")
}

fn namespace_name(owner: u32, instance: usize) -> String {
    format!("headroom-{owner}-{instance}")
}

/// The process that made an interface.
fn owner_of_interface(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("hr")?;
    let (owner, port) = rest.split_once('v').unwrap_or((rest, "0"));
    port.parse::<u32>().ok()?;
    owner.parse().ok()
}

/// The process that made a namespace.
fn owner_of_namespace(name: &str) -> Option<u32> {
    let (owner, instance) = name.strip_prefix("headroom-")?.split_once('-')?;
    instance.parse::<u32>().ok()?;
    owner.parse().ok()
}

/// A part of the network of which nobody has an address, by the list of all addresses. Two
/// graphs that start at once look at different parts first.
fn free_part(addresses: &str, owner: u32) -> Option<u32> {
    let taken: Vec<u32> = addresses
        .split_ascii_whitespace()
        .filter_map(|word| {
            let (address, _) = word.split_once('/')?;
            let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
            let part = address.checked_sub(FIRST)? >> PART_BITS;
            (part < PARTS).then_some(part)
        })
        .collect();
    let parts = (0..PARTS).map(|part| (part + owner) % PARTS);
    parts.into_iter().find(|part| !taken.contains(part))
}

/// Names in a folder; none if it is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

fn remove_left_behind(root: &Path) {
    let interfaces = names(&root.join("sys/class/net"));
    let namespaces = names(&root.join(NAMES));
    let mut owners: Vec<u32> = interfaces
        .iter()
        .filter_map(|name| owner_of_interface(name))
        .chain(
            namespaces
                .iter()
                .filter_map(|name| owner_of_namespace(name)),
        )
        .filter(|owner| !crate::is_alive(root, *owner))
        .collect();
    owners.sort_unstable();
    owners.dedup();
    for owner in owners {
        remove(root, owner);
    }
}

/// Removes what a process made. Whether nothing of it is left.
pub(crate) fn remove(root: &Path, owner: u32) -> bool {
    let script = removal(root, owner);
    if script.is_empty() {
        return true;
    }
    // With `-force` it goes on after what is gone already; what it cannot remove now is
    // removed at the next start.
    let _ = ip(&["-force", "-batch", "-"], &script);
    removal(root, owner).is_empty()
}

/// What removes what a process made.
fn removal(root: &Path, owner: u32) -> String {
    let mut script = String::new();
    for name in names(&root.join("sys/class/net")) {
        if owner_of_interface(&name) == Some(owner) {
            script += &format!("link del {name}\n");
        }
    }
    for name in names(&root.join(NAMES)) {
        if owner_of_namespace(&name) == Some(owner) {
            script += &format!("netns del {name}\n");
        }
    }
    script
}

/// Runs `ip` with a script on its input; what it printed.
fn ip(arguments: &[&str], script: &str) -> Result<String, NetworkError> {
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(NetworkError::NoProgram)?;
    let refused = |said: String| NetworkError::Refused {
        command: format!("ip {}", arguments.join(" ")),
        said,
    };
    if let Some(mut input) = child.stdin.take() {
        // It may have ended already; then it says why.
        let _ = input.write_all(script.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| refused(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(refused(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_made_them() {
        let owner = 4_194_304;
        assert!(port_name(owner, MOST_INSTANCES - 1).len() <= 15);
        assert_eq!(owner_of_interface(&bridge_name(owner)), Some(owner));
        assert_eq!(owner_of_interface(&port_name(owner, 12)), Some(owner));
        assert_eq!(owner_of_namespace(&namespace_name(owner, 12)), Some(owner));
        for other in [
            "eth0",
            "hr",
            "hrx",
            "hr7vx",
            "hr7v",
            "headroom-7",
            "headroom-x-1",
        ] {
            assert_eq!(owner_of_interface(other), None, "{other}");
            assert_eq!(owner_of_namespace(other), None, "{other}");
        }
    }

    #[test]
    fn a_free_part_is_taken() {
        let none = "1: lo    inet 127.0.0.1/8 scope host lo\n2: eth0 inet 192.0.2.2/24\n";
        assert_eq!(free_part(none, 33), Some(1));
        let one = format!("{none}3: hr1 inet 198.18.16.1/20 scope global hr1\n");
        assert_eq!(free_part(&one, 33), Some(2));
        let all: String = (0..PARTS)
            .map(|part| format!("inet {}/20\n", address(part, 1)))
            .collect();
        assert_eq!(free_part(&all, 5), None);
    }

    #[test]
    fn addresses_stay_within_their_part() {
        let network = Network {
            owner: 0,
            part: 31,
            instances: 0,
        };
        assert_eq!(network.gateway().to_string(), "198.19.240.1");
        assert_eq!(network.address(0).to_string(), "198.19.240.2");
        let last = network.address(MOST_INSTANCES - 1);
        assert_eq!(last.to_string(), "198.19.243.233");
    }
}
