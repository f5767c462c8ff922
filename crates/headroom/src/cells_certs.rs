//! Certificates for a trial of mutual TLS: an authority, and one certificate for all programs.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};

use crate::cli::CertsArgs;

/// How long certificates last: long enough for any trial, short enough not to be kept.
const LASTS: Duration = Duration::from_secs(90 * 24 * 3600);

/// How long a certificate has expired that is to have: more than clocks differ.
const EXPIRED: Duration = Duration::from_secs(24 * 3600);

/// Makes an authority and a certificate with which every program may serve and call, and prints the
/// flags that use them.
pub(crate) fn make(args: &CertsArgs) -> Result<()> {
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("make the folder {}", args.out.display()))?;
    let made = certificates(&args.names, args.expired).context("make certificates")?;
    let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| args.out.join(name));
    write(&ca, &made.authority, 0o644)?;
    write(&cert, &made.certificate, 0o644)?;
    write(&key, &made.key, 0o600)?;
    let [ca, cert, key] = [ca, cert, key].map(|path| path.display().to_string());
    println!("--tls-ca {ca} --tls-cert {cert} --tls-key {key}");
    if args.instance_identity {
        make_instance_identity(&args.out)?;
    }
    Ok(())
}

/// Makes an authority whose key is kept: with it, a rep signs a certificate of each container.
fn make_instance_identity(out: &Path) -> Result<()> {
    let made = Authority::make("headroom trial instance identity").context("make certificates")?;
    let [ca, key] =
        ["instance-identity-ca.pem", "instance-identity-key.pem"].map(|name| out.join(name));
    write(&ca, &made.certificate, 0o644)?;
    write(&key, &made.key.serialize_pem(), 0o600)?;
    println!(
        "--instance-identity-ca-path {} --instance-identity-private-key-path {}",
        ca.display(),
        key.display()
    );
    Ok(())
}

struct Made {
    authority: String,
    certificate: String,
    key: String,
}

/// The keys are RSA ones: Diego's clients accept no other of a server with TLS 1.2.
fn key() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
}

fn params(name: &str, names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now();
    // Clocks of machines differ.
    params.not_before = (now - Duration::from_secs(3600)).into();
    params.not_after = (now + LASTS).into();
    Ok(params)
}

struct Authority {
    params: CertificateParams,
    key: KeyPair,
    certificate: String,
}

impl Authority {
    fn make(name: &str) -> Result<Self, rcgen::Error> {
        let mut params = params(name, Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = key()?;
        Ok(Self {
            certificate: params.self_signed(&key)?.pem(),
            params,
            key,
        })
    }
}

/// The authority's key is not kept, so that nobody else can be let in later.
fn certificates(names: &[String], expired: bool) -> Result<Made, rcgen::Error> {
    let authority = Authority::make("headroom trial authority")?;
    let issuer = Issuer::from_params(&authority.params, &authority.key);

    let mut leaf = params("headroom trial", names.to_vec())?;
    if expired {
        let now = SystemTime::now();
        leaf.not_before = (now - 2 * EXPIRED).into();
        leaf.not_after = (now - EXPIRED).into();
    }
    leaf.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    leaf.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let leaf_key = key()?;
    let leaf = leaf.signed_by(&leaf_key, &issuer)?;
    Ok(Made {
        authority: authority.certificate,
        certificate: leaf.pem(),
        key: leaf_key.serialize_pem(),
    })
}

/// Writes a file that is not there yet: another trial may use it.
fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let mut file =
        file.with_context(|| format!("write {}; if it exists, use another --out", path.display()))?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use net::tls::{self, Files};

    use super::*;

    #[test]
    fn what_is_made_serves_and_calls_and_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let args = CertsArgs {
            out: folder.path().join("certs"),
            names: vec!["127.0.0.1".into(), "localhost".into()],
            expired: false,
            instance_identity: true,
        };
        make(&args).unwrap();
        let files = Files {
            certificate: args.out.join("cert.pem"),
            key: args.out.join("key.pem"),
            authority: args.out.join("ca.pem"),
        };
        tls::server(&files).unwrap();
        tls::client(&files).unwrap();
        let signer = Files {
            certificate: args.out.join("instance-identity-ca.pem"),
            key: args.out.join("instance-identity-key.pem"),
            authority: files.authority.clone(),
        };
        // It fails if they do not belong together.
        tls::server(&signer).unwrap();
        let before = std::fs::read(&files.key).unwrap();
        let again = make(&args).unwrap_err().to_string();
        assert!(
            again.contains("ca.pem; if it exists, use another --out"),
            "{again}"
        );
        assert_eq!(std::fs::read(&files.key).unwrap(), before);
    }

    #[test]
    fn what_shall_be_expired_is_and_its_authority_is_not() {
        use rustls::client::WebPkiServerVerifier;
        use rustls::client::danger::ServerCertVerifier as _;
        use rustls::pki_types::pem::PemObject as _;
        use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

        let verdict = |expired| {
            let made = certificates(&["app.test".to_owned()], expired).unwrap();
            let read = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            let mut roots = rustls::RootCertStore::empty();
            roots.add(read(&made.authority)).unwrap();
            let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
            let name = ServerName::try_from("app.test").unwrap();
            let leaf = read(&made.certificate);
            let verifier = verifier.build().unwrap();
            let seen = verifier.verify_server_cert(&leaf, &[], &name, &[], UnixTime::now());
            seen.map(drop).map_err(|error| format!("{error:?}"))
        };
        assert_eq!(verdict(false), Ok(()));
        let error = verdict(true).unwrap_err();
        assert!(error.contains("Expired"), "{error}");
    }
}
