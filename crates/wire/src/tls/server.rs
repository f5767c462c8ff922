//! The server's side.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, Ticketer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection};

use super::pem::{certificates, key};
use super::suites::chosen;
use super::verify::{Clients, Trust};
use super::{Subject, SubjectRule, TlsOptionsError, TlsStream, protocols};
use crate::stream::StreamError;

/// What a server's certificate is called in errors.
const WHAT: &str = "the server certificate";

/// What the authorities of clients are called in errors.
const AUTHORITIES: &str = "the authorities of clients";

/// Says which rule is of an authority that is none of these: a slip in its name would switch
/// it off without a word.
///
/// # Errors
/// When there is one, or the authorities cannot be read.
pub fn check_subject_rules(
    rules: &[SubjectRule],
    authorities: &str,
) -> Result<(), TlsOptionsError> {
    if rules.is_empty() {
        return Ok(());
    }
    let known: Vec<Subject> = certificates(AUTHORITIES, authorities)?
        .iter()
        .filter_map(|authority| Subject::of(authority))
        .collect();
    match rules
        .iter()
        .find(|rule| !known.iter().any(|name| name.is_same(&rule.issuer)))
    {
        None => Ok(()),
        Some(rule) => Err(TlsOptionsError::Rule {
            issuer: rule.issuer.to_string(),
        }),
    }
}

/// What a server wants of TLS. All texts are PEM.
#[derive(Clone, Copy, Default)]
pub struct TlsServerOptions<'a> {
    /// Certificates, each with its chain, and their keys. A client is shown the one that
    /// has the name that it asks for (SNI), else one with a wildcard that fits, else the
    /// first.
    pub certificates: &'a [(String, String)],
    /// What is asked of clients.
    pub clients: ClientProof,
    /// Authorities of client certificates; empty: those of the public web.
    pub client_authorities: &'a str,
    /// Subjects that clients of some authorities must have; each rule's authority must be one
    /// of those: see [`check_subject_rules`].
    pub subject_rules: &'a [SubjectRule],
    /// TLS 1.3 beside TLS 1.2.
    pub tls13: bool,
    /// TLS 1.3 alone.
    pub only_tls13: bool,
    /// Suites of TLS 1.2 as [`cipher_suite`](super::cipher_suite) names them; empty: all.
    pub cipher_suites: &'a [String],
    /// Protocols to agree on (ALPN), the best first; empty: say nothing.
    pub protocols: &'a [&'a str],
}

// Without keys and secrets.
impl std::fmt::Debug for TlsServerOptions<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TlsServerOptions")
            .finish_non_exhaustive()
    }
}

/// Whether clients have to show a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientProof {
    /// It is not asked for.
    #[default]
    None,
    /// It is asked for, and checked if there is one.
    Asked,
    /// Without one there is no connection.
    Required,
}

/// How connections of clients are taken. Cheap to clone; clones resume each other's
/// sessions.
#[derive(Debug, Clone)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
}

impl TlsServer {
    /// Prepares a server.
    ///
    /// # Errors
    /// When a text of the options does not hold what it should, or there is no
    /// certificate.
    pub fn new(options: &TlsServerOptions<'_>) -> Result<Self, TlsOptionsError> {
        let mut provider = aws_lc_rs::default_provider();
        if !options.cipher_suites.is_empty() {
            provider.cipher_suites = chosen(options.cipher_suites);
        }
        let provider = Arc::new(provider);
        let versions: &[_] = match (options.only_tls13, options.tls13) {
            (true, _) => &[&TLS13],
            (false, true) => &[&TLS13, &TLS12],
            (false, false) => &[&TLS12],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| unusable(&error))?;
        let builder = if options.clients == ClientProof::None {
            builder.with_no_client_auth()
        } else {
            let algorithms = provider.signature_verification_algorithms;
            let trust = Trust::new(AUTHORITIES, options.client_authorities, false, algorithms)?;
            let required = options.clients == ClientProof::Required;
            let rules = options.subject_rules.to_vec();
            builder.with_client_cert_verifier(Arc::new(Clients::new(trust, required, rules)))
        };
        let shown = Certificates::new(options.certificates, &provider)?;
        let mut config = builder.with_cert_resolver(Arc::new(shown));
        // Sessions are kept by the clients: nothing to look up, and no memory here.
        config.ticketer = Ticketer::new().map_err(|error| unusable(&error))?;
        config.alpn_protocols = protocols(options.protocols);
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// The same with other protocols to agree on (ALPN).
    #[must_use]
    pub fn with_protocols(&self, names: &[&str]) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols(names);
        Self {
            config: Arc::new(config),
        }
    }

    /// Begins TLS over an accepted socket; [`TlsStream::handshake`] goes on with it.
    ///
    /// # Errors
    /// When there is no randomness to begin with.
    pub fn begin(&self, socket: OwnedFd) -> Result<TlsStream, StreamError> {
        self.begin_with(socket, &[])
    }

    /// The same behind bytes that were received already, such as a `ClientHello` that was
    /// read to find out whom it asks for.
    ///
    /// # Errors
    /// When these bytes are not TLS, or there is no randomness.
    pub fn begin_with(&self, socket: OwnedFd, received: &[u8]) -> Result<TlsStream, StreamError> {
        let connection = ServerConnection::new(Arc::clone(&self.config))?;
        let mut stream = TlsStream::new(socket, connection.into());
        stream.feed(received)?;
        Ok(stream)
    }
}

fn unusable(error: &impl ToString) -> TlsOptionsError {
    TlsOptionsError::Certificate {
        what: WHAT,
        found: error.to_string(),
    }
}

/// Certificates by the names in them.
#[derive(Debug)]
struct Certificates {
    /// Lower case; wildcards begin with `*.`.
    by_name: HashMap<String, Arc<CertifiedKey>>,
    first: Arc<CertifiedKey>,
}

impl Certificates {
    fn new(pairs: &[(String, String)], provider: &CryptoProvider) -> Result<Self, TlsOptionsError> {
        let mut by_name = HashMap::new();
        let mut first = None;
        for (chain, private) in pairs {
            let chain = certificates(WHAT, chain)?;
            let private = key("the key of the server certificate", private)?;
            let shown = CertifiedKey::from_der(chain, private, provider)
                .map_err(|error| unusable(&error))?;
            let shown = Arc::new(shown);
            for name in names(&shown)? {
                by_name.entry(name).or_insert_with(|| Arc::clone(&shown));
            }
            first.get_or_insert(shown);
        }
        let first = first.ok_or_else(|| TlsOptionsError::Pem {
            what: WHAT,
            found: "none".to_owned(),
        })?;
        Ok(Self { by_name, first })
    }

    fn fitting(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        self.by_name.get(&name).or_else(|| {
            let (_, parent) = name.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        })
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let fitting = hello.server_name().and_then(|name| self.fitting(name));
        Some(Arc::clone(fitting.unwrap_or(&self.first)))
    }
}

/// The DNS names that a certificate proves, in lower case.
fn names(shown: &CertifiedKey) -> Result<Vec<String>, TlsOptionsError> {
    let leaf = shown.end_entity_cert().map_err(|error| unusable(&error))?;
    let leaf = webpki::EndEntityCert::try_from(leaf).map_err(|error| unusable(&error))?;
    Ok(leaf
        .valid_dns_names()
        .map(str::to_ascii_lowercase)
        .collect())
}
