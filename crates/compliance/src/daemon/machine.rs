//! What this machine is, as far as files of Linux tell.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::net::Ipv6Addr;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::agent::condition::canonify;
use crate::agent::{Disk, Files as _, Site};
use crate::inventory::{NodeFacts, normal};
use crate::model::attributes::ObjectType;
use crate::model::inventory::Inventory;
use crate::model::node::{Node, NodeTimeZone, OperatingSystem};

/// Packages that an inventory names.
const PACKAGES: usize = 20_000;
/// Addresses that it names.
const ADDRESSES: usize = 1_000;

/// Bytes of a file that an inventory is made of.
const FILE_BYTES: usize = 64 << 20;

/// Bytes of a file of the kernel: a router has millions of routes, which stand among its addresses.
const KERNEL_BYTES: u64 = 4 << 20;

/// The machine whose files are below `root`.
pub(crate) fn facts(
    root: &Path,
    id: &str,
    hostname: Option<&str>,
    certificate: &str,
    now: Timestamp,
) -> NodeFacts {
    let disk = Disk::new(root, Site::default());
    let text = |path: &str| {
        let content = disk.read(path, FILE_BYTES).ok().flatten();
        String::from_utf8(content.unwrap_or_default()).unwrap_or_default()
    };
    let kernel = |path: &str| {
        let mut text = String::new();
        // What cannot be read tells nothing.
        let _ = File::open(path).and_then(|file| file.take(KERNEL_BYTES).read_to_string(&mut text));
        text.trim().to_owned()
    };
    let told = kernel("/proc/sys/kernel/hostname");
    let hostname = hostname.map_or(told, str::to_owned);
    let release = values(&text("/etc/os-release"));
    let release = |key: &str| release.get(key).cloned().unwrap_or_default();
    let memory = memory(&kernel("/proc/meminfo"), "MemTotal:");
    let swap = memory_of("/proc/meminfo", "SwapTotal:");
    let mut inventory = Inventory::default();
    for (name, version) in packages(&text("/var/lib/dpkg/status")) {
        let fields = [("cn", name), ("softwareVersion", version)];
        inventory.push(ObjectType::Software, &fields);
    }
    let (trie, version_6) = (kernel("/proc/net/fib_trie"), kernel("/proc/net/if_inet6"));
    let addresses = addresses(&trie, &version_6);
    for address in &addresses {
        let fields = [("ipHostNumber", address.as_str())];
        inventory.push(ObjectType::NetworkInterface, &fields);
    }
    let accounts = text("/etc/passwd");
    let accounts = accounts.lines().filter_map(|line| line.split(':').next());
    let mut node = Node {
        os: OperatingSystem {
            kernel: "Linux".into(),
            name: system_name(&release("NAME"), &release("ID")),
            version: release("VERSION_ID"),
            full_name: or(release("PRETTY_NAME"), "Linux"),
            service_pack: None,
            kernel_version: or(kernel("/proc/sys/kernel/osrelease"), "unknown"),
        },
        architecture_description: std::env::consts::ARCH.into(),
        ram: memory,
        swap,
        ip_addresses: addresses,
        accounts: accounts.take(1_000).map(str::to_owned).collect(),
        last_inventory: Some(now.as_second()),
        time_zone: Some(time_zone(now)),
        ..Node::new(id, or(hostname, "localhost"))
    };
    node.agent.version = env!("CARGO_PKG_VERSION").into();
    NodeFacts {
        node,
        certificate: certificate.trim().to_owned(),
        date: Timestamp::from_second(now.as_second()).ok(),
        capabilities: vec!["http_reporting".into()],
        inventory,
        updates: Vec::new(),
    }
}

/// The zone of this machine's clock, and its offset at a time.
fn time_zone(now: Timestamp) -> NodeTimeZone {
    let local = now.to_zoned(TimeZone::system());
    NodeTimeZone {
        name: match local.time_zone().iana_name() {
            Some(name) => name.to_owned(),
            None => local.strftime("%Z").to_string(),
        },
        offset: local.strftime("%z").to_string(),
    }
}

/// Conditions that hold on this machine: `linux`, `debian`, `debian_12`.
pub(super) fn conditions(facts: &NodeFacts) -> Vec<String> {
    let os = &facts.node.os;
    let name = canonify(&os.name.to_ascii_lowercase());
    let major = os.version.split('.').next().unwrap_or_default();
    let mut all = vec!["linux".to_owned(), name.clone()];
    if !major.is_empty() {
        all.push(format!("{name}_{}", canonify(major)));
    }
    all
}

fn or(text: String, otherwise: &str) -> String {
    match text.is_empty() {
        true => otherwise.to_owned(),
        false => text,
    }
}

/// Rudder's name of a system by its name and identity in `os-release`: of one that Rudder does not
/// know, its identity.
fn system_name(name: &str, id: &str) -> String {
    if let Some(known) = normal::distribution(name).or_else(|| normal::distribution(id)) {
        return known.to_owned();
    }
    let mut letters = id.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let name: String = first.into_iter().chain(letters).collect();
    or(name, "Linux")
}

/// Lines `KEY=value` or `KEY="value"`.
fn values(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned()));
    pairs.collect()
}

fn memory_of(path: &str, key: &str) -> Option<u64> {
    memory(&std::fs::read_to_string(path).ok()?, key)
}

/// A line `KEY: 1234 kB` in bytes.
fn memory(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1_024)
}

/// The machine's own addresses, of which the kernel tells in a file for each version of IP.
fn addresses(trie: &str, version_6: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut leaf = "";
    for line in trie.lines().map(str::trim) {
        match line.strip_prefix("|-- ") {
            Some(address) => leaf = address,
            None if line != "/32 host LOCAL" || all.len() == ADDRESSES => {}
            // The same stands in several tables.
            None if !all.iter().any(|one| one == leaf) => {
                all.push(leaf.to_owned());
            }
            None => {}
        }
    }
    let bits = version_6.lines().filter_map(|line| {
        let digits = line.split_whitespace().next()?;
        u128::from_str_radix(digits, 16).ok()
    });
    all.extend(bits.map(|bits| Ipv6Addr::from(bits).to_string()));
    all.truncate(ADDRESSES);
    all
}

/// Names and versions of installed packages of dpkg.
fn packages(status: &str) -> Vec<(&str, &str)> {
    let installed = status
        .split("\n\n")
        .filter(|package| package.contains("\nStatus: install ok installed"));
    let field = |package: &'_ str, key: &str| -> Option<(usize, usize)> {
        let at = package.find(key)? + key.len();
        let end = package[at..]
            .find('\n')
            .map_or(package.len(), |end| at + end);
        Some((at, end))
    };
    let found = installed.filter_map(|package| {
        let (name, name_end) = field(package, "Package: ")?;
        let (version, version_end) = field(package, "\nVersion: ")?;
        Some((&package[name..name_end], &package[version..version_end]))
    });
    found.take(PACKAGES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_by_its_files() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "etc/os-release",
                "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\n",
            ),
            (
                "etc/passwd",
                "root:x:0:0::/root:/bin/sh\nmail:x:8:8::/:/bin/false\n",
            ),
            (
                "var/lib/dpkg/status",
                "Package: a\nStatus: install ok installed\nVersion: 1.2-3\n\n\
                 Package: b\nStatus: deinstall ok config-files\nVersion: 9\n",
            ),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        let facts = facts(root.path(), "n1", Some("web.example.org"), "pem", now);
        assert_eq!(facts.node.hostname, "web.example.org");
        assert_eq!(facts.node.accounts, ["root", "mail"]);
        assert_eq!(conditions(&facts), ["linux", "debian", "debian_12"]);
        let software = &facts.inventory.elements[&ObjectType::Software];
        assert_eq!(software.len(), 1);
        assert_eq!(software[0]["softwareVersion"], "1.2-3");
        // Some identities say nothing to Rudder, and some names.
        assert_eq!(system_name("Oracle Linux Server", "ol"), "Oracle");
        assert_eq!(system_name("Amazon Linux", "amzn"), "AmazonLinux");
        assert_eq!(system_name("", "ubuntu"), "Ubuntu");
        assert_eq!(system_name("Arch Linux", "arch"), "Arch");
        assert_eq!(system_name("", ""), "Linux");
        assert_eq!(memory("x\nMemTotal:  2 kB\n", "MemTotal:"), Some(2_048));
    }

    #[test]
    fn addresses_are_those_of_the_machine_and_not_of_its_networks() {
        let table = "  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n\
                     \x20    |-- 127.0.0.1\n        /32 host LOCAL\n\
                     \x20    |-- 192.0.2.0\n        /24 link UNICAST\n\
                     \x20    |-- 192.0.2.2\n        /32 host LOCAL\n\
                     \x20    |-- 192.0.2.255\n        /32 link BROADCAST\n";
        let trie = format!("Main:\n{table}Local:\n{table}");
        let version_6 = "fd000000000000000000000000000002 04 40 00 82     eth0\n\
                         00000000000000000000000000000001 01 80 10 80       lo\n";
        let found = addresses(&trie, version_6);
        assert_eq!(found, ["127.0.0.1", "192.0.2.2", "fd00::2", "::1"]);
        assert_eq!(addresses("", ""), [""; 0]);
        // They are told by elements of the inventory.
        let root = tempfile::tempdir().unwrap();
        let facts = facts(root.path(), "n1", None, "pem", Timestamp::UNIX_EPOCH);
        let told = facts.inventory.elements.get(&ObjectType::NetworkInterface);
        let told = told.into_iter().flatten();
        let told: Vec<&String> = told.map(|one| &one["ipHostNumber"]).collect();
        assert_eq!(told, facts.node.ip_addresses.iter().collect::<Vec<_>>());
    }
}
