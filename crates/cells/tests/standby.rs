//! Of several, one is active and the others take over.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cells::{auctioneer, bbs};
use diego::locket::*;
use diego::models::*;
use diego::{Bbs, path};
use http::{HeaderMap, Request, Response};
use net::{Body, Client, ClientOptions, Handler, Incoming, Shutdown};
use prost::Message;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::own_address::own_address;
use crate::postgres_cluster::Cluster;
use crate::quiet::logger;

fn client(address: SocketAddr) -> Bbs {
    let client = Client::new(ClientOptions::default());
    Bbs::new(client, format!("http://{address}"))
}

async fn locket<A: Message + Default>(at: SocketAddr, path: &str, request: &impl Message) -> A {
    let uri = format!("http://{at}{path}").parse().unwrap();
    let client = Client::new(ClientOptions::default());
    let body = request.encode_to_vec().into();
    let answer = client.post(&uri, "", HeaderMap::new(), body).await.unwrap();
    assert_eq!(answer.status, 200);
    A::decode(answer.body).unwrap()
}

async fn listens(address: SocketAddr) {
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn bbs_config(listen: SocketAddr, folder: &Path, standby: bool) -> bbs::Config {
    let mut config = bbs::Config::new(listen, folder);
    config.standby = standby;
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passive_bbs_takes_over_with_all_that_was_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    takes_over(|listen, standby| bbs_config(listen, folder.path(), standby)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passive_bbs_on_postgresql_takes_over_with_all_that_was_confirmed() {
    let cluster = Cluster::start();
    let address = cluster.database("bbs");
    takes_over(|listen, standby| on_postgres(listen, &address, standby)).await;
}

fn on_postgres(listen: SocketAddr, address: &str, standby: bool) -> bbs::Config {
    let mut config = bbs_config(listen, Path::new(""), standby);
    config.postgres = Some(bbs::PostgresSettings::at(address).unwrap());
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bbs_whose_place_was_taken_ends() {
    let cluster = Cluster::start();
    let address = cluster.database("bbs");
    let (first, second) = (own_address(), own_address());
    let (_ask, shutdown) = net::shutdown();
    let config = on_postgres(first, &address, true);
    let displaced = tokio::spawn(bbs::run(config, logger("bbs"), shutdown));
    listens(first).await;
    let config = on_postgres(second, &address, true);
    let passive = tokio::spawn(bbs::start(config, logger("bbs")));
    // The first may be back before the other has seen its chance.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_locks
        WHERE locktype = 'advisory' AND granted";
    while !passive.is_finished() {
        assert!(cluster.psql("bbs", end).status.success());
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let active = passive.await.unwrap().unwrap();
    let ended = displaced.await.unwrap().unwrap_err();
    assert!(matches!(ended, bbs::Error::Displaced), "{ended}");
    let upsert = UpsertDomainRequest {
        domain: "d".into(),
        ttl: 0,
    };
    let _: UpsertDomainResponse = client(second)
        .call(path::UPSERT_DOMAIN, &upsert)
        .await
        .unwrap();
    active.stop().await.unwrap();
}

async fn takes_over(config: impl Fn(SocketAddr, bool) -> bbs::Config) {
    let (any, second) = ("127.0.0.1:0".parse().unwrap(), own_address());
    let active = bbs::start(config(any, true), logger("bbs"));
    let active = active.await.unwrap();
    let first = active.address();
    let upsert = UpsertDomainRequest {
        domain: "d".into(),
        ttl: 0,
    };
    let _: UpsertDomainResponse = client(first)
        .call(path::UPSERT_DOMAIN, &upsert)
        .await
        .unwrap();
    let passive = tokio::spawn(bbs::start(config(second, true), logger("bbs")));
    // One that does not stand by says that it cannot run.
    let third = bbs::start(config(second, false), logger("bbs")).await;
    let third = third.unwrap_err().to_string();
    assert!(third.contains("another BBS holds its lock"), "{third}");
    assert!(TcpStream::connect(second).await.is_err());
    assert!(!passive.is_finished());

    active.stop().await.unwrap();
    let active = passive.await.unwrap().unwrap();
    let domains: DomainsResponse = client(second).call(path::DOMAINS, &()).await.unwrap();
    assert_eq!(domains.domains, ["d"]);
    active.stop().await.unwrap();
}

#[tokio::test]
async fn a_bbs_that_waits_ends_when_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let config = bbs_config("127.0.0.1:0".parse().unwrap(), folder.path(), true);
    let active = bbs::start(config.clone(), logger("bbs")).await.unwrap();
    let (ask, shutdown) = net::shutdown();
    let passive = tokio::spawn(bbs::run(config, logger("bbs"), shutdown));
    ask.send(true).unwrap();
    passive.await.unwrap().unwrap();
    active.stop().await.unwrap();
}

fn auctioneer_config(listen: SocketAddr, bbs: SocketAddr) -> auctioneer::Config {
    auctioneer::Config {
        standby: true,
        ..auctioneer::Config::new(listen, format!("http://{bbs}"))
    }
}

/// An auctioneer that stands by, and its end.
fn auctioneer(
    listen: SocketAddr,
    bbs: SocketAddr,
    shutdown: Shutdown,
) -> tokio::task::JoinHandle<Result<(), auctioneer::Error>> {
    let config = auctioneer_config(listen, bbs);
    tokio::spawn(auctioneer::run(config, logger("auctioneer"), shutdown))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passive_auctioneer_takes_over_and_one_that_lost_its_lock_ends() {
    let folder = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = bbs::start(bbs_config(any, folder.path(), false), logger("bbs"));
    let server = server.await.unwrap();
    let at = server.address();
    let (first, second) = (own_address(), own_address());
    let (ask_first, shutdown) = net::shutdown();
    let active = auctioneer(first, at, shutdown);
    listens(first).await;
    let (_ask_second, shutdown) = net::shutdown();
    let passive = auctioneer(second, at, shutdown);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(TcpStream::connect(second).await.is_err());

    ask_first.send(true).unwrap();
    active.await.unwrap().unwrap();
    listens(second).await;

    // Somebody takes the lock away, as happens to one that was cut off for long.
    let all = FetchAllRequest {
        type_code: TypeCode::Lock.into(),
        ..FetchAllRequest::default()
    };
    let locks: FetchAllResponse = locket(at, path::LOCKET_FETCH_ALL, &all).await;
    let [held] = &locks.resources[..] else {
        panic!("{locks:?}");
    };
    assert_eq!(held.key, "auctioneer");
    let release = ReleaseRequest {
        resource: Some(held.clone()),
    };
    let _: ReleaseResponse = locket(at, path::LOCKET_RELEASE, &release).await;
    let lock = LockRequest {
        resource: Some(Resource {
            owner: "another".into(),
            ..held.clone()
        }),
        ttl_in_seconds: 60,
    };
    let _: LockResponse = locket(at, path::LOCKET_LOCK, &lock).await;
    let ended = passive.await.unwrap().unwrap_err();
    assert!(matches!(ended, auctioneer::Error::LockLost), "{ended}");
    server.stop().await.unwrap();
}

/// A Locket that grants a lock and answers once it is let to; keeps what was given up.
#[derive(Default)]
struct SlowLocket {
    asked: Notify,
    answer: Notify,
    released: Mutex<Vec<Resource>>,
}

impl Handler for SlowLocket {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let lock = request.uri().path() == path::LOCKET_LOCK;
        let body = net::read_body(request.into_body(), 1 << 20, Duration::from_secs(60)).await;
        if lock {
            self.asked.notify_one();
            self.answer.notified().await;
        } else {
            let request = ReleaseRequest::decode(body.unwrap()).unwrap();
            self.released.lock().unwrap().extend(request.resource);
        }
        Response::new(net::empty())
    }
}

/// The others would wait for as long as it lives.
#[tokio::test]
async fn a_lock_that_is_granted_while_its_auctioneer_ends_is_given_up() {
    let locket = Arc::new(SlowLocket::default());
    let listener = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let at = listener.local_addr().unwrap();
    let (_stop, shutdown) = net::shutdown();
    let (limits, handler) = (net::Limits::default(), Arc::clone(&locket));
    tokio::spawn(net::serve(listener, None, limits, handler, shutdown));
    let (ask, shutdown) = net::shutdown();
    let passive = auctioneer(own_address(), at, shutdown);
    locket.asked.notified().await;
    ask.send(true).unwrap();
    // An answer that it gets before it has seen that is given up in the ordinary way.
    tokio::time::sleep(Duration::from_millis(100)).await;
    locket.answer.notify_one();
    passive.await.unwrap().unwrap();
    let released = locket.released.lock().unwrap();
    let [resource] = &released[..] else {
        panic!("{released:?}");
    };
    assert_eq!(resource.key, "auctioneer");
}
