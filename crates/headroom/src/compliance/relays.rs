//! Relays: the process, and which nodes are behind which.

use std::collections::BTreeMap;

use compliance::relay;

use super::args::{AssignArgs, RelayArgs, RelayNodeArgs, RelaysCommand};
use super::nodes::{identity, nodes};
use super::*;

/// `headroom compliance relay`.
pub(super) async fn serve(args: RelayArgs) -> Result<()> {
    let logger = logger("compliance-relay", &args.log)?;
    let shutdown = on_signal()?;
    let mut config = relay::Config::new(args.listen, args.data, args.upstream);
    let spool = &mut config.spool;
    spool.bytes = args.spool_bytes.unwrap_or(spool.bytes);
    spool.age = args.spool_age.unwrap_or(spool.age);
    config.upstream_certificate = args.upstream_cert;
    config.hostname = args.hostname;
    config.names = args.names;
    ended(&logger, relay::run(config, logger.clone(), shutdown).await)
}

/// `headroom compliance relays`.
pub(super) async fn run(command: &RelaysCommand) -> Result<()> {
    match command {
        RelaysCommand::List(args) => list(args).await,
        RelaysCommand::Add(args) => set_kind(args, "relay").await,
        RelaysCommand::Remove(args) => set_kind(args, "node").await,
        RelaysCommand::Assign(args) => assign(args).await,
    }
}

async fn list(args: &AdminArgs) -> Result<()> {
    let all = nodes(&client(args)?, "nodes").await?;
    let mut behind: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for node in &all {
        behind
            .entry(text(node, "policyServerId"))
            .or_default()
            .push(node);
    }
    let mut out = String::new();
    let name = |id: &str| match all.iter().find(|node| node["id"] == id) {
        Some(node) => text(node, "hostname"),
        None => "the server".to_owned(),
    };
    for relay in all.iter().filter(|node| node["kind"] == "relay") {
        let (id, hostname) = (text(relay, "id"), text(relay, "hostname"));
        let before = name(&text(relay, "policyServerId"));
        out += &format!("{id}  {hostname}  behind {before}\n");
        for node in behind.get(&id).into_iter().flatten() {
            out += &format!("  {}  {}\n", text(node, "id"), text(node, "hostname"));
        }
    }
    if out.is_empty() {
        out = "no node is a relay; headroom compliance relays add makes one\n".into();
    }
    print(&out)
}

/// The identity of an accepted node.
fn accepted(all: &[Value], wanted: &str) -> Result<String> {
    identity(all, wanted).with_context(|| {
        format!("no node {wanted} is accepted; headroom compliance nodes lists them")
    })
}

async fn set_kind(args: &RelayNodeArgs, kind: &str) -> Result<()> {
    let client = client(&args.admin)?;
    let id = accepted(&nodes(&client, "nodes").await?, &args.node)?;
    let body = json!({"kind": kind});
    let path = format!("nodes/{id}");
    client.call(Method::POST, &path, Some(&body)).await?;
    print(&format!("{kind:<5}  {id}  {}\n", args.node))
}

async fn assign(args: &AssignArgs) -> Result<()> {
    let client = client(&args.admin)?;
    let all = nodes(&client, "nodes").await?;
    let server = match &*args.relay {
        "root" => "root".to_owned(),
        relay => accepted(&all, relay)?,
    };
    let ids = args
        .nodes
        .iter()
        .map(|node| Ok((accepted(&all, node)?, node)));
    // Mistakes are found before anything changes.
    let ids: Vec<(String, &String)> = ids.collect::<Result<_>>()?;
    let body = json!({"policyServerId": server});
    for (id, node) in ids {
        let path = format!("nodes/{id}");
        client.call(Method::POST, &path, Some(&body)).await?;
        print(&format!("{id}  {node}  is behind {}\n", args.relay))?;
    }
    Ok(())
}
