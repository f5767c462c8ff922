//! A scheduler whose every connection is mutual TLS, driven as any Diego would be.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::free_port::free_port;
use crate::lab::{Finished, Lab, Process, experiment, wait_until};

/// One certificate for everybody, signed by one authority, for 127.0.0.1.
struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    authority: PathBuf,
}

impl Certificate {
    fn named(lab: &Lab, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).expect("an authority");
        let issuer = Issuer::from_params(&params, &key);
        let leaf_key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(vec!["127.0.0.1".into()])
            .expect("parameters")
            .signed_by(&leaf_key, &issuer)
            .expect("a certificate");
        Self {
            certificate: lab.write(&format!("{name}.crt"), &leaf.pem()),
            key: lab.write(&format!("{name}.key"), &leaf_key.serialize_pem()),
            authority: lab.write(&format!("{name}-ca.crt"), &authority.pem()),
        }
    }

    fn set(&self) -> [String; 3] {
        [
            ("certificate", &self.certificate),
            ("key", &self.key),
            ("authority", &self.authority),
        ]
        .map(|(name, path)| format!("{name}={}", path.display()))
    }
}

/// A part of the scheduler; ends with the test.
fn start(lab: &Lab, certificate: &Certificate, part: &str, args: &[&str]) -> Process {
    let log = fs::File::create(lab.path(&format!("{part}.log"))).expect("a log");
    let child = lab
        .command()
        .args(["cells", part])
        .args(args)
        .arg("--tls-cert")
        .arg(&certificate.certificate)
        .arg("--tls-key")
        .arg(&certificate.key)
        .arg("--tls-ca")
        .arg(&certificate.authority)
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .expect("headroom starts");
    Process(child)
}

fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

#[test]
fn a_running_diego_is_driven_over_mutual_tls() {
    let lab = Lab::new();
    let certificate = Certificate::named(&lab, "own");
    let (bbs, auctioneer, admin) = (free_address(), free_address(), free_address());
    let (bbs_url, auctioneer_url) = (format!("https://{bbs}"), format!("https://{auctioneer}"));
    let data = lab.path("data").display().to_string();
    let _parts = [
        start(
            &lab,
            &certificate,
            "bbs",
            &[
                "--listen",
                &bbs,
                "--data",
                &data,
                "--auctioneer",
                &auctioneer_url,
            ],
        ),
        start(
            &lab,
            &certificate,
            "auctioneer",
            &["--listen", &auctioneer, "--bbs", &bbs_url],
        ),
        start(
            &lab,
            &certificate,
            "rep",
            &[
                "--count",
                "2",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                &admin,
                "--bbs",
                &bbs_url,
            ],
        ),
    ];
    wait_until("the cells to be known", || {
        std::net::TcpStream::connect(&admin).is_ok()
    });

    let [own, key, authority] = certificate.set();
    let address = format!("bbs={bbs_url}");
    let set = [
        "--set", &address, "--set", &own, "--set", &key, "--set", &authority, "--set", "tasks=20",
    ];
    lab.run(&experiment("any-diego.toml"), &set).expect_code(0);
}

#[test]
fn a_missing_certificate_is_said_before_anything_is_made() {
    let lab = Lab::new();
    lab.run(
        &experiment("any-diego.toml"),
        &["--set", "authority=nowhere.crt"],
    )
    .expect_code(4)
    .expect_stderr("nowhere.crt");
}

#[test]
fn a_client_whose_certificate_is_not_taken_is_told() {
    let lab = Lab::new();
    let own = Certificate::named(&lab, "own");
    let theirs = Certificate::named(&lab, "theirs");
    let bbs = free_address();
    let data = lab.path("data").display().to_string();
    let _bbs = start(&lab, &own, "bbs", &["--listen", &bbs, "--data", &data]);
    wait_until("the BBS to listen", || {
        std::net::TcpStream::connect(&bbs).is_ok()
    });
    let cells = |shown: &Certificate| {
        let mut command = lab.command();
        command.args(["cells", "cells", "--bbsURL", &format!("https://{bbs}")]);
        command.arg("--caCertFile").arg(&own.authority);
        command.arg("--clientCertFile").arg(&shown.certificate);
        command.arg("--clientKeyFile").arg(&shown.key);
        Finished::of(command.output().expect("headroom runs"))
    };
    cells(&own).expect_code(0);
    cells(&theirs)
        .expect_code(5)
        .expect_stderr("it does not take your certificate");
}
