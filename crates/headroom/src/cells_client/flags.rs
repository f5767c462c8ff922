//! Flags, and the variables that stand in for them, as places to ask.

use std::time::Duration;

use cells::client::{BbsAccess, Caller, Failure, Identity, LocketAccess, LocketCaller, Trust};

use super::args::{BbsCallArgs, BbsFlags, LocketFlags, TlsFlags, go_bool};

/// Longest wait that can be asked for: more than a hundred years.
const SECONDS_MOST: u64 = u32::MAX as u64;

/// A BBS for one question.
pub(super) fn caller(asking: &BbsCallArgs) -> Result<Caller, Failure> {
    let mut access = access(&asking.bbs)?;
    let seconds = match asking.timeout.filter(|seconds| *seconds != 0) {
        Some(seconds) => Some(seconds),
        None => variable("CFDOT_TIMEOUT")
            .map(|text| seconds(&text))
            .transpose()?,
    };
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds > 0);
    access.within = seconds.map(|seconds| Duration::from_secs(seconds.min(SECONDS_MOST)));
    access.caller()
}

/// A BBS that tells events.
pub(super) fn subscriber(bbs: &BbsFlags) -> Result<Caller, Failure> {
    access(bbs)?.caller()
}

/// A Locket.
pub(super) fn locket(flags: &LocketFlags) -> Result<LocketCaller, Failure> {
    let location = flag_or_variable(flags.location.as_ref(), "LOCKET_API_LOCATION").ok_or_else(|| {
        invalid(
            "Locket API Location not set. Please specify one with the '--locketAPILocation' flag or the 'LOCKET_API_LOCATION' environment variable.",
        )
    })?;
    let identity = match location.starts_with("http://") {
        true => None,
        false => Some(identity(&flags.tls)?),
    };
    LocketAccess { location, identity }.caller()
}

fn access(flags: &BbsFlags) -> Result<BbsAccess, Failure> {
    let url = flag_or_variable(flags.bbs_url.as_ref(), "BBS_URL").ok_or_else(|| {
        invalid(
            "BBS URL not set. Please specify one with the '--bbsURL' flag or the 'BBS_URL' environment variable.",
        )
    })?;
    // Cells of a BBS without certificates have none either.
    let identity = match url.starts_with("http://") {
        true => None,
        false if url.starts_with("https://") => Some(identity(&flags.tls)?),
        false => {
            return Err(invalid(&format!(
                "The URL '{url}' does not have an 'https' scheme, nor 'http', for a trial without certificates. Please specify one with the '--bbsURL' flag or the 'BBS_URL' environment variable."
            )));
        }
    };
    Ok(BbsAccess {
        url,
        identity,
        within: None,
    })
}

fn identity(flags: &TlsFlags) -> Result<Identity, Failure> {
    let anybody = match (flags.skip_cert_verify, variable("SKIP_CERT_VERIFY")) {
        (Some(flag), _) => flag,
        (None, Some(text)) => go_bool(&text).map_err(|_| {
            invalid(&format!(
                "The value '{text}' is not a valid value for SKIP_CERT_VERIFY. Please specify one of the following valid boolean values: 1, t, T, TRUE, true, True, 0, f, F, FALSE, false, False"
            ))
        })?,
        (None, None) => false,
    };
    let authority = flag_or_variable(flags.ca_cert_file.as_ref(), "CA_CERT_FILE");
    let trust = match (anybody, authority) {
        (true, _) => Trust::Anybody,
        (false, Some(authority)) => Trust::Authority(authority.into()),
        (false, None) => {
            return Err(invalid(
                "--caCertFile must be specified if using HTTPS and --skipCertVerify is not set",
            ));
        }
    };
    let certificate = flag_or_variable(flags.client_cert_file.as_ref(), "CLIENT_CERT_FILE");
    let key = flag_or_variable(flags.client_key_file.as_ref(), "CLIENT_KEY_FILE");
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return Err(invalid(
            "--clientCertFile and --clientKeyFile must both be specified for TLS connections.",
        ));
    };
    Ok(Identity {
        certificate: certificate.into(),
        key: key.into(),
        trust,
    })
}

/// A number of 16 bits, as cfdot reads it.
fn seconds(text: &str) -> Result<i64, Failure> {
    let seconds = text.parse::<i16>().map_err(|_| {
        Failure::Variable(format!(
            "The value '{text}' of CFDOT_TIMEOUT is not a number of seconds, 32767 at most"
        ))
    })?;
    Ok(seconds.into())
}

/// The flag, or else the variable; empty ones count as absent.
fn flag_or_variable(flag: Option<&String>, name: &str) -> Option<String> {
    let flag = flag.filter(|text| !text.is_empty()).cloned();
    flag.or_else(|| variable(name))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn invalid(text: &str) -> Failure {
    Failure::Invalid(text.to_owned())
}
