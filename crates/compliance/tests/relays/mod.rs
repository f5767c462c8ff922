//! Relays between a server and nodes that tests play, over sockets.

mod chain;
mod children;
mod killed;
mod outage;
mod policies;
mod rights;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use compliance::relay;
use compliance::server::{self, Config, Running};
use compliance::trust::Identity;
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::free_port::free_port;
use crate::peers::{A, B, Node, REPORT, config, logger, metric, now, reports, until, url};
use crate::rest::Admin;

/// What a relay is started with.
fn relay_config(folder: &Path, upstream: &str) -> relay::Config {
    relay::Config {
        hostname: Some("relay.example.org".into()),
        refresh: Duration::from_millis(500),
        ..relay::Config::new(([127, 0, 0, 1], 0).into(), folder, upstream)
    }
}

fn relay_url(relay: &relay::Running) -> String {
    format!("https://{}", relay.address())
}

/// The relay as a peer: with its identity, to a server.
fn as_peer(folder: &Path, url: &str) -> Node {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let identity = Identity {
        key: read("agent.key"),
        certificate: read("agent.pem"),
    };
    Node::with(read("uuid").trim(), identity, url)
}

/// Waits until a node is accepted.
async fn accepted(admin: &Admin, node: &str) {
    let path = format!("nodes/{node}");
    let is_accepted = async || {
        let shown = admin.call(Method::GET, &path, None).await.body;
        shown["data"]["nodes"][0]["status"] == "accepted"
    };
    until(is_accepted, "the node to be accepted").await;
}

/// Makes a node a relay, once it is accepted.
async fn promote(admin: &Admin, relay: &str) {
    accepted(admin, relay).await;
    let path = format!("nodes/{relay}");
    let kind = json!({"kind": "relay"});
    let set = admin.data(Method::POST, &path, Some(kind)).await;
    assert_eq!(set["nodes"][0]["kind"], "relay");
}

/// A server, and a relay that is ready to serve.
struct Site {
    server: Option<Running>,
    folder: TempDir,
    /// Where the server listens each time.
    listen: SocketAddr,
    admin: Admin,
    relay: Option<relay::Running>,
    relay_folder: TempDir,
    relay_listen: SocketAddr,
}

impl Site {
    async fn start() -> Self {
        Self::with(|config| config).await
    }

    async fn with(change: impl Fn(relay::Config) -> relay::Config) -> Self {
        let (folder, relay_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // It starts again at one address, while others connect.
        let config = Config {
            listen: ([127, 0, 0, 1], free_port()).into(),
            ..config(folder.path())
        };
        let server = server::start(config, logger()).await.unwrap();
        let at = url(&server);
        let admin = Admin::of(folder.path(), &at).await;
        let relay_listen = ([127, 0, 0, 1], free_port()).into();
        let relay = change(relay::Config {
            listen: relay_listen,
            ..relay_config(relay_folder.path(), &at)
        });
        let relay = relay::start(relay, logger()).await.unwrap();
        promote(&admin, relay.id()).await;
        let site = Self {
            listen: server.address(),
            server: Some(server),
            folder,
            admin,
            relay: Some(relay),
            relay_folder,
            relay_listen,
        };
        site.until_serving().await;
        site
    }

    /// Waits until the relay knows that it is one.
    async fn until_serving(&self) {
        let nobody = Node::new("00000000-0000-4000-8000-00000000dead", &self.relay_url());
        // Somebody else's before, 503 as long as it is not known.
        let serving = async || nobody.run(1, "c", &[REPORT]).await == 404;
        until(serving, "the relay to serve").await;
    }

    fn relay(&self) -> &relay::Running {
        self.relay.as_ref().unwrap()
    }

    fn relay_url(&self) -> String {
        relay_url(self.relay())
    }

    fn server_url(&self) -> String {
        format!("https://{}", self.listen)
    }

    /// A node behind the relay, accepted and with a policy.
    async fn child(&self, id: &str) -> Node {
        let node = Node::new(id, &self.relay_url());
        assert_eq!(node.enrol_behind(self.relay().id()).await, 201);
        until(async || fetched(&node, id).await == 200, "a policy").await;
        node
    }

    /// The same node, with the server for its server.
    fn direct(&self, node: &Node) -> Node {
        Node::with(&node.id, node.identity.clone(), &self.server_url())
    }

    async fn stop_server(&mut self) {
        self.server.take().unwrap().stop().await.unwrap();
    }

    /// Starts the server again, where it was.
    async fn start_server(&mut self) {
        let config = Config {
            listen: self.listen,
            ..config(self.folder.path())
        };
        self.server = Some(server::start(config, logger()).await.unwrap());
    }

    async fn stop_relay(&mut self) {
        self.relay.take().unwrap().stop().await.unwrap();
    }

    /// Starts the relay again, where it was.
    async fn start_relay(&mut self) {
        let config = relay::Config {
            listen: self.relay_listen,
            ..relay_config(self.relay_folder.path(), &self.server_url())
        };
        self.relay = Some(relay::start(config, logger()).await.unwrap());
    }

    /// Waits until nothing waits in the relay.
    async fn until_drained(&self) {
        let peer = as_peer(self.relay_folder.path(), &self.relay_url());
        let drained = async || metric(&peer, "compliance_relay_spool_items").await == "0";
        until(drained, "the spool to be empty").await;
    }

    /// Runs that the server has.
    async fn runs(&self) -> u64 {
        let store = self.admin.get("system/store").await;
        store["runs"].as_u64().unwrap()
    }

    async fn stop(mut self) {
        self.relay.take().unwrap().stop().await.unwrap();
        if let Some(server) = self.server.take() {
            server.stop().await.unwrap();
        }
    }
}

/// What a node is answered that asks for the policy of `whose`.
async fn fetched(node: &Node, whose: &str) -> u16 {
    let path = format!("/policies/{whose}/rules/policy.json.gz");
    node.get(&path, &[]).await.0
}
