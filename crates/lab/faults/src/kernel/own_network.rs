//! A network for the calling thread, and for what it starts.

use std::fs;
use std::io;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, getgid, getuid};

use super::message::{Attributes, answered, message};
use super::rules::{Breaks, Lead, Rule, Rules, lead};
use super::{KernelError, socket};
use crate::proxy::Protocol;

/// From `linux/rtnetlink.h` and `linux/if_link.h`: a link is changed; its greatest packet, and
/// how many of them are one for the kernel.
const NEW_LINK: u16 = 16;
const MTU: u16 = 4;
const GSO_MAX_SEGS: u16 = 40;
/// The protocol of links is that of number 0, which is none to name.
const ROUTE: Option<rustix::net::Protocol> = None;
/// The loopback is the first device of every network.
const LOOPBACK: i32 = 1;
const UP: u32 = 1;
/// As Ethernet has it: what is lost is lost in pieces of this size.
const PACKET: u32 = 1_500;

/// How long the kernel remembers a connection that has ended, in seconds: while it is led on,
/// it would be remembered for two minutes otherwise, and only so many are.
const REMEMBER: (&str, &str) = (
    "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait",
    "1",
);

/// Takes this thread, and the threads and processes that it starts from now on, into a network
/// of their own, in which there is a loopback whose packets are as large as Ethernet's.
///
/// Without `CAP_SYS_ADMIN` this takes the whole process into a user namespace, in which it has the
/// same user and group alone.
///
/// # Errors
/// When the kernel lets nobody, or not this user, make a network; or when a user without
/// `CAP_SYS_ADMIN` has several threads.
pub fn enter() -> Result<(), KernelError> {
    let network = |found: io::Error| KernelError::Network { found };
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => {}
        Err(nix::errno::Errno::EPERM) => {
            let (user, group) = (getuid(), getgid());
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)
                .map_err(|found| network(found.into()))?;
            fs::write("/proc/self/setgroups", "deny").map_err(network)?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(network)?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(network)?;
        }
        Err(found) => return Err(network(found.into())),
    }
    raise_loopback()?;
    // Only the root of the machine may; it is of use where thousands connect every second.
    let _ = fs::write(REMEMBER.0, REMEMBER.1);
    Ok(())
}

fn raise_loopback() -> Result<(), KernelError> {
    let mut head = vec![0, 0, 0, 0];
    head.extend(LOOPBACK.to_ne_bytes());
    head.extend(UP.to_ne_bytes());
    head.extend(UP.to_ne_bytes());
    let attributes = Attributes::default()
        .bytes(MTU, &PACKET.to_ne_bytes())
        .bytes(GSO_MAX_SEGS, &1_u32.to_ne_bytes());
    let order = message(NEW_LINK, answered(0), 1, &head, &attributes);
    socket::order(ROUTE, &order, 1, |_| {
        "raise the loopback of the run's network".to_owned()
    })
}

/// Whether a run here can have a network of its own, and the kernel all the rules: tried, in a
/// network that is gone afterwards.
///
/// # Errors
/// What does not work.
pub fn able() -> Result<(), KernelError> {
    let threads = fs::read_dir("/proc/self/task").map_or(usize::MAX, Iterator::count);
    if threads > 1 {
        // A thread may leave alone what it shares with the others, if it has the right to.
        let tried = thread::Builder::new().spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|found| KernelError::Network {
                found: found.into(),
            })?;
            try_all()
        });
        let tried = tried.map_err(|error| KernelError::Untried(error.to_string()))?;
        let ended = tried.join();
        return ended.unwrap_or_else(|_| Err(KernelError::Untried("it broke off".to_owned())));
    }
    try_in_a_child()
}

fn try_all() -> Result<(), KernelError> {
    enter()?;
    let protocols = [Protocol::Tcp, Protocol::Udp];
    lead(&protocols.map(|protocol| Lead {
        protocol,
        from: 1,
        to: 2,
    }))?;
    let rule = |breaks| Rule {
        protocol: Protocol::Tcp,
        port: 1,
        breaks,
        direction: None,
        clients: Some(0.5),
        seed: 1,
    };
    let all = [Breaks::Partition, Breaks::Lose(0.5), Breaks::Reset].map(rule);
    Rules::put("tried", &all)?.end().map(drop)
}

/// The same in a child: a user namespace is not left again.
fn try_in_a_child() -> Result<(), KernelError> {
    let untried = |found: &dyn std::fmt::Display| KernelError::Untried(found.to_string());
    let (mut reader, writer) = io::pipe().map_err(|found| untried(&found))?;
    // SAFETY: there is no other thread, so nothing that the child needs is held by one.
    match unsafe { fork() }.map_err(|found| untried(&found))? {
        ForkResult::Child => {
            drop(reader);
            let told = try_all();
            let mut writer = writer;
            if let Err(error) = &told {
                let _ = io::Write::write_all(&mut writer, error.to_string().as_bytes());
            }
            drop(writer);
            // SAFETY: ends the child at once; what the parent registered for its end is not the child's.
            unsafe { nix::libc::_exit(i32::from(told.is_err())) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut text = String::new();
            let _ = io::Read::read_to_string(&mut reader, &mut text);
            match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, 0)) => Ok(()),
                Ok(_) => Err(KernelError::Untried(text)),
                Err(found) => Err(untried(&found)),
            }
        }
    }
}
