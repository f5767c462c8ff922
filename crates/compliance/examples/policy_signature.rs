//! What the signature of a policy costs: processor time to sign one, and to check one.
//!
//! `cargo run --release -p compliance --example policy_signature -- [POLICIES] [BYTES]`: so many policies of
//! so many bytes, packed.

use compliance::policy::signature::{IssueNumber, PolicySigner};
use rcgen::{KeyPair, PKCS_ED25519};
use rustix::time::{ClockId, clock_gettime};

/// Processor time of this process, in nanoseconds.
fn spent() -> i128 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let policies = numbers.next().transpose()?.unwrap_or(20_000).max(1);
    let bytes = numbers.next().transpose()?.unwrap_or(16 << 10).max(10);
    let pem = KeyPair::generate_for(&PKCS_ED25519)?.serialize_pem();
    let signer = PolicySigner::from_pem(pem.as_bytes())?;
    let key = signer.key();
    let mut packed = vec![7; bytes];
    // The header of gzip, without flags.
    packed[..4].copy_from_slice(&[0x1f, 0x8b, 8, 0]);
    let (mut number, begin) = (IssueNumber::of_start(1), spent());
    let mut file = Vec::new();
    for _ in 0..policies {
        number = number.next();
        let signed = signer.sign("node", number, &packed).attach(&packed);
        file = signed.ok_or("it is no gzip")?;
    }
    let signed = spent();
    for _ in 0..policies {
        key.verify("node", &file)?;
    }
    let each = |time: i128| time as f64 / 1e3 / policies as f64;
    println!(
        "{policies} policies of {bytes} bytes: signed in {:.1} µs each, checked in {:.1} µs each",
        each(signed - begin),
        each(spent() - signed)
    );
    Ok(())
}
