//! A client of the routing API: calls, tokens, events.

mod events;
mod follow;
mod settings;
mod settings_file;
mod tokens;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::tls::{TlsClient, TlsOptions};

use super::model::{HttpRoute, RouterGroup, TcpMapping};
pub use events::{Decoder, Event, Events};
pub use follow::{FollowSettings, Update, follow};
pub use settings::{ClientSettings, PeerTls, TokenSettings};
pub use settings_file::{describe, describe_peer_tls};
use tokens::Tokens;

/// Bytes of an answer; a list of a million mappings fits.
const ANSWER_BYTES: usize = 512 << 20;
/// Longest wait for a whole answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Bytes of an answer's text that an error repeats.
const TEXT_SHOWN: usize = 512;

/// Why a call had no good answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The settings make no sense.
    #[error("use the routing API at {url}: {cause}")]
    Settings {
        /// Its address.
        url: String,
        /// What is wrong.
        cause: String,
    },
    /// No answer came.
    #[error("call the routing API: {0}")]
    Exchange(#[from] net::ClientError),
    /// It answered with another status than one of success.
    #[error("call the routing API: {path} answered {status}: {text}")]
    Refused {
        /// The path that was called.
        path: String,
        /// The status.
        status: StatusCode,
        /// What the answer said, cut to a bound.
        text: String,
    },
    /// The answer cannot be read.
    #[error("read an answer of the routing API: {path}: {cause}")]
    Unreadable {
        /// The path that was called.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
    /// No token could be had.
    #[error("fetch a token from {url}: {cause}")]
    Token {
        /// The token endpoint.
        url: String,
        /// What went wrong the last time.
        cause: String,
    },
    /// An event stream ended or broke.
    #[error("read events of the routing API: {0}")]
    Stream(String),
}

/// Calls the routing API. Cheap to clone; clones share connections and the token.
#[derive(Clone)]
pub struct ApiClient(Arc<Inner>);

struct Inner {
    http: net::Client,
    url: String,
    tokens: Option<Tokens>,
}

/// What a list, an upsert and a stream of events are about.
pub trait Kind: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Where they are listed.
    const LIST: &'static str;
    /// Where and how they are written.
    const UPSERT: (Method, &'static str);
    /// Where and how they are removed.
    const DELETE: (Method, &'static str);
    /// Where their events are.
    const EVENTS: &'static str;
}

impl Kind for TcpMapping {
    const LIST: &'static str = "/routing/v1/tcp_routes";
    const UPSERT: (Method, &'static str) = (Method::POST, "/routing/v1/tcp_routes/create");
    const DELETE: (Method, &'static str) = (Method::POST, "/routing/v1/tcp_routes/delete");
    const EVENTS: &'static str = "/routing/v1/tcp_routes/events";
}

impl Kind for HttpRoute {
    const LIST: &'static str = "/routing/v1/routes";
    const UPSERT: (Method, &'static str) = (Method::POST, "/routing/v1/routes");
    const DELETE: (Method, &'static str) = (Method::DELETE, "/routing/v1/routes");
    const EVENTS: &'static str = "/routing/v1/events";
}

impl ApiClient {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// When the address or a certificate cannot be used.
    pub fn new(settings: &ClientSettings) -> Result<Self, ClientError> {
        let url = settings.url.trim_end_matches('/').to_owned();
        let http = http_client(&url, &settings.tls, false)?;
        let tokens = settings.tokens.as_ref().map(Tokens::new).transpose()?;
        Ok(Self(Arc::new(Inner { http, url, tokens })))
    }

    /// Everything of a kind that has not expired.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn list<T: Kind>(&self) -> Result<Vec<T>, ClientError> {
        let body = self.call(Method::GET, T::LIST, Bytes::new()).await?;
        read(T::LIST, &body)
    }

    /// TCP mappings of these isolation segments; none named: of all.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn tcp_mappings(&self, segments: &[String]) -> Result<Vec<TcpMapping>, ClientError> {
        let mut path = TcpMapping::LIST.to_owned();
        for (at, segment) in segments.iter().enumerate() {
            path.push(if at == 0 { '?' } else { '&' });
            path.push_str("isolation_segment=");
            path.extend(url::form_urlencoded::byte_serialize(segment.as_bytes()));
        }
        let body = self.call(Method::GET, &path, Bytes::new()).await?;
        read(&path, &body)
    }

    /// Writes rows: new ones, or in place of those with the same key.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn upsert<T: Kind>(&self, rows: &[T]) -> Result<(), ClientError> {
        let (method, path) = T::UPSERT;
        self.call(method, path, json(&rows)).await.map(drop)
    }

    /// Removes rows; those that are not there are no error.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete<T: Kind>(&self, rows: &[T]) -> Result<(), ClientError> {
        let (method, path) = T::DELETE;
        self.call(method, path, json(&rows)).await.map(drop)
    }

    /// All router groups.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn router_groups(&self) -> Result<Vec<RouterGroup>, ClientError> {
        let path = "/routing/v1/router_groups";
        let body = self.call(Method::GET, path, Bytes::new()).await?;
        read(path, &body)
    }

    /// Makes a router group, or finds the one of the same name and type.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn create_router_group(
        &self,
        group: &RouterGroup,
    ) -> Result<RouterGroup, ClientError> {
        let path = "/routing/v1/router_groups";
        let body = self.call(Method::POST, path, json(group)).await?;
        read(path, &body)
    }

    /// What happens from now on. Returns once the server has subscribed us.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn events<T: Kind>(&self) -> Result<Events<T>, ClientError> {
        for fresh in [false, true] {
            let request = self
                .request(Method::GET, T::EVENTS, Bytes::new(), fresh)
                .await?;
            let open = self.0.http.open(request);
            let response = tokio::time::timeout(ANSWER_WITHIN, open)
                .await
                .map_err(|_| ClientError::Stream("no answer in time".to_owned()))??;
            let status = response.status();
            if status == StatusCode::UNAUTHORIZED && !fresh && self.0.tokens.is_some() {
                continue;
            }
            if !status.is_success() {
                let text = String::new();
                let path = T::EVENTS.to_owned();
                return Err(ClientError::Refused { path, status, text });
            }
            return Ok(Events::new(response.into_body()));
        }
        // The second round always returns.
        Err(ClientError::Stream("the token was refused".to_owned()))
    }

    /// Calls once more with a new token if the first is refused.
    async fn call(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        let mut fresh = false;
        loop {
            let request = self
                .request(method.clone(), path, body.clone(), fresh)
                .await?;
            let answer = self.0.http.request(request).await?;
            if answer.status.is_success() {
                return Ok(answer.body);
            }
            if answer.status == StatusCode::UNAUTHORIZED && !fresh && self.0.tokens.is_some() {
                fresh = true;
                continue;
            }
            let text = String::from_utf8_lossy(&answer.body);
            return Err(ClientError::Refused {
                path: path.to_owned(),
                status: answer.status,
                text: text.chars().take(TEXT_SHOWN).collect(),
            });
        }
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        fresh: bool,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let unusable = |cause: String| ClientError::Settings {
            url: self.0.url.clone(),
            cause,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.0.url));
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(tokens) = &self.0.tokens {
            let token = tokens.token(fresh).await?;
            let mut value = HeaderValue::try_from(format!("bearer {token}"))
                .map_err(|_| unusable("its token is no text of a header".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Full::new(body));
        request.map_err(|error| unusable(error.to_string()))
    }
}

/// A client for one server.
fn http_client(url: &str, tls: &PeerTls, insecure: bool) -> Result<net::Client, ClientError> {
    let refuse = |cause: String| ClientError::Settings {
        url: url.to_owned(),
        cause,
    };
    let config = if url.starts_with("https://") {
        let options = TlsOptions {
            authorities: &tls.authorities,
            certificate: &tls.certificate,
            key: &tls.key,
            insecure,
            ..TlsOptions::default()
        };
        // Each connection names its own server.
        let client = TlsClient::new("localhost", &options);
        Some(client.map_err(|error| refuse(error.to_string()))?.config())
    } else if url.starts_with("http://") {
        None
    } else {
        return Err(refuse("it must start with http:// or https://".to_owned()));
    };
    Ok(net::Client::new(net::ClientOptions {
        answer_within: ANSWER_WITHIN,
        answer_bytes: ANSWER_BYTES,
        tls: config,
        ..net::ClientOptions::default()
    }))
}

fn json(value: &(impl Serialize + ?Sized)) -> Bytes {
    // Plain data always has a JSON form.
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn read<T: DeserializeOwned>(path: &str, body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Unreadable {
        path: path.to_owned(),
        cause: error.to_string(),
    })
}
