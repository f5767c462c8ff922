//! The table as JSON, piece by piece: 100,000 routes are 20 MB that nobody needs at once.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::table::{Algorithm, BackendProtocol, Endpoint, Pool, PoolSettings, Table};

/// Bytes after which a piece is handed over.
const PIECE_BYTES: usize = 64 * 1024;

/// The routes of a table as JSON, in the order of their keys.
pub(super) struct RoutesJson {
    pools: std::vec::IntoIter<Arc<Pool>>,
    started: bool,
    ended: bool,
}

impl RoutesJson {
    /// The routes as they are now.
    pub(super) fn of(table: &Table) -> Self {
        let mut pools = table.pools();
        pools.sort_unstable_by(|one, other| one.key().cmp(other.key()));
        Self {
            pools: pools.into_iter(),
            started: false,
            ended: false,
        }
    }
}

impl Iterator for RoutesJson {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let mut piece = String::new();
        while piece.len() < PIECE_BYTES {
            let Some(pool) = self.pools.next() else {
                piece.push_str(if self.started { "}\n" } else { "{}\n" });
                self.ended = true;
                break;
            };
            piece.push(if self.started { ',' } else { '{' });
            self.started = true;
            write_pool(&mut piece, &pool);
        }
        Some(piece)
    }
}

fn write_pool(out: &mut String, pool: &Pool) {
    write_text(out, pool.key());
    out.push_str(":[");
    for (index, endpoint) in pool.endpoints().iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_endpoint(out, endpoint, pool.settings());
    }
    out.push(']');
}

/// The keys and their order are gorouter's.
fn write_endpoint(out: &mut String, endpoint: &Endpoint, pool: &PoolSettings) {
    out.push_str(r#"{"address":"#);
    write_text(out, &endpoint.identity);
    out.push_str(r#","availability_zone":"#);
    write_text(out, &endpoint.zone);
    let protocol = match endpoint.protocol {
        BackendProtocol::Http1 => "http1",
        BackendProtocol::Http2 => "http2",
    };
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        r#","protocol":"{protocol}","tls":{},"ttl":{}"#,
        endpoint.tls,
        endpoint.stale_after.as_secs()
    );
    write_unless_empty(out, "route_service_url", &pool.route_service_url);
    out.push_str(r#","tags":"#);
    match &endpoint.tags {
        None => out.push_str("null"),
        Some(tags) => {
            out.push('{');
            for (index, (name, value)) in tags.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(out, name);
                out.push(':');
                write_text(out, value);
            }
            out.push('}');
        }
    }
    write_unless_empty(out, "isolation_segment", &endpoint.isolation_segment);
    write_unless_empty(out, "private_instance_id", &endpoint.instance_id);
    write_unless_empty(out, "server_cert_domain_san", &endpoint.server_name);
    let algorithm = match pool.algorithm {
        None => "",
        Some(Algorithm::RoundRobin) => "round-robin",
        Some(Algorithm::LeastConnection) => "least-connection",
        Some(Algorithm::Hash) => "hash",
    };
    write_unless_empty(out, "load_balancing_algorithm", algorithm);
    write_unless_empty(out, "hash_header", &pool.hash_header);
    if pool.hash_balance != 0.0 {
        let _ = write!(out, r#","hash_balance":{}"#, pool.hash_balance);
    }
    write_unless_empty(out, "route_policy_scope", &pool.policy_scope);
    write_unless_empty(out, "route_policies", &pool.policies);
    out.push('}');
}

fn write_unless_empty(out: &mut String, key: &str, text: &str) {
    if !text.is_empty() {
        let _ = write!(out, r#","{key}":"#);
        write_text(out, text);
    }
}

/// A text as Go's `encoding/json` writes it: `<`, `>`, `&` and the two separators of lines
/// that JavaScript knows are escaped too.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
