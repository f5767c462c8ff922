//! The PROXY protocol, versions 1 and 2: a load balancer says for whom it speaks.
//!
//! Source: "The PROXY protocol, versions 1 & 2", haproxy.org/download/2.9/doc/proxy-protocol.txt.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest header of version 1, with its CRLF.
const MOST_V1: usize = 107;

/// Longest header of version 2 that is taken: addresses and a few additions.
const MOST_V2: usize = 4096;

/// What version 2 begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// What the first bytes of a connection say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// The header goes on.
    NeedMore,
    /// There is none: the bytes are the client's own.
    Absent,
    /// The load balancer speaks for itself (a health check), or does not know for whom.
    Local {
        /// Bytes of the header.
        length: usize,
    },
    /// It speaks for a client.
    Proxied {
        /// Bytes of the header.
        length: usize,
        /// The client.
        source: SocketAddr,
        /// Where the client connected to.
        destination: SocketAddr,
    },
}

/// A header that begins as one, and is none. The connection is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// A line of version 1 that is not `PROXY TCP4|TCP6|UNKNOWN ...` or is too long.
    #[error(
        "the PROXY protocol's line is not one; expected PROXY, TCP4 or TCP6, two addresses and two ports, in 107 bytes"
    )]
    Line,
    /// Version 2 with another version, command or length.
    #[error(
        "the PROXY protocol's binary header is not one of version 2, or longer than 4096 bytes"
    )]
    Binary,
}

/// Reads a header from the first bytes of a connection.
///
/// # Errors
/// When they begin as a header, but are none.
pub fn read(bytes: &[u8]) -> Result<Header, HeaderError> {
    let begins = |with: &[u8]| {
        let shared = bytes.len().min(with.len());
        bytes[..shared] == with[..shared]
    };
    if begins(b"PROXY ") {
        version_1(bytes)
    } else if begins(SIGNATURE) {
        version_2(bytes)
    } else {
        Ok(Header::Absent)
    }
}

fn version_1(bytes: &[u8]) -> Result<Header, HeaderError> {
    let bounded = &bytes[..bytes.len().min(MOST_V1)];
    let Some(end) = memchr::memchr(b'\n', bounded) else {
        return match bytes.len() < MOST_V1 {
            true => Ok(Header::NeedMore),
            false => Err(HeaderError::Line),
        };
    };
    let length = end + 1;
    let line = bounded[..end]
        .strip_suffix(b"\r")
        .and_then(|line| std::str::from_utf8(line).ok())
        .ok_or(HeaderError::Line)?;
    let mut words = line.split(' ').skip(1);
    let mut next = || words.next().ok_or(HeaderError::Line);
    let version_6 = match next()? {
        "TCP4" => false,
        "TCP6" => true,
        "UNKNOWN" => return Ok(Header::Local { length }),
        _ => return Err(HeaderError::Line),
    };
    let (source, destination) = (address(next()?, version_6)?, address(next()?, version_6)?);
    let (source_port, destination_port) = (port(next()?)?, port(next()?)?);
    if words.next().is_some() {
        return Err(HeaderError::Line);
    }
    Ok(Header::Proxied {
        length,
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
    })
}

fn address(word: &str, version_6: bool) -> Result<IpAddr, HeaderError> {
    let address: IpAddr = word.parse().map_err(|_| HeaderError::Line)?;
    match address.is_ipv6() == version_6 {
        true => Ok(address),
        false => Err(HeaderError::Line),
    }
}

/// Digits only, without zeros before them.
fn port(word: &str) -> Result<u16, HeaderError> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit());
    match word.parse() {
        Ok(port) if plain && (word == "0" || !word.starts_with('0')) => Ok(port),
        _ => Err(HeaderError::Line),
    }
}

fn version_2(bytes: &[u8]) -> Result<Header, HeaderError> {
    let Some((start, rest)) = bytes.split_at_checked(SIGNATURE.len() + 4) else {
        return Ok(Header::NeedMore);
    };
    let [command, family, high, low] = start[SIGNATURE.len()..] else {
        return Err(HeaderError::Binary);
    };
    let payload = usize::from(high) << 8 | usize::from(low);
    let length = start.len() + payload;
    if command >> 4 != 2 || command & 0xf > 1 || length > MOST_V2 {
        return Err(HeaderError::Binary);
    }
    let Some(payload) = rest.get(..payload) else {
        return Ok(Header::NeedMore);
    };
    if command & 0xf == 0 {
        return Ok(Header::Local { length });
    }
    let (source, destination) = match family {
        // TCP, or UDP, over IPv4.
        0x11 | 0x12 => {
            let [a, b, c, d, e, f, g, h, ports @ ..] = payload else {
                return Err(HeaderError::Binary);
            };
            let (source_port, destination_port) = ports_of(ports)?;
            (
                SocketAddr::new(Ipv4Addr::new(*a, *b, *c, *d).into(), source_port),
                SocketAddr::new(Ipv4Addr::new(*e, *f, *g, *h).into(), destination_port),
            )
        }
        // The same over IPv6.
        0x21 | 0x22 => {
            let Some((source, rest)) = payload.split_first_chunk::<16>() else {
                return Err(HeaderError::Binary);
            };
            let Some((destination, ports)) = rest.split_first_chunk::<16>() else {
                return Err(HeaderError::Binary);
            };
            let (source_port, destination_port) = ports_of(ports)?;
            (
                SocketAddr::new(Ipv6Addr::from(*source).into(), source_port),
                SocketAddr::new(Ipv6Addr::from(*destination).into(), destination_port),
            )
        }
        // Unspecified, or a local socket: nobody with an address.
        _ => return Ok(Header::Local { length }),
    };
    Ok(Header::Proxied {
        length,
        source,
        destination,
    })
}

fn ports_of(bytes: &[u8]) -> Result<(u16, u16), HeaderError> {
    match bytes {
        [a, b, c, d, ..] => Ok((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))),
        _ => Err(HeaderError::Binary),
    }
}

#[cfg(test)]
mod tests;
