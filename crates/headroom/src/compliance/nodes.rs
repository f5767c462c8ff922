//! Nodes and decisions about them.

use serde_json::Value;

use super::args::DecideArgs;
use super::*;

/// `headroom compliance nodes`.
pub(super) async fn list(args: &AdminArgs) -> Result<()> {
    let client = client(args)?;
    let mut out = String::new();
    for path in ["nodes/pending", "nodes"] {
        for node in nodes(&client, path).await? {
            let text = |key: &str| node[key].as_str().unwrap_or_default().to_owned();
            let os = node["os"]["fullName"].as_str().unwrap_or_default();
            let (status, id, hostname) = (text("status"), text("id"), text("hostname"));
            out += &format!("{status:<8}  {id}  {hostname}  {os}");
            if node["kind"] == "relay" {
                out += "  relay";
            }
            match text("policyServerId") {
                server if server == "root" => {}
                server => out += &format!("  behind {server}"),
            }
            out.push('\n');
        }
    }
    if out.is_empty() {
        out = "no node has sent an inventory yet; start headroom compliance agent\n".into();
    }
    print(&out)
}

/// The nodes of a list.
pub(super) async fn nodes(client: &ApiClient, path: &str) -> Result<Vec<Value>> {
    let mut data = client.call(Method::GET, path, None).await?;
    match data["nodes"].take() {
        Value::Array(nodes) => Ok(nodes),
        _ => bail!("the server's answer lists no nodes"),
    }
}

/// The identity of the node with this identity or name.
pub(super) fn identity(nodes: &[Value], wanted: &str) -> Option<String> {
    let found = nodes
        .iter()
        .find(|node| node["id"] == wanted || node["hostname"] == wanted)?;
    found["id"].as_str().map(str::to_owned)
}

/// `headroom compliance accept` and `refuse`.
pub(super) async fn decide(args: &DecideArgs, status: &str) -> Result<()> {
    let client = client(&args.admin)?;
    let pending = nodes(&client, "nodes/pending").await?;
    let ids: Vec<String> = match args.all {
        true => {
            let ids = pending.iter().filter_map(|node| node["id"].as_str());
            ids.map(str::to_owned).collect()
        }
        false => {
            let ids = args.nodes.iter().map(|wanted| {
                identity(&pending, wanted).ok_or_else(|| {
                    anyhow!("no node {wanted} is pending; headroom compliance nodes lists them")
                })
            });
            ids.collect::<Result<_>>()?
        }
    };
    if ids.is_empty() {
        return print("no node is pending\n");
    }
    let body = json!({"nodeId": ids, "status": status});
    let done = client
        .call(Method::POST, "nodes/pending", Some(&body))
        .await?;
    let mut out = String::new();
    for node in done["nodes"].as_array().into_iter().flatten() {
        let text = |key: &str| node[key].as_str().unwrap_or_default();
        out += &format!("{status}  {}  {}\n", text("id"), text("hostname"));
    }
    print(&out)
}
