//! Whether a file is the one that was meant.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Why a file is not the one that was meant. The texts are Diego's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Checksum failed: '{problem}', expected '{expected}', got '{found}'")]
pub(in crate::rep::executor::process) struct ChecksumError {
    problem: &'static str,
    expected: String,
    found: String,
}

/// The sum that a file must have.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    hasher: Hasher,
    value: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Hasher {
    Md5(Md5),
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Expected {
    /// By its algorithm (`md5`, `sha1` or `sha256`) and its value in hexadecimal digits; `None`
    /// when neither is given.
    pub(super) fn of(algorithm: &str, value: &str) -> Result<Option<Self>, ChecksumError> {
        if algorithm.is_empty() && value.is_empty() {
            return Ok(None);
        }
        let (hasher, length) = match algorithm {
            "md5" => (Hasher::Md5(Md5::new()), 16),
            "sha1" => (Hasher::Sha1(Sha1::new()), 20),
            "sha256" => (Hasher::Sha256(Sha256::new()), 32),
            found => {
                return Err(ChecksumError {
                    problem: "algorithm invalid",
                    expected: "[md5, sha1, sha256]".into(),
                    found: found.into(),
                });
            }
        };
        match bytes(value.trim_matches('"')) {
            Some(value) if value.len() == length => Ok(Some(Self { hasher, value })),
            _ => Err(ChecksumError {
                problem: "checksum missing or invalid",
                expected: "a valid checksum".into(),
                found: value.into(),
            }),
        }
    }

    /// Takes the next bytes of the file.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match &mut self.hasher {
            Hasher::Md5(hasher) => hasher.update(bytes),
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// The file is complete.
    pub(super) fn check(self) -> Result<(), ChecksumError> {
        let found = match self.hasher {
            Hasher::Md5(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha1(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha256(hasher) => hasher.finalize().to_vec(),
        };
        match found == self.value {
            true => Ok(()),
            false => Err(ChecksumError {
                problem: "checksum mismatch",
                expected: digits(&self.value),
                found: digits(&found),
            }),
        }
    }
}

/// What hexadecimal digits say.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(algorithm: &str, value: &str, file: &[u8]) -> Result<(), ChecksumError> {
        match Expected::of(algorithm, value)? {
            None => Ok(()),
            Some(mut expected) => {
                file.chunks(2).for_each(|part| expected.update(part));
                expected.check()
            }
        }
    }

    #[test]
    fn sums_are_told_apart() {
        let sums = [
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "sha256",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ];
        for (algorithm, value) in sums {
            assert_eq!(checked(algorithm, value, b"abc"), Ok(()), "{algorithm}");
            let quoted = format!("\"{}\"", value.to_uppercase());
            assert_eq!(checked(algorithm, &quoted, b"abc"), Ok(()), "{algorithm}");
            let error = checked(algorithm, value, b"abd").unwrap_err().to_string();
            assert!(
                error.starts_with("Checksum failed: 'checksum mismatch', expected '"),
                "{error}"
            );
        }
        assert_eq!(checked("", "", b"abc"), Ok(()));
    }

    #[test]
    fn what_is_no_sum_is_refused() {
        for (algorithm, value) in [
            ("sha1", ""),
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d8"),
            ("sha1", "x9993e364706816aba3e25717850c26c9cd0d89d"),
            ("md5", "é00150983cd24fb0d6963f7d28e17f7"),
            ("sha512", "00"),
            ("", "00"),
        ] {
            assert!(
                checked(algorithm, value, b"abc").is_err(),
                "{algorithm} {value}"
            );
        }
    }
}
