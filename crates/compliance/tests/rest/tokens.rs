//! Who may do what.

use super::*;
use crate::peers::config;
use telemetry::{Level, Logger, Sink};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_reads_or_writes_until_it_is_revoked_and_only_its_hash_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut admin, node) = reported(folder.path()).await;
    let own = admin.token.clone();
    let mut tokens = Vec::new();
    for (id, kind) in [("reader", "ro"), ("writer", "rw")] {
        let new = json!({"id": id, "name": id, "authorizationType": kind});
        let made = admin
            .data(Method::PUT, "apiaccounts", Some(new.clone()))
            .await;
        let token = made["accounts"][0]["token"].as_str().unwrap().to_owned();
        assert_eq!(token.len(), 48);
        tokens.push(token);
        let again = admin.call(Method::PUT, "apiaccounts", Some(new)).await;
        assert_eq!(again.status, 409);
    }
    let listed = admin.get("apiaccounts").await.to_string();
    assert!(
        listed.contains("reader") && !listed.contains("\"token\""),
        "{listed}"
    );
    let (reader, writer) = (&tokens[0], &tokens[1]);

    // Neither without a token nor with a node's certificate.
    for headers in [
        &[][..],
        &[("x-api-token", "")],
        &[("x-api-token", "reader")],
    ] {
        for path in ["rules", "apiaccounts", "what", "nodes/compliance"] {
            let path = format!("/rudder/api/latest/{path}");
            assert_eq!(node.get(&path, headers).await.0, 401, "{path}");
        }
    }
    // Every call of the document takes the token that it says.
    let calls: Vec<(String, String)> = admin
        .document
        .calls()
        .map(|(method, path, _)| (method.to_ascii_uppercase(), path.to_owned()))
        .collect();
    for (method, path) in &calls {
        let method: Method = method.parse().unwrap();
        let path = path.replace("{id}", "none").replace("{version}", "1.0");
        let reads = method == Method::GET || path == "definitions/plan";
        let administers = path.starts_with("apiaccounts");
        admin.with(reader);
        let status = admin.call(method.clone(), &path, None).await.status;
        assert_eq!(
            status == 403,
            !reads || administers,
            "{method} {path}: {status}"
        );
        admin.with(writer);
        let status = admin.call(method.clone(), &path, None).await.status;
        assert_eq!(status == 403, administers, "{method} {path}: {status}");
        assert_ne!(status, 401);
    }
    admin.with(&own);
    admin.data(Method::DELETE, "apiaccounts/writer", None).await;
    admin.with(writer);
    assert_eq!(admin.call(Method::GET, "rules", None).await.status, 401);
    server.stop().await.unwrap();

    // The next server knows the other, and nothing on the disk has it.
    let server = crate::peers::server(folder.path()).await;
    let mut admin = Admin::of(folder.path(), &url(&server)).await;
    admin.with(reader);
    admin.get("rules").await;
    server.stop().await.unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let has = bytes.windows(48).any(|part| part == reader.as_bytes());
        assert!(!has, "{} has a token", path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_has_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let sink = Sink::memory();
    let logger = Logger::new("test", sink.clone(), Level::Debug);
    let server = compliance::server::start(config(folder.path()), logger)
        .await
        .unwrap();
    let admin = Admin::of(folder.path(), &url(&server)).await;
    let new = json!({"name": "x"});
    let made = admin.data(Method::PUT, "apiaccounts", Some(new)).await;
    let token = made["accounts"][0]["token"].as_str().unwrap().to_owned();
    let node = Node::new(A, &url(&server));
    let headers = [("x-api-token", &*token)];
    assert_eq!(node.get("/rudder/api/latest/rules", &headers).await.0, 200);
    admin.apply(&super::folder()).await;
    server.stop().await.unwrap();
    let text = sink.kept();
    assert!(text.contains("started"), "{text}");
    assert!(
        !text.contains(&token) && !text.contains(&admin.token),
        "{text}"
    );
}
