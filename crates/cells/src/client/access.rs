//! Where a BBS or a Locket is, and what is shown and trusted there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diego::Bbs;
use http::Uri;
use net::tls::{self, ClientConfig, Files};
use net::{Client, ClientOptions};

use super::{Caller, Failure, LocketCaller};

/// Longest wait for an answer where nothing else is said: lists of a large deployment take seconds.
const WITHIN: Duration = Duration::from_secs(60);

/// Whom a client takes for the right server.
#[derive(Debug, Clone)]
pub enum Trust {
    /// Who has a certificate of one of these authorities (PEM) for its name.
    Authority(PathBuf),
    /// Anybody.
    Anybody,
}

/// What is shown to servers that ask for a certificate.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Certificate (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
    /// Whom it is shown to.
    pub trust: Trust,
}

impl Identity {
    fn config(&self) -> Result<Arc<ClientConfig>, Failure> {
        if let Trust::Authority(authority) = &self.trust {
            readable("CA cert", authority)?;
        }
        readable("key", &self.key)?;
        readable("cert", &self.certificate)?;
        let config = match &self.trust {
            Trust::Authority(authority) => tls::client(&Files {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
                authority: authority.clone(),
            }),
            Trust::Anybody => tls::trusting_client(&self.certificate, &self.key),
        };
        config.map_err(|error| Failure::Other(error.to_string()))
    }
}

fn readable(what: &str, path: &Path) -> Result<(), Failure> {
    match std::fs::File::open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Invalid(format!(
            "{what} file '{}' doesn't exist or is not readable: {error}",
            path.display()
        ))),
    }
}

/// A BBS and how it is reached.
#[derive(Debug, Clone)]
pub struct BbsAccess {
    /// For instance `https://127.0.0.1:8889`.
    pub url: String,
    /// What is shown to it; an `https` address needs it.
    pub identity: Option<Identity>,
    /// Longest wait for an answer; `None`: a minute.
    pub within: Option<Duration>,
}

impl BbsAccess {
    /// Ready to ask; nothing is sent yet.
    ///
    /// # Errors
    /// When the address is none, or a file is missing or holds something else.
    pub fn caller(&self) -> Result<Caller, Failure> {
        let within = self.within.unwrap_or(WITHIN);
        let client = Client::new(ClientOptions {
            answer_within: within,
            tls: self.identity.as_ref().map(Identity::config).transpose()?,
            ..ClientOptions::default()
        });
        let checked = client.check(&self.url);
        checked.map_err(|error| {
            Failure::Invalid(format!(
                "The value '{}' is not a valid BBS URL: {error}. Please specify one with the '--bbsURL' flag or the 'BBS_URL' environment variable.",
                self.url
            ))
        })?;
        Ok(Caller {
            bbs: Bbs::new(client.clone(), &*self.url).once(),
            client,
            trace: format!("{:032x}", rand::random::<u128>()),
            within,
        })
    }
}

/// A Locket and how it is reached.
#[derive(Debug, Clone)]
pub struct LocketAccess {
    /// `HOST:PORT`; with `http://` before it, one without certificates.
    pub location: String,
    /// What is shown to it; needed without `http://`.
    pub identity: Option<Identity>,
}

impl LocketAccess {
    /// Ready to ask; nothing is sent yet.
    ///
    /// # Errors
    /// When the location is none, or a file is missing or holds something else.
    pub fn caller(&self) -> Result<LocketCaller, Failure> {
        let (host, plain) = match self.location.strip_prefix("http://") {
            Some(host) => (host.trim_end_matches('/'), true),
            None => (&*self.location, false),
        };
        let uri = host.parse::<Uri>().ok();
        let authority = uri.as_ref().and_then(Uri::authority);
        if authority.is_none_or(|known| known.as_str() != host || known.port_u16().is_none()) {
            return Err(Failure::Invalid(format!(
                "The value '{}' is not HOST:PORT. Please specify a Locket with the '--locketAPILocation' flag or the 'LOCKET_API_LOCATION' environment variable.",
                self.location
            )));
        }
        let identity = self.identity.as_ref().filter(|_| !plain);
        Ok(LocketCaller {
            host: host.to_owned(),
            tls: identity.map(Identity::config).transpose()?,
            within: WITHIN,
        })
    }
}
