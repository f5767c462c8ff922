//! What to do about an error.

use lab_load::recording::{KEPT, NO_DESCRIPTORS, NO_PORTS, NONE_FREE, Phase};

/// A sentence for the errors that people meet most; nothing for others.
pub(super) fn of(phase: Phase, cause: &str) -> Option<&'static str> {
    Some(match (phase, cause) {
        (_, NO_PORTS) => "widen net.ipv4.ip_local_port_range or keep connections alive",
        (_, NONE_FREE) => {
            "the target held them all: it is overloaded, or --max-connections too low"
        }
        (_, KEPT) => {
            "the load's own limit: a journey keeps its connection while it pauses; raise \
             --max-connections"
        }
        (_, NO_DESCRIPTORS) => "raise `ulimit -n`",
        (Phase::Resolve, _) => "check the name and the resolver",
        (Phase::Connect, "refused") => "nothing listens there, or its backlog is full",
        (Phase::Connect, "timeout") => "packets are dropped: a firewall, or a full backlog",
        (Phase::Connect, "unreachable") => "check the address and the route",
        (Phase::Tls, _) => "check --cacert, the name in the certificate, and TLS versions",
        (Phase::Open, "starting" | "loading") => "the target was not ready yet",
        (Phase::Open, _) => "the target does not speak this protocol, or refuses who we are",
        (Phase::Write | Phase::Read, "reset") => "the target or something before it gave up",
        (Phase::Read, "closed early") => "the target closed before the answer was whole",
        (Phase::Timeout, _) => "no whole answer in time; --timeout changes the limit",
        (Phase::Protocol, cause) if cause.contains("grpc") => {
            "a unary call with status 0 is answered with one whole message"
        }
        (Phase::Protocol, _) => "the answer is not what the protocol allows; try it with curl -v",
        _ => return None,
    })
}
