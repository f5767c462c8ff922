//! A client that keeps connections open and never more of them than it may.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error as _;
use std::iter::successors;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use http::response::Parts;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_rustls::TlsConnector;

use crate::body::{BodyError, read_body, take_pieces};
use crate::dial::{dial, server_name};

/// Hosts of which connections are kept.
const HOSTS_MOST: usize = 1024;

/// Bounds and trust of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Connections to one host and port; a request beyond that waits.
    pub connections_per_host: usize,
    /// Longest wait for a connection, TLS included.
    pub connect_within: Duration,
    /// Longest wait for a whole answer.
    pub answer_within: Duration,
    /// Bytes of an answer's body.
    pub answer_bytes: usize,
    /// Needed for `https` addresses.
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connections_per_host: 64,
            connect_within: Duration::from_secs(5),
            answer_within: Duration::from_secs(30),
            answer_bytes: 1 << 30,
            tls: None,
        }
    }
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address cannot be used.
    #[error("request {uri}: {cause}")]
    Address {
        /// The address.
        uri: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// No connection came about: nothing was sent.
    #[error("connect to {host}: {cause}")]
    Connect {
        /// Host and port.
        host: String,
        /// What the system or the peer said.
        cause: String,
        /// It is the same later: no TLS is spoken there, or a certificate is not trusted.
        lasts: bool,
    },
    /// The connection broke before the answer was complete.
    #[error("wait for an answer from {host}: {cause}")]
    Broken {
        /// Host and port.
        host: String,
        /// What broke.
        cause: String,
    },
    /// The answer took too long.
    #[error("no answer from {host} within {limit:?}")]
    TooSlow {
        /// Host and port.
        host: String,
        /// The limit.
        limit: Duration,
    },
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// Sends requests over connections that it keeps; cheap to clone.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    options: ClientOptions,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
}

/// One host and port: idle connections, newest last, and places for busy ones.
struct Host {
    name: String,
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
}

type Connection = SendRequest<Full<Bytes>>;

/// Tells how a connection failed, if it did.
type Outcome = oneshot::Receiver<hyper::Error>;

/// How long a connection that takes no request may take to say why.
const OUTCOME_WITHIN: Duration = Duration::from_secs(1);

impl Client {
    /// A client with these bounds.
    pub fn new(options: ClientOptions) -> Self {
        Self(Arc::new(Inner {
            options,
            hosts: Mutex::default(),
        }))
    }

    /// Posts `body` to `uri` and reads the whole answer.
    ///
    /// # Errors
    /// See [`ClientError`]. An answer of any status is not an error.
    pub async fn post(
        &self,
        uri: &Uri,
        content_type: &'static str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, ClientError> {
        self.request(posting(uri, content_type, headers, body)?)
            .await
    }

    /// As [`Client::post`], but the body is handed out piece by piece as it arrives, whatever the status, and
    /// not kept: a long answer is never whole in memory. Of an answer that breaks off `take` has had a part.
    ///
    /// # Errors
    /// See [`ClientError`]. An answer of any status is not an error.
    pub async fn post_for_pieces(
        &self,
        uri: &Uri,
        content_type: &'static str,
        headers: HeaderMap,
        body: Bytes,
        take: impl FnMut(Bytes),
    ) -> Result<(StatusCode, HeaderMap), ClientError> {
        let request = posting(uri, content_type, headers, body)?;
        let most = self.0.options.answer_bytes;
        let read = |mut body: Incoming| async move { take_pieces(&mut body, most, take).await };
        let (head, ()) = self.in_time(request, read).await?;
        Ok((head.status, head.headers))
    }

    /// Gets `uri` and reads the whole answer.
    ///
    /// # Errors
    /// See [`ClientError`]. An answer of any status is not an error.
    pub async fn get(&self, uri: &Uri) -> Result<Answer, ClientError> {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = uri.clone();
        self.request(request).await
    }

    /// Sends a request of any method, given as texts, to an absolute `uri`, and reads the
    /// whole answer.
    ///
    /// # Errors
    /// See [`ClientError`]: [`Address`](ClientError::Address) also where method or fields
    /// cannot be part of a request. An answer of any status is not an error.
    pub async fn send(
        &self,
        method: &str,
        uri: &str,
        headers: impl IntoIterator<Item = (&str, &str)>,
        body: Vec<u8>,
    ) -> Result<Answer, ClientError> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request =
            request
                .body(Full::new(Bytes::from(body)))
                .map_err(|_| ClientError::Address {
                    uri: uri.to_owned(),
                    cause: "it cannot be part of a request",
                })?;
        self.request(request).await
    }

    /// Sends `request`, whose URI is absolute, and reads the whole answer.
    ///
    /// # Errors
    /// See [`ClientError`]. An answer of any status is not an error.
    pub async fn request(&self, request: Request<Full<Bytes>>) -> Result<Answer, ClientError> {
        let (most, within) = (self.0.options.answer_bytes, self.0.options.answer_within);
        let read = |body: Incoming| read_body(body, most, within);
        let (head, body) = self.in_time(request, read).await?;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// Sends `request`, and has the answer's body read, within the limit.
    async fn in_time<T, F>(
        &self,
        request: Request<Full<Bytes>>,
        read: impl FnOnce(Incoming) -> F,
    ) -> Result<(Parts, T), ClientError>
    where
        F: Future<Output = Result<T, BodyError>>,
    {
        let (host, secure) = self.host(request.uri())?;
        let limit = self.0.options.answer_within;
        tokio::time::timeout(limit, self.exchange(&host, secure, request, read))
            .await
            .unwrap_or_else(|_| {
                Err(ClientError::TooSlow {
                    host: host.name.clone(),
                    limit,
                })
            })
    }

    /// Sends `request` over a connection of its own and returns once the head of
    /// the answer is there, for bodies that are long or do not end: files, event streams.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn open<B>(&self, mut request: Request<B>) -> Result<Response<Incoming>, ClientError>
    where
        B: http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let (host, secure) = self.host(request.uri())?;
        to_origin_form(&mut request);
        let (mut connection, outcome) = self.connect(&host, secure).await?;
        match connection.send_request(request).await {
            Ok(response) => Ok(response),
            Err(error) => Err(ended(&host, error, Some(outcome)).await),
        }
    }

    /// Can requests be sent to this base address? Nothing is sent.
    ///
    /// # Errors
    /// [`ClientError::Address`] says why not.
    pub fn check(&self, base: &str) -> Result<(), ClientError> {
        let refuse = |cause| ClientError::Address {
            uri: base.to_owned(),
            cause,
        };
        let uri: Uri = base
            .parse()
            .map_err(|_| refuse("it is not an address like http://127.0.0.1:8889"))?;
        // What stands before or behind the host without a port.
        let rest = uri.authority().map(|a| a.as_str().replace(a.host(), ""));
        if uri.query().is_some() || uri.port().is_none() && rest.is_some_and(|a| a.contains(':')) {
            return Err(refuse("it is not an address like http://127.0.0.1:8889"));
        }
        self.host(&uri).map(drop)
    }

    fn host(&self, uri: &Uri) -> Result<(Arc<Host>, bool), ClientError> {
        let refuse = |cause| ClientError::Address {
            uri: uri.to_string(),
            cause,
        };
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") if self.0.options.tls.is_some() => true,
            Some("https") => {
                return Err(refuse("https needs a certificate, a key and an authority"));
            }
            _ => return Err(refuse("it must start with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| refuse("it names no host"))?;
        let written = authority.as_str().rsplit('@').next().unwrap_or_default();
        let behind = written.strip_prefix(authority.host()).unwrap_or_default();
        let port = match authority.port_u16() {
            Some(port) => port,
            // A colon alone is no port (RFC 3986 section 3.2.3); another one must not be taken for it.
            None if behind.len() > 1 => return Err(refuse("its port is no number up to 65535")),
            None if secure => 443,
            None => 80,
        };
        let name = format!("{}:{port}", authority.host());
        let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        // Addresses may come from others, each once: those that nobody uses go, and with them
        // the connections that are kept for them.
        if hosts.len() >= HOSTS_MOST && !hosts.contains_key(&name) {
            hosts.retain(|_, host| Arc::strong_count(host) > 1);
        }
        let host = hosts.entry(name).or_insert_with_key(|name| {
            Arc::new(Host {
                name: name.clone(),
                idle: Mutex::default(),
                places: Arc::new(Semaphore::new(self.0.options.connections_per_host)),
            })
        });
        Ok((Arc::clone(host), secure))
    }

    async fn exchange<T, F>(
        &self,
        host: &Arc<Host>,
        secure: bool,
        mut request: Request<Full<Bytes>>,
        read: impl FnOnce(Incoming) -> F,
    ) -> Result<(Parts, T), ClientError>
    where
        F: Future<Output = Result<T, BodyError>>,
    {
        let _place: OwnedSemaphorePermit = Arc::clone(&host.places)
            .acquire_owned()
            .await
            .map_err(|error| broken(host, &error))?;
        to_origin_form(&mut request);
        // The peer may have closed a kept connection in the meantime. What was not
        // sent comes back and goes over the next one; a new connection ends the loop.
        let (response, connection) = loop {
            let kept = host.take();
            let fresh = kept.is_none();
            let (mut connection, outcome) = match kept {
                Some(connection) => (connection, None),
                None => {
                    let (connection, outcome) = self.connect(host, secure).await?;
                    (connection, Some(outcome))
                }
            };
            if connection.ready().await.is_err() && !fresh {
                continue;
            }
            match connection.try_send_request(request).await {
                Ok(response) => break (response, connection),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !fresh => request = unsent,
                    _ => return Err(ended(host, error.into_error(), outcome).await),
                },
            }
        };
        let (head, body) = response.into_parts();
        let body = read(body).await.map_err(|error| broken(host, &error))?;
        host.keep(connection, self.0.options.connections_per_host);
        Ok((head, body))
    }

    async fn connect<B>(
        &self,
        host: &Host,
        secure: bool,
    ) -> Result<(SendRequest<B>, Outcome), ClientError>
    where
        B: http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let limit = self.0.options.connect_within;
        let refuse = |cause: String| ClientError::Connect {
            host: host.name.clone(),
            cause,
            lasts: false,
        };
        let connect = async {
            let stream = dial(&host.name)
                .await
                .map_err(|error| refuse(error.to_string()))?;
            match self.0.options.tls.as_ref().filter(|_| secure) {
                None => handshake(TokioIo::new(stream)).await,
                Some(tls) => {
                    let name =
                        server_name(&host.name).map_err(|error| refuse(error.to_string()))?;
                    let stream = TlsConnector::from(Arc::clone(tls))
                        .connect(name, stream)
                        .await
                        .map_err(|error| no_tls(&host.name, &error))?;
                    handshake(TokioIo::new(stream)).await
                }
            }
            .map_err(|error| refuse(error.to_string()))
        };
        tokio::time::timeout(limit, connect)
            .await
            .unwrap_or_else(|_| Err(refuse(format!("not connected within {limit:?}"))))
    }
}

/// A POST of `body`.
fn posting(
    uri: &Uri,
    content_type: &'static str,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = Request::post(uri.clone())
        .body(Full::new(body))
        .map_err(|_| ClientError::Address {
            uri: uri.to_string(),
            cause: "it cannot be part of a request",
        })?;
    *request.headers_mut() = headers;
    let content_type = HeaderValue::from_static(content_type);
    request.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(request)
}

/// Why TLS did not come about with a host.
pub(crate) fn no_tls(host: &str, error: &std::io::Error) -> ClientError {
    let inner = error.get_ref();
    let of_tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let cause = match of_tls {
        Some(rustls::Error::InvalidMessage(_)) => {
            format!("what answers there speaks no TLS, is its address http://? ({error})")
        }
        _ => error.to_string(),
    };
    ClientError::Connect {
        host: host.to_owned(),
        cause,
        lasts: of_tls.is_some(),
    }
}

async fn handshake<S, B>(io: TokioIo<S>) -> Result<(SendRequest<B>, Outcome), hyper::Error>
where
    TokioIo<S>: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let (sender, connection) = http1::handshake(io).await?;
    let (tell, outcome) = oneshot::channel();
    // The task ends with the connection.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            // Nobody asks once there was an answer.
            let _ = tell.send(error);
        }
    });
    Ok((sender, outcome))
}

/// Why a request got no answer. What the peer said of the connection as a whole, such as that it
/// does not take our certificate, the request alone does not tell.
async fn ended(host: &Host, error: hyper::Error, outcome: Option<Outcome>) -> ClientError {
    let of_all = match outcome.filter(|_| error.is_canceled()) {
        Some(outcome) => tokio::time::timeout(OUTCOME_WITHIN, outcome).await.ok(),
        None => None,
    };
    let error = of_all.and_then(Result::ok).unwrap_or(error);
    let causes = successors(error.source(), |&cause| cause.source());
    let texts = [error.to_string()].into_iter();
    let texts: Vec<String> = texts.chain(causes.map(ToString::to_string)).collect();
    broken(host, &texts.join(": "))
}

/// Requests to a server carry the path alone, and the host as a header.
fn to_origin_form<B>(request: &mut Request<B>) {
    let uri = request.uri();
    let host = uri.authority().and_then(|authority| {
        // Who asks, before an `@`, is no part of the host, and for nobody else to read.
        let host = authority.as_str().rsplit('@').next();
        HeaderValue::from_str(host.unwrap_or_default()).ok()
    });
    let path = uri
        .path_and_query()
        .map_or_else(|| Uri::from_static("/"), |path| Uri::from(path.clone()));
    *request.uri_mut() = path;
    if let Some(host) = host {
        request.headers_mut().entry(HOST).or_insert(host);
    }
}

fn broken(host: &Host, cause: &dyn std::fmt::Display) -> ClientError {
    ClientError::Broken {
        host: host.name.clone(),
        cause: cause.to_string(),
    }
}

impl Host {
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    fn keep(&self, connection: Connection, at_most: usize) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !connection.is_closed() && idle.len() < at_most {
            idle.push(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn who_asks_is_no_part_of_the_host() {
        for before in ["", "user:pass@"] {
            let address = format!("http://{before}host:80/path?a=b");
            let mut request = Request::get(address).body(()).unwrap();
            to_origin_form(&mut request);
            assert_eq!(request.headers()[HOST], "host:80", "{before}");
            assert_eq!(request.uri().to_string(), "/path?a=b");
        }
    }

    #[test]
    fn a_port_that_is_none_is_not_taken_for_the_usual_one() {
        let client = Client::new(ClientOptions::default());
        let host = |address: &str| {
            let uri: Uri = address.parse().unwrap();
            client.host(&uri).map(|(host, _)| host.name.clone())
        };
        for (address, name) in [
            ("http://a/", "a:80"),
            ("http://a:/", "a:80"),
            ("http://u:p@a/", "a:80"),
            ("http://u:p@[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(host(address).unwrap(), name, "{address}");
        }
        for address in ["http://a:99999/", "http://u:p@[::1]:70000/x"] {
            let refused = host(address).unwrap_err().to_string();
            assert!(refused.contains("its port"), "{refused}");
        }
    }

    #[test]
    fn hosts_that_nobody_uses_are_forgotten_when_there_are_many() {
        let client = Client::new(ClientOptions::default());
        let uri = |number: usize| format!("http://host-{number}:80/").parse::<Uri>().unwrap();
        // One that is in use, and many that were.
        let used = client.host(&uri(0)).unwrap();
        for number in 1..3 * HOSTS_MOST {
            client.host(&uri(number)).unwrap();
            let kept = client.0.hosts.lock().unwrap().len();
            assert!(kept <= HOSTS_MOST, "{kept} after {number}");
        }
        let again = client.host(&uri(0)).unwrap();
        assert!(Arc::ptr_eq(&used.0, &again.0));
    }
}
