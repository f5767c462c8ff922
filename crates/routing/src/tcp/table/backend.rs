//! One backend of a route.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use super::{Capabilities, SkipCause};
use crate::table::Nanos;
use crate::tcp::TcpMapping;

/// Where connections of a route go. Immutable but for what is learned while it serves.
#[derive(Debug)]
pub struct Backend {
    place: Place,
    tls: Option<BackendTls>,
    failed_until: AtomicU64,
}

#[derive(Debug)]
enum Place {
    Address(SocketAddr),
    Named {
        host: Box<str>,
        port: u16,
        found: ArcSwap<Found>,
    },
}

/// What is known of a name.
#[derive(Debug, Clone, Default)]
struct Found {
    addresses: Arc<[IpAddr]>,
    /// The one to connect to.
    at: usize,
}

impl Found {
    fn current(&self) -> Option<IpAddr> {
        self.addresses.get(self.at).copied()
    }
}

/// How TLS is spoken to a backend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendTls {
    /// The name that its certificate must have: the instance's id; empty: any.
    pub verify: Box<str>,
    /// The name that is sent as SNI; empty: the same.
    pub server_name: Box<str>,
    /// Whether this router shows its certificate.
    pub certificate: bool,
}

impl Backend {
    /// Where to connect to; `None` while no address of its host is known.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.place {
            Place::Address(address) => Some(*address),
            Place::Named { port, found, .. } => {
                let ip = found.load().current()?;
                Some(SocketAddr::new(ip, *port))
            }
        }
    }

    /// How many addresses there are to connect to.
    pub fn addresses(&self) -> usize {
        match &self.place {
            Place::Address(_) => 1,
            Place::Named { found, .. } => found.load().addresses.len(),
        }
    }

    /// The host whose address must be found by name, if it is not an address already.
    pub fn host(&self) -> Option<&str> {
        match &self.place {
            Place::Address(_) => None,
            Place::Named { host, .. } => Some(host),
        }
    }

    /// The addresses of its host were found, the best first. One that took the place of
    /// others that failed stays the one to connect to. Without effect if there is no name.
    pub fn found_at(&self, addresses: &Arc<[IpAddr]>) {
        let Place::Named { found, .. } = &self.place else {
            return;
        };
        found.rcu(|known| {
            let used = known.current().filter(|_| known.at > 0);
            let at = used.and_then(|used| addresses.iter().position(|ip| *ip == used));
            Found {
                addresses: Arc::clone(addresses),
                at: at.unwrap_or(0),
            }
        });
    }

    /// It could not be reached at `address`: the next connection goes to the next address of
    /// its host.
    pub fn failed_at(&self, address: SocketAddr) {
        let Place::Named { found, .. } = &self.place else {
            return;
        };
        found.rcu(|known| {
            let mut next = Found::clone(known);
            // Others may have failed there before.
            if next.current() == Some(address.ip()) {
                next.at = (next.at + 1) % next.addresses.len();
            }
            next
        });
    }

    /// How TLS is spoken to it; `None`: it is not.
    pub fn tls(&self) -> Option<&BackendTls> {
        self.tls.as_ref()
    }

    /// It could not be reached: pass it over until `until`.
    pub fn fail_until(&self, until: Nanos) {
        self.failed_until.store(until, Ordering::Relaxed);
    }

    /// Whether it is passed over.
    pub fn has_failed(&self, now: Nanos) -> bool {
        self.failed_until.load(Ordering::Relaxed) > now
    }

    /// Whether it is reached in the same way as another.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let alike = match (&self.place, &other.place) {
            (Place::Address(one), Place::Address(two)) => one == two,
            (
                Place::Named { host, port, .. },
                Place::Named {
                    host: other,
                    port: second,
                    ..
                },
            ) => host == other && port == second,
            _ => false,
        };
        alike && self.tls == other.tls
    }
}

/// The backend that a mapping describes.
pub(super) fn checked(
    mapping: &TcpMapping,
    capabilities: Capabilities,
) -> Result<Backend, SkipCause> {
    let tls = backend_tls(mapping, capabilities)?;
    let port = match &tls {
        Some((port, _)) => *port,
        None if mapping.backend_port == 0 => return Err(SkipCause::BackendPort),
        None => mapping.backend_port,
    };
    let host = mapping.backend_ip.as_str();
    let place = match host.parse::<IpAddr>() {
        Ok(ip) => Place::Address(SocketAddr::new(ip, port)),
        Err(_) if is_dns_name(host) => Place::Named {
            host: host.into(),
            port,
            found: ArcSwap::default(),
        },
        Err(_) => return Err(SkipCause::Address(host.to_owned())),
    };
    Ok(Backend {
        place,
        tls: tls.map(|(_, tls)| tls),
        failed_until: AtomicU64::new(0),
    })
}

fn backend_tls(
    mapping: &TcpMapping,
    capabilities: Capabilities,
) -> Result<Option<(u16, BackendTls)>, SkipCause> {
    let port = match mapping.backend_tls_port {
        -1 | 0 => return Ok(None),
        port => u16::try_from(port).map_err(|_| SkipCause::BackendTlsPort(port))?,
    };
    if !capabilities.backend_tls {
        return Err(SkipCause::BackendTlsOff);
    }
    if mapping.enable_backend_mtls && !capabilities.client_certificate {
        return Err(SkipCause::NoClientCertificate);
    }
    let verify = mapping.instance_id.as_str();
    // Diego names the instance; route-registrar, of which any machine may do, does not.
    let any = verify.is_empty() && capabilities.own_authority;
    if !any && !is_dns_name(verify) && verify.parse::<IpAddr>().is_err() {
        return Err(SkipCause::InstanceId(verify.to_owned()));
    }
    let server_name = mapping.sni_rewrite_hostname.as_deref().unwrap_or_default();
    if !server_name.is_empty() && !is_dns_name(server_name) {
        return Err(SkipCause::RewrittenName(server_name.to_owned()));
    }
    // As cf-tcp-router, which showed its certificate to every backend before mappings had a
    // word for it, and still does where the client's TLS does not end at the router.
    let shown = mapping.enable_backend_mtls || !mapping.terminate_frontend_tls;
    let tls = BackendTls {
        verify: verify.into(),
        server_name: server_name.into(),
        certificate: shown && capabilities.client_certificate,
    };
    Ok(Some((port, tls)))
}

/// Whether cf-tcp-router takes a text as a name of DNS: labels of letters, digits, `_` and
/// `-` (not first), of at most 63 characters, with dots between them; `.` or `_` may stand
/// at the end; at most 255 characters without the dots.
pub(super) fn is_dns_name(text: &str) -> bool {
    let characters = text.bytes().filter(|byte| *byte != b'.').count();
    let body = text.strip_suffix('.').unwrap_or(text);
    // A label of 63 characters may be followed by one `_` more at the very end.
    let longest = |last: bool| if last && body.ends_with('_') { 64 } else { 63 };
    let labels = body.split('.').count();
    let is_label = |(index, label): (usize, &str)| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        !label.is_empty()
            && !label.starts_with('-')
            && label.len() <= longest(index + 1 == labels && body.len() == text.len())
            && label.bytes().all(allowed)
    };
    characters <= 255 && body.split('.').enumerate().all(is_label)
}
