//! The route emitter with a real BBS, auctioneer, reps and nats-server; the routers are a table of
//! what was heard.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cells::rep::{self, ExecutorKind, Simulation};
use cells::route_emitter::registration::TcpMapping;
use cells::route_emitter::{self, RoutingApi, RoutingApiError};
use diego::models::*;
use diego::path;
use nats::client::{Client as NatsClient, ClientConfig, QueueLimits};
use net::{Client, ClientOptions};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::desired::{action, tags};
use crate::evacuation::System;
use crate::own_address::own_address;
use crate::patience::{until, until_some};
use crate::quiet::logger;

/// What a router says of itself: everything is to be registered again each second.
const ANNOUNCEMENT: &[u8] = br#"{"id":"0-r","hosts":["127.0.0.1"],"minimumRegisterIntervalInSeconds":1,"pruneThresholdInSeconds":6}"#;

/// A nats-server that ends with this value.
struct NatsServer(Child, u16);

impl NatsServer {
    fn start(port: u16) -> Self {
        let debian = Path::new("/usr/sbin/nats-server");
        let program = match debian.exists() {
            true => debian,
            false => Path::new("nats-server"),
        };
        let child = Command::new(program)
            .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server starts; scripts/install-test-tools installs it");
        Self(child, port)
    }

    fn config(&self) -> ClientConfig {
        ClientConfig {
            servers: vec![format!("127.0.0.1:{}", self.1).parse().unwrap()],
            // One that was just started takes a moment.
            attempts: 3000,
            pause: Duration::from_millis(20),
            longest_pause: Duration::from_millis(100),
            ..ClientConfig::default()
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A way to a nats-server that this value keeps open.
struct Way(tokio::task::JoinHandle<()>);

impl Way {
    async fn open(at: SocketAddr, nats: u16) -> Self {
        let listener = net::bind(at).await.unwrap();
        Self(tokio::spawn(async move {
            // Ends with this task, and with it every connection.
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                connections.spawn(async move {
                    let mut far = TcpStream::connect(("127.0.0.1", nats)).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        }))
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Default)]
struct Known {
    /// The instance of each route and address.
    registered: BTreeMap<(String, String, u64), String>,
    registrations: usize,
    unregistrations: usize,
    /// Whether a route that was registered once had no instance at some time.
    gap: bool,
}

/// A router that hears registrations and answers greetings.
#[derive(Clone, Default)]
struct Router(Arc<Mutex<Known>>);

impl Router {
    /// Listens on a service's subjects: `router` or `service-discovery`.
    async fn start(nats: &NatsServer, service: &'static str) -> Self {
        let router = Self::default();
        let client = NatsClient::connect(nats.config()).await.unwrap();
        let every = format!("{service}.*");
        let mut messages = client.subscribe(&every, QueueLimits::default()).unwrap();
        client.flush().await.unwrap();
        let known = router.clone();
        tokio::spawn(async move {
            while let Some(batch) = messages.next().await {
                for message in batch.iter() {
                    let subject = std::str::from_utf8(message.subject).unwrap();
                    match subject.strip_prefix(service).unwrap() {
                        ".greet" => client.publish(message.reply, ANNOUNCEMENT).unwrap(),
                        ".register" => known.hears(message.payload, true),
                        ".unregister" => known.hears(message.payload, false),
                        _ => {}
                    }
                }
            }
        });
        router
    }

    fn with<T>(&self, of: impl FnOnce(&mut Known) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn hears(&self, payload: &[u8], registers: bool) {
        let message: Value = serde_json::from_slice(payload).unwrap();
        let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
        self.with(|known| {
            for uri in message["uris"].as_array().unwrap() {
                let uri = uri.as_str().unwrap().to_owned();
                let one = (uri, text("host"), message["port"].as_u64().unwrap());
                match registers {
                    true => {
                        known.registrations += 1;
                        known.registered.insert(one, text("private_instance_id"));
                    }
                    false => {
                        known.unregistrations += 1;
                        known.registered.remove(&one);
                        known.gap |= !known.registered.keys().any(|other| other.0 == one.0);
                    }
                }
            }
        });
    }

    /// A router that has just started.
    fn forgets(&self) {
        self.with(|known| known.registered.clear());
    }

    fn routes(&self) -> Vec<String> {
        let routes = |known: &mut Known| known.registered.keys().map(|it| it.0.clone()).collect();
        self.with(routes)
    }

    fn instances(&self) -> BTreeSet<String> {
        let of = |known: &mut Known| known.registered.values().cloned().collect();
        self.with(of)
    }

    async fn has(&self, what: &str, routes: usize) {
        until(what, async || self.routes().len() == routes).await;
    }
}

/// A rep of one cell.
struct Rep {
    running: rep::Running,
    ask: watch::Sender<bool>,
}

/// An emitter, until it is dropped.
struct Emitter {
    running: route_emitter::Running,
    _ask: watch::Sender<bool>,
}

impl System {
    /// A cell at an address of its own, as ports of simulated cells are not.
    async fn own_rep(&self, name: &str) -> Rep {
        let host = name.bytes().fold(1u8, u8::wrapping_add).max(2);
        let listen = format!("127.0.0.{host}:0").parse().unwrap();
        let mut config = rep::Config::new(1, listen, &*self.url);
        config.id_prefix = name.into();
        config.evacuation_interval = Duration::from_millis(50);
        // Replacements take their time, so that an early end would be seen.
        config.executor = ExecutorKind::Simulated(Simulation {
            create: "uniform 10ms 100ms".parse().unwrap(),
            ..Simulation::default()
        });
        let (ask, shutdown) = net::shutdown();
        let running = rep::start(config, logger("rep"), shutdown).await.unwrap();
        running.registered().await;
        Rep { running, ask }
    }

    fn config(&self, nats: &NatsServer) -> route_emitter::Config {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut config = route_emitter::Config::new(any, &*self.url, nats.config());
        config.sync_interval = Duration::from_secs(5);
        config.unregistration_interval = Duration::from_millis(200);
        config
    }

    /// Desires `p` with these routes.
    async fn desire_routes(&self, instances: i32, routes: &[(&str, &str)]) {
        let lrp = DesiredLrp {
            process_guid: "p".into(),
            domain: "d".into(),
            root_fs: "preloaded:cflinuxfs4".into(),
            instances,
            ports: vec![8080],
            action: action(),
            metric_tags: tags("p"),
            routes: Some(texts(routes)),
            ..DesiredLrp::default()
        };
        let request = DesireLrpRequest {
            desired_lrp: Some(lrp),
        };
        self.call::<DesiredLrpLifecycleResponse>(path::DESIRE_LRP, &request)
            .await;
    }

    async fn update(&self, update: DesiredLrpUpdate) {
        let request = UpdateDesiredLrpRequest {
            process_guid: "p".into(),
            update: Some(update),
        };
        self.call::<DesiredLrpLifecycleResponse>(path::UPDATE_DESIRED_LRP, &request)
            .await;
    }

    async fn call<A: prost::Message + Default + diego::Failed>(
        &self,
        path: &str,
        request: &impl prost::Message,
    ) -> A {
        self.bbs.call::<A>(path, request).await.unwrap()
    }
}

fn texts(routes: &[(&str, &str)]) -> ProtoRoutes {
    let texts = routes.iter();
    let texts = texts.map(|(router, text)| ((*router).to_owned(), text.as_bytes().to_vec()));
    ProtoRoutes {
        routes: texts.collect(),
    }
}

const WEB: (&str, &str) = ("cf-router", r#"[{"hostnames":["a.x"],"port":8080}]"#);

async fn emit(config: route_emitter::Config) -> Emitter {
    let (ask, shutdown) = net::shutdown();
    let running = route_emitter::start(config, logger("route-emitter"), shutdown);
    Emitter {
        running: running.await.unwrap(),
        _ask: ask,
    }
}

impl Emitter {
    async fn get(&self, path: &str) -> net::Answer {
        let uri = format!("http://{}{path}", self.running.address());
        let client = Client::new(ClientOptions::default());
        client.get(&uri.parse().unwrap()).await.unwrap()
    }

    async fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").await.body;
        let page = String::from_utf8(page.to_vec()).unwrap();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {page}"))
            .parse()
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_routable_from_its_start_to_its_end_and_through_an_evacuation() {
    let nats = NatsServer::start(own_address().port());
    let router = Router::start(&nats, "router").await;
    let system = System::start().await;
    let emitter = emit(system.config(&nats)).await;
    let first = system.own_rep("first").await;
    system.desire_routes(5, &[WEB]).await;
    router.has("all are registered", 5).await;
    let before = router.instances();
    // What it says is repeated as often as the router asked for.
    let heard = router.with(|known| known.registrations);
    until("they are registered again", async || {
        router.with(|known| known.registrations) >= heard + 10
    })
    .await;

    let _second = system.own_rep("second").await;
    first.running.evacuation().begin();
    first.running.stopped().await;
    until("the others have taken over", async || {
        let now = router.instances();
        now.len() == 5 && now.is_disjoint(&before)
    })
    .await;
    assert!(!router.with(|known| known.gap), "a route had no instance");

    system
        .update(DesiredLrpUpdate {
            instances: Some(2),
            routes: Some(texts(&[(
                "cf-router",
                r#"[{"hostnames":["a.x","b.x"],"port":8080}]"#,
            )])),
            ..DesiredLrpUpdate::default()
        })
        .await;
    router.has("two instances of two routes are left", 4).await;
    assert_eq!(
        emitter.metric("route_emitter_routes{kind=\"http\"}").await,
        4.0
    );
    let remove = RemoveDesiredLrpRequest {
        process_guid: "p".into(),
    };
    system
        .call::<DesiredLrpLifecycleResponse>(path::REMOVE_DESIRED_LRP, &remove)
        .await;
    router.has("nothing is left", 0).await;
    // A router that missed it hears it again.
    let heard = router.with(|known| known.unregistrations);
    until("unregistrations are repeated", async || {
        router.with(|known| known.unregistrations) >= heard + 8
    })
    .await;
    assert_eq!(emitter.get("/anything").await.status, 200);
    assert_eq!(emitter.metric("route_emitter_lock_held").await, 1.0);
    drop(first.ask);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_registered_anew_when_nats_is_back() {
    let nats = NatsServer::start(own_address().port());
    let router = Router::start(&nats, "router").await;
    let system = System::start().await;
    let _rep = system.own_rep("cell").await;
    system.desire_routes(3, &[WEB]).await;
    // Sent again while nobody hears it, an unregistration would soon be used up.
    let way = own_address();
    let mut config = route_emitter::Config {
        unregistration_interval: Duration::from_millis(1),
        unregistration_send_count: 2,
        ..system.config(&nats)
    };
    config.nats.servers = vec![way.to_string().parse().unwrap()];
    let open = Way::open(way, nats.1).await;
    let emitter = emit(config);
    let emitter = emitter.await;
    router.has("all are registered", 3).await;
    until_ready(&emitter, 200).await;

    let port = nats.1;
    drop((nats, open));
    until_ready(&emitter, 503).await;
    // While it is away one ends and a route is added: nothing of it can be told.
    system
        .update(DesiredLrpUpdate {
            instances: Some(2),
            routes: Some(texts(&[(
                "cf-router",
                r#"[{"hostnames":["a.x","b.x"],"port":8080}]"#,
            )])),
            ..DesiredLrpUpdate::default()
        })
        .await;
    until("the table follows", async || {
        emitter.metric("route_emitter_routes{kind=\"http\"}").await == 4.0
    })
    .await;
    assert!(
        emitter
            .metric("route_emitter_nats_messages_dropped_total")
            .await
            > 0.0
    );
    // The router is back first: what it misses, nobody tells it a third time.
    let nats = NatsServer::start(port);
    let teller = NatsClient::connect(nats.config()).await.unwrap();
    let heard = router.with(|known| known.unregistrations);
    until("the router hears again", async || {
        let none = br#"{"uris":["none"],"host":"127.0.0.1","port":1}"#;
        teller.publish(b"router.unregister", none).unwrap();
        router.with(|known| known.unregistrations) > heard
    })
    .await;
    let _open = Way::open(way, port).await;
    router
        .has("what is there is registered, what is not is gone", 4)
        .await;
    until_ready(&emitter, 200).await;
    // A router that starts has everything after one round.
    router.forgets();
    router.has("all are registered again", 4).await;
}

async fn until_ready(emitter: &Emitter, status: u16) {
    until(&format!("/ready answers {status}"), async || {
        emitter.get("/ready").await.status.as_u16() == status
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emitter_of_a_cell_tells_of_that_cell_only() {
    let nats = NatsServer::start(own_address().port());
    let router = Router::start(&nats, "router").await;
    let names = Router::start(&nats, "service-discovery").await;
    let system = System::start().await;
    let mut config = system.config(&nats);
    config.cell_id = "one-0".into();
    config.internal_routes = true;
    let emitter = emit(config).await;
    until_ready(&emitter, 200).await;
    // Its process is desired before it has an instance here, so that it has to be asked for.
    let _two = system.own_rep("two").await;
    system
        .desire_routes(
            2,
            &[WEB, ("internal-router", r#"[{"hostname":"a.internal"}]"#)],
        )
        .await;
    until_running(&system, 2).await;
    let syncs = emitter.metric("route_emitter_syncs_total").await;
    until("it syncs again", async || {
        emitter.metric("route_emitter_syncs_total").await >= syncs + 2.0
    })
    .await;
    assert_eq!((router.routes().len(), names.routes().len()), (0, 0));
    let _one = system.own_rep("one").await;
    system
        .update(DesiredLrpUpdate {
            instances: Some(6),
            ..DesiredLrpUpdate::default()
        })
        .await;
    let rows = until_running(&system, 6).await;
    let here = rows
        .iter()
        .filter(|row| row.actual_lrp_instance_key.as_ref().unwrap().cell_id == "one-0");
    let here = here.count();
    assert!(here > 0);
    router.has("those of the cell are registered", here).await;
    // The containers of a simulated cell have one address: one name, and each by its index.
    names.has("containers have names", 1 + here).await;
}

async fn until_running(system: &System, count: usize) -> Vec<ActualLrp> {
    until_some("all run", async || {
        let all = ActualLrPsRequest::default();
        let all: ActualLrPsResponse = system.call(path::ACTUAL_LRPS, &all).await;
        let rows = all.actual_lrps;
        let run = rows.len() == count && rows.iter().all(|row| row.state == "RUNNING");
        run.then_some(rows)
    })
    .await
}

/// A routing API that fails at first, and refuses one port.
#[derive(Default)]
struct Api {
    rows: Mutex<BTreeSet<(u16, u16)>>,
    calls: Mutex<u32>,
}

impl Api {
    fn call(
        &self,
        rows: Vec<TcpMapping>,
        change: impl Fn(&mut BTreeSet<(u16, u16)>, (u16, u16)),
    ) -> Result<(), RoutingApiError> {
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        if *calls == 1 {
            return Err(RoutingApiError::Failed("away".into()));
        }
        if rows.iter().any(|row| row.external_port == 9) {
            return Err(RoutingApiError::Refused("no such port".into()));
        }
        let mut known = self.rows.lock().unwrap();
        for row in rows {
            change(&mut known, (row.external_port, row.backend_port));
        }
        Ok(())
    }

    fn count(&self) -> usize {
        self.rows.lock().unwrap().len()
    }
}

/// Trait for the test's end of it.
struct Shared(Arc<Api>);

impl RoutingApi for Shared {
    fn upsert(
        &self,
        rows: Vec<TcpMapping>,
        ttl: Duration,
    ) -> net::BoxFuture<Result<(), RoutingApiError>> {
        assert_eq!(ttl, Duration::from_secs(120));
        let done = self.0.call(rows, |known, row| {
            known.insert(row);
        });
        Box::pin(async move { done })
    }

    fn delete(&self, rows: Vec<TcpMapping>) -> net::BoxFuture<Result<(), RoutingApiError>> {
        let done = self.0.call(rows, |known, row| {
            known.remove(&row);
        });
        Box::pin(async move { done })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp_routes_reach_the_routing_api_in_spite_of_failures_and_without_nats() {
    // Nobody is there.
    let nowhere = ClientConfig {
        servers: vec![own_address().to_string().parse().unwrap()],
        ..ClientConfig::default()
    };
    let system = System::start().await;
    let api = Arc::new(Api::default());
    let any = "127.0.0.1:0".parse().unwrap();
    let mut config = route_emitter::Config::new(any, &*system.url, nowhere);
    config.routing_api = Some(Arc::new(Shared(Arc::clone(&api))));
    let emitter = emit(config).await;
    let _rep = system.own_rep("cell").await;
    let json = r#"[{"router_group_guid":"g","external_port":1883,"container_port":8080},{"router_group_guid":"g","external_port":9,"container_port":8080}]"#;
    system.desire_routes(3, &[("tcp-router", json)]).await;
    until("all that is taken is there", async || api.count() == 3).await;
    assert_eq!(emitter.get("/ready").await.status, 503);
    let remove = RemoveDesiredLrpRequest {
        process_guid: "p".into(),
    };
    system
        .call::<DesiredLrpLifecycleResponse>(path::REMOVE_DESIRED_LRP, &remove)
        .await;
    until("nothing is left", async || api.count() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_stand_by_one_is_active_until_it_ends() {
    let nats = NatsServer::start(own_address().port());
    let router = Router::start(&nats, "router").await;
    let system = System::start().await;
    let _rep = system.own_rep("cell").await;
    system.desire_routes(1, &[WEB]).await;
    let standby = || route_emitter::Config {
        standby: true,
        ..system.config(&nats)
    };
    let (ask, shutdown) = net::shutdown();
    let first = route_emitter::start(standby(), logger("first"), shutdown);
    let first = first.await.unwrap();
    router.has("the first tells", 1).await;
    let second = emit(standby()).await;
    assert_eq!(second.metric("route_emitter_lock_held").await, 0.0);
    assert_eq!(second.get("/ready").await.status, 503);
    ask.send(true).unwrap();
    first.stopped().await.unwrap();
    router.forgets();
    router.has("the second tells", 1).await;
}
