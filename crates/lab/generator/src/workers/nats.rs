//! Where the NATS server is, and how we prove who we are. What proves it is never
//! shown, neither by `Debug` nor in an error.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use lab_load::GenerateError;
use tokio::time::Instant;

use super::error;

/// Longest wait for one connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Time between two tries, at the start and after a connection was lost.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// Messages that wait in the client for us, for each subject; and commands of ours
/// that wait for it. Beyond the first messages are dropped, and come again.
const WAITING: usize = 256;

/// A NATS server.
#[derive(Clone)]
pub struct Nats {
    server: ServerAddr,
    proof: Proof,
    authorities: Option<PathBuf>,
    timeout: Duration,
}

#[derive(Clone, PartialEq, Eq)]
enum Proof {
    None,
    Token(String),
    Password { user: String, password: String },
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
            refused("no address was given", Some(help))
        })?;
        // Not shown: it may hold a password.
        let unreadable = || {
            let help = "write it as nats://HOST:4222 or tls://HOST:4222";
            refused("the address cannot be read", Some(help))
        };
        let server = ServerAddr::from_str(&url)
            .ok()
            .filter(|server| !server.host().is_empty() && !server.is_websocket())
            .ok_or_else(unreadable)?;
        let timeout = match variable("HEADROOM_NATS_WITHIN") {
            None => Duration::ZERO,
            Some(text) => units::parse_duration(&text)
                .map_err(|found| refused(&format!("HEADROOM_NATS_WITHIN: {found}"), None))?,
        };
        let in_url = (server.username(), server.password());
        let proof = if let Some(token) = variable("HEADROOM_NATS_TOKEN") {
            Proof::Token(token)
        } else if let Some(user) = variable("HEADROOM_NATS_USER") {
            let password = variable("HEADROOM_NATS_PASSWORD").unwrap_or_default();
            Proof::Password { user, password }
        } else {
            match in_url {
                (Some(user), Some(password)) => Proof::Password {
                    user: decoded(user)?,
                    password: decoded(password)?,
                },
                (Some(token), None) => Proof::Token(decoded(token)?),
                _ => Proof::None,
            }
        };
        let mut bare = server.into_inner();
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        Ok(Self {
            server: ServerAddr::from_url(bare).map_err(|_| unreadable())?,
            proof,
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
        let until = Instant::now() + self.timeout;
        loop {
            let found = match self.options().connect(self.server.clone()).await {
                Ok(client) => return Ok(client),
                Err(found) => found,
            };
            let (hopeless, help) = match found.kind() {
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => (
                    true,
                    "set HEADROOM_NATS_TOKEN, or HEADROOM_NATS_USER and HEADROOM_NATS_PASSWORD",
                ),
                ConnectErrorKind::ServerParse => (true, "write it as nats://HOST:4222"),
                ConnectErrorKind::Tls => (
                    true,
                    "name the authority's certificate in HEADROOM_NATS_CA, or use nats:// for a server without TLS",
                ),
                ConnectErrorKind::Dns => (false, "check the name of the host"),
                _ => (
                    false,
                    "start one there (nats-server), or give --nats another address",
                ),
            };
            if hopeless || Instant::now() >= until {
                return Err(self.error(found.to_string(), Some(help)));
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// What went wrong with this server.
    pub(crate) fn error(&self, found: String, help: Option<&str>) -> GenerateError {
        error(format!("connect to NATS at {self}"), found, help)
    }

    fn options(&self) -> ConnectOptions {
        let options = match &self.proof {
            Proof::None => ConnectOptions::new(),
            Proof::Token(token) => ConnectOptions::with_token(token.clone()),
            Proof::Password { user, password } => {
                ConnectOptions::with_user_and_password(user.clone(), password.clone())
            }
        };
        let options = match &self.authorities {
            Some(file) => options.add_root_certificates(file.clone()),
            None => options,
        };
        options
            .name("headroom")
            .require_tls(self.server.tls_required())
            .connection_timeout(CONNECT_WITHIN)
            .ping_interval(Duration::from_secs(1))
            .reconnect_delay_callback(|_| AGAIN_AFTER)
            .ignore_discovered_servers()
            .subscription_capacity(WAITING)
            .client_capacity(WAITING)
            .no_echo()
    }
}

impl fmt::Display for Nats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = (self.server.scheme(), self.server.host(), self.server.port());
        match host.contains(':') {
            true => write!(formatter, "{scheme}://[{host}]:{port}"),
            false => write!(formatter, "{scheme}://{host}:{port}"),
        }
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Nats({self})")
    }
}

fn refused(found: &str, help: Option<&str>) -> GenerateError {
    error("find the NATS server", found, help)
}

/// A part of a URL without its percent signs.
fn decoded(text: &str) -> Result<String, GenerateError> {
    let found = "a percent sign in the address is not followed by two hexadecimal digits";
    let wrong = || refused(found, None);
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

    fn password(user: &str, password: &str) -> Proof {
        let (user, password) = (user.to_owned(), password.to_owned());
        Proof::Password { user, password }
    }

    #[test]
    fn an_address_may_hold_what_proves_us_and_never_shows_it() {
        for (url, shown, proof) in [
            ("nats://n1", "nats://n1:4222", Proof::None),
            ("n1:99", "nats://n1:99", Proof::None),
            ("tls://[::1]:99", "tls://[::1]:99", Proof::None),
            (
                "nats://s3cr%40t@n1",
                "nats://n1:4222",
                Proof::Token("s3cr@t".into()),
            ),
            (
                "nats://me:s3cret@n1",
                "nats://n1:4222",
                password("me", "s3cret"),
            ),
        ] {
            let nats = nats(Some(url), &[]).unwrap();
            assert_eq!(nats.to_string(), shown);
            assert!(nats.proof == proof, "{url}");
            assert!(!format!("{nats:?} {:?}", nats.error(String::new(), None)).contains("s3c"));
        }
    }

    #[test]
    fn variables_say_the_same() {
        let url = ("HEADROOM_NATS_URL", "nats://n2");
        let given = nats(Some("n1"), &[url]).unwrap();
        assert_eq!(given.to_string(), "nats://n1:4222");
        let from = nats(None, &[url, ("HEADROOM_NATS_TOKEN", "t")]).unwrap();
        assert_eq!(from.to_string(), "nats://n2:4222");
        assert!(from.proof == Proof::Token("t".into()));
        let named = [
            url,
            ("HEADROOM_NATS_USER", "u"),
            ("HEADROOM_NATS_PASSWORD", "p"),
        ];
        assert!(nats(None, &named).unwrap().proof == password("u", "p"));
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
