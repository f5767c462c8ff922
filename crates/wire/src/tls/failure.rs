//! What went wrong with TLS.

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
        } => TlsFailure::OtherName {
            // The verifier gives them as `DnsName("a.example")`.
            proven: presented
                .iter()
                .filter_map(|name| Some(name.split_once('"')?.1.rsplit_once('"')?.0.to_owned()))
                .collect(),
            expected: expected.to_str().into_owned(),
        },
        _ if is_self_signed(problem) => TlsFailure::UnknownAuthority,
        _ => TlsFailure::BadCertificate,
    }
}

/// An authority's own certificate, shown as a server's. The verifier's own error is not
/// among the kinds that rustls names.
fn is_self_signed(problem: &CertificateError) -> bool {
    matches!(problem, CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// A short constant text for an error of TLS, to count errors by.
pub(crate) fn cause(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(problem) => match problem {
            CertificateError::UnknownIssuer => "certificate unknown",
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
            _ if is_self_signed(problem) => "self-signed certificate",
            _ => "certificate invalid",
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
