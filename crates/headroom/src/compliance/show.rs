//! Compliance for people.

use compliance::daemon::Round;

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
        return format!("gave way to one of rule {}", printable(by));
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
        let name = text(node, "name");
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
        out += &format!("{}: {}\n", text(node, "name"), compliance(node));
        for abort in node["policyModeInconsistency"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let (cause, message) = (text(abort, "cause"), text(abort, "message"));
            out += &format!("policy mode inconsistency: {cause}: {message}\n");
        }
        for rule in node["rules"].as_array().into_iter().flatten() {
            out += &format!("rule {}: {}\n", text(rule, "name"), compliance(rule));
            for directive in rule["directives"].as_array().into_iter().flatten() {
                out += &format!(
                    "  directive {} ({}): {}\n",
                    text(directive, "name"),
                    text(directive, "policyMode"),
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
        let name = text(component, "name");
        if component["components"].is_array() {
            *out += &format!("{space}{name}:\n");
            components(&component["components"], indent + 2, out);
        }
        for value in component["values"].as_array().into_iter().flatten() {
            for report in value["reports"].as_array().into_iter().flatten() {
                let (value, status) = (text(value, "value"), text(report, "status"));
                let message = match text(report, "message") {
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
        out += &format!("problem: {}\n", printable(problem));
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
                let (component, key) = (printable(&event.component), printable(&event.key));
                let message = printable(&event.message);
                out += &format!("{}  {component} {key}: {message}\n", event.kind);
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
    fn no_report_writes_lines_or_orders_of_its_own() {
        let report =
            json!({"status": "successOK\u{7}", "message": "a\nb\u{1b}[2J\u{202e}\u{9b}31m"});
        let list = json!([{"name": "x\r", "values": [{"value": "/v\n", "reports": [report]}]}]);
        let mut out = String::new();
        components(&list, 2, &mut out);
        let shown = "  successOK\\u{7}  x\\u{d} /v : a b\\u{1b}[2J\\u{202e}\\u{9b}31m\n";
        assert_eq!(out, shown);
        let list = json!([{"name": "Text", "values": [{"value": "/motd",
            "reports": [{"status": "successOK", "message": "é\tü is \"right\" \\ fine"}]}]}]);
        let mut out = String::new();
        components(&list, 2, &mut out);
        assert_eq!(out, "  successOK  Text /motd: é ü is \"right\" \\ fine\n");
    }

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
