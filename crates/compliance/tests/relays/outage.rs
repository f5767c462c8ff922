//! The upstream goes away and comes back while nodes behind a relay work.

use compliance::relay::Bounds;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn while_the_server_is_away_nothing_is_lost_and_policies_are_served() {
    let mut site = Site::start().await;
    let (a, b) = (site.child(A).await, site.child(B).await);
    let (config_id, document) = a.policy().await;
    let start = now();
    assert_eq!(a.run(start, &config_id, &[REPORT]).await, 201);
    site.until_drained().await;
    site.stop_server().await;

    let mut answered = Vec::new();
    for run in 1..20 {
        for node in [&a, &b] {
            assert_eq!(node.run(start + run, &config_id, &[REPORT]).await, 201);
            answered.push((node.id.clone(), start + run));
        }
    }
    // The same again waits already.
    assert_eq!(a.run(start + 1, &config_id, &[REPORT]).await, 200);
    assert_eq!(a.policy().await, (config_id.clone(), document.clone()));
    let path = format!("/policies/{A}/rules/policy.json.gz");
    let tag = format!("\"{config_id}\"");
    assert_eq!(a.get(&path, &[("if-none-match", &tag)]).await.0, 304);
    assert_ne!(
        metric(&a, "compliance_policy_requests_total{status=\"kept\"}").await,
        "0"
    );
    assert_eq!(metric(&a, "compliance_relay_upstream_up").await, "0");
    // A forged one is known as such; one of a node that nobody knows yet may be right later.
    let log = a.log(start + 50, &config_id, &[REPORT]);
    assert_eq!(
        a.put(&a.path(start + 50), b.signed(log.as_bytes())).await,
        403
    );
    let new = Node::new("00000000-0000-4000-8000-000000000001", &site.relay_url());
    assert_eq!(new.enrol_behind(site.relay().id()).await, 201);
    assert_eq!(new.run(start, &config_id, &[REPORT]).await, 503);

    // What waits outlives the relay, and so does what it serves.
    site.stop_relay().await;
    site.start_relay().await;
    let at = |node: &Node| Node::with(&node.id, node.identity.clone(), &site.relay_url());
    let (a, b, new) = (at(&a), at(&b), at(&new));
    assert_eq!(metric(&a, "compliance_relay_spool_items").await, "39");
    assert_eq!(a.policy().await, (config_id.clone(), document));
    assert_eq!(b.run(start + 99, &config_id, &[REPORT]).await, 201);
    answered.push((b.id.clone(), start + 99));

    site.start_server().await;
    site.until_drained().await;
    assert_eq!(site.runs().await, 1 + answered.len() as u64);
    // None was sent twice.
    assert_eq!(metric(&site.direct(&a), &reports("duplicate")).await, "0");
    for (id, second) in answered {
        let node = if id == a.id { &a } else { &b };
        let status = site.direct(node).run(second, &config_id, &[REPORT]).await;
        assert_eq!(status, 200, "the run of {second} is lost");
    }
    until(
        async || fetched(&new, &new.id).await == 200,
        "the new node's policy",
    )
    .await;
    assert_eq!(new.run(start, &config_id, &[REPORT]).await, 201);
    site.until_drained().await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_refuses_for_good_stops_nobody_else() {
    let mut site = Site::start().await;
    let (a, b) = (site.child(A).await, site.child(B).await);
    site.stop_server().await;
    let start = now();
    for run in 0..5 {
        for node in [&a, &b] {
            assert_eq!(node.run(start + run, "c", &[REPORT]).await, 201);
        }
    }
    // Somewhere the relay does not see it, the server is told to delete a node.
    let running = server::start(config(site.folder.path()), logger())
        .await
        .unwrap();
    let admin = Admin::of(site.folder.path(), &url(&running)).await;
    let deleted = admin
        .call(Method::DELETE, &format!("nodes/{A}"), None)
        .await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    running.stop().await.unwrap();

    site.start_server().await;
    site.until_drained().await;
    assert_eq!(metric(&b, &reports("forward_ok")).await, "5");
    // It is counted once the spool has let go of it.
    let counted = async || metric(&b, &reports("forward_error")).await == "5";
    until(counted, "what was refused to be counted").await;
    let aside = std::fs::read_dir(site.relay_folder.path().join("relay/undelivered"));
    assert_eq!(aside.unwrap().count(), 5);
    for run in 0..5 {
        let status = site.direct(&b).run(start + run, "c", &[REPORT]).await;
        assert_eq!(status, 200);
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_spool_refuses_with_a_time_to_come_again_and_drops_nothing() {
    let mut site = Site::with(|config| relay::Config {
        spool: Bounds {
            items: 6,
            ..Bounds::default()
        },
        ..config
    })
    .await;
    let a = site.child(A).await;
    site.until_drained().await;
    site.stop_server().await;
    // Until it served.
    let before: u64 = metric(&a, &reports("error")).await.parse().unwrap();
    let start = now();
    for run in 0..6 {
        assert_eq!(a.run(start + run, "c", &[REPORT]).await, 201);
    }
    let message = a.signed(a.log(start + 6, "c", &[REPORT]).as_bytes());
    let path = a.path(start + 6);
    let sent = a.request(Method::PUT, &path, &[], message).await;
    let answer = sent.unwrap();
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    let told = String::from_utf8_lossy(&answer.body);
    assert!(told.contains("6 uploads wait"), "{told}");
    // What waits is known all the same.
    assert_eq!(a.run(start, "c", &[REPORT]).await, 200);
    let error = metric(&a, &reports("error")).await;
    assert_eq!(error.parse::<u64>().unwrap(), before + 1);
    let bytes = metric(&a, "compliance_relay_spool_bytes").await;
    assert!(bytes.parse::<u64>().unwrap() > 1_000, "{bytes}");
    let oldest = metric(&a, "compliance_relay_spool_oldest_seconds").await;
    assert!(oldest.parse::<f64>().unwrap() > 0.0, "{oldest}");
    site.start_server().await;
    site.until_drained().await;
    assert_eq!(site.runs().await, 6);
    // A disk that takes nothing is as a spool that is full.
    let spool = site.relay_folder.path().join("relay/spool");
    let away = spool.with_extension("away");
    std::fs::rename(&spool, &away).unwrap();
    assert_eq!(a.run(start + 6, "c", &[REPORT]).await, 503);
    std::fs::rename(&away, &spool).unwrap();
    assert_eq!(a.run(start + 6, "c", &[REPORT]).await, 201);
    site.until_drained().await;
    assert_eq!(site.runs().await, 7);
    site.stop().await;
}
