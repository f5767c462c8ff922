//! What to do about a generator that cannot start.

use lab_load::recording::{NO_DESCRIPTORS, NO_PORTS, Phase};
use lab_load::{GenerateError, Protocol, Workload};

use super::check::{needed_descriptors, raise_descriptors};
use crate::engine::{Addresses, EngineError, LOGIN_REFUSED, NO_PASSWORD};

/// An error in words.
pub(super) fn explain(
    workload: &Workload,
    addresses: &Addresses,
    trouble: EngineError,
) -> GenerateError {
    match trouble {
        EngineError::System(doing, error) => GenerateError::new(doing, error),
        EngineError::Connection(phase, cause, open) => {
            let target = &workload.target;
            let place = match target.host.parse::<std::net::IpAddr>() {
                Ok(_) => addresses.to_string(),
                Err(_) => format!("{}:{} ({addresses})", target.host, target.port),
            };
            let doing = match phase {
                Phase::Tls => format!("begin TLS with {place}"),
                Phase::Open if target.protocol == Protocol::WebSocket => {
                    format!("upgrade the connection to {place} to WebSocket")
                }
                Phase::Open if target.protocol.has_rows() => {
                    format!("log in to {place}")
                }
                Phase::Open => format!("begin HTTP/2 with {place}"),
                _ => format!("connect to {place}"),
            };
            let found = match (cause, open) {
                ("timeout", 0) => {
                    format!("no answer within {:?}", workload.connections.connect_within)
                }
                (cause, 0) => cause.to_owned(),
                (cause, open) => format!("{cause}, with {open} connections of the thread open"),
            };
            GenerateError {
                help: match cause {
                    NO_DESCRIPTORS => Some(raise_descriptors(needed_descriptors(workload))),
                    _ => help(target.protocol, phase, cause, open).map(str::to_owned),
                },
                ..GenerateError::new(doing, found)
            }
        }
    }
}

fn help(protocol: Protocol, phase: Phase, cause: &str, open: u32) -> Option<&'static str> {
    let help = match (phase, cause) {
        (_, NO_PORTS) => {
            "hold fewer connections, or widen the range of local ports \
             (sysctl net.ipv4.ip_local_port_range)"
        }
        (Phase::Connect, _) if open > 0 => {
            "the target takes no more connections: hold fewer, or raise its limit"
        }
        (Phase::Connect, "closed early") => {
            "the target closes connections that carry nothing at once: look at its log, or hold \
             fewer"
        }
        (Phase::Connect, "refused") => "start the target, or check host and port",
        (Phase::Connect, "timeout" | "host unreachable" | "network unreachable") => {
            "check host and port, the route to it and firewalls on the way"
        }
        (Phase::Tls, "certificate unknown") => {
            "give the authority that signed the certificate (--cacert FILE), or accept any \
             (-k, --insecure)"
        }
        (Phase::Tls, "self-signed certificate") => {
            "the target shows a certificate that no authority signed: give that certificate itself \
             (--cacert FILE), or accept any (-k, --insecure)"
        }
        (Phase::Tls, "certificate invalid" | "certificate revoked") => {
            "look at the certificate (openssl s_client), or accept any (-k, --insecure)"
        }
        (Phase::Tls, "certificate for another name") => {
            "use the name that the certificate is for, or accept any (-k, --insecure)"
        }
        (Phase::Tls, "certificate expired" | "certificate not valid yet") => {
            "renew the certificate or check the clocks, or accept any (-k, --insecure)"
        }
        (Phase::Tls, "not TLS" | "closed early" | "reset") => {
            "the target seems to speak no TLS on this port: try it without (http://, redis://)"
        }
        (Phase::Tls, "refused by the target") => {
            "the target may ask for a client certificate, or for another name"
        }
        (Phase::Tls, "no common protocol") => {
            "the target does not offer this protocol: try HTTP/1.1"
        }
        (Phase::Open, _) if protocol == Protocol::WebSocket => {
            "the target takes no WebSocket connections at this path: check path and host"
        }
        (Phase::Open, LOGIN_REFUSED | NO_PASSWORD) if protocol == Protocol::Redis => {
            "check user and database in the URL, and the password in REDISCLI_AUTH or its file"
        }
        (Phase::Open, LOGIN_REFUSED | NO_PASSWORD) => {
            "check user and database in the URL, and the password in PGPASSWORD or its file"
        }
        (Phase::Open, "no such database") => "check the end of the URL: /DATABASE",
        (Phase::Open, "too many connections") => "hold fewer, or raise max_connections",
        (Phase::Open, "loading" | "starting") => "wait until the target has read its data",
        (Phase::Open, _) if protocol == Protocol::Redis => {
            "the target seems to speak no RESP on this port, or has TLS there (rediss://)"
        }
        (Phase::Open, _) if protocol == Protocol::Postgres => {
            "the target seems not to be PostgreSQL, or to want TLS, which is not supported"
        }
        (Phase::Open, "bad http/2" | "closed early" | "reset" | "timeout") => {
            "the target seems to speak no HTTP/2 on this port: try HTTP/1.1"
        }
        _ => return None,
    };
    Some(help)
}
