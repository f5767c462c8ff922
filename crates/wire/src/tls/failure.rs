//! What went wrong with TLS.

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// What went wrong with TLS, as far as it matters to who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsFailure {
    /// The certificate is for other names.
    OtherName {
        /// Those that it is for.
        proven: Vec<String>,
        /// The one that was to be proven.
        expected: String,
    },
    /// No trusted authority has signed the certificate.
    UnknownAuthority,
    /// The certificate is valid no more, or not yet.
    Expired,
    /// The certificate has no names, but a common name that would be the right one.
    CommonNameOnly,
    /// The certificate is for another use, such as that of clients only.
    WrongUsage,
    /// The certificate has an extension that must be understood, and is not.
    CriticalExtension,
    /// There are more authorities between certificate and trust than one of them allows.
    TooManyIntermediates,
    /// The certificate is of no use in another way.
    BadCertificate,
    /// What came is not TLS.
    NotTls,
    /// The peer has refused, for this reason: `bad_certificate`.
    AlertBadCertificate,
    /// `unknown_ca`.
    AlertUnknownAuthority,
    /// `certificate_required`.
    AlertCertificateRequired,
    /// `handshake_failure`.
    AlertHandshakeFailure,
    /// Another alert, by its number.
    Alert(u8),
    /// Both sides have no version or cipher in common.
    Incompatible,
    /// Anything else.
    Other,
}

impl From<&Error> for TlsFailure {
    fn from(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(problem) => certificate(problem),
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType
                | InvalidMessage::UnknownProtocolVersion
                | InvalidMessage::MessageTooLarge
                | InvalidMessage::InvalidEmptyPayload,
            ) => Self::NotTls,
            Error::AlertReceived(alert) => match alert {
                AlertDescription::BadCertificate => Self::AlertBadCertificate,
                AlertDescription::UnknownCA => Self::AlertUnknownAuthority,
                AlertDescription::CertificateRequired => Self::AlertCertificateRequired,
                AlertDescription::HandshakeFailure => Self::AlertHandshakeFailure,
                other => Self::Alert(u8::from(*other)),
            },
            Error::PeerIncompatible(_) => Self::Incompatible,
            _ => Self::Other,
        }
    }
}

fn certificate(problem: &CertificateError) -> TlsFailure {
    match problem {
        // A bad signature is that of an authority that has a trusted one's name only.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            TlsFailure::UnknownAuthority
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => TlsFailure::Expired,
        CertificateError::NotValidForName => TlsFailure::OtherName {
            proven: Vec::new(),
            expected: String::new(),
        },
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            // The verifier gives them as `DnsName("a.example")` and `IpAddress(10.0.0.1)`.
            let (before, behind) = match expected {
                ServerName::IpAddress(_) => ("IpAddress(", ")"),
                _ => ("DnsName(\"", "\")"),
            };
            let proven = presented.iter();
            TlsFailure::OtherName {
                proven: proven
                    .filter_map(|name| name.strip_prefix(before)?.strip_suffix(behind))
                    .map(str::to_owned)
                    .collect(),
                expected: expected.to_str().into_owned(),
            }
        }
        CertificateError::InvalidPurpose => TlsFailure::WrongUsage,
        _ => match flaw(problem) {
            Some(Flaw::SelfSigned) => TlsFailure::UnknownAuthority,
            Some(Flaw::CommonNameOnly) => TlsFailure::CommonNameOnly,
            Some(Flaw::CriticalExtension) => TlsFailure::CriticalExtension,
            Some(Flaw::TooManyIntermediates) => TlsFailure::TooManyIntermediates,
            None => TlsFailure::BadCertificate,
        },
    }
}

/// What is wrong with a certificate, where rustls has no name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    /// It says that it is an authority's, signed itself, and was not given.
    #[error("the certificate is its own authority")]
    SelfSigned,
    /// See [`TlsFailure::CommonNameOnly`].
    #[error("the certificate has a common name instead of names")]
    CommonNameOnly,
    /// See [`TlsFailure::CriticalExtension`].
    #[error("the certificate has an unknown critical extension")]
    CriticalExtension,
    /// See [`TlsFailure::TooManyIntermediates`].
    #[error("there are more intermediates than an authority allows")]
    TooManyIntermediates,
}

fn flaw(problem: &CertificateError) -> Option<Flaw> {
    match problem {
        CertificateError::Other(other) => other.0.downcast_ref().copied(),
        _ => None,
    }
}

/// A short constant text for an error of TLS, to count errors by.
pub(crate) fn cause(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(problem) => match problem {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "certificate unknown"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "certificate expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "certificate not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "certificate for another name"
            }
            CertificateError::Revoked => "certificate revoked",
            _ => match flaw(problem) {
                Some(Flaw::SelfSigned) => "self-signed certificate",
                Some(Flaw::CommonNameOnly) => "certificate for another name",
                _ => "certificate invalid",
            },
        },
        Error::InvalidMessage(_) => "not TLS",
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => "no common protocol",
        Error::AlertReceived(_) => "refused by the target",
        Error::NoApplicationProtocol => "no common protocol",
        Error::PeerIncompatible(_) => "no common version or cipher",
        Error::DecryptError => "corrupt record",
        _ => "TLS broken",
    }
}
