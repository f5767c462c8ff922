//! Followers, tokens, feeds and the populator against a server that comes and goes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::running_api::{Api, client, logger, mapping, route, settings, sqlite};
use http::{Request, Response, StatusCode};
use net::{Body, Handler, Incoming};
use routing::api_feed as feed;
use routing::table::{Lookup, Table, TableSettings};
use routing::tcp::Change;
use routing_api::client::{
    ApiClient, ClientError, ClientSettings, FollowSettings, TokenSettings, Update, follow,
};
use routing_api::model::TcpMapping;
use routing_api::populate_tcp;
use tokio::sync::mpsc;

fn settings_of(url: &str) -> ClientSettings {
    ClientSettings {
        url: url.to_owned(),
        ..ClientSettings::default()
    }
}

#[tokio::test]
async fn a_follower_sees_all_of_it_through_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(sqlite(folder.path()));
    let api = Api::start(&settings).await;
    api.client.upsert(&[mapping(5200)]).await.unwrap();
    let (updates, mut news) = mpsc::channel(64);
    let (following, url) = (client(&api.url), api.url.clone());
    let task = tokio::spawn(async move {
        let settings = FollowSettings {
            full_every: Duration::from_secs(3600),
            pause: Duration::from_millis(10),
        };
        follow::<TcpMapping>(&following, &settings, &updates, &logger()).await;
    });
    let ports = |update: Option<Update<TcpMapping>>| match update.unwrap() {
        Update::Full(all) => ("full", all.iter().map(|row| row.port).collect::<Vec<_>>()),
        Update::Upsert(row) => ("upsert", vec![row.port]),
        Update::Delete(row) => ("delete", vec![row.port]),
    };
    assert_eq!(ports(news.recv().await), ("full", vec![5200]));
    api.client.upsert(&[mapping(5201)]).await.unwrap();
    assert_eq!(ports(news.recv().await), ("upsert", vec![5201]));
    api.client.delete(&[mapping(5200)]).await.unwrap();
    assert_eq!(ports(news.recv().await), ("delete", vec![5200]));

    settings.listen = api.running.address();
    api.running.stop().await.unwrap();
    let api = Api::start(&settings).await;
    assert_eq!(api.url, url);
    assert_eq!(ports(news.recv().await), ("full", vec![5201]));
    api.client.upsert(&[mapping(5202)]).await.unwrap();
    assert_eq!(ports(news.recv().await), ("upsert", vec![5202]));
    // Nobody listens any more: it ends by itself.
    drop(news);
    task.await.unwrap();
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn whole_lists_come_now_and_then_while_events_do() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::start(&settings(sqlite(folder.path()))).await;
    let (updates, mut news) = mpsc::channel(64);
    let following = client(&api.url);
    tokio::spawn(async move {
        let settings = FollowSettings {
            full_every: Duration::from_millis(20),
            pause: Duration::from_millis(10),
        };
        follow::<TcpMapping>(&following, &settings, &updates, &logger()).await;
    });
    for _ in 0..3 {
        assert_eq!(news.recv().await, Some(Update::Full(Vec::new())));
    }
    drop(news);
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_tcp_feed_tells_a_router_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::start(&settings(sqlite(folder.path()))).await;
    let mine = TcpMapping {
        isolation_segment: "mine".into(),
        ..mapping(5200)
    };
    api.client
        .upsert(&[mine.clone(), mapping(5201)])
        .await
        .unwrap();
    let (changes, mut news) = mpsc::channel(4);
    let (stop, asked) = net::shutdown();
    let feed_settings = settings_of(&api.url);
    let feed = tokio::spawn(async move {
        let segments = vec!["mine".to_owned()];
        feed::tcp::run(&feed_settings, segments, changes, logger(), asked).await
    });
    let Some(Change::Full(all)) = news.recv().await else {
        panic!("not a whole list");
    };
    assert_eq!(all.iter().map(|row| row.port).collect::<Vec<_>>(), [5200]);
    api.client.delete(&[mapping(5201), mine]).await.unwrap();
    let Some(Change::Delete(gone)) = news.recv().await else {
        panic!("not a delete");
    };
    assert_eq!((gone.port, gone.modification_tag.index), (5200, 0));
    stop.send(true).unwrap();
    feed.await.unwrap().unwrap();
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_http_feed_fills_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::start(&settings(sqlite(folder.path()))).await;
    api.client.upsert(&[route("a.example.com")]).await.unwrap();
    let table = Arc::new(Table::new(TableSettings::default()));
    let (stop, asked) = net::shutdown();
    let client = ApiClient::new(&settings_of(&api.url)).unwrap();
    let (fed, counters) = (Arc::clone(&table), Arc::default());
    let feed = tokio::spawn(feed::http::run(client, fed, counters, logger(), asked));
    let served = |host: &str| matches!(table.lookup(host.as_bytes(), b"/"), Lookup::Found(_));
    let until = async |fits: &dyn Fn() -> bool| {
        while !fits() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    until(&|| served("a.example.com")).await;
    api.client.upsert(&[route("b.example.com")]).await.unwrap();
    until(&|| served("b.example.com")).await;
    api.client.delete(&[route("a.example.com")]).await.unwrap();
    until(&|| !served("a.example.com")).await;
    stop.send(true).unwrap();
    feed.await.unwrap();
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_populator_registers_keeps_fresh_and_removes() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::start(&settings(sqlite(folder.path()))).await;
    let what = populate_tcp::PopulateTcp {
        api: settings_of(&api.url),
        router_group: "measured".into(),
        isolation_segment: String::new(),
        first_port: 20_000,
        routes: 1500,
        backend: "127.0.0.1:9000".parse().unwrap(),
        ttl: Some(60),
        every: Duration::from_millis(20),
        once: false,
    };
    let (stop, asked) = net::shutdown();
    let task = tokio::spawn({
        let what = what.clone();
        async move { populate_tcp::run(&what, logger(), asked).await }
    });
    loop {
        let rows = api.client.list::<TcpMapping>().await.unwrap();
        if rows.len() == 1500 && rows.iter().all(|row| row.modification_tag.index > 1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.send(true).unwrap();
    task.await.unwrap().unwrap();
    assert!(api.client.list::<TcpMapping>().await.unwrap().is_empty());
    let (_stop, asked) = net::shutdown();
    let too_many = populate_tcp::PopulateTcp {
        first_port: 65_000,
        ..what
    };
    let error = populate_tcp::run(&too_many, logger(), asked)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("the last port is 65535"));
    api.running.stop().await.unwrap();
}

/// A token endpoint, and an API that takes only its last token.
#[derive(Default)]
struct Uaa {
    granted: AtomicUsize,
    asked: AtomicUsize,
    /// Requests for tokens that fail before the first succeeds.
    failing: usize,
    /// Tokens before this one are refused.
    least: AtomicUsize,
}

impl Handler for Uaa {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let field = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
        let (status, body) = if request.uri().path() == "/oauth/token" {
            assert_eq!(field("authorization"), "Basic cm91dGVyOnMzY3IzdA==");
            if self.asked.fetch_add(1, Ordering::SeqCst) < self.failing {
                (StatusCode::INTERNAL_SERVER_ERROR, String::new())
            } else {
                let number = self.granted.fetch_add(1, Ordering::SeqCst) + 1;
                let body = format!(r#"{{"access_token":"t{number}","expires_in":3600}}"#);
                (StatusCode::OK, body)
            }
        } else {
            let authorization = field("authorization");
            let number: usize = authorization["bearer t".len()..].parse().unwrap();
            match number < self.least.load(Ordering::SeqCst) {
                true => (StatusCode::UNAUTHORIZED, String::new()),
                false => (StatusCode::OK, "[]".to_owned()),
            }
        };
        let mut response = Response::new(net::full(body));
        *response.status_mut() = status;
        response
    }
}

#[tokio::test]
async fn a_token_is_fetched_again_when_it_has_to_be_and_only_then() {
    for (failing, good) in [(2, true), (3, false)] {
        let uaa = Arc::new(Uaa {
            failing,
            ..Uaa::default()
        });
        let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (_stop, asked) = net::shutdown();
        let limits = net::Limits::default();
        tokio::spawn(net::serve(listener, None, limits, Arc::clone(&uaa), asked));
        let settings = ClientSettings {
            tokens: Some(TokenSettings {
                url: url.clone(),
                client: "router".into(),
                secret: "s3cr3t".into(),
                ..TokenSettings::default()
            }),
            ..settings_of(&url)
        };
        let client = ApiClient::new(&settings).unwrap();
        let listed = client.list::<TcpMapping>().await;
        if !good {
            assert!(
                matches!(listed, Err(ClientError::Token { .. })),
                "{listed:?}"
            );
            continue;
        }
        listed.unwrap();
        client.list::<TcpMapping>().await.unwrap();
        assert_eq!(uaa.granted.load(Ordering::SeqCst), 1);
        // A token that the API refuses is replaced once.
        uaa.least.store(2, Ordering::SeqCst);
        client.list::<TcpMapping>().await.unwrap();
        assert_eq!(uaa.granted.load(Ordering::SeqCst), 2);
        uaa.least.store(9, Ordering::SeqCst);
        let refused = client.list::<TcpMapping>().await;
        assert!(matches!(refused, Err(ClientError::Refused { .. })));
        assert_eq!(uaa.granted.load(Ordering::SeqCst), 3);
        assert!(!format!("{settings:?}").contains("s3cr3t"));
    }
}
