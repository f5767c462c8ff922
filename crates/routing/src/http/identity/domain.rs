//! Domains that only clients with a certificate reach.

use crate::http::settings::ForwardedClientCert;

/// A domain whose clients must show a certificate (`domains` of gorouter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MtlsDomain {
    /// Its name; `*.` in front stands for one label (`domain`).
    pub name: String,
    /// Authorities of the clients' certificates, PEM; no others are trusted (`ca_certs`).
    pub authorities: String,
    /// What happens to `X-Forwarded-Client-Cert` (`forwarded_client_cert`, `sanitize_set`).
    pub client_cert: ForwardedClientCert,
    /// How a certificate stands in that field (`xfcc_format`).
    pub format: CertificateFormat,
}

/// How a certificate stands in `X-Forwarded-Client-Cert`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CertificateFormat {
    /// The whole certificate in base64.
    #[default]
    Raw,
    /// Hash and subject, as Envoy writes them.
    Envoy,
}

impl Default for MtlsDomain {
    fn default() -> Self {
        Self {
            name: String::new(),
            authorities: String::new(),
            client_cert: ForwardedClientCert::SanitizeSet,
            format: CertificateFormat::default(),
        }
    }
}

/// What is wrong with a list of domains: which one, and what was expected of it.
pub fn fault(domains: &[MtlsDomain]) -> Option<String> {
    domains.iter().enumerate().find_map(|(at, domain)| {
        let name = &domain.name;
        let rest = name.strip_prefix("*.").unwrap_or(name);
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let wrong = if rest.is_empty() || rest.starts_with('.') || !rest.bytes().all(known) {
            "expected a name, with \"*.\" in front or not"
        } else if domain.authorities.trim().is_empty() {
            "expected authorities of client certificates, found none"
        } else if domains[..at]
            .iter()
            .any(|earlier| earlier.name.eq_ignore_ascii_case(name))
        {
            "expected each domain once"
        } else {
            return None;
        };
        Some(format!("domain {} ({name:?}): {wrong}", at + 1))
    })
}

impl MtlsDomain {
    /// Whether a host is of this domain. Upper and lower case are the same.
    fn matches(&self, host: &[u8]) -> bool {
        let name = self.name.as_bytes();
        if host.eq_ignore_ascii_case(name) {
            return true;
        }
        let Some(parent) = name.strip_prefix(b"*") else {
            return false;
        };
        let Some(label) = host.len().checked_sub(parent.len()) else {
            return false;
        };
        let (label, rest) = host.split_at(label);
        !label.is_empty() && !label.contains(&b'.') && rest.eq_ignore_ascii_case(parent)
    }
}

/// The domain that a host is of: one with its very name before one with a wildcard.
/// `host` has no port.
pub fn find(domains: &[MtlsDomain], host: &[u8]) -> Option<usize> {
    let of = |wild: bool| {
        let is = |domain: &MtlsDomain| domain.name.starts_with('*') == wild && domain.matches(host);
        domains.iter().position(is)
    };
    of(false).or_else(|| of(true))
}

/// Whether a request may be sent on its connection: the handshake must have followed
/// the settings of the very domain that `host` is of, or of none if it is of none.
/// Else a client could shake hands for a name that needs no certificate, and then ask for
/// one that does. If not, the answer is 421 (RFC 9110 section 15.5.20).
pub fn fits_handshake(domains: &[MtlsDomain], host: &[u8], handshake: Option<usize>) -> bool {
    let host = &host[..memchr::memchr(b':', host).unwrap_or(host.len())];
    find(domains, host) == handshake
}
