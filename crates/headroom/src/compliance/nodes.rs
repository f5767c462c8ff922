//! Nodes and decisions about them.

use compliance::client::CallError;

use super::args::DecideArgs;
use super::*;

/// Nodes of which it is said why nothing was decided about them.
const UNDECIDED: usize = 20;

/// `headroom compliance nodes`.
pub(super) async fn list(args: &AdminArgs) -> Result<()> {
    let client = client(args)?;
    let mut out = String::new();
    for path in ["nodes/pending", "nodes"] {
        for node in nodes(&client, path).await? {
            let text = |key: &str| text(&node, key);
            let os = super::text(&node["os"], "fullName");
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
    match client
        .call(Method::POST, "nodes/pending", Some(&body))
        .await
    {
        Ok(done) => print(&decided(&done, status)),
        Err(CallError::InPart { data, .. }) => {
            print(&decided(&data, status))?;
            Err(undecided(&data, status))
        }
        Err(error) => Err(error.into()),
    }
}

fn decided(data: &Value, status: &str) -> String {
    let nodes = data["nodes"].as_array().into_iter().flatten();
    let lines = nodes.map(|node| {
        let (id, hostname) = (text(node, "id"), text(node, "hostname"));
        format!("{status}  {id}  {hostname}\n")
    });
    lines.collect()
}

/// What became of nothing, of all that was to be decided.
fn undecided(data: &Value, status: &str) -> anyhow::Error {
    let nodes = data["undecided"].as_array();
    let nodes = nodes.map(Vec::as_slice).unwrap_or_default();
    let mut lines: Vec<String> = nodes
        .iter()
        .take(UNDECIDED)
        .map(|node| text(node, "why"))
        .collect();
    if nodes.len() > UNDECIDED {
        lines.push(format!("and {} more", nodes.len() - UNDECIDED));
    }
    let all = match nodes.len() {
        1 => "1 node was".to_owned(),
        count => format!("{count} nodes were"),
    };
    anyhow!("{all} not {status}:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_told_one_by_one() {
        let data = json!({
            "nodes": [{"id": "a", "hostname": "web"}, {"id": "b", "hostname": "x\ny\u{1b}[31m"}],
            "undecided": [{"id": "c", "why": "node c is not pending"}],
        });
        let told = decided(&data, "accepted");
        assert_eq!(told, "accepted  a  web\naccepted  b  x y\\u{1b}[31m\n");
        let told = undecided(&data, "accepted").to_string();
        assert_eq!(told, "1 node was not accepted:\nnode c is not pending");
        let many: Vec<Value> = (0..23).map(|_| json!({"why": "no"})).collect();
        let told = undecided(&json!({"undecided": many}), "refused").to_string();
        assert!(
            told.starts_with("23 nodes were not refused:\nno\n"),
            "{told}"
        );
        assert!(told.ends_with("\nno\nand 3 more"), "{told}");
        assert_eq!(decided(&json!({"nodes": []}), "accepted"), "");
    }
}
