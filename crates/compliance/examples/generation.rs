//! What policy generation costs, in time and memory: of a whole fleet, and of one change.
//!
//! `cargo run --release -p compliance --example generation -- [NODES [THREADS]]`, 12,000 nodes
//! and 2 threads without arguments. Every node has 20 directives of 55 components, 1,100 in
//! all; four of five values have variables and differ from node to node, one of five is
//! computed by an expression.

use std::io::Write;
use std::time::{Duration, Instant};

use compliance::model::attributes::{Comparator, ObjectType};
use compliance::model::directive::{Directive, SectionValues};
use compliance::model::group::Group;
use compliance::model::inventory::Inventory;
use compliance::model::node::{Node, NodeKind};
use compliance::model::property::{GlobalParameter, Property};
use compliance::model::query::{Criterion, Query};
use compliance::model::rule::Rule;
use compliance::model::target::{RuleTarget, Target};
use compliance::model::technique::{
    Action, Body, MethodItem, MethodParameter, Methods, PolicyGeneration, Reporting, Technique,
};
use compliance::policy::generation::{Change, Engine, Outcome, Settings};
use compliance::policy::node_policy::{ExpectedReports, PolicyDocument};
use serde_json::json;

/// Kinds of nodes; each has directives of its own.
const ROLES: usize = 16;
/// Directives of a node, beside those of the server.
const DIRECTIVES: usize = 20;
/// Components of a directive.
const COMPONENTS: usize = 55;
/// Groups beside those of roles.
const GROUPS: usize = 200;
/// Packages in the inventory of a node.
const PACKAGES: usize = 300;

fn technique(number: usize) -> Technique {
    let calls = (0..COMPONENTS).map(|call| {
        let path = match call % 5 {
            0 => format!("/etc/app/${{rudder.node.hostname}}/conf-{call}.d/main.conf"),
            1 => format!("/srv/${{node.properties[site][name]}}/${{rudder.node.id}}/{call}"),
            2 => format!("/etc/common/part-{call}/settings.conf"),
            3 => format!(
                "eval: '/var/lib/{call}/' + lower(${{rudder.node.hostname}}) + '/' + \
                 spread(${{rudder.node.id}}, 60)"
            ),
            _ => format!(
                "${{node.properties[mount] | default = \"/mnt\"}}/${{t{number}.volume}}/\
                 ${{rudder.node.id}}/{call}"
            ),
        };
        let lines =
            format!("server ${{rudder.node.policyserver.hostname}} # ${{t{number}.volume}}");
        MethodItem {
            id: format!("t{number}-c{call}"),
            name: format!("Lines of part {call}"),
            action: Action::Call {
                method: "file_lines_present".into(),
                params: vec![("path".into(), json!(path)), ("lines".into(), json!(lines))],
            },
            condition: String::new(),
            policy_mode_override: None,
            reporting: Reporting::default(),
            foreach: Vec::new(),
            foreach_name: None,
        }
    });
    Technique {
        id: format!("t{number}"),
        version: "1.0".into(),
        name: format!("Technique {number}"),
        category: String::new(),
        description: String::new(),
        multi_instance: true,
        generation: PolicyGeneration::Separated,
        system: false,
        body: Body::Methods(Methods {
            params: vec![MethodParameter {
                id: "volume".into(),
                name: "volume".into(),
                ..MethodParameter::default()
            }],
            items: calls.collect(),
        }),
    }
}

fn directive(id: &str, technique: usize, volume: &str) -> Change {
    let mut directive = Directive::new(id, id, (&format!("t{technique}"), "1.0"));
    directive.parameters.section = SectionValues::new("sections").with("volume", volume);
    Change::SetDirective(directive)
}

fn rule(id: &str, directives: Vec<String>, group: &str) -> Change {
    let mut rule = Rule::new(id, id);
    rule.directives = directives;
    rule.targets = vec![RuleTarget::Simple(Target::Group(group.into()))];
    Change::SetRule(rule)
}

fn node_id(number: usize) -> String {
    // As random as uuids are, and always the same.
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{:08x}-{:04x}-4{:03x}-8000-{number:012x}",
        mixed >> 32,
        mixed >> 16 & 0xffff,
        mixed & 0xfff
    )
}

fn node(number: usize, release: &str) -> Change {
    let mut node = Node::new(
        node_id(number),
        format!("srv-{number:05}.dc{}.example.org", number % 7),
    );
    node.os.kernel = "Linux".into();
    node.os.name = ["Debian", "Redhat", "Ubuntu"][number % 3].into();
    node.os.version = format!("{}.{}", 8 + number % 5, number % 9);
    node.ram = Some((4 + number as u64 % 60) << 30);
    node.ip_addresses = vec![format!(
        "10.{}.{}.{}",
        number >> 16,
        number >> 8 & 255,
        number & 255
    )];
    node.properties = vec![
        Property::new("role", json!(format!("role{}", number % ROLES))),
        Property::new(
            "site",
            json!({"name": format!("site-{}", number % 40), "release": release}),
        ),
    ];
    if number.is_multiple_of(3) {
        node.properties.push(Property::new(
            "mount",
            json!(format!("/data{}", number % 11)),
        ));
    }
    Change::SetNode(Box::new(node))
}

fn inventory(number: usize) -> Change {
    let mut inventory = Inventory::default();
    for package in 0..PACKAGES {
        let name = format!("package-{}", (package * 7 + number % 13) % 900);
        let version = format!("{}.{}", package % 9, number % 4);
        let fields = [("cn", name.as_str()), ("softwareVersion", version.as_str())];
        inventory.push(ObjectType::Software, &fields);
    }
    Change::SetInventory {
        node: node_id(number),
        inventory,
    }
}

fn group(id: String, criteria: Vec<Criterion>) -> Change {
    Change::SetGroup(Group::of_query(id.clone(), id, Query::all_of(criteria)))
}

fn definitions(nodes: usize) -> Vec<Change> {
    let mut root = Node::new("root", "server.example.org");
    root.kind = NodeKind::Root;
    let mut changes = vec![Change::SetNode(Box::new(root))];
    for role in 0..ROLES {
        let role_is = Criterion::new(
            ObjectType::Property,
            "name.value",
            Comparator::Eq,
            format!("role=role{role}"),
        );
        changes.push(group(format!("role{role}"), vec![role_is]));
        let mut directives = Vec::new();
        for number in 0..DIRECTIVES {
            let id = format!("d{role}-{number}");
            let volume = match number % 2 {
                0 => format!("volume-{number}"),
                _ => format!("${{rudder.param.pool}}-{number}"),
            };
            changes.push(directive(&id, role * DIRECTIVES + number, &volume));
            changes.push(Change::SetTechnique(technique(role * DIRECTIVES + number)));
            directives.push(id);
        }
        changes.push(rule(
            &format!("rule{role}"),
            directives,
            &format!("role{role}"),
        ));
    }
    for number in 0..GROUPS {
        let criterion = match number % 4 {
            0 => Criterion::new(
                ObjectType::Software,
                "cn",
                Comparator::Regex,
                format!("package-{number}.*"),
            ),
            1 => Criterion::new(
                ObjectType::Node,
                "nodeHostname",
                Comparator::Regex,
                format!("srv-.{}.*", number % 10),
            ),
            2 => Criterion::new(
                ObjectType::Node,
                "ram",
                Comparator::GtEq,
                format!("{} GB", number % 60),
            ),
            _ => Criterion::in_group(format!("role{}", number % ROLES)),
        };
        let version = Criterion::new(ObjectType::Node, "osVersion", Comparator::GtEq, "9");
        changes.push(group(format!("group{number}"), vec![criterion, version]));
    }
    changes.push(Change::SetParameter(GlobalParameter {
        id: "pool".into(),
        value: json!("pool-a"),
        description: String::new(),
    }));
    let one = Criterion::new(
        ObjectType::Node,
        "nodeId",
        Comparator::Eq,
        node_id(nodes / 2),
    );
    changes.push(group("one".into(), vec![one]));
    changes.push(Change::SetTechnique(technique(9_999)));
    changes.push(directive("alone", 9_999, "first"));
    changes.push(rule("alone", vec!["alone".into()], "one"));
    changes
}

/// A line of the kernel's account of this process, in MiB.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|one| one.strip_prefix(line));
    let kib = found.and_then(|rest| rest.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Counts what is written.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn show(what: &str, took: Duration, outcome: &Outcome) {
    println!(
        "{what}: {:.1} ms; {} generated, {} updated, {} failed",
        took.as_secs_f64() * 1e3,
        outcome.generated,
        outcome.updates.len(),
        outcome.failed
    );
    for step in &outcome.steps {
        let note = if step.summed {
            " (summed over threads)"
        } else {
            ""
        };
        println!(
            "  {:<16} {:>10.2} ms{note}",
            step.name,
            step.duration.as_secs_f64() * 1e3
        );
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let nodes: usize = arguments.next().map_or(Ok(12_000), |text| text.parse())?;
    let threads: usize = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let begin = Instant::now();
    let clock = move || begin.elapsed();
    let mut engine = Engine::new(Settings::default());

    let start = Instant::now();
    // One after the other, as nodes come: what is read is not kept.
    for number in 0..nodes {
        engine.apply(vec![node(number, "1"), inventory(number)])?;
    }
    engine.apply(definitions(nodes))?;
    println!(
        "{nodes} nodes read in {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    println!(
        "memory: {:.0} MiB now, {:.0} MiB at most",
        memory("VmRSS"),
        memory("VmHWM")
    );

    let start = Instant::now();
    let outcome = engine.generate(1_767_225_600, threads, &clock);
    show("full generation", start.elapsed(), &outcome);
    drop(outcome);
    let values: u64 = engine.policies().map(|policy| policy.value_count()).sum();
    println!("{values} components");
    println!(
        "memory: {:.0} MiB now, {:.0} MiB at most",
        memory("VmRSS"),
        memory("VmHWM")
    );

    let mut change = |what: &str, changes| -> Result<(), Box<dyn std::error::Error>> {
        let start = Instant::now();
        engine.apply(changes)?;
        let outcome = engine.generate(1_767_225_700, threads, &clock);
        show(what, start.elapsed(), &outcome);
        Ok(())
    };
    let of_one = directive("alone", 9_999, "second");
    change("one directive's value, one node", vec![of_one])?;
    change("one node's property", vec![node(nodes / 2, "2")])?;
    let ubuntu = Criterion::new(ObjectType::Node, "osName", Comparator::Eq, "Ubuntu");
    change(
        "one group's query",
        vec![group("group7".into(), vec![ubuntu])],
    )?;
    change("one node's inventory", vec![inventory(1)])?;
    let of_role = directive("d3-4", 3 * DIRECTIVES + 4, "volume-new");
    change("one directive's value, the nodes of a role", vec![of_role])?;

    let start = Instant::now();
    let (mut expected, mut documents) = (Count(0), Count(0));
    for policy in engine.policies() {
        serde_json::to_writer(&mut expected, &ExpectedReports(policy))?;
    }
    println!(
        "expected reports of all nodes as JSON: {:.0} MB in {:.1} ms, one thread",
        expected.0 as f64 / 1e6,
        start.elapsed().as_secs_f64() * 1e3
    );
    let start = Instant::now();
    for policy in engine.policies() {
        serde_json::to_writer(&mut documents, &PolicyDocument(policy))?;
    }
    println!(
        "policies of all nodes as JSON: {:.0} MB in {:.1} ms, one thread",
        documents.0 as f64 / 1e6,
        start.elapsed().as_secs_f64() * 1e3
    );
    println!(
        "memory: {:.0} MiB now, {:.0} MiB at most",
        memory("VmRSS"),
        memory("VmHWM")
    );
    Ok(())
}
