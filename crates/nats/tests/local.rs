//! Subscriptions of the process that embeds the endpoint.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use crate::support::{connect, server, take};
use nats::client::QueueLimits;

#[tokio::test]
async fn it_gets_what_clients_publish_in_their_order() {
    let server = server().await;
    let mut local = server.subscribe("a.*", QueueLimits::default()).unwrap();
    let client = connect(&server.address().to_string()).await;
    let large = "x".repeat(100_000);
    for (subject, payload) in [
        ("a.b", "1"),
        ("b.a", "not asked for"),
        ("a.c", large.as_str()),
        ("a.d", ""),
    ] {
        client
            .publish(subject.as_bytes(), payload.as_bytes())
            .unwrap();
    }
    client.flush().await.unwrap();
    let stats = local.gauge().read();
    assert_eq!((stats.received, stats.dropped), (3, 0));
    let taken = take(&mut local, 3).await;
    let expected = [("a.b", "1"), ("a.c", &large), ("a.d", "")]
        .map(|(subject, payload)| (subject.into(), String::new(), payload.into()));
    assert_eq!(taken, expected);
    let stats = server.gauge().read();
    assert_eq!((stats.in_messages, stats.out_messages), (4, 3));
}

#[tokio::test]
async fn it_ends_when_it_is_dropped_and_with_the_endpoint() {
    let server = server().await;
    let limits = QueueLimits::default();
    assert!(server.subscribe("a..b", limits).is_err());
    let one = server.subscribe("a", limits).unwrap();
    let mut other = server.subscribe("a", limits).unwrap();
    assert_eq!(server.gauge().read().subscriptions, 2);
    drop(one);
    assert_eq!(server.gauge().read().subscriptions, 1);
    let client = connect(&server.address().to_string()).await;
    client.publish(b"a", b"last").unwrap();
    client.flush().await.unwrap();
    server.stop().await;
    assert_eq!(take(&mut other, 1).await[0].2, "last");
    assert!(other.next().await.is_none());
}

/// A client's read brings up to two thousand of these messages, so that half of the queue
/// is passed again and again.
#[tokio::test]
async fn who_publishes_faster_than_it_takes_waits() {
    const MESSAGES: usize = 200_000;
    let server = server().await;
    let limits = QueueLimits {
        messages: 20_000,
        ..QueueLimits::default()
    };
    let mut local = server.subscribe("subject", limits).unwrap();
    let client = connect(&server.address().to_string()).await;
    let publish = async {
        for _ in 0..MESSAGES {
            let sent = client.publish_when_room(b"subject", b"a payload of some bytes");
            sent.await.unwrap();
        }
    };
    let gauge = local.gauge();
    let taken = async {
        let mut taken = 0;
        while taken < MESSAGES {
            taken += local.next().await.unwrap().len();
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::join!(publish, taken);
    assert_eq!(gauge.read().dropped, 0);
}
