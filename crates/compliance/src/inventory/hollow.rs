//! Nodes that might exist, for hollow agents: the same seed gives the same node.
//!
//! Sizes are those of Rudder's load-test templates: some 60, 120 and 340 kB of XML, the last with
//! 418 packages, 264 updates and 97 processes.

use jiff::Timestamp;
use stats::SplitMix;

use super::{NodeFacts, SoftwareUpdate, normal};
use crate::model::attributes::ObjectType;
use crate::model::inventory::Inventory;
use crate::model::node::{Node, NodeTimeZone, OperatingSystem};

/// Name, version, full name, kernel, ending of its packages' versions, and how many of a hundred
/// nodes have it.
type System = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    usize,
);

#[rustfmt::skip]
const SYSTEMS: [System; 8] = [
    ("Debian", "12.5", "Debian GNU/Linux 12 (bookworm)", "6.1.0-18-amd64", "+deb12u1", 26),
    ("Debian", "11.9", "Debian GNU/Linux 11 (bullseye)", "5.10.0-28-amd64", "+deb11u2", 12),
    ("Ubuntu", "22.04", "Ubuntu 22.04.4 LTS", "5.15.0-101-generic", "-0ubuntu3", 22),
    ("Ubuntu", "24.04", "Ubuntu 24.04.1 LTS", "6.8.0-45-generic", "-0ubuntu1", 10),
    ("Redhat", "9.3", "Red Hat Enterprise Linux 9.3 (Plow)", "5.14.0-362.el9.x86_64", ".el9", 12),
    ("AlmaLinux", "8.9", "AlmaLinux 8.9 (Midnight Oncilla)", "4.18.0-513.el8.x86_64", ".el8", 9),
    ("Suse", "15", "SUSE Linux Enterprise Server 15 SP5", "5.14.21-150500.55-default", "-150500.1", 6),
    ("RockyLinux", "9.3", "Rocky Linux 9.3 (Blue Onyx)", "5.14.0-362.el9.x86_64", ".el9", 3),
];

/// Packages, updates, processes, and how many of a hundred nodes are so large.
const SIZES: [(usize, usize, usize, usize); 3] =
    [(160, 12, 40, 35), (300, 60, 70, 45), (418, 264, 97, 20)];

#[rustfmt::skip]
const STEMS: [&str; 24] = [
    "lib", "python3-", "perl-", "ruby-", "golang-", "node-", "gir1.2-", "fonts-", "linux-",
    "systemd-", "apt-", "ca-", "gnupg-", "iproute-", "kernel-", "openssl-", "postgresql-", "nginx-",
    "samba-", "selinux-", "util-", "vim-", "x11-", "zlib-",
];
const WORDS: [&str; 24] = [
    "audit", "base", "cache", "common", "config", "core", "crypt", "data", "dev", "doc", "event",
    "filter", "glib", "json", "ldap", "locale", "net", "pam", "runtime", "ssl", "tools", "utils",
    "xml", "zip",
];
const DAEMONS: [&str; 8] = [
    "/usr/sbin/sshd -D",
    "/usr/sbin/cron -f",
    "/lib/systemd/systemd-journald",
    "/usr/sbin/rsyslogd -n",
    "/usr/bin/dbus-daemon --system",
    "/opt/rudder/bin/cf-execd",
    "nginx: worker process",
    "postgres: checkpointer",
];

/// The facts of a node with this identity, name and certificate, as of `date`.
pub fn node(
    seed: u64,
    id: &str,
    hostname: &str,
    policy_server: &str,
    certificate: &str,
    date: Timestamp,
) -> NodeFacts {
    let mut random = SplitMix::new(seed);
    let system = weighted(&mut random, &SYSTEMS, |system| system.5);
    let size = weighted(&mut random, &SIZES, |size| size.3);
    let (name, version, full_name, kernel_version, ending, _) = system;
    let (packages, updates, processes, _) = size;
    let gigabytes = 1_u64 << (1 + random.below(6));
    let address = format!(
        "10.{}.{}.{}",
        random.below(256),
        random.below(256),
        1 + random.below(254)
    );
    let node = Node {
        policy_server_id: policy_server.to_owned(),
        os: OperatingSystem {
            kernel: "Linux".into(),
            name: name.into(),
            version: version.into(),
            full_name: full_name.into(),
            service_pack: None,
            kernel_version: kernel_version.into(),
        },
        architecture_description: "x86_64".into(),
        ram: Some(gigabytes << 30),
        swap: Some(gigabytes << 29),
        ip_addresses: vec!["127.0.0.1".into(), address.clone()],
        accounts: ["root", "daemon", "www-data", "nobody", "sshd"]
            .map(Into::into)
            .into(),
        last_inventory: Some(date.as_second()),
        time_zone: Some(NodeTimeZone {
            name: "UTC".into(),
            offset: "+0000".into(),
        }),
        ..Node::new(id, hostname)
    };
    let mut inventory = Inventory::default();
    let offered = software(&mut random, &mut inventory, packages, updates, ending);
    hardware(&mut random, &mut inventory, &address, gigabytes);
    running(&mut random, &mut inventory, processes);
    normal::quantities(&mut inventory);
    let mut facts = NodeFacts {
        node,
        certificate: certificate.trim().to_owned(),
        date: Timestamp::from_second(date.as_second()).ok(),
        capabilities: ["cfengine", "curl", "http_reporting", "jq", "xml", "yaml"]
            .map(Into::into)
            .into(),
        inventory,
        updates: offered,
    };
    facts.node.agent.version = "8.3.1".into();
    facts
}

fn weighted<T: Copy>(random: &mut SplitMix, all: &[T], weight: impl Fn(&T) -> usize) -> T {
    let total: usize = all.iter().map(&weight).sum();
    let mut left = random.below(total);
    for one in all {
        match left.checked_sub(weight(one)) {
            Some(rest) => left = rest,
            None => return *one,
        }
    }
    all[0]
}

/// Adds packages: most of a distribution's nodes have the first of them, few the last.
fn software(
    random: &mut SplitMix,
    inventory: &mut Inventory,
    packages: usize,
    updates: usize,
    ending: &str,
) -> Vec<SoftwareUpdate> {
    let (mut number, mut count) = (0, 1);
    let mut offered = Vec::with_capacity(updates);
    let agent = [("cn", "rudder-agent"), ("softwareVersion", "8.3.1")];
    inventory.push(ObjectType::Software, &agent);
    while count < packages {
        // One in four packages of the distribution is not on this node.
        number += 1 + usize::from(random.below(4) == 0);
        let name = format!(
            "{}{}{}",
            STEMS[number % STEMS.len()],
            WORDS[number / STEMS.len() % WORDS.len()],
            number / 97
        );
        let version = format!("{}.{}.{}{ending}", number % 7, number % 31, number % 13);
        inventory.push(
            ObjectType::Software,
            &[
                ("cn", &name),
                ("softwareVersion", &version),
                ("editor", "The distribution's maintainers"),
                ("sourceName", &name),
                ("sourceVersion", &version),
            ],
        );
        count += 1;
        if offered.len() < updates && (count + updates > packages || random.below(3) == 0) {
            offered.push(SoftwareUpdate {
                name,
                version: format!("{version}.1"),
                arch: "x86_64".into(),
                from: "repository".into(),
                kind: ["security", "defect", "enhancement"][random.below(3)].into(),
                severity: ["low", "moderate", "high", "critical"][random.below(4)].into(),
                ..SoftwareUpdate::default()
            });
        }
    }
    offered
}

fn hardware(random: &mut SplitMix, inventory: &mut Inventory, address: &str, gigabytes: u64) {
    let uuid = format!("{:016x}{:016x}", random.bits(), random.bits());
    inventory.push(
        ObjectType::Machine,
        &[
            ("machineType", "Virtual"),
            ("vmType", "kvm"),
            ("motherBoardUuid", &uuid),
            ("manufacturer", "QEMU"),
        ],
    );
    inventory.push(
        ObjectType::Bios,
        &[
            ("biosName", "Standard PC (Q35 + ICH9, 2009)"),
            ("softwareVersion", "1.16.2"),
            ("releaseDate", "2014-04-01"),
            ("editor", "SeaBIOS"),
            ("manufacturer", "QEMU"),
        ],
    );
    let cores = (1 + random.below(8)).to_string();
    inventory.push(
        ObjectType::Processor,
        &[
            ("cpuName", "AMD EPYC 7543 32-Core Processor"),
            ("manufacturer", "AMD"),
            ("cpuSpeed", "2800"),
            ("cpuCore", &cores),
        ],
    );
    let capacity = (gigabytes << 30).to_string();
    inventory.push(
        ObjectType::Memory,
        &[
            ("memoryCapacity", &capacity),
            ("memoryType", "DDR4"),
            ("memorySlotNumber", "1"),
        ],
    );
    for (mount, device) in [
        ("/", "/dev/vda1"),
        ("/var", "/dev/vda2"),
        ("/srv", "/dev/vdb1"),
    ] {
        let total = (10 + random.below(90) as u64) << 30;
        let free = ((total >> 20) / (1 + random.below(9) as u64)) << 20;
        inventory.push(
            ObjectType::FileSystem,
            &[
                ("cn", "ext4"),
                ("description", device),
                ("mountPoint", mount),
                ("fileSystemFreeSpace", &free.to_string()),
                ("fileSystemTotalSpace", &total.to_string()),
            ],
        );
    }
    let mac = format!(
        "52:54:00:{:02x}:{:02x}:01",
        random.below(256),
        random.below(256)
    );
    for (name, address, mac) in [
        ("lo", "127.0.0.1", "00:00:00:00:00:00"),
        ("eth0", address, &mac),
    ] {
        inventory.push(
            ObjectType::NetworkInterface,
            &[
                ("networkInterface", name),
                ("ipHostNumber", address),
                ("networkInterfaceMacAddress", mac),
                ("networkInterfaceType", "ethernet"),
            ],
        );
    }
    for (name, value) in [
        ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
        ("LANG", "C.UTF-8"),
    ] {
        inventory.push(ObjectType::Environment, &[("name", name), ("value", value)]);
    }
}

fn running(random: &mut SplitMix, inventory: &mut Inventory, processes: usize) {
    for number in 0..processes {
        let pid = (1 + number * 37 + random.below(37)).to_string();
        let memory = format!("0.{}", random.below(10));
        let pages = (4_096 + random.below(1 << 20)).to_string();
        inventory.push(
            ObjectType::Process,
            &[
                ("pid", &pid),
                ("name", DAEMONS[random.below(DAEMONS.len())]),
                ("cpuUsage", "0.0"),
                ("memory", &memory),
                ("tty", "?"),
                ("virtualMemory", &pages),
                ("started", "2026-01-01 00:00"),
                ("user", "root"),
            ],
        );
    }
}
