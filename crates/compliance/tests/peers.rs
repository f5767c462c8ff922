//! A node as a test plays it, and the server it talks to.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use compliance::inventory::{InventorySignature, hollow, write};
use compliance::reports::signature::{NodeCertificate, SigningKey, sign};
use compliance::server::{self, Acceptance, Config, Running};
use compliance::trust::{self, Identity, ServerPin};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, Request};
use http_body_util::Full;
use jiff::Timestamp;
use net::{Answer, Client, ClientError, ClientOptions};
use telemetry::{Level, Logger, Sink};

/// Identities of nodes.
pub(crate) const A: &str = "3f2f0a32-0f0b-4c43-9d0d-6a5f6f8f1c11";
pub(crate) const B: &str = "9b1d2c4e-77aa-4f7b-8c1c-0f9e8d7c6b5a";
/// A report of something that is as it should be.
pub(crate) const REPORT: &str = "T@@result_success@@r@@d@@0@@c@@k";

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_second()
}

/// The metric of uploaded runs of which this became.
pub(crate) fn reports(status: &str) -> String {
    format!("rudder_relayd_reports_total{{status=\"{status}\"}}")
}

pub(crate) fn logger() -> Logger {
    Logger::new("test", Sink::nothing(), Level::Error)
}

pub(crate) fn config(folder: &Path) -> Config {
    Config {
        acceptance: Acceptance::All,
        ..Config::new(([127, 0, 0, 1], 0).into(), folder)
    }
}

pub(crate) async fn server(folder: &Path) -> Running {
    server::start(config(folder), logger()).await.unwrap()
}

pub(crate) fn url(server: &Running) -> String {
    format!("https://{}", server.address())
}

pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A node.
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) hostname: String,
    pub(crate) identity: Identity,
    pub(crate) url: String,
    client: Client,
}

impl Node {
    pub(crate) fn new(id: &str, url: &str) -> Self {
        let identity = Identity::make(Some(id), &[]).unwrap();
        Self::with(id, identity, url)
    }

    pub(crate) fn with(id: &str, identity: Identity, url: &str) -> Self {
        let tls = trust::client(Arc::new(ServerPin::default()), Some(&identity)).unwrap();
        let client = Client::new(ClientOptions {
            tls: Some(tls),
            ..ClientOptions::default()
        });
        let (id, url) = (id.to_owned(), url.to_owned());
        Self {
            hostname: format!("{id}.example.org"),
            id,
            identity,
            url,
            client,
        }
    }

    /// The same at another address.
    pub(crate) fn at(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        self.client.request(request).await
    }

    /// The status of a PUT.
    pub(crate) async fn put(&self, path: &str, body: impl Into<Bytes>) -> u16 {
        let answer = self.request(Method::PUT, path, &[], body).await.unwrap();
        answer.status.as_u16()
    }

    /// The status of a GET, and its body as text.
    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let answer = self.request(Method::GET, path, headers, "").await.unwrap();
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        (answer.status.as_u16(), text)
    }

    /// The XML of its inventory, and the file that signs it.
    pub(crate) fn inventory(&self) -> (String, String) {
        self.inventory_behind("root")
    }

    /// The same of a node that is behind this server.
    pub(crate) fn inventory_behind(&self, server: &str) -> (String, String) {
        let now = Timestamp::now();
        let hostname = &self.hostname;
        let certificate = &self.identity.certificate;
        let facts = hollow::node(1, &self.id, hostname, server, certificate, now);
        let xml = write(&facts);
        let signature = InventorySignature::sign(
            xml.as_bytes(),
            &self.key(),
            &self.certificate(),
            hostname,
            "today",
        );
        (xml, signature.unwrap().to_file())
    }

    /// Sends its inventory; the status of the second half.
    pub(crate) async fn enrol(&self) -> u16 {
        self.enrol_behind("root").await
    }

    /// The same of a node that is behind this server.
    pub(crate) async fn enrol_behind(&self, server: &str) -> u16 {
        let (xml, signature) = self.inventory_behind(server);
        let path = format!("/inventories/{}.ocs", self.id);
        let first = self.put(&format!("{path}.sign"), signature).await;
        assert_eq!(first, 202);
        self.put(&format!("{path}.gz"), pack(xml.as_bytes())).await
    }

    fn key(&self) -> SigningKey {
        SigningKey::from_pem(self.identity.key.as_bytes()).unwrap()
    }

    fn certificate(&self) -> NodeCertificate {
        NodeCertificate::from_pem(self.identity.certificate.as_bytes()).unwrap()
    }

    /// Its policy, once there is one: the config id, and the answer's body.
    pub(crate) async fn policy(&self) -> (String, Bytes) {
        let path = format!("/policies/{}/rules/policy.json.gz", self.id);
        for _ in 0..1_000 {
            let answer = self.request(Method::GET, &path, &[], "").await.unwrap();
            if answer.status == 200 {
                let tag = answer.headers["etag"].to_str().unwrap();
                return (tag.trim_matches('"').to_owned(), answer.body);
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("there is no policy");
    }

    /// The config id of its next policy, after this one.
    pub(crate) async fn policy_after(&self, before: &str) -> String {
        for _ in 0..1_000 {
            let (config_id, _) = self.policy().await;
            if config_id != before {
                return config_id;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the policy stays {before}");
    }

    /// The log of a run that started at this second and has the given lines of reports.
    pub(crate) fn log(&self, second: i64, config_id: &str, reports: &[&str]) -> String {
        let start = Timestamp::from_second(second).unwrap();
        let line = start.strftime("%Y-%m-%dT%H:%M:%S+00:00");
        let run = start.strftime("%Y-%m-%d %H:%M:%S+00:00");
        let id = &self.id;
        let marker = |part: &str| {
            format!(
                "{line} R: @@Common@@control@@rudder@@run@@0@@{part}@@{config_id}@@{run}##{id}@#x\n"
            )
        };
        let mut log = marker("start");
        for report in reports {
            log += &format!("{line} R: @@{report}@@{run}##{id}@#said\n");
        }
        log + &marker("end")
    }

    /// Signs and packs a log.
    pub(crate) fn signed(&self, log: &[u8]) -> Vec<u8> {
        let now = Timestamp::now();
        pack(&sign(log, &self.key(), &self.certificate(), now).unwrap())
    }

    /// Where a run that started at this second is sent.
    pub(crate) fn path(&self, second: i64) -> String {
        let start = Timestamp::from_second(second).unwrap();
        let start = start.strftime("%Y-%m-%dT%H:%M:%S+00:00");
        format!("/reports/{}_{start}.log.gz", self.id)
    }

    /// Sends a run; its status.
    pub(crate) async fn run(&self, second: i64, config_id: &str, reports: &[&str]) -> u16 {
        let message = self.signed(self.log(second, config_id, reports).as_bytes());
        self.put(&self.path(second), message).await
    }
}

/// The value of a metric.
pub(crate) async fn metric(node: &Node, line: &str) -> String {
    let (_, page) = node.get("/metrics", &[]).await;
    let found = page.lines().find_map(|one| one.strip_prefix(line));
    found.unwrap_or_default().trim().to_owned()
}

/// Waits until something holds.
pub(crate) async fn until(mut done: impl AsyncFnMut() -> bool, what: &str) {
    for _ in 0..6_000 {
        if done().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("waited in vain for {what}");
}
