//! What is refused, and that it is told, counted and leaves nothing.

use compliance::server;
use http::Method;
use serde_json::Value;

use crate::peers::{A, B, Node, REPORT, config, logger, metric, now, pack, reports, server, url};

fn token(folder: &std::path::Path) -> String {
    std::fs::read_to_string(folder.join("api-token")).unwrap()
}

async fn api(node: &Node, folder: &std::path::Path, path: &str) -> Value {
    let token = token(folder);
    let path = format!("/rudder/api/latest/{path}");
    let (_, body) = node.get(&path, &[("x-api-token", &token)]).await;
    serde_json::from_str(&body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_nodes_own_key_signs_its_reports() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path()).await;
    let (a, b) = (Node::new(A, &url(&server)), Node::new(B, &url(&server)));
    assert_eq!((a.enrol().await, b.enrol().await), (201, 201));
    let (config_id, _) = a.policy().await;
    let start = now();
    let log = a.log(start, &config_id, &[REPORT]);

    // By the key of another node that is accepted too.
    assert_eq!(a.put(&a.path(start), b.signed(log.as_bytes())).await, 403);
    // Altered on its way: the signature is of another text.
    let message = a.signed(log.as_bytes());
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&message[..]), &mut plain)
        .unwrap();
    let text = String::from_utf8_lossy(&plain).replacen("result_success", "result_error", 1);
    assert_eq!(a.put(&a.path(start), pack(text.as_bytes())).await, 403);
    // Signed by the node, about another.
    let foreign = b.log(start, &config_id, &[REPORT]);
    assert_eq!(
        a.put(&a.path(start), a.signed(foreign.as_bytes())).await,
        400
    );
    // Of nobody who is known.
    let nobody = Node::new("00000000-0000-4000-8000-000000000000", &url(&server));
    assert_eq!(nobody.run(start, &config_id, &[REPORT]).await, 404);
    // Not signed at all.
    assert_eq!(a.put(&a.path(start), pack(log.as_bytes())).await, 403);
    assert_eq!(metric(&a, &reports("forged")).await, "3");
    assert_eq!(metric(&a, &reports("invalid")).await, "2");
    assert_eq!(metric(&a, &reports("ok")).await, "0");
    let shown = api(&a, folder.path(), "compliance").await;
    assert_eq!(shown["data"]["globalCompliance"]["compliance"], -1);

    // The real one is taken, and counts once.
    assert_eq!(a.put(&a.path(start), message.clone()).await, 201);
    assert_eq!(a.put(&a.path(start), message).await, 200);
    let older = a.path(start).replace(':', "_");
    assert_eq!(a.put(&older, a.signed(log.as_bytes())).await, 200);
    assert_eq!(metric(&a, &reports("ok")).await, "1");
    assert_eq!(metric(&a, &reports("duplicate")).await, "2");
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_report_is_refused_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path()).await;
    let a = Node::new(A, &url(&server));
    assert_eq!(a.enrol().await, 201);
    let (config_id, _) = a.policy().await;
    let start = now();
    // A bomb: 200 MB of zeros in 200 kB.
    let bomb = pack(&vec![0; 200 << 20]);
    assert_eq!(a.put(&a.path(start), bomb).await, 400);
    // More than a body may have.
    let answer = a
        .request(Method::PUT, &a.path(start), &[], vec![0; 17 << 20])
        .await;
    // The answer may come while the body is still being sent, which breaks the connection.
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 413));
    for (path, body) in [
        ("/reports/x", &b"x"[..]),
        ("/reports/../../etc/passwd_2026-01-01T00:00:00Z.log", b""),
        (&*a.path(start), b"\x1f\x8b damaged"),
        (&*a.path(start), b""),
    ] {
        let status = a.put(path, body).await;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    // Signed nonsense, and a signed text without a report.
    for text in [&[0xff_u8; 1_000][..], b"", b"hello\n"] {
        assert_eq!(a.put(&a.path(start), a.signed(text)).await, 400);
    }
    // Bytes that are no UTF-8 are replaced; a broken line is left out; huge lines are dropped.
    let huge = "y".repeat(2 << 20);
    let mut log = a.log(start, &config_id, &[REPORT]).into_bytes();
    log.extend_from_slice(b"2026-01-01T00:00:00+00:00 R: @@broken\n");
    log.extend_from_slice(huge.as_bytes());
    log.extend_from_slice(b"\n\xff\xfe\n");
    assert_eq!(a.put(&a.path(start), a.signed(&log)).await, 201);
    // A node whose clock is a minute ahead.
    assert_eq!(a.run(start + 60, &config_id, &[REPORT]).await, 201);
    assert_eq!(metric(&a, &reports("ok")).await, "2");
    server.stop().await.unwrap();
}

/// What a PUT is answered.
async fn put_told(node: &Node, path: &str, body: Vec<u8>) -> (u16, String) {
    let answer = node.request(Method::PUT, path, &[], body).await.unwrap();
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    (answer.status.as_u16(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_find_no_room_come_again_and_nameless_ones_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits.uploads_bytes = 300 << 10;
    let server = server::start(config, logger()).await.unwrap();
    let a = Node::new(A, &url(&server));
    assert_eq!(a.enrol().await, 201);
    let (config_id, _) = a.policy().await;
    let start = now();
    // More than there is room for, under names that may be taken.
    let much = vec![0; 400 << 10];
    for path in [&*a.path(start), "/inventories/x.ocs"] {
        let (status, why) = put_told(&a, path, much.clone()).await;
        assert_eq!(status, 503, "{path}: {why}");
        assert!(why.contains("send it again"), "{why}");
    }
    // Nobody keeps as much of what is refused by its name.
    let nobody = a.path(start).replace(A, B);
    for (path, status) in [
        ("/reports/x", 400),
        (&*nobody, 404),
        ("/inventories/x", 400),
    ] {
        let (answered, why) = put_told(&a, path, vec![0; 200 << 10]).await;
        assert_eq!(answered, status, "{path}: {why}");
    }
    assert_eq!(metric(&a, &reports("error")).await, "1");
    assert_eq!(metric(&a, &reports("invalid")).await, "2");
    // There is room again.
    assert_eq!(a.run(start, &config_id, &[REPORT]).await, 201);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_fetches_only_its_own_policy() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path()).await;
    let (a, b) = (Node::new(A, &url(&server)), Node::new(B, &url(&server)));
    assert_eq!((a.enrol().await, b.enrol().await), (201, 201));
    let (config_id, _) = a.policy().await;
    let path = format!("/policies/{A}/rules/policy.json.gz");
    let (status, why) = b.get(&path, &[]).await;
    assert_eq!(status, 403, "{why}");
    // A certificate with the node's name, of another key.
    let thief = Node::new(A, &url(&server));
    assert_eq!(thief.get(&path, &[]).await.0, 403);
    let tag = format!("\"{config_id}\"");
    assert_eq!(a.get(&path, &[("if-none-match", &tag)]).await.0, 304);
    assert_eq!(a.get(&path, &[("if-none-match", "\"other\"")]).await.0, 200);
    let forbidden = "compliance_policy_requests_total{status=\"forbidden\"}";
    assert_eq!(metric(&a, forbidden).await, "2");
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn inventories_are_a_known_nodes_own_and_no_more_than_xml() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path()).await;
    let a = Node::new(A, &url(&server));
    assert_eq!(a.enrol().await, 201);
    // Another key for a node that is known.
    let thief = Node::new(A, &url(&server));
    assert_eq!(thief.enrol().await, 403);
    // A signature of another text.
    let b = Node::new(B, &url(&server));
    let (xml, signature) = b.inventory();
    let send = async |xml: &str, signature: &str| {
        assert_eq!(b.put("/inventories/b.ocs", xml.to_owned()).await, 202);
        b.put("/inventories/b.ocs.sign", signature.to_owned()).await
    };
    let altered = xml.replace("example.org", "example.com");
    assert_ne!(altered, xml);
    assert_eq!(send(&altered, &signature).await, 403);
    let entity = "<!DOCTYPE x [<!ENTITY a \"b\">]>";
    let with_entity = xml.replacen("<REQUEST>", &format!("{entity}<REQUEST>"), 1);
    assert_eq!(send(&with_entity, &signature).await, 400);
    let deep = "<A>".repeat(100_000);
    assert_eq!(send(&format!("<REQUEST>{deep}"), &signature).await, 400);
    assert_eq!(b.put("/inventories/b.txt", "x").await, 400);
    let nodes = api(&a, folder.path(), "nodes").await;
    assert_eq!(nodes["data"]["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(send(&xml, &signature).await, 201);
    let nodes = api(&a, folder.path(), "nodes").await;
    assert_eq!(nodes["data"]["nodes"].as_array().unwrap().len(), 2);

    // Once its key is undefined the next inventory may bring another.
    let reset = format!("/rudder/api/latest/nodes/{A}");
    let token = token(folder.path());
    let headers = [("x-api-token", &*token)];
    let body = r#"{"keyStatus":"undefined"}"#;
    let answer = a.request(Method::POST, &reset, &headers, body).await;
    assert_eq!(answer.unwrap().status, 200);
    assert_eq!(thief.enrol().await, 201);
    assert_eq!(a.enrol().await, 403);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_wants_its_token_and_tells_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path()).await;
    let a = Node::new(A, &url(&server));
    for headers in [&[][..], &[("x-api-token", "x")], &[("x-api-token", "")]] {
        let (status, body) = a.get("/rudder/api/latest/nodes", headers).await;
        assert_eq!(status, 401);
        assert!(body.contains("\"result\":\"error\""), "{body}");
    }
    assert_eq!(a.get("/rudder/api/latest/system/status", &[]).await.0, 200);
    assert_eq!(a.get("/health", &[]).await, (200, "ok\n".into()));
    assert_eq!(a.get("/uuid", &[]).await, (200, "root".into()));
    let (_, openapi) = a.get("/openapi.json", &[]).await;
    let openapi: Value = serde_json::from_str(&openapi).unwrap();
    let token = token(folder.path());
    let headers = [("x-api-token", &*token)];
    for (path, calls) in openapi["paths"].as_object().unwrap() {
        if calls.get("get").is_some() {
            let (status, body) = a.get(&path.replace("{id}", "none"), &headers).await;
            let answered = status == 200 || body.contains("there is no ");
            assert!(
                answered && !body.contains("there is no call"),
                "{path}: {body}"
            );
        }
    }
    for (path, status) in [
        ("/rudder/api/latest/nodes/compliance?level=11", 400),
        ("/rudder/api/latest/nodes/compliance?precision=x", 400),
        ("/rudder/api/latest/rules/none/compliance", 404),
        ("/rudder/api/24/rules/%6eone", 404),
        ("/rudder/api/latest/what", 404),
        ("/rudder/api", 404),
        ("/what", 404),
    ] {
        assert_eq!(a.get(path, &headers).await.0, status, "{path}");
    }
    let put = "/rudder/api/latest/definitions?base=0";
    let wrong = r#"{"rules":{"r":{"id":"","displayName":"r"}}}"#;
    let answer = a.request(Method::PUT, put, &headers, wrong).await.unwrap();
    assert_eq!(answer.status, 422);
    let answer = a.request(Method::PUT, put, &headers, "{").await.unwrap();
    assert_eq!(answer.status, 400);
    let answer = a.request(Method::PUT, put, &headers, "{}").await.unwrap();
    assert_eq!(answer.status, 200);
    let answer = a.request(Method::PUT, put, &headers, "{}").await.unwrap();
    assert_eq!(answer.status, 409);
    server.stop().await.unwrap();
}
