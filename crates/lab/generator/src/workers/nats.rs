//! Where the NATS server is, and how we prove who we are. What proves it is never
//! shown, neither by `Debug` nor in an error.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lab_load::GenerateError;
use nats::Password;
use nats::client::{Client, ClientConfig, ConnectError, DialError, ServerAddress};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::time::Instant;
use url::Url;

/// Longest wait for one connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Time between two tries, at the start and after a connection was lost.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// Silence of the server after which it is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(1);

/// A NATS server.
#[derive(Debug, Clone)]
pub struct Nats {
    server: ServerAddress,
    /// Whether the address asks for TLS; the server may as well.
    tls: bool,
    token: Option<Password>,
    user: Option<(String, Password)>,
    authorities: Option<PathBuf>,
    timeout: Duration,
}

impl Nats {
    /// Reads `url` (`nats://HOST[:PORT]` or `tls://…`, `TOKEN@` or `USER:PASSWORD@`
    /// before the host), or without one the variable `HEADROOM_NATS_URL`. Other
    /// variables, so that no secret stands on a command line, where `ps` shows it:
    /// `HEADROOM_NATS_TOKEN`; `HEADROOM_NATS_USER` and `HEADROOM_NATS_PASSWORD`;
    /// `HEADROOM_NATS_CA` (file of authorities for TLS, PEM); `HEADROOM_NATS_WITHIN`
    /// (how long a server that does not answer yet is waited for; default: not at
    /// all). `variable` reads one.
    ///
    /// # Errors
    /// When there is no address, or a part of it or a variable cannot be read.
    pub fn new(
        url: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, GenerateError> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let from_variable = variable("HEADROOM_NATS_URL");
        let url = url.map(str::to_owned).or(from_variable).ok_or_else(|| {
            let help = "give --nats nats://HOST:4222, or set HEADROOM_NATS_URL";
            refused("no address was given").help(help)
        })?;
        // Not shown: it may hold a password.
        let unreadable = || {
            let help = "write it as nats://HOST:4222 or tls://HOST:4222";
            refused("the address cannot be read").help(help)
        };
        let url = match url.contains("://") {
            true => Url::parse(&url),
            false => Url::parse(&format!("nats://{url}")),
        };
        let url = url.map_err(|_| unreadable())?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.filter(|_| matches!(url.scheme(), "nats" | "tls"));
        let server = ServerAddress {
            host: host.ok_or_else(unreadable)?.trim_matches(['[', ']']).into(),
            port: url.port().unwrap_or(4222),
        };
        let timeout = match variable("HEADROOM_NATS_WITHIN") {
            None => Duration::ZERO,
            Some(text) => units::parse_duration(&text)
                .map_err(|found| refused(&format!("HEADROOM_NATS_WITHIN: {found}")))?,
        };
        let (mut token, mut user) = (variable("HEADROOM_NATS_TOKEN"), None);
        if token.is_none() {
            user = variable("HEADROOM_NATS_USER")
                .map(|user| (user, variable("HEADROOM_NATS_PASSWORD").unwrap_or_default()));
        }
        if token.is_none() && user.is_none() && !url.username().is_empty() {
            let name = decoded(url.username())?;
            match url.password() {
                Some(password) => user = Some((name, decoded(password)?)),
                None => token = Some(name),
            }
        }
        Ok(Self {
            server,
            tls: url.scheme() == "tls",
            token: token.map(Password::new),
            user: user.map(|(user, password)| (user, Password::new(password))),
            authorities: variable("HEADROOM_NATS_CA").map(PathBuf::from),
            timeout,
        })
    }

    /// The same, but a server that does not answer yet is waited for this long.
    #[must_use]
    pub fn waiting(mut self, timeout: Duration) -> Self {
        self.timeout = self.timeout.max(timeout);
        self
    }

    /// Connects; afterwards the client comes back by itself whenever it was cut off.
    pub(crate) async fn connect(&self) -> Result<Client, GenerateError> {
        let config = ClientConfig {
            servers: vec![self.server.clone()],
            user: self.user.clone(),
            token: self.token.clone(),
            tls: Some(Arc::new(self.tls_config()?)),
            tls_always: self.tls,
            attempts: 1,
            pause: AGAIN_AFTER,
            longest_pause: AGAIN_AFTER,
            connect_timeout: CONNECT_WITHIN,
            ping_interval: PING_EVERY,
            ..ClientConfig::default()
        };
        let until = Instant::now() + self.timeout;
        loop {
            let found = match Client::connect(config.clone()).await {
                Ok(client) => return Ok(client),
                Err(ConnectError::Unreachable { cause, .. }) => cause,
                Err(found @ ConnectError::NoServer) => {
                    return Err(self.error(found));
                }
            };
            let (is_hopeless, help) = match &found {
                DialError::Refused(text) if text.contains("Auth") => (
                    true,
                    "set HEADROOM_NATS_TOKEN, or HEADROOM_NATS_USER and HEADROOM_NATS_PASSWORD",
                ),
                DialError::Io(io) if io.get_ref().is_some_and(|it| it.is::<rustls::Error>()) => (
                    true,
                    "name the authority's certificate in HEADROOM_NATS_CA, or use nats:// for a server without TLS",
                ),
                _ => (
                    false,
                    "start one there (nats-server), or give --nats another address",
                ),
            };
            if is_hopeless || Instant::now() >= until {
                return Err(self.error(found).help(help));
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Trusts the system's authorities, and the one that is named.
    fn tls_config(&self) -> Result<rustls::ClientConfig, GenerateError> {
        let mut roots = rustls::RootCertStore::empty();
        // A system without any is told of by servers that have a certificate.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = &self.authorities {
            let unreadable = |found: &dyn fmt::Display| {
                self.error(format!("HEADROOM_NATS_CA: {}: {found}", file.display()))
            };
            let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
            let authorities: Vec<_> = read.map_err(|found| unreadable(&found))?;
            for authority in authorities {
                roots.add(authority).map_err(|found| unreadable(&found))?;
            }
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|found| self.error(found))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }

    /// What went wrong with this server.
    pub(crate) fn error(&self, found: impl ToString) -> GenerateError {
        GenerateError::new(format!("connect to NATS at {self}"), found)
    }
}

impl fmt::Display for Nats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "tls" } else { "nats" };
        write!(formatter, "{scheme}://{}", self.server)
    }
}

fn refused(found: &str) -> GenerateError {
    GenerateError::new("find the NATS server", found)
}

/// A part of a URL without its percent signs.
fn decoded(text: &str) -> Result<String, GenerateError> {
    let found = "a percent sign in the address is not followed by two hexadecimal digits";
    let wrong = || refused(found);
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nats(url: Option<&str>, variables: &[(&str, &str)]) -> Result<Nats, GenerateError> {
        Nats::new(url, |name| {
            let found = variables.iter().find(|(each, _)| *each == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    /// The token, the user and the password.
    fn proof(nats: &Nats) -> [Option<&str>; 3] {
        let user = nats.user.as_ref();
        [
            nats.token.as_ref().map(Password::reveal),
            user.map(|(user, _)| user.as_str()),
            user.map(|(_, password)| password.reveal()),
        ]
    }

    #[test]
    fn an_address_may_hold_what_proves_us_and_never_shows_it() {
        for (url, shown, expected) in [
            ("nats://n1", "nats://n1:4222", [None; 3]),
            ("n1:99", "nats://n1:99", [None; 3]),
            ("tls://[::1]:99", "tls://[::1]:99", [None; 3]),
            (
                "nats://s3cr%40t@n1",
                "nats://n1:4222",
                [Some("s3cr@t"), None, None],
            ),
            (
                "nats://me:s3cret@n1",
                "nats://n1:4222",
                [None, Some("me"), Some("s3cret")],
            ),
        ] {
            let nats = nats(Some(url), &[]).unwrap();
            assert_eq!(nats.to_string(), shown);
            assert_eq!(proof(&nats), expected, "{url}");
            assert!(!format!("{nats:?} {:?}", nats.error("")).contains("s3c"));
        }
    }

    #[test]
    fn variables_say_the_same() {
        let url = ("HEADROOM_NATS_URL", "nats://n2");
        let given = nats(Some("n1"), &[url]).unwrap();
        assert_eq!(given.to_string(), "nats://n1:4222");
        let from = nats(None, &[url, ("HEADROOM_NATS_TOKEN", "t")]).unwrap();
        assert_eq!(from.to_string(), "nats://n2:4222");
        assert_eq!(proof(&from), [Some("t"), None, None]);
        let named = [
            url,
            ("HEADROOM_NATS_USER", "u"),
            ("HEADROOM_NATS_PASSWORD", "p"),
        ];
        let named = nats(None, &named).unwrap();
        assert_eq!(proof(&named), [None, Some("u"), Some("p")]);
        let waits = nats(None, &[url, ("HEADROOM_NATS_WITHIN", "90s")]).unwrap();
        assert_eq!(waits.timeout, Duration::from_secs(90));
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_repeating_it() {
        for url in [
            "nats://",
            "http://me:s3cret@h",
            "nats://s3cret%4@h",
            "ws://s3cret@h",
        ] {
            let error = nats(Some(url), &[]).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        assert!(nats(None, &[]).unwrap_err().to_string().contains("--nats"));
    }
}
