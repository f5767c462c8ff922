use proptest::prelude::*;
use serde_json::json;

use super::super::inventory::{Inventory, InventoryPool};
use super::super::node::{Node, NodeKind};
use super::super::property::Property;
use super::*;
use crate::model::ids::{DenseId, GroupIx, NodeIx};
use crate::model::node_set::NodeSet;

struct Fleet {
    nodes: Vec<(Node, super::super::inventory::PooledInventory)>,
    pool: InventoryPool,
}

/// Four nodes: `web1` and `web2` (Debian, nginx of two versions), `db1` (Red Hat, PostgreSQL)
/// and the root server.
fn fleet() -> Fleet {
    let mut pool = InventoryPool::default();
    let mut nodes = Vec::new();
    let rows = [
        (
            "web1",
            "Debian",
            "12.5",
            4u64 << 30,
            "10.1.0.1",
            "nginx",
            "1.22",
        ),
        (
            "web2",
            "Debian",
            "11.9",
            8 << 30,
            "10.1.0.2",
            "nginx",
            "1.18",
        ),
        (
            "db1",
            "Redhat",
            "9.3",
            64 << 30,
            "10.2.0.1",
            "postgresql",
            "15",
        ),
        (
            "root",
            "Debian",
            "12.5",
            16 << 30,
            "192.168.0.1",
            "nginx",
            "1.22",
        ),
    ];
    for (number, (name, os, version, ram, address, software, release)) in
        rows.into_iter().enumerate()
    {
        let mut node = Node::new(name, format!("{name}.example.org"));
        node.os.kernel = "Linux".into();
        node.os.name = os.into();
        node.os.version = version.into();
        node.ram = Some(ram);
        node.ip_addresses = vec!["127.0.0.1".into(), address.into()];
        node.last_inventory = Some(1_777_593_600 + 86_400 * number as i64);
        node.properties = vec![Property::new(
            "datacenter",
            json!({"city": if number == 2 { "Paris" } else { "Lyon" }, "racks": [number, 7]}),
        )];
        if name == "root" {
            node.kind = NodeKind::Root;
        } else {
            node.properties
                .push(Property::new("role", json!(&name[..2])));
        }
        let mut inventory = Inventory::default();
        let kind = ObjectType::Software;
        inventory.push(kind, &[("cn", software), ("softwareVersion", release)]);
        inventory.push(kind, &[("cn", "bash"), ("softwareVersion", "5.2")]);
        let kind = ObjectType::Process;
        inventory.push(kind, &[("name", software), ("user", "root")]);
        inventory.push(kind, &[("name", "init"), ("user", "root")]);
        let space = (number * 100).to_string();
        inventory.push(
            ObjectType::FileSystem,
            &[("mountPoint", "/"), ("fileSystemFreeSpace", &space)],
        );
        let environment = [
            ("name", "LANG"),
            ("value", if number == 0 { "C" } else { "fr=1" }),
        ];
        inventory.push(ObjectType::Environment, &environment);
        inventory.check(name).unwrap();
        let pooled = pool.intern(&inventory);
        nodes.push((node, pooled));
    }
    Fleet { nodes, pool }
}

impl Fleet {
    fn subjects(&self) -> impl Iterator<Item = Subject<'_>> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(at, (node, inventory))| Subject {
                ix: NodeIx(at as u32),
                node,
                inventory,
                pool: &self.pool,
                instance_id: "instance-1",
            })
    }

    fn names(&self, found: &NodeSet) -> String {
        let names: Vec<_> = found
            .iter()
            .map(|ix| self.nodes[ix.index()].0.id.as_str())
            .collect();
        names.join(" ")
    }

    /// Names of the nodes that a query finds; the group 0 has `web1` and `db1`.
    fn find(&self, query: &Query) -> Result<String, QueryError> {
        let query = CompiledQuery::new(query, &mut |_| GroupIx(0))?;
        let found = query.find(self.subjects(), |_, node| node.0.is_multiple_of(2));
        // Asked one by one the answer is the same.
        for subject in self.subjects() {
            let alone = query.matches(
                &subject,
                &|_| subject.ix.0.is_multiple_of(2),
                &mut Scan::default(),
            );
            assert_eq!(alone, found.contains(subject.ix));
        }
        Ok(self.names(&found))
    }
}

fn read(query: serde_json::Value) -> Query {
    serde_json::from_value(query).unwrap()
}

#[test]
fn each_comparator_of_each_type_of_attribute() {
    let fleet = fleet();
    let cases = [
        ("node", "OS", "eq", "Linux", "web1 web2 db1"),
        ("node", "osName", "notEq", "Debian", "db1"),
        (
            "node",
            "nodeHostname",
            "regex",
            "web[0-9]\\.example.*",
            "web1 web2",
        ),
        ("node", "nodeHostname", "regex", "web", ""),
        ("node", "nodeHostname", "notRegex", "web.*", "db1"),
        ("node", "osVersion", "gteq", "12", "web1 db1"),
        ("node", "osServicePack", "notExists", "", "web1 web2 db1"),
        ("node", "osServicePack", "exists", "", ""),
        ("node", "ram", "gt", "4 GB", "web2 db1"),
        ("node", "ram", "lteq", "8192 MB", "web1 web2"),
        ("node", "ram", "eq", "64GB", "db1"),
        ("node", "agentName", "eq", "cfengine", "web1 web2 db1"),
        ("node", "agentName", "eq", "dsc", ""),
        ("node", "agentName", "notEq", "Community", ""),
        ("node", "ipHostNumber", "eq", "10.1.0.0/16", "web1 web2"),
        ("node", "ipHostNumber", "notEq", "10.1.0.0/16", "db1"),
        ("node", "ipHostNumber", "regex", "10\\.2\\..*", "db1"),
        ("node", "inventoryDate", "eq", "2026-05-02", "web2"),
        ("node", "inventoryDate", "lt", "02/05/2026", "web1"),
        (
            "node",
            "inventoryDate",
            "gteq",
            "2026-05-02T00:00:00Z",
            "web2 db1",
        ),
        ("node", "state", "eq", "enabled", "web1 web2 db1"),
        ("node", "instanceId", "eq", "instance-1", "web1 web2 db1"),
        ("software", "cn", "eq", "nginx", "web1 web2"),
        ("software", "cn", "exists", "", "web1 web2 db1"),
        ("software", "cn", "regex", "post.*", "db1"),
        ("software", "cn", "eq", "NGINX", "web1 web2"),
        ("software", "cn", "notEq", "nginx", "web1 web2 db1"),
        ("software", "cn", "regex", "NGINX", ""),
        ("process", "name", "eq", "Nginx", "web1 web2"),
        ("process", "name", "notEq", "nginx", "db1"),
        ("process", "name", "notRegex", "ngi.*", "db1"),
        ("process", "name", "notExists", "", ""),
        ("process", "tty", "notExists", "", "web1 web2 db1"),
        (
            "fileSystemLogicalElement",
            "fileSystemFreeSpace",
            "gt",
            "100",
            "db1",
        ),
        (
            "fileSystemLogicalElement",
            "fileCount",
            "notExists",
            "",
            "web1 web2 db1",
        ),
        ("environmentVariable", "name.value", "eq", "LANG=C", "web1"),
        (
            "environmentVariable",
            "name.value",
            "notEq",
            "LANG=C",
            "web2 db1",
        ),
        (
            "environmentVariable",
            "name.value",
            "eq",
            "LANG=fr=1",
            "web2 db1",
        ),
        (
            "environmentVariable",
            "name.value",
            "hasKey",
            "LANG",
            "web1 web2 db1",
        ),
        (
            "environmentVariable",
            "name.value",
            "regex",
            "L.*=C",
            "web1",
        ),
        (
            "serializedNodeProperty",
            "name.value",
            "eq",
            "role=we",
            "web1 web2",
        ),
        (
            "serializedNodeProperty",
            "name.value",
            "notEq",
            "role=we",
            "db1",
        ),
        (
            "serializedNodeProperty",
            "name.value",
            "hasKey",
            "role",
            "web1 web2 db1",
        ),
        (
            "serializedNodeProperty",
            "name.value",
            "regex",
            "role=.b",
            "db1",
        ),
        (
            "serializedNodeProperty",
            "name.value",
            "jsonSelect",
            "datacenter:racks.[?@ == 2]",
            "db1",
        ),
        (
            "serializedNodeProperty",
            "name.value",
            "jsonSelect",
            "datacenter:city",
            "web1 web2 db1",
        ),
        (
            "serializedNodeProperty",
            "name.value",
            "jsonSelect",
            "datacenter:[?(@=='Paris')]",
            "db1",
        ),
        ("group", "nodeGroupId", "eq", "some", "web1 db1"),
    ];
    for (kind, attribute, comparator, value, expected) in cases {
        let query = read(json!({"where": [{
            "objectType": kind, "attribute": attribute, "comparator": comparator, "value": value
        }]}));
        let found = fleet.find(&query);
        assert_eq!(
            found.as_deref(),
            Ok(expected),
            "{attribute} {comparator} {value}"
        );
    }
}

#[test]
fn criteria_on_one_kind_of_element_hold_of_the_same_element() {
    let fleet = fleet();
    let criterion =
        |attribute, value| Criterion::new(ObjectType::Software, attribute, Comparator::Eq, value);
    let both = Query::all_of([
        criterion("cn", "nginx"),
        criterion("softwareVersion", "1.18"),
    ]);
    assert_eq!(fleet.find(&both).as_deref(), Ok("web2"));
    let apart = Query::all_of([
        criterion("cn", "nginx"),
        criterion("softwareVersion", "5.2"),
    ]);
    assert_eq!(fleet.find(&apart).as_deref(), Ok(""));
    let any = Query {
        composition: Composition::Or,
        ..apart
    };
    assert_eq!(fleet.find(&any).as_deref(), Ok("web1 web2 db1"));
}

#[test]
fn invert_select_and_nesting() {
    let fleet = fleet();
    let web = json!({"objectType": "node", "attribute": "nodeHostname", "comparator": "regex",
        "value": "web.*"});
    let old = json!({"objectType": "node", "attribute": "osVersion", "comparator": "regex",
        "value": "11.*"});
    let db = json!({"objectType": "node", "attribute": "osName", "comparator": "eq",
        "value": "Redhat"});
    let cases = [
        (json!({"where": [web], "transform": "invert"}), "db1"),
        (
            json!({"where": [web], "transform": "invert", "select": "nodeAndPolicyServer"}),
            "db1 root",
        ),
        (json!({"where": [web, {"not": old}]}), "web1"),
        (
            json!({"where": [{"or": [{"and": [web, old]}, db]}]}),
            "web2 db1",
        ),
        (json!({"where": [{"not": {"or": [web, db]}}]}), ""),
        (json!({"where": []}), ""),
        (json!({"where": [], "composition": "or"}), ""),
        (json!({"where": [], "transform": "invert"}), "web1 web2 db1"),
    ];
    for (query, expected) in cases {
        let text = query.to_string();
        assert_eq!(fleet.find(&read(query)).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn a_relay_is_a_node_and_the_root_server_is_none() {
    let mut fleet = fleet();
    fleet.nodes[1].0.kind = NodeKind::Relay;
    for (select, expected) in [
        ("node", "web1 web2 db1"),
        ("nodeAndPolicyServer", "web1 web2 db1 root"),
    ] {
        let query = read(json!({"select": select, "where": [
            {"objectType": "node", "attribute": "nodeId", "comparator": "exists"}]}));
        assert_eq!(fleet.find(&query).as_deref(), Ok(expected));
    }
}

#[test]
fn a_query_reads_and_writes_rudders_json() {
    let text = json!({
        "select": "nodeAndPolicyServer", "composition": "or", "transform": "invert",
        "where": [{"objectType": "node", "attribute": "ram", "comparator": "lteq",
            "value": "4 GB"}]
    });
    let query = read(text.clone());
    assert_eq!(serde_json::to_value(&query).unwrap(), text);
}

#[test]
fn wrong_criteria_are_named() {
    let fleet = fleet();
    let good = Criterion::in_group("g");
    let cases = [
        (
            Criterion::new(ObjectType::Node, "osNaem", Comparator::Eq, "x"),
            "criterion 2 of the query: node has no attribute \"osNaem\"; did you mean \"osName\"?",
        ),
        (
            Criterion::new(ObjectType::Node, "osName", Comparator::Gt, "x"),
            "criterion 2 of the query: osName of node cannot be compared by gt; expected eq, notEq",
        ),
        (
            Criterion::new(ObjectType::Node, "ram", Comparator::Gt, "much"),
            "criterion 2 of the query: \"much\" is not a size such as 300 MB",
        ),
        (
            Criterion::new(ObjectType::Property, "name.value", Comparator::Eq, "x"),
            "criterion 2 of the query: \"x\" is not key=value",
        ),
        (
            Criterion::new(ObjectType::Node, "nodeId", Comparator::Eq, ""),
            "criterion 2 of the query: eq needs a value",
        ),
    ];
    for (wrong, message) in cases {
        let error = fleet
            .find(&Query::all_of([good.clone(), wrong]))
            .unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    for value in ["(", "a{99999}", "(?=x)"] {
        let wrong = Criterion::new(ObjectType::Node, "nodeId", Comparator::Regex, value);
        assert!(fleet.find(&Query::all_of([wrong])).is_err(), "{value}");
    }
    let mut deep = Condition::from(good.clone());
    for _ in 0..30 {
        deep = Condition::Not {
            not: Box::new(deep),
        };
    }
    let mut query = Query::all_of([]);
    query.criteria.push(deep);
    assert!(fleet.find(&query).is_err());
    let many = Query::all_of(std::iter::repeat_n(good, CRITERIA + 1));
    assert!(fleet.find(&many).is_err());
}

#[test]
fn groups_that_a_query_mentions() {
    let query = read(json!({"where": [
        {"objectType": "group", "attribute": "nodeGroupId", "comparator": "eq", "value": "a"},
        {"not": {"objectType": "group", "attribute": "nodeGroupId", "comparator": "eq",
            "value": "b"}},
        {"objectType": "group", "attribute": "nodeGroupId", "comparator": "eq", "value": "c"},
    ]}));
    assert_eq!(query.parents().collect::<Vec<_>>(), ["a", "c"]);
    let mut groups = query.groups();
    groups.sort_unstable();
    assert_eq!(groups, ["a", "b", "c"]);
    let any = Query {
        composition: Composition::Or,
        ..query
    };
    assert_eq!(any.parents().count(), 0);
}

proptest! {
    /// No text of a value makes compiling panic, and what is compiled can be asked.
    #[test]
    fn any_value_is_compiled_or_refused(
        value in "\\PC{0,40}",
        kind in 0usize..3,
        number in 0usize..12,
    ) {
        let (object, attribute) = [
            (ObjectType::Node, "inventoryDate"),
            (ObjectType::Property, "name.value"),
            (ObjectType::Node, "ipHostNumber"),
        ][kind];
        let comparators = object.attributes().iter().find(|(name, _)| *name == attribute)
            .map(|(_, kind)| kind.comparators()).unwrap();
        let comparator = comparators[number % comparators.len()];
        let query = Query::all_of([Criterion::new(object, attribute, comparator, value)]);
        let _ = fleet().find(&query);
    }
}
