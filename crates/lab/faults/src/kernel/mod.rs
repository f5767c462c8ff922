//! Connections broken by rules of the kernel, in a network that a run has for itself.
//!
//! [`enter`] takes the calling thread, and what it starts from then on, into a network
//! namespace of which the loopback is all there is. In it [`lead`] has the kernel lead
//! connections to a port on to another one, so that who connects to whom is told by the port,
//! and [`Rules::put`] drops or resets what passes there: packets, their retransmissions and
//! handshakes, as they are.
//!
//! # What always holds
//!
//! - Nothing outside of the namespace is touched, so nothing has to be undone there: rules end
//!   with the namespace, and that with its last process, whatever ended it.
//! - A rule drops what arrives, never what is sent: a sender is told of nothing, as by a network.
//! - Only what a rule was made for: each names the port of its connection.

mod batch;
mod expressions;
mod message;
mod own_network;
mod rules;
mod socket;

use std::io;

pub use own_network::{able, enter};
pub use rules::{Breaks, Dropped, Lead, Rule, Rules, lead};

/// Why the kernel did not do something.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// No network namespace can be made.
    #[error("make a network for the run: {found}: {}", advice(.found))]
    Network {
        /// What the kernel says.
        found: io::Error,
    },
    /// It refused an order.
    #[error("{order}: the kernel says {found}")]
    Refused {
        /// What it was told to do.
        order: String,
        /// What it says.
        found: io::Error,
    },
    /// It did not answer, or with something else than an answer.
    #[error("{order}: no answer of the kernel within {within_s} s")]
    Silent {
        /// What it was told to do.
        order: String,
        /// How long was waited, in seconds.
        within_s: u64,
    },
    /// Whether it would cannot be tried.
    #[error("whether a run can have a network of its own cannot be tried: {0}")]
    Untried(String),
}

fn advice(found: &io::Error) -> &'static str {
    match found.raw_os_error() {
        // EINVAL: a user namespace is made by a process of one thread.
        Some(22) => "without CAP_SYS_ADMIN it is made before any thread is started; run as root",
        // ENOSPC
        Some(28) => {
            "there are as many as user.max_net_namespaces and user.max_user_namespaces allow"
        }
        _ => {
            "run as root, in a container that has CAP_SYS_ADMIN, or where unprivileged user \
             namespaces are allowed (user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)"
        }
    }
}

#[cfg(test)]
mod tests;
