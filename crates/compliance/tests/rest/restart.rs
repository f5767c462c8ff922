//! A server that starts anew finds what it had, and makes none of it again.

use super::*;
use crate::peers::metric;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_again_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin, node) = reported(folder.path()).await;
    // Other definitions, of which only what differs is kept.
    let mut changed = super::folder();
    changed["parameters"]["p"]["value"] = json!({"a": 2});
    admin.apply(&changed).await;
    let (config_id, policy) = node.policy().await;
    let path = format!("nodes/{A}/compliance");
    let (shown, all) = (admin.get(&path).await, admin.get("definitions").await);
    server.stop().await.unwrap();

    let server = crate::peers::server(folder.path()).await;
    let admin = Admin::of(folder.path(), &url(&server)).await;
    assert_eq!(admin.get("definitions").await, all);
    assert_eq!(admin.get(&path).await, shown);
    let node = Node::with(A, node.identity, &url(&server));
    let (config_id_now, policy_now) = node.policy().await;
    // It is signed anew, with a higher number.
    assert_ne!(policy_now, policy);
    let unpacked = |policy: &[u8]| std::io::read_to_string(flate2::read::GzDecoder::new(policy));
    let (now, before) = (unpacked(&policy_now), unpacked(&policy));
    assert_eq!((now.unwrap(), config_id_now), (before.unwrap(), config_id));
    // The server's own policy is not kept, so that it is another each time.
    assert_eq!(metric(&node, "compliance_policies_total").await, "1");
    let computed = metric(&node, "compliance_policies_computed_total").await;
    assert_eq!(computed, "2");
    server.stop().await.unwrap();
}
