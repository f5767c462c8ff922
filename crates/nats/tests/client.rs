//! Our client with a real nats-server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use crate::free_port::free_port;
use crate::support::{NatsServer, config, connect, subscribe, take, until};
use nats::Password;
use nats::client::{Client, ConnectError, FlushError, PublishError, QueueLimits};

#[tokio::test]
async fn messages_come_through_in_order() {
    let server = NatsServer::start(&[]);
    let (one, other) = (connect(&server.url()).await, connect(&server.url()).await);
    let mut all = subscribe(&one, "router.*").await;
    let mut some = subscribe(&one, "router.greet").await;
    for number in 0..10_000 {
        let payload = format!("{number}");
        other
            .publish_when_room(b"router.register", payload.as_bytes())
            .await
            .unwrap();
    }
    other.publish(b"router.greet", b"").unwrap();
    other.flush().await.unwrap();
    let found = take(&mut all, 10_001).await;
    for (number, message) in found.iter().take(10_000).enumerate() {
        assert_eq!(message.0, "router.register");
        assert_eq!(message.2, number.to_string());
    }
    assert_eq!(take(&mut some, 1).await[0].0, "router.greet");
    drop(some);
    one.flush().await.unwrap();
    other.publish(b"router.greet", b"2").unwrap();
    assert_eq!(take(&mut all, 1).await[0].2, "2");
    assert_eq!(all.gauge().read().dropped, 0);
    one.close().await;
    assert!(all.next().await.is_none());
}

#[tokio::test]
async fn a_reply_subject_comes_along() {
    let server = NatsServer::start(&[]);
    let ours = connect(&server.url()).await;
    let mut greets = subscribe(&ours, "router.greet").await;
    let theirs = async_nats::connect(server.url()).await.unwrap();
    let asked = tokio::spawn(async move { theirs.request("router.greet", "".into()).await });
    let reply = take(&mut greets, 1).await.remove(0).1;
    ours.publish(reply.as_bytes(), b"hello").unwrap();
    assert_eq!(&asked.await.unwrap().unwrap().payload[..], b"hello");
}

#[tokio::test]
async fn a_request_names_where_answers_go() {
    let server = NatsServer::start(&[]);
    let ours = connect(&server.url()).await;
    let mut answers = subscribe(&ours, "_INBOX.ours").await;
    let mut greets = subscribe(&ours, "router.greet").await;
    ours.publish_request(b"router.greet", b"_INBOX.ours", b"hello")
        .unwrap();
    let (_, reply, payload) = take(&mut greets, 1).await.remove(0);
    assert_eq!(payload, "hello");
    ours.publish(reply.as_bytes(), b"answer").unwrap();
    assert_eq!(take(&mut answers, 1).await[0].2, "answer");
    let no_subject = ours.publish_request(b"router.greet", b"a b", b"");
    assert_eq!(no_subject, Err(PublishError::Subject));
}

#[tokio::test]
async fn it_proves_who_it_is() {
    let server = NatsServer::start(&["--user", "nats", "--pass", "secret"]);
    let mut with = config(&server.url());
    with.user = Some(("nats".into(), Password::new("secret")));
    let client = Client::connect(with.clone()).await.unwrap();
    client.flush().await.unwrap();
    with.user = Some(("nats".into(), Password::new("wrong")));
    let error = Client::connect(with).await.err().unwrap().to_string();
    assert!(
        error.contains("Authorization Violation") && !error.contains("wrong"),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_proves_it_too() {
    let server = NatsServer::start(&["--auth", "secret"]);
    let mut with = config(&server.url());
    with.token = Some(Password::new("secret"));
    let client = Client::connect(with.clone()).await.unwrap();
    client.flush().await.unwrap();
    with.token = Some(Password::new("wrong"));
    let error = Client::connect(with).await.err().unwrap().to_string();
    assert!(error.contains("Authorization Violation"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_at_first() {
    let address = format!("127.0.0.1:{}", free_port());
    let error = Client::connect(config(&address)).await.err().unwrap();
    assert!(
        matches!(error, ConnectError::Unreachable { attempts: 3, .. }),
        "{error}"
    );
    assert!(error.to_string().contains(&address), "{error}");
    let nobody = Client::connect(nats::client::ClientConfig::default()).await;
    assert!(matches!(nobody, Err(ConnectError::NoServer)));
}

#[tokio::test]
async fn it_comes_back_with_its_subscriptions() {
    let server = NatsServer::start(&[]);
    let client = connect(&server.url()).await;
    let mut subscription = subscribe(&client, "a.*").await;
    let mut state = client.state();
    let port = server.kill();
    state.wait_for(|state| !state.connected).await.unwrap();
    assert_eq!(client.flush().await, Err(FlushError::Away));
    // Kept until the server is back.
    client.publish(b"a.kept", b"1").unwrap();
    let _server = NatsServer::start_at(port.into(), &[]);
    let back = state
        .wait_for(|state| state.connected)
        .await
        .unwrap()
        .clone();
    assert_eq!((back.reconnects, back.closed), (1, false));
    assert_eq!(take(&mut subscription, 1).await[0].0, "a.kept");
}

#[tokio::test]
async fn the_next_server_of_the_list_takes_over() {
    let (one, other) = (NatsServer::start(&[]), NatsServer::start(&[]));
    let mut both = config(&one.url());
    both.servers.push(other.url().parse().unwrap());
    let client = Client::connect(both).await.unwrap();
    let mut state = client.state();
    assert_eq!(state.borrow().server, one.url());
    one.kill();
    let url = other.url();
    state
        .wait_for(|state| state.connected && state.server == url)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_waits_to_be_sent_has_a_bound() {
    let server = NatsServer::start(&[]);
    let mut small = config(&server.url());
    small.outgoing_bytes = 1000;
    let client = Client::connect(small).await.unwrap();
    let mut state = client.state();
    let port = server.kill();
    state.wait_for(|state| !state.connected).await.unwrap();
    for _ in 0..10 {
        client.publish(b"a", &[b'x'; 80]).unwrap();
    }
    assert!(matches!(
        client.publish(b"a", &[b'x'; 90]),
        Err(PublishError::Full(_))
    ));
    let waits = {
        let client = client.clone();
        tokio::spawn(async move { client.publish_when_room(b"a", &[b'x'; 90]).await })
    };
    let _server = NatsServer::start_at(port.into(), &[]);
    waits.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_queue_that_nobody_reads_drops_and_counts() {
    let server = NatsServer::start(&[]);
    let client = connect(&server.url()).await;
    let limits = QueueLimits {
        messages: 100,
        bytes: 1 << 20,
    };
    let mut subscription = client.subscribe("a", limits).unwrap();
    for number in 0..250 {
        client
            .publish(b"a", format!("{number}").as_bytes())
            .unwrap();
    }
    client.flush().await.unwrap();
    let gauge = subscription.gauge();
    until("all were received", || gauge.read().received == 250).await;
    assert_eq!((gauge.read().buffered, gauge.read().dropped), (100, 150));
    assert_eq!(take(&mut subscription, 100).await[99].2, "99");
    assert_eq!(gauge.read().buffered, 0);
}

#[tokio::test]
async fn payloads_have_a_bound() {
    let server = NatsServer::start(&[]);
    let client = connect(&server.url()).await;
    let large = vec![b'x'; 1024 * 1024];
    let mut subscription = subscribe(&client, "a").await;
    client.publish(b"a", &large).unwrap();
    assert_eq!(take(&mut subscription, 1).await[0].2.len(), large.len());
    let error = client.publish(b"a", &[&large[..], b"x"].concat());
    assert_eq!(
        error,
        Err(PublishError::Large {
            found: large.len() + 1,
            most: large.len()
        })
    );
    assert_eq!(client.publish(b"a..b", b""), Err(PublishError::Subject));
}

#[tokio::test]
async fn the_bound_of_payloads_is_known_as_soon_as_the_client_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nats.conf");
    std::fs::write(&file, "max_payload: 4096\n").unwrap();
    let server = NatsServer::start(&["--config", file.to_str().unwrap()]);
    let client = connect(&server.url()).await;
    assert_eq!(client.max_payload(), 4096);
    let large = client.publish(b"a", &[b'x'; 4097]);
    let (found, most) = (4097, 4096);
    assert_eq!(large, Err(PublishError::Large { found, most }));
}
