//! Compliance for people.

use compliance::daemon::Round;
use serde_json::Value;

use super::args::ShowArgs;
use super::nodes::{identity, nodes};
use super::*;

/// Nodes that are listed.
const LISTED: usize = 50;

/// `headroom compliance show`.
pub(super) async fn show(args: &ShowArgs) -> Result<()> {
    let client = client(&args.admin)?;
    match &args.node {
        None => fleet(&client).await,
        Some(node) => one(&client, node).await,
    }
}

fn percent(value: &Value) -> String {
    match value.as_f64() {
        Some(percent) if percent >= 0.0 => format!("{percent} %"),
        _ => "nothing is reported yet".into(),
    }
}

/// Percent, or that there is nothing yet of which there could be any.
fn compliance(object: &Value) -> String {
    if let Some(by) = object["skippedDetails"]["overridingRuleName"].as_str() {
        return format!("gave way to one of rule {by}");
    }
    let details = object["complianceDetails"].as_object();
    let mut statuses = details
        .into_iter()
        .flat_map(|details| details.keys())
        .peekable();
    if statuses.peek().is_none() {
        return "nothing yet".into();
    }
    match statuses.all(|status| status == "applying") {
        true => "nothing is reported yet".into(),
        false => percent(&object["compliance"]),
    }
}

fn details(object: &Value) -> String {
    let details = object["complianceDetails"].as_object();
    let parts = details.into_iter().flatten();
    let parts = parts.map(|(status, percent)| format!("{status} {percent} %"));
    parts.collect::<Vec<_>>().join(", ")
}

async fn fleet(client: &ApiClient) -> Result<()> {
    let global = client.call(Method::GET, "compliance", None).await?;
    let global = &global["globalCompliance"];
    let mut out = format!(
        "compliance of all nodes: {}{}\n",
        compliance(global),
        match details(global) {
            details if details.is_empty() => details,
            details => format!(" ({details})"),
        }
    );
    let mut all = nodes(client, "nodes/compliance?level=0").await?;
    // Whoever needs a look comes first.
    let of = |node: &Value| node["compliance"].as_f64().unwrap_or_default();
    all.sort_by(|a, b| of(a).total_cmp(&of(b)));
    for node in all.iter().take(LISTED) {
        let name = node["name"].as_str().unwrap_or_default();
        let of_node = compliance(node);
        out += &format!("  {of_node:>8}  {name}  {}\n", details(node));
    }
    if all.len() > LISTED {
        out += &format!("  and {} more\n", all.len() - LISTED);
    }
    print(&out)
}

async fn one(client: &ApiClient, wanted: &str) -> Result<()> {
    let all = nodes(client, "nodes").await?;
    let id = identity(&all, wanted);
    let id = id.ok_or_else(|| anyhow!("no node {wanted} is accepted"))?;
    let shown = nodes(client, &format!("nodes/{id}/compliance")).await?;
    let mut out = String::new();
    for node in &shown {
        let name = node["name"].as_str().unwrap_or_default();
        out += &format!("{name}: {}\n", compliance(node));
        for abort in node["policyModeInconsistency"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let text = |key: &str| abort[key].as_str().unwrap_or_default();
            let (cause, message) = (text("cause"), text("message"));
            out += &format!("policy mode inconsistency: {cause}: {message}\n");
        }
        for rule in node["rules"].as_array().into_iter().flatten() {
            let name = rule["name"].as_str().unwrap_or_default();
            out += &format!("rule {name}: {}\n", compliance(rule));
            for directive in rule["directives"].as_array().into_iter().flatten() {
                let text = |key: &str| directive[key].as_str().unwrap_or_default();
                out += &format!(
                    "  directive {} ({}): {}\n",
                    text("name"),
                    text("policyMode"),
                    compliance(directive)
                );
                components(&directive["components"], 4, &mut out);
            }
        }
    }
    print(&out)
}

fn components(list: &Value, indent: usize, out: &mut String) {
    for component in list.as_array().into_iter().flatten() {
        let space = " ".repeat(indent);
        let name = component["name"].as_str().unwrap_or_default();
        if component["components"].is_array() {
            *out += &format!("{space}{name}:\n");
            components(&component["components"], indent + 2, out);
        }
        for value in component["values"].as_array().into_iter().flatten() {
            for report in value["reports"].as_array().into_iter().flatten() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (value, status) = (text(&value["value"]), text(&report["status"]));
                let message = match text(&report["message"]) {
                    message if message.is_empty() => message,
                    message => format!(": {message}"),
                };
                *out += &format!("{space}{status}  {name} {value}{message}\n");
            }
        }
    }
}

/// What one run of an agent did.
pub(super) fn round(round: &Round) -> String {
    let mut out = String::new();
    for problem in &round.problems {
        out += &format!("problem: {problem}\n");
    }
    match &round.config_id {
        None => {
            let node = &round.node;
            out += &format!(
                "node {node} has no policy yet: accept it with headroom compliance accept {node}\n"
            );
        }
        Some(config_id) => {
            for event in &round.events {
                out += &format!(
                    "{}  {} {}: {}\n",
                    event.kind, event.component, event.key, event.message
                );
            }
            out += &format!(
                "policy {config_id}: {} calls, {} repaired; {} runs sent, {} wait\n",
                round.calls, round.repaired, round.sent, round.waiting
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_has_nothing_yet_there_is_no_percent() {
        for (details, percent, shown) in [
            (json!({}), 0.0, "nothing yet"),
            (json!({}), -1.0, "nothing yet"),
            (json!({"applying": 100.0}), 0.0, "nothing is reported yet"),
            (json!({"noReport": 100.0}), 0.0, "0 %"),
            (
                json!({"applying": 50.0, "successAlreadyOK": 50.0}),
                50.0,
                "50 %",
            ),
        ] {
            let object = json!({"compliance": percent, "complianceDetails": details});
            assert_eq!(compliance(&object), shown);
        }
        assert_eq!(compliance(&json!({"compliance": 0})), "nothing yet");
        let skipped =
            json!({"complianceDetails": {}, "skippedDetails": {"overridingRuleName": "r"}});
        assert_eq!(compliance(&skipped), "gave way to one of rule r");
    }
}
