//! Any bytes as a signed message, as a certificate and as an upload: nothing that was not signed
//! is accepted, and nothing grows beyond its limit.

#![no_main]

use compliance::reports::run_info::Packing;
use compliance::reports::signature::{NodeCertificate, verify};
use compliance::reports::upload::unpack;
use libfuzzer_sys::fuzz_target;

const CERTIFICATE: &[u8] = include_bytes!("../../crates/compliance/tests/data/openssl/p256.cert");

/// The only text that this certificate's key has signed.
const SIGNED: &[u8] = b"hello\r\nworld\r\n";

fuzz_target!(|data: &[u8]| {
    let _ = NodeCertificate::from_der(data);
    let _ = NodeCertificate::from_pem(data);
    let certificate = NodeCertificate::from_pem(CERTIFICATE).expect("a certificate");
    if let Ok(text) = verify(data, &certificate) {
        assert_eq!(&*text, SIGNED);
    }
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zip] {
        if let Ok(unpacked) = unpack(data, packing, 4096) {
            assert!(unpacked.len() <= 4096);
        }
    }
});
