//! Targets as people write them.

use std::fmt;
use std::ops::Range;

use units::UnitError;

use crate::workload::{Login, Protocol, Target};

/// Schemes, what they speak, whether inside TLS, and their port where they have one.
const SCHEMES: [(&str, Protocol, bool, Option<u16>); 15] = [
    ("http", Protocol::Http1, false, Some(80)),
    ("https", Protocol::Http1, true, Some(443)),
    ("h2c", Protocol::Http2, false, Some(80)),
    ("h2", Protocol::Http2, true, Some(443)),
    ("ws", Protocol::WebSocket, false, Some(80)),
    ("wss", Protocol::WebSocket, true, Some(443)),
    ("grpc", Protocol::Grpc, false, Some(80)),
    ("grpcs", Protocol::Grpc, true, Some(443)),
    ("tcp", Protocol::Tcp, false, None),
    ("tls", Protocol::Tcp, true, None),
    ("udp", Protocol::Udp, false, None),
    ("redis", Protocol::Redis, false, Some(6379)),
    ("rediss", Protocol::Redis, true, Some(6379)),
    ("postgres", Protocol::Postgres, false, Some(5432)),
    ("postgresql", Protocol::Postgres, false, Some(5432)),
];

/// What is expected of a place.
const PLACE: &str = "expected a host, with a port or without, such as 10.0.0.7, [::1]:8080 or \
                     canary.example.org:8443";

impl Target {
    /// Reads a URL: where requests go, and path with query (nothing for TCP and UDP).
    /// The path may hold variables of requests; it is not looked at here.
    ///
    /// | Scheme | Meaning |
    /// |---|---|
    /// | `http`, `https` | HTTP/1.1 |
    /// | `h2c`, `h2` | HTTP/2 without and with TLS |
    /// | `ws`, `wss` | WebSocket |
    /// | `grpc`, `grpcs` | gRPC; the path is `/package.Service/Method` |
    /// | `tcp`, `tls`, `udp` | bytes; the port must be given |
    /// | `redis`, `rediss` | commands of Redis; `redis://user@host:6379/2` names user and database |
    /// | `postgres`, `postgresql` | statements of SQL; `postgres://user@host:5432/database` |
    ///
    /// Without a scheme `http` is meant. A fragment (`#…`) is dropped, as browsers do.
    ///
    /// A password is refused, and so is a user name but for databases: URLs are kept in results.
    ///
    /// # Errors
    /// Text of another form, with the place and, where it can be told, what was meant.
    pub fn parse(url: &str) -> Result<(Self, String), UnitError> {
        let trimmed = url.trim();
        if trimmed.is_empty() {
            return Err(UnitError::new(
                0..url.len(),
                "expected a URL such as http://127.0.0.1:8080/",
            ));
        }
        if trimmed != url {
            let error = UnitError::new(0..url.len(), "there are spaces around the URL");
            return Err(error.suggest(trimmed));
        }
        let (index, start) = scheme(url)?;
        let (_, protocol, tls, default_port) = SCHEMES[index];
        let end = url[start..]
            .find(['/', '?', '#'])
            .map_or(url.len(), |length| start + length);
        let (user, host_at) = user(url, start..end, protocol)?;
        let (host, port) = authority(url, host_at..end)?;
        let Some(port) = port.or(default_port) else {
            let message = "this scheme has no usual port; write one, as in tcp://127.0.0.1:7000";
            return Err(UnitError::new(start..end, message));
        };
        let shown = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.clone(),
        };
        let authority = match Some(port) == default_port {
            true => shown,
            false => format!("{shown}:{port}"),
        };
        let (path, database) = match protocol {
            Protocol::Redis => (String::new(), redis_database(url, end)?),
            Protocol::Postgres => (String::new(), database(url, end)?),
            _ => (path(url, end, protocol)?, String::new()),
        };
        let target = Self {
            protocol,
            tls,
            host,
            port,
            authority,
            login: Login {
                user,
                password: String::new(),
                database,
            },
        };
        Ok((target, path))
    }

    /// Host and port of a place such as `10.0.0.7` or `[::1]:8080`, whose port is `port` unless it
    /// says another.
    ///
    /// # Errors
    /// Text of another form, or with more behind host and port.
    pub fn place(text: &str, port: u16) -> Result<(String, u16), UnitError> {
        if let Some(end) = text.find(['/', '?', '#']) {
            let message = format!("{PLACE}, and nothing behind it; found \"{}\"", &text[end..]);
            return Err(UnitError::new(end..text.len(), message));
        }
        let read = |place: &str| Self::parse(&format!("tcp://{place}"));
        match read(text).or_else(|_| read(&format!("{text}:{port}"))) {
            Ok((found, _)) => Ok((found.host, found.port)),
            Err(_) => Err(UnitError::new(0..text.len(), PLACE)),
        }
    }

    /// The scheme of this protocol.
    pub fn scheme(&self) -> &'static str {
        let found = SCHEMES
            .iter()
            .find(|(_, protocol, tls, _)| (*protocol, *tls) == (self.protocol, self.tls));
        // Only UDP has no form inside TLS.
        found.map_or("udp", |(name, ..)| name)
    }
}

impl fmt::Display for Target {
    /// Scheme and authority: `http://127.0.0.1:8080`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.authority)
    }
}

/// Index of the scheme, and where the authority begins.
fn scheme(url: &str) -> Result<(usize, usize), UnitError> {
    let end = url.find(['/', '?', '#', '{']).unwrap_or(url.len());
    let (before, after) = url.split_at(end);
    let names = || SCHEMES.iter().map(|(name, ..)| *name);
    let position = |name: &str| names().position(|known| known.eq_ignore_ascii_case(name));
    if let Some(name) = before.strip_suffix(':')
        && after.starts_with("//")
    {
        return match position(name) {
            Some(index) => Ok((index, end + 2)),
            None => {
                let known: Vec<&str> = names().collect();
                let message = format!(
                    "unknown scheme \"{name}\"; schemes are {}",
                    known.join(", ")
                );
                Err(UnitError::new(0..name.len(), message).meant(name, names()))
            }
        };
    }
    // `http:/host` and `http:host`, but not `http:80`, which is a host called http.
    if let Some((name, rest)) = before.split_once(':')
        && position(name).is_some()
        && !rest.starts_with(|c: char| c.is_ascii_digit())
    {
        let slashes = url[name.len() + 1..]
            .bytes()
            .take_while(|b| *b == b'/')
            .count();
        let error = UnitError::new(0..name.len() + 1 + slashes, "two slashes follow the scheme");
        return Err(error.suggest(format!("{name}://")));
    }
    Ok((0, 0))
}

/// The name of the user before `@`, where there may be one, and where the host begins.
fn user(url: &str, at: Range<usize>, protocol: Protocol) -> Result<(String, usize), UnitError> {
    let Some(end) = url[at.clone()]
        .rfind('@')
        .filter(|_| protocol.password_variable().is_some())
    else {
        if protocol == Protocol::Postgres {
            let message = "expected the name of a user before the host, as in \
                           postgres://user@127.0.0.1/database";
            return Err(UnitError::new(at, message));
        }
        return Ok((String::new(), at.start));
    };
    let user = &url[at.start..at.start + end];
    if let Some(colon) = user.find(':') {
        let variable = protocol.password_variable().unwrap_or_default();
        let message = format!(
            "a password in a URL would be kept in results; give it in the variable {variable} or \
             in a file"
        );
        return Err(UnitError::new(at.start + colon..at.start + end, message));
    }
    if let Some(wrong) = user.find(|c: char| c.is_whitespace() || "{}%".contains(c)) {
        let at = at.start + wrong..at.start + end;
        let message = "a user name is written as it is, without spaces, braces and %";
        return Err(UnitError::new(at, message));
    }
    Ok((user.to_owned(), at.start + end + 1))
}

/// The name of the database in the path of a URL from `start` on.
fn database(url: &str, start: usize) -> Result<String, UnitError> {
    let name = url[start..].strip_prefix('/').unwrap_or(&url[start..]);
    let at = url.len() - name.len();
    match name.find(|c: char| c.is_whitespace() || "/?#{}%".contains(c)) {
        None => Ok(name.to_owned()),
        Some(wrong) if name[wrong..].starts_with('?') => Err(UnitError::new(
            at + wrong..url.len(),
            "parameters such as sslmode are not supported; connections have no TLS",
        )),
        Some(wrong) => Err(UnitError::new(
            at + wrong..url.len(),
            "the name of a database is written as it is; statements stand apart",
        )),
    }
}

/// The number of the database in the path of a URL from `start` on.
fn redis_database(url: &str, start: usize) -> Result<String, UnitError> {
    let digits = match url[start..].strip_prefix('/') {
        None if start < url.len() => &url[start..],
        None | Some("") => return Ok(String::new()),
        Some(digits) => digits,
    };
    match digits.parse::<u16>() {
        Ok(_) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(digits.to_owned()),
        _ => Err(UnitError::new(
            url.len() - digits.len()..url.len(),
            format!("a database of Redis is a number, found \"{digits}\"; commands stand apart"),
        )),
    }
}

/// Host and port of the authority that stands at `at`.
fn authority(url: &str, at: Range<usize>) -> Result<(String, Option<u16>), UnitError> {
    let text = &url[at.clone()];
    if let Some(end) = text.rfind('@') {
        let message = "a user name or password in a URL would be kept in results; \
                       give a header instead: Authorization: Basic …";
        return Err(UnitError::new(at.start..at.start + end + 1, message));
    }
    if let Some(brace) = text.find(['{', '}']) {
        let message = "variables stand in path and query, not in the host";
        return Err(UnitError::new(at.start + brace..at.end, message));
    }
    if let Some((space, which)) = text.char_indices().find(|(_, c)| c.is_whitespace()) {
        let at = at.start + space..at.start + space + which.len_utf8();
        return Err(UnitError::new(at, "a host has no spaces"));
    }
    if text.starts_with('[') && !text.contains(']') {
        return Err(UnitError::new(
            at,
            "the bracket of this address is not closed",
        ));
    }
    let (host, port) = match text.rfind(']') {
        Some(end) => text.split_at(end + 1),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    if port.matches(':').count() > 1 && text.parse::<std::net::Ipv6Addr>().is_ok() {
        let error = UnitError::new(at, "an IPv6 address stands in brackets");
        return Err(error.suggest(format!("[{text}]")));
    }
    if host.is_empty() {
        let found = if text.is_empty() {
            at.start..url.len()
        } else {
            at
        };
        return Err(UnitError::new(
            found,
            "the URL has no host; expected one such as http://127.0.0.1:8080/",
        ));
    }
    let port_at = at.start + host.len() + 1..at.end;
    let port = match port.strip_prefix(':') {
        Some(digits) => Some(port_number(digits, port_at)?),
        None if port.is_empty() => None,
        None => {
            return Err(UnitError::new(
                port_at.start - 1..at.end,
                "expected : and a port after the address",
            ));
        }
    };
    let host_at = at.start..at.start + host.len();
    let host = match url::Host::parse(host) {
        Ok(url::Host::Domain(name)) => name,
        Ok(url::Host::Ipv4(address)) => address.to_string(),
        Ok(url::Host::Ipv6(address)) => address.to_string(),
        Err(problem) => {
            let zone = if host.contains('%') {
                "; zones (%eth0) are not supported"
            } else {
                ""
            };
            return Err(UnitError::new(
                host_at,
                format!("\"{host}\" is no host: {problem}{zone}"),
            ));
        }
    };
    Ok((host, port))
}

fn port_number(digits: &str, at: Range<usize>) -> Result<u16, UnitError> {
    let number = digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| digits.parse::<u16>());
    match number {
        Some(Ok(port)) if port > 0 => Ok(port),
        _ => Err(UnitError::new(
            at,
            format!("a port is a number from 1 to 65535, found \"{digits}\""),
        )),
    }
}

/// Path and query from `start` on.
fn path(url: &str, start: usize, protocol: Protocol) -> Result<String, UnitError> {
    let end = url[start..]
        .find('#')
        .map_or(url.len(), |length| start + length);
    let path = &url[start..end];
    let bytes = matches!(protocol, Protocol::Tcp | Protocol::Udp);
    match path {
        "" | "/" if bytes => Ok(String::new()),
        _ if bytes => Err(UnitError::new(start..end, "TCP and UDP have no path")),
        "" => Ok("/".to_owned()),
        path if path.starts_with('?') => Ok(format!("/{path}")),
        path => Ok(path.to_owned()),
    }
}

#[cfg(test)]
mod tests;
