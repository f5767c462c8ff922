//! What an HTTP router can be told. Plain data; who reads it from a file is elsewhere.
//!
//! The name of the gorouter key that means the same stands behind each one.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::identity::MtlsDomain;
use crate::table::Algorithm;
use document::Secret;
use routing_api::client::PeerTls;
use wire::tls::SubjectRule;

/// Settings of the data path.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSettings {
    /// Where plain connections are accepted; `None`: nowhere (`port`, `disable_http`).
    pub listen: Option<SocketAddr>,
    /// Where TLS connections are accepted (`enable_ssl`, `ssl_port`).
    pub listen_tls: Option<SocketAddr>,
    /// TLS towards clients.
    pub client_tls: ClientTls,
    /// Domains whose clients must show a certificate (`domains`).
    pub domains: Vec<MtlsDomain>,
    /// Threads; `None`: one for each processor that the process may use (`go_max_procs`).
    pub threads: Option<usize>,
    /// Address of this router, as it says it to others (`hosts` of `router.start`,
    /// `X-Vcap-Router`).
    pub address: IpAddr,
    /// Offer HTTP/2 within TLS (`enable_http2`).
    pub http2: bool,
    /// Expect the PROXY protocol, version 1 or 2 (`enable_proxy`).
    pub proxy_protocol: bool,
    /// Longest pause between requests of a connection (`frontend_idle_timeout`, 900 s).
    pub idle_timeout: Duration,
    /// Longest wait for a whole head once it began. gorouter has none by default; here 60 s.
    pub head_timeout: Duration,
    /// Bytes at which a request's head is refused with 431, with the id and the trace that it is
    /// given (`max_request_header_bytes`, 1 MiB).
    pub request_head_bytes: usize,
    /// Fields above which it is refused, with these (`max_request_headers`).
    pub request_fields: usize,
    /// Bytes of an answer's head above which it is a 502 (`max_response_header_bytes`).
    pub response_head_bytes: usize,
    /// Fields above which it is (`max_response_headers`).
    pub response_fields: usize,
    /// Connections of clients at once; above it, they wait in the kernel's queue.
    pub client_connections: usize,
    /// Towards backends.
    pub backends: BackendSettings,
    /// What is added to, kept in and taken from requests and answers.
    pub headers: HeaderSettings,
    /// Cookies that bind a client to an instance.
    pub sticky: StickySettings,
    /// Route services.
    pub route_services: RouteServiceSettings,
    /// Trace headers.
    pub tracing: TracingSettings,
    /// The access log.
    pub access_log: AccessLogSettings,
    /// So often the applications that were called are published over NATS; zero: never
    /// (`publish_active_apps_interval`).
    pub active_apps: Duration,
    /// Requests as envelopes of loggregator; `None`: not so.
    pub envelopes: Option<EnvelopeSettings>,
    /// Applications whose latencies each thread counts apart; 0: none
    /// (`per_app_prometheus_http_metrics_reporting`, which knows no bound).
    pub app_latencies: usize,
    /// A pool without endpoints answers 503 and not 404 (`empty_pool_response_code_503`, true).
    pub empty_pool_is_503: bool,
    /// User-Agent of health checks on the proxy port (`healthcheck_user_agent`); empty: none.
    pub health_check_user_agent: String,
    /// HTML template of error answers; `None`: plain text (`html_error_template_file`).
    pub error_template: Option<String>,
    /// Algorithm of pools that ask for none (`balancing_algorithm`).
    pub algorithm: Algorithm,
    /// This router's zone (`zone`); empty: none.
    pub zone: String,
    /// The first attempt prefers endpoints of the own zone
    /// (`balancing_algorithm_az_preference: locally-optimistic`).
    pub prefer_zone: bool,
}

/// Applications that are told apart at most: about a kilobyte each of what Prometheus reads.
pub const MOST_APP_LATENCIES: usize = 10_000;

/// TLS towards clients.
#[derive(Clone, Default, PartialEq)]
pub struct ClientTls {
    /// Certificates with their keys, as PEM: the one whose name fits best is shown (`tls_pem`).
    pub certificates: Vec<(String, String)>,
    /// Authorities of client certificates, PEM (`client_ca_certs`).
    pub client_authorities: String,
    /// What is asked of clients (`client_cert_validation`).
    pub client_certificates: ClientCertificates,
    /// TLS 1.3 beside 1.2 (`max_tls_version`).
    pub tls13: bool,
    /// TLS 1.3 alone (`min_tls_version`).
    pub only_tls13: bool,
    /// Suites of TLS 1.2, as IANA names them; empty: all that are offered (`cipher_suites`).
    pub cipher_suites: Vec<String>,
    /// Subjects that clients of some authorities must have
    /// (`verify_client_certificate_metadata`).
    pub subject_rules: Vec<SubjectRule>,
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClientTls")
            .field("certificates", &self.certificates.len())
            .field("client_certificates", &self.client_certificates)
            .field("tls13", &self.tls13)
            .field("only_tls13", &self.only_tls13)
            .field("cipher_suites", &self.cipher_suites)
            .field("subject_rules", &self.subject_rules)
            .finish_non_exhaustive()
    }
}

/// Whether clients must show a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Not asked for.
    #[default]
    None,
    /// Asked for, and checked if there is one.
    Request,
    /// Without one there is no connection.
    Require,
}

/// Towards backends.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendSettings {
    /// Attempts for a request (`backends.max_attempts`, 3).
    pub attempts: u32,
    /// Requests in flight to one endpoint above which it is left out; 0: no limit
    /// (`backends.max_conns`, 500).
    pub in_flight: u32,
    /// Idle connections kept for one endpoint by one thread; 0: none is kept
    /// (`max_idle_conns_per_host`). With fewer than there are requests at once, connections
    /// are opened again and again.
    pub idle: usize,
    /// How long an idle connection is kept (gorouter: 90 s, fixed).
    pub idle_timeout: Duration,
    /// Longest wait for a connection (`endpoint_dial_timeout`, 5 s).
    pub dial_timeout: Duration,
    /// The same for upgrades (`websocket_dial_timeout`).
    pub upgrade_dial_timeout: Duration,
    /// Longest wait for a TLS handshake (`tls_handshake_timeout`, 10 s).
    pub handshake_timeout: Duration,
    /// Longest time of one attempt, from the request to the end of the answer
    /// (`endpoint_timeout`, 60 s).
    pub timeout: Duration,
    /// The same for requests that came over HTTP/1, `None`: [`timeout`](Self::timeout)
    /// (`http_1_endpoint_timeout`).
    pub timeout_http1: Option<Duration>,
    /// The same for requests that came over HTTP/2 (`http_2_endpoint_timeout`).
    pub timeout_http2: Option<Duration>,
    /// The own certificate and key towards backends, PEM; empty: none.
    pub certificate: (String, Secret),
    /// Authorities of backends beside those of the public web, PEM (`ca_certs`).
    pub authorities: String,
    /// Accept any certificate. gorouter checks those of backends always.
    pub insecure: bool,
    /// How long a failed endpoint is left out of choices (`droplet_stale_threshold` / 4).
    pub failed_for: Duration,
    /// Keep the connection of a request with `Expect: 100-continue`
    /// (`keep_alive_100_continue_requests`).
    pub keep_alive_after_continue: bool,
}

impl BackendSettings {
    /// Longest time of one attempt of a request that came over HTTP/2, or over HTTP/1.
    ///
    /// The client's protocol counts, not the backend's: gorouter asks its own request for
    /// its version (cloudfoundry/routing-release, pull requests 471 and 576).
    pub fn timeout_of(&self, http2: bool) -> Duration {
        let own = if http2 {
            self.timeout_http2
        } else {
            self.timeout_http1
        };
        own.unwrap_or(self.timeout)
    }
}

/// What becomes of headers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeaderSettings {
    /// Names that a client's `Connection` cannot remove (`hop_by_hop_headers_to_filter`).
    pub protected: Vec<String>,
    /// Always say https (`force_forwarded_proto_https`).
    pub force_https: bool,
    /// Never trust the client's `X-Forwarded-Proto` (`sanitize_forwarded_proto`).
    pub sanitize_proto: bool,
    /// What happens to `X-Forwarded-Client-Cert` (`forwarded_client_cert`).
    pub client_cert: ForwardedClientCert,
    /// Removed from answers (`http_rewrite.responses.remove_headers`).
    pub remove: Vec<String>,
    /// Added to answers that lack them (`http_rewrite.responses.add_headers_if_not_present`).
    pub add: Vec<(String, String)>,
    /// A request whose `X-Vcap-Trace` has this value learns its backend (`trace_key`); empty: none.
    pub trace_key: Secret,
}

/// What happens to `X-Forwarded-Client-Cert`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedClientCert {
    /// As it came.
    #[default]
    AlwaysForward,
    /// Dropped unless the client proved itself by TLS.
    Forward,
    /// Dropped; set to the certificate that the client proved itself with.
    SanitizeSet,
}

/// Cookies that bind a client to an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct StickySettings {
    /// Names of the application's cookies (`sticky_session_cookie_names`, JSESSIONID).
    pub cookies: Vec<String>,
    /// `__VCAP_ID__` is always `Secure` (`secure_cookies`).
    pub secure: bool,
    /// `Authorization: Negotiate` binds too (`sticky_sessions_for_auth_negotiate`).
    pub auth_negotiate: bool,
    /// Each cookie of the application has its `__VCAP_ID__`, and `__VCAP_ID_META__` keeps the
    /// attributes for when the instance is gone. gorouter has no key for it: those of 2025
    /// never do it, those of 2026 always.
    pub metadata: bool,
}

/// Route services (section 5 of the routing facts).
#[derive(Debug, Clone, PartialEq)]
pub struct RouteServiceSettings {
    /// Secret that signatures are made of; empty: route services are off.
    pub secret: Secret,
    /// A second one that is accepted.
    pub secret_previous: Secret,
    /// Longest time between both passes (`route_services_timeout`, 60 s).
    pub timeout: Duration,
    /// Say https in `X-CF-Forwarded-Url` (`route_services_recommend_https`).
    pub recommend_https: bool,
    /// Answer 400 and 504 to bad signatures (`route_services.strict_signature_validation`).
    pub strict: bool,
    /// Attempts (`route_services.max_attempts`, 3). With 0 every request to one is answered
    /// with 502, as gorouter has it when its file does not say.
    pub attempts: u32,
    /// Let upgrades through (`route_services.enable_websockets`).
    pub upgrades: bool,
    /// The own certificate and key towards route services, PEM; empty: none
    /// (`route_services.cert_chain` and `private_key`).
    pub certificate: (String, Secret),
    /// Accept any certificate of a route service (`skip_ssl_validation`).
    pub insecure: bool,
    /// A service whose host is a route of this router is called through the router itself,
    /// and not over the network (`route_services_hairpinning`).
    pub hairpin: bool,
    /// Hosts of routes for which that is allowed, `name.example` or `*.example`; empty: all
    /// (`route_services_hairpinning_allowlist`).
    pub hairpin_hosts: Vec<String>,
    /// Networks in which no service is called over the network, such as `10.0.0.0/8`
    /// (`route_services.egress_blocklist`).
    pub blocked_networks: Vec<String>,
}

/// Trace headers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TracingSettings {
    /// B3 (`tracing.enable_zipkin`).
    pub zipkin: bool,
    /// W3C (`tracing.enable_w3c`).
    pub w3c: bool,
    /// Tenant in `tracestate` (`tracing.w3c_tenant_id`); empty: none.
    pub w3c_tenant: String,
}

/// The access log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccessLogSettings {
    /// File; `None`: none (`access_log.file`).
    pub file: Option<PathBuf>,
    /// Standard output too.
    pub stdout: bool,
    /// As messages of syslog too; `None`: not so (`access_log.enable_streaming` and
    /// `logging.syslog*`).
    pub syslog: Option<SyslogSettings>,
    /// Fields at the end of the line, in order (`logging.extra_access_log_fields`).
    pub extra_fields: Vec<ExtraField>,
    /// Request headers at the end of the line (`extra_headers_to_log`).
    pub extra_headers: Vec<String>,
    /// What becomes of queries (`logging.redact_query_params`).
    pub redact_query: RedactQuery,
    /// Leave out `X-Forwarded-For` (`logging.disable_log_forwarded_for`).
    pub hide_forwarded_for: bool,
    /// Leave out the client's address (`logging.disable_log_source_ip`).
    pub hide_client: bool,
}

/// Where the access log goes as messages of syslog (RFC 5424).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyslogSettings {
    /// How they get there (`logging.syslog_network`).
    pub network: SyslogNetwork,
    /// `host:port`; of a socket its path, or empty: where this machine's is
    /// (`logging.syslog_addr`).
    pub address: String,
    /// APP-NAME of the messages; empty: none (`logging.syslog`).
    pub name: String,
    /// Bytes of a line above which it is cut; 0: no such bound (`logging.syslog_truncate`).
    pub truncate: usize,
}

/// What is told of requests as envelopes of loggregator.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvelopeSettings {
    /// Who takes them.
    pub to: EnvelopesTo,
    /// The access log's lines, of applications (`logging.loggregator_enabled`).
    pub logs: bool,
    /// `HttpStartStop` of the router as a server (`send_http_start_stop_server_event`).
    pub server_events: bool,
    /// `HttpStartStop` of it as the client of the backend that was tried last
    /// (`send_http_start_stop_client_event`).
    pub client_events: bool,
    /// The instance that an application's log names for its router (`index`).
    pub instance: String,
}

impl Default for EnvelopeSettings {
    fn default() -> Self {
        Self {
            to: EnvelopesTo::Datagrams {
                address: "127.0.0.1:3457".to_owned(),
            },
            logs: true,
            server_events: true,
            client_events: true,
            instance: "0".to_owned(),
        }
    }
}

/// Who takes envelopes.
#[derive(Debug, Clone, PartialEq)]
pub enum EnvelopesTo {
    /// One that takes datagrams of the first protocol (`logging.metron_address`).
    Datagrams {
        /// `host:port`
        address: String,
    },
    /// An agent: a stream of the second protocol, gRPC over mutual TLS.
    Agent {
        /// `host:port`
        address: String,
        /// The name that its certificate must have.
        server_name: String,
        /// The authorities, and the own certificate.
        tls: PeerTls,
    },
}

/// How messages of syslog travel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyslogNetwork {
    /// Through a socket of this machine.
    #[default]
    Unix,
    /// A datagram each.
    Udp,
    /// A line each.
    Tcp,
}

/// A field that is logged on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtraField {
    /// `failed_attempts`
    FailedAttempts,
    /// `failed_attempts_time`
    FailedAttemptsTime,
    /// `dns_time`
    DnsTime,
    /// `dial_time`
    DialTime,
    /// `tls_time`
    TlsTime,
    /// `backend_time`
    BackendTime,
    /// `local_address`
    LocalAddress,
    /// `tls_sni`
    TlsSni,
    /// `caller_cf_app`
    CallerApp,
    /// `caller_cf_space`
    CallerSpace,
    /// `caller_cf_org`
    CallerOrganization,
    /// `route_policy`
    RoutePolicy,
}

/// What becomes of queries in the access log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RedactQuery {
    /// Logged as they are.
    #[default]
    None,
    /// Left out, of GET requests.
    All,
    /// Replaced by their SHA-1, of GET requests.
    Hash,
}

/// Bytes of a head that are read in any case before it is judged, and what Go's server adds
/// to that.
const READ_IN_ANY_CASE: usize = 1024 * 1024;
const SLACK: usize = 4096;

impl HttpSettings {
    /// Bytes after which reading a head is given up, with the parser's own answer. Between
    /// [`HttpSettings::request_head_bytes`] and this, the router refuses the request with
    /// its headers and logs it, as gorouter does.
    pub fn longest_head(&self) -> usize {
        let most = self.request_head_bytes.max(READ_IN_ANY_CASE);
        most.saturating_add(SLACK)
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 8081))),
            listen_tls: None,
            client_tls: ClientTls::default(),
            domains: Vec::new(),
            threads: None,
            address: IpAddr::from([127, 0, 0, 1]),
            http2: true,
            proxy_protocol: false,
            idle_timeout: Duration::from_secs(900),
            head_timeout: Duration::from_secs(60),
            request_head_bytes: 1024 * 1024,
            request_fields: wire::http1::MOST_FIELDS,
            response_head_bytes: 1024 * 1024,
            response_fields: wire::http1::MOST_FIELDS,
            client_connections: 50_000,
            backends: BackendSettings::default(),
            headers: HeaderSettings::default(),
            sticky: StickySettings::default(),
            route_services: RouteServiceSettings::default(),
            tracing: TracingSettings::default(),
            access_log: AccessLogSettings::default(),
            envelopes: None,
            active_apps: Duration::ZERO,
            app_latencies: 0,
            empty_pool_is_503: true,
            health_check_user_agent: "HTTP-Monitor/1.1".to_owned(),
            error_template: None,
            algorithm: Algorithm::RoundRobin,
            zone: String::new(),
            prefer_zone: false,
        }
    }
}

impl Default for BackendSettings {
    fn default() -> Self {
        Self {
            attempts: 3,
            in_flight: 500,
            idle: 1024,
            idle_timeout: Duration::from_secs(90),
            dial_timeout: Duration::from_secs(5),
            upgrade_dial_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(60),
            timeout_http1: None,
            timeout_http2: None,
            certificate: (String::new(), Secret::default()),
            authorities: String::new(),
            insecure: false,
            failed_for: Duration::from_secs(30),
            keep_alive_after_continue: false,
        }
    }
}

impl Default for StickySettings {
    fn default() -> Self {
        Self {
            cookies: vec!["JSESSIONID".to_owned()],
            secure: false,
            auth_negotiate: false,
            metadata: false,
        }
    }
}

impl Default for RouteServiceSettings {
    fn default() -> Self {
        Self {
            secret: Secret::default(),
            secret_previous: Secret::default(),
            timeout: Duration::from_secs(60),
            recommend_https: true,
            strict: false,
            attempts: 3,
            upgrades: false,
            certificate: (String::new(), Secret::default()),
            insecure: false,
            hairpin: false,
            hairpin_hosts: Vec::new(),
            blocked_networks: Vec::new(),
        }
    }
}
