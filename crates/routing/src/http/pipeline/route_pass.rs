//! The way of a request to a route service and back.

use std::sync::Arc;

use rand::Rng;
use wire::http1::RequestHead;

use super::admit::part_of;
use super::exchange::{Exchange, RouteService, Times, Upgrade};
use super::target::{Target, escaped};
use super::{Pipeline, Refusal};
use crate::http::identity::find;
use crate::http::route_service::SignatureError;
use crate::table::{Lookup, Table};

/// Which way a request is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// To an endpoint.
    Straight,
    /// To the route service.
    Outward,
    /// To an endpoint, back from a route service that proved it.
    Returned,
    /// To an endpoint of a route without a service, from the router itself on the way to a
    /// route service, or from such a service: it has a proof.
    Vouched,
}

impl Pipeline {
    /// Which way the request is on; on the way out, its fields for the service are added.
    pub(super) fn route_pass(
        &self,
        head: &RequestHead,
        table: &Table,
        now: Times,
        random: &mut impl Rng,
        exchange: &mut Exchange,
    ) -> Result<Pass, Refusal> {
        let signed = !exchange.seen.signature.is_empty();
        let pool = match &exchange.pool {
            Some(pool) if signed || !pool.settings().route_service_url.is_empty() => {
                Arc::clone(pool)
            }
            _ => return Ok(Pass::Straight),
        };
        let url = &*pool.settings().route_service_url;
        let settings = &self.settings.route_services;
        let verified = || match &self.signer {
            Some(signer) => signer.verify(
                exchange.request.part(exchange.seen.signature),
                exchange.request.part(exchange.seen.metadata),
                now.wall,
                settings.timeout,
            ),
            None => Err(SignatureError::NoMetadata),
        };
        if url.is_empty() {
            let verdict = verified();
            if settings.strict
                && let Err(error) = &verdict
            {
                return Err(match error {
                    SignatureError::Expired => {
                        exchange.detail = error.to_string();
                        Refusal::StrictExpiredSignature
                    }
                    _ => Refusal::StrictInvalidSignature,
                });
            }
            // Whoever proved to be a route service is believed what it says of the client.
            let believed = verdict.is_ok() && !exchange.seen.forwarded_url.is_empty();
            return Ok(if believed {
                Pass::Vouched
            } else {
                Pass::Straight
            });
        }
        let Some(signer) = &self.signer else {
            return Err(Refusal::RouteServiceDisabled);
        };
        if signed {
            let checked = verified().map_err(|error| (error.to_string(), error));
            let checked = checked.and_then(|forwarded| {
                same_pool(&pool, &forwarded, table)
                    .map_err(|detail| (detail, SignatureError::NoMetadata))
            });
            if let Err((detail, error)) = checked {
                exchange.detail = detail;
                return Err(match error {
                    SignatureError::Expired => Refusal::ExpiredSignature,
                    _ => Refusal::InvalidSignature,
                });
            }
        }
        if exchange.upgrade == Upgrade::WebSocket && !settings.upgrades {
            return Err(Refusal::RouteServiceUpgrade);
        }
        if signed {
            for name in SERVICE_FIELDS {
                exchange.request.remove(name.as_bytes());
            }
            return Ok(Pass::Returned);
        }
        let Some(mut service) = service(url) else {
            return Err(Refusal::RouteServiceFailed);
        };
        let host = &exchange.host;
        let host = memchr::memchr(b':', host).map_or(&host[..], |at| &host[..at]);
        let mut forwarded = Vec::with_capacity(16 + host.len() + head.target().len());
        forwarded.extend_from_slice(if settings.recommend_https {
            b"https://"
        } else {
            b"http://"
        });
        forwarded.extend_from_slice(host);
        forwarded.extend_from_slice(head.target());
        let (signature, metadata) = signer
            .sign(&forwarded, now.wall, random)
            .ok_or(Refusal::RouteServiceFailed)?;
        for (name, value) in
            SERVICE_FIELDS
                .iter()
                .zip([signature.as_bytes(), metadata.as_bytes(), &forwarded])
        {
            exchange.request.remove(name.as_bytes());
            exchange.request.push(name, value);
        }
        service.hairpin = self.is_own(&service, table);
        exchange.service = Some(service);
        Ok(Pass::Outward)
    }

    /// Whether a service is a route of this router that may be called through it.
    fn is_own(&self, service: &RouteService, table: &Table) -> bool {
        let Some(allowed) = &self.hairpin else {
            return false;
        };
        // Whoever comes through the router itself has shown no certificate.
        if find(&self.settings.domains, service.host.as_bytes()).is_some() {
            return false;
        }
        let path = service.path.split('?').next().unwrap_or_default();
        match table.lookup(service.host.as_bytes(), path.as_bytes()) {
            // One without endpoints is a route all the same: the router says so itself.
            Lookup::Found(pool) | Lookup::Empty(pool) => allowed.allow(pool.host()),
            Lookup::Nothing => false,
        }
    }
}

const SERVICE_FIELDS: [&str; 3] = [
    "X-Cf-Proxy-Signature",
    "X-Cf-Proxy-Metadata",
    "X-Cf-Forwarded-Url",
];

/// Whether the URL that was signed leads to the same pool; the text says why not.
fn same_pool(pool: &crate::table::Pool, forwarded: &str, table: &Table) -> Result<(), String> {
    let target = Target::of(b"GET", forwarded.as_bytes())
        .ok_or_else(|| format!("parse {forwarded:?}: invalid URI for request"))?;
    let bytes = forwarded.as_bytes();
    let host = part_of(bytes, &target.host);
    let path = escaped(part_of(bytes, &target.path));
    let host = memchr::memchr(b':', host).map_or(host, |at| &host[..at]);
    let uri = [host, &*path].concat();
    let uri = String::from_utf8_lossy(uri.strip_suffix(b"/").unwrap_or(&uri));
    match table.lookup(host, &path) {
        Lookup::Nothing => Err(format!(
            "original request URL {uri} does not exist in the routing table"
        )),
        Lookup::Found(found) | Lookup::Empty(found) if found.key() == pool.key() => Ok(()),
        _ => {
            // A route without a path is told with that of the root.
            let own = pool.key().to_string();
            let root = if own.contains('/') { "" } else { "/" };
            Err(format!(
                "route service forwarded URL {own}{root} does not match the original request URL {uri}"
            ))
        }
    }
}

/// Where the URL of a route service leads; `None`: nowhere.
fn service(url: &str) -> Option<RouteService> {
    let parsed = url::Url::parse(url).ok()?;
    let host = parsed.host_str()?;
    let port = parsed.port_or_known_default()?;
    let authority = match parsed.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let path = match parsed.query() {
        Some(query) => format!("{}?{query}", parsed.path()),
        None => parsed.path().to_owned(),
    };
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    Some(RouteService {
        host,
        port,
        hairpin: false,
        authority,
        path,
        url: url.to_owned(),
    })
}
