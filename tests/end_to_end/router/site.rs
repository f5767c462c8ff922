//! The routes and backends of the recordings.

use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use super::backends::{Backend, Does, Wire, dead_port};
use super::rig::Rig;

/// The backends, as far as a test looks at one.
pub(super) struct Site {
    pub(super) echo: Backend,
    pub(super) hang: Backend,
    pub(super) upgrade: Backend,
}

impl Site {
    /// Starts the backends and registers their routes. `traced`: as in the second
    /// recording, whose backend did not switch protocols for a name in other letters.
    pub(super) fn start(rig: &mut Rig, traced: bool) -> Self {
        let echo = Backend::start(Does::Echo(""));
        let hang = Backend::start(Does::Hang);
        let upgrade = Backend::start(if traced { Does::Echo("") } else { Does::Tunnel });
        let cookie = "Set-Cookie: JSESSIONID=abc; Secure; SameSite=Lax; Max-Age=60\r\n";
        let sticky = Backend::start(Does::Echo(cookie));
        let rewritten = "x-lower-case: v\r\nX-Remove-Me: 1\r\nX-CF-Proxy-Signature: s\r\n";
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n\
                      3\r\nabc\r\n0\r\nX-T: tv\r\n\r\n";
        let (dead, dead_upgrade) = (dead_port(), dead_port());
        let own = |does| Backend::start(does).port();
        let routes = [
            ("echo.ex.com", echo.port(), "inst-9101"),
            ("close.ex.com", own(Does::Close), "inst-9102"),
            ("sticky.ex.com/ctx", sticky.port(), "inst-9103"),
            ("hdr.ex.com", own(Does::Echo(rewritten)), "inst-9104"),
            ("chunk.ex.com", own(Does::Says(chunks)), "inst-9105"),
            ("ws.ex.com", upgrade.port(), "inst-9106"),
            ("hang.ex.com", hang.port(), "inst-9107"),
            ("rst.ex.com", own(Does::Reset), "inst-9108"),
            ("dead.ex.com", dead, "inst-9199"),
            ("deadws.ex.com", dead_upgrade, "inst-9198"),
            ("mix.ex.com", dead, "inst-9199"),
            ("mix.ex.com", echo.port(), "inst-9101"),
            ("*.wild.ex.com", echo.port(), "inst-9101"),
            ("echo.ex.com/a/b", sticky.port(), "ab"),
        ];
        for (uri, port, instance) in routes {
            rig.register(uri, port, instance, &[]);
        }
        let service = ("route_service_url", json!("https://127.0.0.1:9443/rs"));
        rig.register("rs.ex.com", echo.port(), "inst-9101", &[service]);
        let plain = ("route_service_url", json!("http://127.0.0.1:9443/rs"));
        rig.register("rsbad.ex.com", echo.port(), "inst-9101", &[plain]);
        let least = ("options", json!({"loadbalancing": "least-connection"}));
        rig.register("lc.ex.com", echo.port(), "inst-9101", &[least]);
        rig.settle();
        Self {
            echo,
            hang,
            upgrade,
        }
    }
}

/// An authority and what it signs.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pub(super) pem: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("an authority");
        Self {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A backend whose certificate has a name; `asks`: it wants a certificate that this
    /// authority signed.
    pub(super) fn backend(&self, name: &str, asks: bool) -> Backend {
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(vec![name.to_owned()])
            .expect("parameters")
            .signed_by(&key, &self.issuer)
            .expect("a certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(self.certificate.clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let config = builder
            .with_single_cert(vec![leaf.der().clone()], key)
            .expect("a certificate");
        let config = Arc::new(config);
        Backend::behind(Does::Echo(""), move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).ok()?;
            Some(StreamOwned::new(connection, stream))
        })
    }
}

impl Wire for StreamOwned<ServerConnection, TcpStream> {}

/// Registers an endpoint that speaks TLS and must prove `san`.
pub(super) fn register_tls(rig: &mut Rig, uri: &str, port: u16, instance: &str, san: &str) {
    let message = json!({
        "uris": [uri], "host": "127.0.0.1", "tls_port": port, "app": "a", "tags": {},
        "private_instance_id": instance, "server_cert_domain_san": san,
    });
    rig.nats.publish("router.register", &message.to_string());
}
