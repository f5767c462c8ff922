//! The same scenarios on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::running_api;
use std::net::SocketAddr;
use std::time::Duration;

use crate::free_port::free_port;
use crate::postgres_cluster::Cluster;
use crate::running_api::{Api, full_mapping, mapping, route, settings, sqlite};
use http::{Method, StatusCode};
use routing_api::client::{ClientError, Event};
use routing_api::model::{HttpRoute, TcpMapping};
use routing_api::{self as api, Database, PostgresSettings};

/// In PostgreSQL.
fn postgres(address: &str) -> Database {
    Database::Postgres(Box::new(PostgresSettings::at(address).unwrap()))
}

/// Rows and groups are there again after a restart, with all they said, and their indices
/// go on.
async fn rows_survive_a_restart(database: Database) {
    let mut settings = settings(database);
    let api = Api::start(&settings).await;
    let mappings = [mapping(5200), full_mapping(5201)];
    let routes = [
        route("a.example.com"),
        HttpRoute {
            route_service_url: "https://rs.example.com/x".into(),
            ttl: Some(30),
            ..route("b.example.com/path")
        },
    ];
    api.client.upsert(&mappings).await.unwrap();
    api.client.upsert(&routes).await.unwrap();
    api.client.upsert(&mappings).await.unwrap();
    api.client.delete(&[mapping(5200)]).await.unwrap();
    api.client.upsert(&[mapping(5200)]).await.unwrap();
    let before = (
        api.client.list::<TcpMapping>().await.unwrap(),
        api.client.list::<HttpRoute>().await.unwrap(),
        api.client.router_groups().await.unwrap(),
    );
    assert_eq!((before.0.len(), before.1.len(), before.2.len()), (2, 2, 1));
    assert_eq!(before.0[0].modification_tag.index, 0);
    assert_eq!(before.0[1].modification_tag.index, 1);
    api.running.stop().await.unwrap();

    // Seeds are for an empty table only.
    settings.router_groups[0].guid = "another".into();
    settings.router_groups[0].name = "another".into();
    let api = Api::start(&settings).await;
    assert_eq!(api.client.list::<TcpMapping>().await.unwrap(), before.0);
    assert_eq!(api.client.list::<HttpRoute>().await.unwrap(), before.1);
    assert_eq!(api.client.router_groups().await.unwrap(), before.2);
    api.client.upsert(&[full_mapping(5201)]).await.unwrap();
    let after = api.client.list::<TcpMapping>().await.unwrap();
    assert_eq!(
        after[1].modification_tag.guid,
        before.0[1].modification_tag.guid
    );
    assert_eq!(after[1].modification_tag.index, 2);
    api.client.upsert(&[mapping(5202)]).await.unwrap();
    assert_eq!(api.client.list::<TcpMapping>().await.unwrap().len(), 3);
    api.running.stop().await.unwrap();
}

/// What expires is listed no more, and is told once as a Delete.
async fn rows_expire(database: Database) {
    let api = Api::start(&settings(database)).await;
    let mut events = api.client.events::<TcpMapping>().await.unwrap();
    let short = TcpMapping {
        ttl: Some(1),
        ..mapping(5200)
    };
    api.client.upsert(&[short, mapping(5201)]).await.unwrap();
    for port in [5200, 5201] {
        let Event::Upsert(row) = events.next().await.unwrap() else {
            panic!("not an upsert");
        };
        assert_eq!(row.port, port);
    }
    let Event::Delete(gone) = events.next().await.unwrap() else {
        panic!("not a delete");
    };
    assert_eq!((gone.port, gone.ttl), (5200, Some(1)));
    let left = api.client.list::<TcpMapping>().await.unwrap();
    assert_eq!(left.iter().map(|row| row.port).collect::<Vec<_>>(), [5201]);
    api.running.stop().await.unwrap();
}

/// Groups over the wire: statuses, the warning, names that are taken.
async fn groups_are_kept(database: Database) {
    let api = Api::start(&settings(database)).await;
    let path = "/routing/v1/router_groups";
    let body = r#"{"name":"other","type":"tcp","reservable_ports":"2000-2010"}"#;
    let made = api.call(Method::POST, path, body).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let group: serde_json::Value = serde_json::from_slice(&made.body).unwrap();
    let again = api.call(Method::POST, path, body).await;
    assert_eq!((again.status, again.body), (StatusCode::OK, made.body));

    let guid = format!("{path}/{}", group["guid"].as_str().unwrap());
    let update = r#"{"name":"ignored","reservable_ports":"3000"}"#;
    let updated = api.call(Method::PUT, &guid, update).await;
    assert_eq!(updated.status, StatusCode::OK);
    let warning = updated.headers["x-cf-warnings"].to_str().unwrap();
    assert!(warning.starts_with("Warning%3A+if+routes+are+registered+"));
    let found = api
        .call(Method::GET, &format!("{path}?name=other"), "")
        .await;
    let found: serde_json::Value = serde_json::from_slice(&found.body).unwrap();
    assert_eq!(found[0]["name"], "other");
    assert_eq!(found[0]["reservable_ports"], "3000");
    let missing = api
        .call(Method::GET, &format!("{path}?name=none"), "")
        .await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert_eq!(
        &missing.body[..],
        br#"{"name":"ResourceNotFoundError","message":"router group 'none' not found"}"#
    );

    assert_eq!(
        api.call(Method::DELETE, &guid, "").await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        api.call(Method::DELETE, &guid, "").await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        api.call(Method::PUT, &guid, update).await.status,
        StatusCode::NOT_FOUND
    );
    api.running.stop().await.unwrap();
}

/// Ten thousand mappings pass in one call, and many callers at once lose nothing.
async fn many_rows_pass(database: Database) {
    let api = Api::start(&settings(database)).await;
    let all: Vec<_> = (2000..12000).map(mapping).collect();
    api.client.upsert(&all).await.unwrap();
    let mut callers = tokio::task::JoinSet::new();
    for part in all.chunks(500) {
        let (client, part) = (api.client.clone(), part.to_vec());
        callers.spawn(async move { client.upsert(&part).await });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap().unwrap();
    }
    let rows = api.client.list::<TcpMapping>().await.unwrap();
    assert_eq!(rows.len(), 10_000);
    assert!(rows.iter().all(|row| row.modification_tag.index == 1));
    api.client.delete(&all).await.unwrap();
    assert!(api.client.list::<TcpMapping>().await.unwrap().is_empty());
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn sqlite_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| sqlite(&folder.path().join(name));
    rows_survive_a_restart(at("restart")).await;
    rows_expire(at("expire")).await;
    groups_are_kept(at("groups")).await;
    many_rows_pass(at("many")).await;
}

#[tokio::test]
async fn postgresql_keeps_everything() {
    let cluster = Cluster::start();
    let at = |name: &str| postgres(&cluster.database(name));
    rows_survive_a_restart(at("restarted")).await;
    rows_expire(at("expire")).await;
    groups_are_kept(at("groups")).await;
    many_rows_pass(at("many")).await;
}

#[tokio::test]
async fn one_process_at_a_time_uses_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(sqlite(folder.path()));
    let api = Api::start(&settings).await;
    let second = api::start(settings.clone(), running_api::logger()).await;
    let error = second.unwrap_err().to_string();
    assert!(
        error.contains("another routing API holds its lock"),
        "{error}"
    );
    api.running.stop().await.unwrap();
    Api::start(&settings).await.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_second_server_on_postgresql_waits_for_the_first() {
    let cluster = Cluster::start();
    let database = postgres(&cluster.database("shared"));
    let mut settings = settings(database);
    let first = Api::start(&settings).await;
    first.client.upsert(&[mapping(5200)]).await.unwrap();

    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    settings.listen = Some(address);
    let (stop, asked) = net::shutdown();
    let second = tokio::spawn(api::run(settings, running_api::logger(), asked));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());

    first.running.stop().await.unwrap();
    let client = running_api::client(&format!("http://{address}"));
    let rows = loop {
        match client.list::<TcpMapping>().await {
            Ok(rows) => break rows,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    assert_eq!(rows.len(), 1);
    stop.send(true).unwrap();
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_crash_of_postgresql_is_a_503_and_then_forgotten() {
    let mut cluster = Cluster::start();
    let database = postgres(&cluster.database("crashing"));
    let api = Api::start(&settings(database)).await;
    api.client.upsert(&[mapping(5200)]).await.unwrap();
    let mut events = api.client.events::<TcpMapping>().await.unwrap();
    cluster.crash();
    let refused = loop {
        if let Err(error) = api.client.upsert(&[mapping(5201)]).await {
            break error;
        }
    };
    let ClientError::Refused { status, text, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("\"DBCommunicationError\""), "{text}");
    // Lists are refused too, so that no router takes old rows for all rows.
    loop {
        let list = api.call(Method::GET, "/routing/v1/tcp_routes", "").await;
        if list.status == StatusCode::SERVICE_UNAVAILABLE {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cluster.resume();
    while api.client.upsert(&[mapping(5202)]).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Whoever followed has to list again.
    while events.next().await.is_ok() {}
    let rows = api.client.list::<TcpMapping>().await.unwrap();
    let ports: Vec<_> = rows.iter().map(|row| row.port).collect();
    assert!(ports.contains(&5200) && ports.contains(&5202), "{ports:?}");
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn tls_to_postgresql_is_spoken_when_asked_for_and_checks_the_server() {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let cluster = Cluster::start_with_tls(&cert.pem(), &signing_key.serialize_pem());
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    std::fs::write(&authority, cert.pem()).unwrap();
    cluster.database("secure");
    let port = cluster.address().port();
    let with = |host: &str, authority: Option<&std::path::Path>| {
        let url = format!("postgres://postgres@{host}:{port}/secure?sslmode=require");
        let postgres = PostgresSettings {
            config: url.parse().unwrap(),
            authority: authority.map(Into::into),
        };
        settings(Database::Postgres(Box::new(postgres)))
    };
    let api = Api::start(&with("localhost", Some(&authority))).await;
    api.client.upsert(&[mapping(5200)]).await.unwrap();
    let sessions = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'headroom routing api'";
    assert_eq!(cluster.psql("postgres", sessions).stdout, b"t\n");
    api.running.stop().await.unwrap();
    // Another name, or an authority that nobody trusts.
    for wrong in [with("127.0.0.1", Some(&authority)), with("localhost", None)] {
        let error = api::start(wrong, running_api::logger()).await.unwrap_err();
        assert!(
            error.to_string().contains("connect to the database"),
            "{error}"
        );
    }
}
