//! On which TCP ports a process and its descendants listen.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::process::{pids, stat};

/// TCP ports on which a process or one of its descendants listens. Processes that end
/// meanwhile, and those of others, are passed over.
pub fn listening_ports(pid: u32) -> BTreeSet<u16> {
    let mut ports = BTreeSet::new();
    for pid in descendants(pid) {
        let folder = format!("/proc/{pid}");
        let sockets = sockets(Path::new(&folder));
        if sockets.is_empty() {
            continue;
        }
        // Of its own network namespace, whichever that is.
        for table in ["tcp", "tcp6"] {
            let text = fs::read_to_string(format!("{folder}/net/{table}")).unwrap_or_default();
            let listening = listening(&text).filter(|(_, inode)| sockets.contains(inode));
            ports.extend(listening.map(|(port, _)| port));
        }
    }
    ports
}

/// A process and its descendants, itself first.
fn descendants(root: u32) -> Vec<u32> {
    let parent = |pid| Some((pid, stat(pid).ok()?.parent));
    let parents: Vec<(u32, u32)> = pids().filter_map(parent).collect();
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(of) = tree.get(at).copied() {
        let children = parents.iter().filter(|(_, parent)| *parent == of);
        let new: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        // Process ids may come round between two reads.
        tree.extend(new.into_iter().filter(|pid| *pid != root));
        at += 1;
    }
    tree
}

/// Inodes of the sockets that a process has open.
fn sockets(process: &Path) -> BTreeSet<u64> {
    let descriptors = fs::read_dir(process.join("fd"));
    let targets = descriptors
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    targets
        .filter_map(|target| {
            let inode = target.to_str()?.strip_prefix("socket:[")?;
            inode.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

/// Port and inode of each socket that listens, from `/proc/PID/net/tcp` or `tcp6`.
fn listening(table: &str) -> impl Iterator<Item = (u16, u64)> + '_ {
    table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (_, port) = local.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        (*state == "0A").then_some((port, inode.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    // Recorded from a Linux 6.18 kernel.
    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 52155 1 0000000000000000 100 0 0 10 0\n   \
        1: 0100007F:1F91 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 52156 1 0000000000000000 20 0 0 10 -1\n";

    #[test]
    fn only_sockets_that_listen_count() {
        assert_eq!(listening(TCP).collect::<Vec<_>>(), [(8080, 52155)]);
        assert_eq!(listening("").count(), 0);
    }

    #[test]
    fn a_listener_of_this_process_is_found_and_gone_when_it_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let pid = std::process::id();
        assert!(listening_ports(pid).contains(&port));
        drop(listener);
        // A child that another test is just starting has it, too, until it is a program.
        let gone = || !listening_ports(pid).contains(&port);
        let looks = std::iter::repeat_with(|| std::thread::sleep(Duration::from_millis(1)));
        assert!(looks.take(10_000).any(|()| gone()));
    }

    #[test]
    fn a_child_is_in_the_tree_until_it_is_collected() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(std::process::id()).contains(&child.id()));
    }
}
