//! Counters over HTTP.

use super::*;

#[tokio::test]
async fn stats_are_what_came_in_the_last_seconds() {
    let running = Running::start().await;
    let counters = running
        .metrics
        .instance(&crate::metrics::tests::topology(), ServiceId(0), 0);
    let requests = |count: u64, status: u16| {
        for _ in 0..count {
            let server = counters.server(Some(0));
            server.began(1000);
            let client = counters.client(EdgeId(0));
            client.began(0);
            client.ended(status, 2 * MS, 0);
            counters.work(StepId(2)).done(MS, MS, 0, 0);
            server.answered(status, 4 * MS);
        }
    };
    requests(10, 200);
    // What came before the first reading is in no window, only in the page of metrics.
    running.admin.watch.read().await;
    requests(30, 200);
    requests(10, 503);
    counters.server(Some(0)).began(0);
    running.admin.watch.read().await;
    let stats = running.json("/stats?seconds=60").await;
    let seconds = stats["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0);
    let [root] = &stats["services"].as_array().unwrap()[..] else {
        panic!("{stats}");
    };
    let near = |value: &Value, count: f64| {
        let value = value.as_f64().unwrap() * seconds;
        assert!(
            (value - count).abs() < 1e-6 * count.max(1.0),
            "{value} {count}"
        );
    };
    // The ten of before came after the server's own first reading.
    near(&root["rate"], 50.0);
    near(&root["errors"], 10.0);
    assert_eq!(
        (&root["in_flight"], &root["name"]),
        (&json!(1), &json!("the-root"))
    );
    let latency = &root["latency"];
    assert_eq!(
        (&latency["count"], &latency["mean_ns"]),
        (&json!(40), &json!(4 * MS))
    );
    let p99 = latency["p99_ns"].as_u64().unwrap();
    assert!((3 * MS..=4 * MS).contains(&p99), "{p99}");
    near(&root["work"][0]["rate"], 50.0);
    assert_eq!(root["work"][0]["kind"], "cpu");
    let edge = &stats["edges"][0];
    assert_eq!(edge["id"], "the-root>leaf");
    near(&edge["errors"], 10.0);
    let metrics = running.get("/metrics").await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    let count = "headroom_graph_server_request_seconds_count{service=\"the-root\",path=\"/\",status=\"2xx\"} 40";
    assert!(text.lines().any(|line| line == count), "{text}");
    assert!(text.contains("headroom_graph_spans_recorded_total 0"));
    assert!(text.ends_with("headroom_graph_own_total 5\n"));
    let seeds = running.get("/metrics?names=testapi").await;
    let text = String::from_utf8(seeds.body.to_vec()).unwrap();
    assert!(text.contains("the_root_opencensus_io_http_server_latency_count 50"));
}

#[tokio::test]
async fn a_parent_counts_what_its_children_count() {
    let (parent, child) = (Running::start().await, Running::start().await);
    let topology = crate::metrics::tests::topology();
    for (running, count) in [(&parent, 1), (&child, 2)] {
        let counters = running.metrics.instance(&topology, ServiceId(1), 0);
        for _ in 0..count {
            counters.accepted();
        }
    }
    let peer = |name: &str, address: SocketAddr| Peer {
        name: name.to_owned(),
        counters: format!("http://{address}/counters").parse().unwrap(),
    };
    let gone: SocketAddr = ([127, 0, 0, 1], 1).into();
    parent
        .admin
        .follow(vec![peer("child", child.address), peer("gone", gone)]);
    parent.admin.watch.read().await;
    let stats = parent.json("/stats").await;
    assert_eq!(stats["services"][0]["connections"], 3);
    let page = parent.get("/metrics").await.body;
    let page = String::from_utf8(page.to_vec()).unwrap();
    let line = "headroom_graph_server_connections_accepted_total{service=\"leaf\"} 3";
    assert!(page.lines().any(|found| found == line), "{page}");
}
