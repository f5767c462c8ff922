//! Tokens by client credentials, as UAA gives them.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http_body_util::Full;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{ClientError, PeerTls, TokenSettings, http_client};

/// Attempts for one token.
const ATTEMPTS: u32 = 3;
/// Pause between them.
const PAUSE: Duration = Duration::from_millis(500);
/// A token is not used in the last moments before it expires.
const EXPIRY_BUFFER: Duration = Duration::from_secs(30);

/// Whether nobody else can read what is sent to an address.
fn keeps_secret(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else {
        // Whoever uses it says what is wrong with it.
        return true;
    };
    url.scheme() != "http"
        || match url.host() {
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => true,
        }
}

/// Fetches tokens and keeps the last one.
pub(super) struct Tokens {
    http: net::Client,
    url: String,
    authorization: HeaderValue,
    known: Mutex<Option<Known>>,
}

struct Known {
    token: String,
    until: Instant,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default)]
    expires_in: u64,
}

impl Tokens {
    pub(super) fn new(settings: &TokenSettings) -> Result<Self, ClientError> {
        let url = settings.url.trim_end_matches('/').to_owned();
        if !keeps_secret(&url) {
            let cause = "the client's secret would cross the network in plain text; expected https, or a loopback address";
            return Err(ClientError::Settings {
                url,
                cause: cause.to_owned(),
            });
        }
        let tls = PeerTls {
            authorities: settings.authorities.clone(),
            ..PeerTls::default()
        };
        let pair = format!("{}:{}", settings.client, *settings.secret);
        let basic = format!("Basic {}", STANDARD.encode(pair));
        let mut authorization =
            HeaderValue::try_from(basic).map_err(|error| ClientError::Settings {
                url: url.clone(),
                cause: error.to_string(),
            })?;
        authorization.set_sensitive(true);
        Ok(Self {
            http: http_client(&url, &tls, settings.insecure)?,
            url,
            authorization,
            known: Mutex::default(),
        })
    }

    /// The token, from memory unless it is about to expire or `fresh` asks for another.
    /// Callers that come meanwhile wait for the same one.
    pub(super) async fn token(&self, fresh: bool) -> Result<String, ClientError> {
        let mut known = self.known.lock().await;
        if let Some(known) = known.as_ref()
            && !fresh
            && Instant::now() < known.until
        {
            return Ok(known.token.clone());
        }
        let mut attempt = 1;
        let granted = loop {
            match self.fetch().await {
                Ok(granted) => break granted,
                Err(cause) if attempt == ATTEMPTS => {
                    let url = self.url.clone();
                    return Err(ClientError::Token { url, cause });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
            attempt += 1;
        };
        let lives = Duration::from_secs(granted.expires_in).saturating_sub(EXPIRY_BUFFER);
        let until = Instant::now() + lives.min(Duration::from_secs(24 * 3600));
        let token = granted.access_token;
        *known = Some(Known {
            token: token.clone(),
            until,
        });
        Ok(token)
    }

    async fn fetch(&self) -> Result<Granted, String> {
        let request = Request::post(format!("{}/oauth/token", self.url))
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(Full::new(Bytes::from_static(
                b"grant_type=client_credentials",
            )))
            .map_err(|error| error.to_string())?;
        let answer = self.http.request(request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if !answer.status.is_success() {
            return Err(format!("it answered {}", answer.status));
        }
        serde_json::from_slice(&answer.body)
            .map_err(|error| format!("its answer cannot be read: {error}"))
    }
}
