//! Handing a run's numbers to a database of somebody else's.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::Full;
use net::{Answer, Client, ClientError, ClientOptions};

/// Attempts at a request that was not taken for reasons that pass.
const ATTEMPTS: u32 = 5;
/// Pause after the first attempt; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// Most bytes of an answer, and most of them that are shown.
const ANSWER: usize = 64 << 10;
const SHOWN: usize = 500;
/// The header, where no file has it.
const VARIABLE: &str = "HEADROOM_EXPORT_AUTHORIZATION";

/// Who may write there.
#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// File with the header Authorization, as `Bearer …`; without it, the variable
    /// HEADROOM_EXPORT_AUTHORIZATION
    #[arg(long, value_name = "FILE")]
    authorization: Option<PathBuf>,
    /// Authorities of an https address (PEM); without it, those of the web
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

/// Where numbers go.
pub(super) struct Receiver {
    client: Client,
    uri: Uri,
    authorization: Option<HeaderValue>,
}

impl Receiver {
    pub(super) fn new(url: &str, trust: &TrustArgs) -> Result<Self> {
        let uri: Uri = url
            .parse()
            .with_context(|| format!("{url:?} is no address"))?;
        let client = Client::new(ClientOptions {
            connections_per_host: 1,
            answer_bytes: ANSWER,
            tls: match uri.scheme_str() {
                Some("https") => Some(net::tls::anonymous(trust.cacert.as_deref())?),
                _ => None,
            },
            ..ClientOptions::default()
        });
        client.check(url)?;
        let authorization = trust.authorization()?;
        if authorization.is_some() && !is_private(&uri) {
            bail!(
                "{} would send the header Authorization over plain HTTP to another machine; give \
                 an https address",
                uri.host().unwrap_or_default()
            );
        }
        Ok(Self {
            client,
            uri,
            authorization,
        })
    }

    /// Posts a body until it is taken.
    pub(super) async fn post(&self, headers: &[(&str, &str)], body: Vec<u8>) -> Result<Answer> {
        let body = Bytes::from(body);
        let mut pause = PAUSE;
        for attempt in 1.. {
            let answered = self
                .client
                .request(self.request(headers, body.clone())?)
                .await;
            let cause = match answered {
                Ok(answer) if answer.status.is_success() => return Ok(answer),
                Ok(answer) if passes(answer.status) => describe(&answer),
                Ok(answer) => bail!("{} refused it: {}", self.uri, describe(&answer)),
                Err(error @ ClientError::Connect { lasts: true, .. }) => {
                    bail!("{} did not take it: {error}", self.uri)
                }
                Err(error) => error.to_string(),
            };
            if attempt == ATTEMPTS {
                bail!(
                    "{} did not take it in {ATTEMPTS} attempts: {cause}",
                    self.uri
                );
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        bail!("{} was never asked", self.uri)
    }

    fn request(&self, headers: &[(&str, &str)], body: Bytes) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::post(self.uri.clone()).body(Full::new(body))?;
        let fields = request.headers_mut();
        let agent = concat!("headroom/", env!("CARGO_PKG_VERSION"));
        fields.insert(USER_AGENT, HeaderValue::from_static(agent));
        for (name, value) in headers {
            fields.insert(HeaderName::from_bytes(name.as_bytes())?, value.parse()?);
        }
        if let Some(authorization) = &self.authorization {
            fields.insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }
}

impl TrustArgs {
    fn authorization(&self) -> Result<Option<HeaderValue>> {
        let (text, whence) = match &self.authorization {
            Some(file) => {
                let text = fs::read_to_string(file)
                    .with_context(|| format!("read --authorization from {}", file.display()))?;
                (text, file.display().to_string())
            }
            None => match std::env::var(VARIABLE) {
                Ok(text) => (text, VARIABLE.to_owned()),
                Err(_) => return Ok(None),
            },
        };
        if text.trim().is_empty() {
            bail!(
                "{whence} is empty; it holds the header Authorization, as `Bearer …`, and where none is \
                 needed, leave it out"
            );
        }
        let value = HeaderValue::from_str(text.trim());
        let mut value = value.with_context(|| format!("{whence} has bytes no header may have"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// Is what is sent seen by nobody on the way?
fn is_private(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    uri.scheme_str() == Some("https")
        || host == "localhost"
        || address.is_ok_and(|address| address.is_loopback())
}

/// May the same be taken later?
fn passes(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// An answer as text, as far as it can be shown.
fn describe(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let text = lab_report::terminal::printable(text.trim());
    let text: String = text.chars().take(SHOWN).collect();
    format!("{} {text}", answer.status).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_for_tls_and_for_this_machine() {
        let private = |url: &str| is_private(&url.parse().unwrap());
        for url in [
            "https://prometheus.example/api/v1/write",
            "http://127.0.0.1:9090/api/v1/write",
            "http://localhost:9090/",
            "http://[::1]:9090/",
        ] {
            assert!(private(url), "{url}");
        }
        for url in ["http://prometheus.example/", "http://10.0.0.7:9090/"] {
            assert!(!private(url), "{url}");
        }
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        for (status, again) in [
            (500, true),
            (503, true),
            (429, true),
            (400, false),
            (401, false),
        ] {
            assert_eq!(
                passes(StatusCode::from_u16(status).unwrap()),
                again,
                "{status}"
            );
        }
    }
}
