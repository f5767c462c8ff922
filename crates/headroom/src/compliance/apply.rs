//! From a folder to the server: the plan first.

use std::collections::HashSet;
use std::io::{IsTerminal, Write as _};

use units::counted;

use super::nodes::nodes;
use super::*;
use crate::compliance::args::ApplyArgs;

/// Nodes and objects of a plan that are named.
const NAMED: usize = 20;

/// `headroom compliance apply`.
pub(super) async fn apply(args: ApplyArgs) -> Result<Outcome> {
    let all = definitions(&args.folder).map_err(|error| anyhow!("{error}\nnothing was applied"))?;
    let client = client(&args.admin)?;
    let body = json!(all);
    let plan = client
        .call(Method::POST, "definitions/plan", Some(&body))
        .await?;
    let plan = &plan["plan"];
    print(&planned(plan))?;
    if all.groups.values().any(|group| !group.node_ids.is_empty()) {
        print(&unknown(&all, &nodes(&client, "nodes").await?))?;
    }
    if unchanged(plan) {
        return Ok(Outcome::Pass);
    }
    if !args.yes && !confirmed()? {
        print("nothing was applied\n")?;
        return Ok(Outcome::Fail);
    }
    let base = &plan["version"];
    let path = format!("definitions?base={base}");
    let done = client.call(Method::PUT, &path, Some(&body)).await?;
    let version = &done["plan"]["version"];
    let nodes = in_words(done["plan"]["nodes"].as_u64().unwrap_or_default());
    let took = done["plan"]["milliseconds"].as_f64().unwrap_or_default();
    print(&format!(
        "applied as version {version} in {took:.1} ms: another policy for {nodes}\n"
    ))?;
    Ok(Outcome::Pass)
}

/// Nodes that groups list and the server does not know: they may come later, or be misspelt.
fn unknown(all: &Definitions, nodes: &[Value]) -> String {
    let known: HashSet<&str> = nodes.iter().filter_map(|one| one["id"].as_str()).collect();
    let mut out = String::new();
    for group in all.groups.values() {
        let lacking = group.node_ids.iter().map(String::as_str);
        let lacking: Vec<&str> = lacking.filter(|id| !known.contains(id)).collect();
        if let Some(first) = lacking.first() {
            let (id, count) = (&group.id, in_words(lacking.len() as u64));
            out += &format!(
                "! group {id} lists {count} that the server has not accepted yet: {first}"
            );
            out += if lacking.len() > 1 {
                " and so on\n"
            } else {
                "\n"
            };
        }
    }
    out
}

/// Puts definitions in the place of others, without a question.
pub(super) async fn replace(client: &ApiClient, all: &Definitions) -> Result<()> {
    let body = json!(all);
    let now = client.call(Method::GET, "definitions", None).await?;
    let path = format!("definitions?base={}", now["version"]);
    client.call(Method::PUT, &path, Some(&body)).await?;
    Ok(())
}

fn in_words(nodes: u64) -> String {
    counted(nodes, "node", "nodes")
}

/// How much there is.
pub(super) fn how_much(all: &Definitions) -> String {
    format!(
        "{}, {}, {}, {}, {}: no mistake",
        counted(all.rules.len() as u64, "rule", "rules"),
        counted(all.directives.len() as u64, "directive", "directives"),
        counted(all.techniques.len() as u64, "technique", "techniques"),
        counted(all.groups.len() as u64, "group", "groups"),
        counted(all.parameters.len() as u64, "parameter", "parameters")
    )
}

fn confirmed() -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("apply asks before it changes anything, and nobody is there to answer; give --yes");
    }
    print("Apply this? [y/N] ")?;
    std::io::stdout().flush().context("ask")?;
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .context("read the answer")?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Is all as the folder says, but for what the API made beside it?
fn unchanged(plan: &Value) -> bool {
    let objects = plan["objects"].as_array();
    objects.is_none_or(|all| all.iter().all(|one| one["became"] == "kept"))
}

fn planned(plan: &Value) -> String {
    let list = |key: &str| plan[key].as_array().cloned().unwrap_or_default();
    let told = |value: &Value| printable(value.as_str().unwrap_or_default());
    let objects = list("objects");
    let mut out = String::new();
    for one in objects.iter().take(NAMED) {
        let (sign, note) = match one["became"].as_str() {
            Some("added") => ("+", ""),
            Some("removed") => ("-", ""),
            Some("kept") => ("=", " (made by the API; it stays)"),
            Some("taken") => ("~", " (made by the API; from now on the folder's)"),
            _ => ("~", ""),
        };
        let (kind, id) = (text(one, "kind"), text(one, "id"));
        let what = format!("{kind} {id}");
        out += &format!("{sign} {}{note}\n", what.trim_end());
    }
    if objects.len() > NAMED {
        out += &format!("  and {} more\n", objects.len() - NAMED);
    }
    if unchanged(plan) {
        return out + "nothing differs from what is defined\n";
    }
    let (count, nodes) = (plan["nodes"].as_u64().unwrap_or_default(), list("named"));
    out += &format!("another policy for {}\n", in_words(count));
    for node in nodes.iter().take(NAMED) {
        out += &format!("  {} {}:", text(node, "hostname"), text(node, "id"));
        for (key, sign) in [("added", "+"), ("changed", "~"), ("removed", "-")] {
            for id in node[key].as_array().into_iter().flatten().take(NAMED) {
                out += &format!(" {sign}{}", told(id));
            }
        }
        out.push('\n');
    }
    if count > NAMED as u64 {
        out += &format!("  and {} more\n", count - NAMED as u64);
    }
    for failure in list("failures").iter().take(NAMED) {
        let (id, why) = (text(failure, "id"), text(failure, "why"));
        out += &format!("! the policy of {id} cannot be made: {why}\n");
    }
    for problem in list("problems").iter().take(NAMED) {
        out += &format!("! {}\n", told(problem));
    }
    out
}

#[cfg(test)]
mod tests {
    use compliance::model::group::Group;

    use super::*;

    #[test]
    fn nodes_that_are_not_there_yet_are_told() {
        let mut all = Definitions::default();
        for (id, nodes) in [
            ("a", &["n1"][..]),
            ("b", &["n1", "n2"]),
            ("c", &["n3", "n4"]),
        ] {
            let nodes = nodes.iter().map(ToString::to_string).collect();
            all.groups.insert(id.into(), Group::of_nodes(id, id, nodes));
        }
        let told = unknown(&all, &[json!({"id": "n1"})]);
        assert_eq!(
            told,
            "! group b lists 1 node that the server has not accepted yet: n2\n\
             ! group c lists 2 nodes that the server has not accepted yet: n3 and so on\n"
        );
    }
}
