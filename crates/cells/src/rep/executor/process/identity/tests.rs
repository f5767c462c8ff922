use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use net::tls::{self, Files};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, PKCS_RSA_SHA256, RsaKeySize,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use wire::tls::{Attribute, Subject};

use super::super::super::Definition;
use super::super::tests::job;
use super::certificate::Credentials;
use super::*;

/// Writes an authority with this key into a folder.
fn authority(folder: &Path, key: &KeyPair) -> IdentitySettings {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = &mut params.distinguished_name;
    name.push(DnType::OrganizationName, "Zoë's platform");
    name.push(DnType::CommonName, "instance identity");
    let settings = IdentitySettings {
        authority: folder.join("ca.pem"),
        key: folder.join("ca.key"),
        validity: Duration::from_secs(3600),
    };
    let certificate = params.self_signed(key).unwrap();
    std::fs::write(&settings.authority, certificate.pem()).unwrap();
    std::fs::write(&settings.key, key.serialize_pem()).unwrap();
    settings
}

/// Writes an authority into a folder, as an operator has it.
pub(in crate::rep::executor::process) fn rsa_authority(folder: &Path) -> IdentitySettings {
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
    authority(folder, &key.unwrap())
}

fn certificates(credentials: &Credentials) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_slice_iter(credentials.certificates.as_bytes());
    all.map(Result::unwrap).collect()
}

#[test]
fn a_certificate_says_whose_it_is_and_holds_for_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let settings = rsa_authority(folder.path());
    let signer = Authority::read(&settings.authority, &settings.key).unwrap();
    let units = ["space:s", "organization:o", "app:a"].map(str::to_owned);
    let key = std::fs::read_to_string(&settings.key).unwrap();
    let key = KeyPair::from_pem(&key).unwrap();
    let mut signer_key = vec![0x30, 22, 0x80, 20];
    signer_key.extend(CertificateParams::default().key_identifier(&key));
    // One ends beyond the years that are written with two digits.
    for begin in [1_800_000_000, 2_524_606_000] {
        let holder = Holder {
            guid: "g-1",
            address: "10.0.0.1".parse().ok(),
            organizational_units: &units,
        };
        let now = UNIX_EPOCH + Duration::from_secs(begin);
        let made = signer.issue(&holder, now, settings.validity).unwrap();
        let [leaf, root]: [_; 2] = certificates(&made).try_into().unwrap();

        let subject = Subject::of(&leaf).unwrap();
        let values = |kind| subject.values(kind).collect::<Vec<_>>();
        assert_eq!(values(Attribute::CommonName), ["g-1"]);
        let expected = ["app:a", "space:s", "organization:o"];
        assert_eq!(values(Attribute::OrganizationalUnit), expected);
        let operator = Subject::of_issuer(&leaf).unwrap();
        let named: Vec<_> = operator.values(Attribute::Organization).collect();
        assert_eq!(named, ["Zoë's platform"]);
        let mut parts = leaf.windows(signer_key.len());
        assert!(parts.any(|part| part == signer_key), "the signer's key");

        let mut roots = RootCertStore::empty();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        let verifier = verifier.build().unwrap();
        let verdict = |name: &'static str, at: u64| {
            let name = ServerName::try_from(name).unwrap();
            let at = UnixTime::since_unix_epoch(Duration::from_secs(at));
            let seen = verifier.verify_server_cert(&leaf, &[], &name, &[], at);
            seen.map(drop).map_err(|error| format!("{error:?}"))
        };
        let end = begin + 3600;
        for name in ["g-1", "10.0.0.1"] {
            for at in [begin, end] {
                assert_eq!(verdict(name, at), Ok(()), "{name} at {at}");
            }
        }
        for (name, at, expected) in [
            ("g-1", begin - 1, "NotValidYet"),
            ("g-1", end + 1, "Expired"),
            ("g-2", begin, "NotValidForName"),
            ("10.0.0.2", begin, "NotValidForName"),
        ] {
            let error = verdict(name, at).unwrap_err();
            assert!(error.contains(expected), "{name} at {at}: {error}");
        }
    }
}

#[test]
fn a_key_is_written_as_diego_writes_it_and_is_never_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let settings = rsa_authority(folder.path());
    let signer = Authority::read(&settings.authority, &settings.key).unwrap();
    let holder = Holder {
        guid: "g-1",
        address: None,
        organizational_units: &[],
    };
    let issue = || signer.issue(&holder, SystemTime::now(), settings.validity);
    let (made, other) = (issue().unwrap(), issue().unwrap());
    assert_ne!(made.key, other.key);
    let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes()).unwrap();
    assert!(matches!(key, PrivateKeyDer::Pkcs1(_)));
    let [leaf, _]: [_; 2] = certificates(&made).try_into().unwrap();
    let subject = Subject::of(&leaf).unwrap();
    assert_eq!(subject.values(Attribute::OrganizationalUnit).count(), 0);

    let files = Files {
        certificate: folder.path().join("instance.crt"),
        key: folder.path().join("instance.key"),
        authority: settings.authority.clone(),
    };
    std::fs::write(&files.certificate, &made.certificates).unwrap();
    std::fs::write(&files.key, &made.key).unwrap();
    tls::server(&files).unwrap();
    tls::client(&files).unwrap();
    // An authority's key may be written in the same way.
    Authority::read(&files.certificate, &files.key).unwrap();
}

#[test]
fn an_authority_that_cannot_sign_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = rsa_authority(folder.path());
    let [second, third] = ["second", "third"].map(|name| folder.path().join(name));
    for folder in [&second, &third] {
        std::fs::create_dir(folder).unwrap();
    }
    let other = rsa_authority(&second);
    let curve = authority(&third, &KeyPair::generate().unwrap());
    let none = folder.path().join("none");
    let refused = |certificate: &PathBuf, key: &PathBuf| {
        let read = Authority::read(certificate, key);
        read.map(drop).unwrap_err().to_string()
    };
    for (told, file, problem) in [
        (
            refused(&settings.authority, &none),
            &none,
            "No such file or directory",
        ),
        (
            refused(&none, &settings.key),
            &none,
            "No such file or directory",
        ),
        (
            refused(&settings.authority, &settings.authority),
            &settings.authority,
            "expected an RSA key in PEM, found none",
        ),
        (
            refused(&settings.key, &settings.key),
            &settings.key,
            "expected a certificate in PEM, found none",
        ),
        (
            refused(&curve.authority, &curve.key),
            &curve.key,
            "expected an RSA key, found another one",
        ),
        (
            refused(&other.authority, &settings.key),
            &other.authority,
            "expected the certificate of the key",
        ),
    ] {
        let expected = format!("{}: {problem}", file.display());
        assert!(told.contains(&expected), "{told}, not {expected}");
    }
}

#[test]
fn a_certificate_is_replaced_when_diego_would() {
    for (validity, expected) in [
        (24 * 3600, 24 * 3600 - 1800),
        (4 * 3600 + 1, 4 * 3600 + 1 - 1800),
        (4 * 3600, 3 * 3600 + 1800),
        (3600, 3150),
        (8, 7),
    ] {
        let after = renewed_after(Duration::from_secs(validity));
        assert_eq!(after, Duration::from_secs(expected), "{validity}");
    }
}

#[test]
fn a_folder_that_is_open_is_written_into_whatever_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let identities = Identities::open(&rsa_authority(folder.path())).unwrap();
    let (credentials, other) = (folder.path().join(FOLDER), folder.path().join("other"));
    for folder in [&credentials, &other] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let into = IdentityFolder::open(folder.path()).unwrap();
    let moved = folder.path().join("moved");
    std::fs::rename(&credentials, &moved).unwrap();
    std::os::unix::fs::symlink(&other, &credentials).unwrap();
    let job = job(Definition::Task(Box::default()));
    identities
        .put(&job, &into, &AtomicBool::new(false))
        .unwrap();
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(&moved).unwrap().count(), 2);
    assert!(IdentityFolder::open(folder.path()).is_err());
}
