//! Definitions as a large installation has them, and properties of its nodes: every node has 20
//! directives of 55 components, 1,100 in all; four of five values have variables and differ from
//! node to node, one of five is computed by an expression.

use std::collections::BTreeMap;

use compliance::definitions::Definitions;
use compliance::model::attributes::{Comparator, ObjectType};
use compliance::model::directive::{Directive, SectionValues};
use compliance::model::group::Group;
use compliance::model::property::{GlobalParameter, Property};
use compliance::model::query::{Criterion, Query};
use compliance::model::rule::Rule;
use compliance::model::target::{RuleTarget, Target};
use compliance::model::technique::{
    Action, Body, MethodItem, MethodParameter, Methods, PolicyGeneration, Reporting, Technique,
};
use serde_json::json;

/// Kinds of nodes; each has directives of its own.
const ROLES: usize = 16;
/// Directives of a node, beside those of the server.
pub(crate) const DIRECTIVES: usize = 20;
/// Components of a directive.
const COMPONENTS: usize = 55;
/// Groups beside those of roles.
const GROUPS: usize = 200;
/// The directive that only the nodes of group `one` have.
pub(crate) const ALONE: &str = "alone";
/// The technique of that directive.
pub(crate) const ALONE_TECHNIQUE: usize = 9_999;

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

/// A directive of a technique, with this value.
pub(crate) fn directive(id: &str, technique: usize, volume: &str) -> Directive {
    let mut directive = Directive::new(id, id, (&format!("t{technique}"), "1.0"));
    directive.parameters.section = SectionValues::new("sections").with("volume", volume);
    directive
}

fn rule(id: &str, directives: Vec<String>, group: &str) -> Rule {
    let mut rule = Rule::new(id, id);
    rule.directives = directives;
    rule.targets = vec![RuleTarget::Simple(Target::Group(group.into()))];
    rule
}

/// A group of nodes that have all of this.
pub(crate) fn group(id: &str, criteria: Vec<Criterion>) -> Group {
    Group::of_query(id, id, Query::all_of(criteria))
}

/// What inventories tell of a node.
pub(crate) fn properties(number: usize, release: &str) -> Vec<Property> {
    let role = format!("role{}", number % ROLES);
    let site = json!({"name": format!("site-{}", number % 40), "release": release});
    let mut all = vec![("role", json!(role)), ("site", site)];
    if number.is_multiple_of(3) {
        let mount = format!("/data{}", number % 11);
        all.push(("mount", json!(mount)));
    }
    let told = |(name, value)| Property {
        provider: Some("inventory".into()),
        ..Property::new(name, value)
    };
    all.into_iter().map(told).collect()
}

/// All definitions; `one` says which nodes belong to the group of that name.
pub(crate) fn definitions(one: Criterion) -> Definitions {
    let mut all = Definitions::default();
    let mut techniques = Vec::new();
    let mut directives_of_all = Vec::new();
    let mut rules = Vec::new();
    let mut groups = Vec::new();
    for role in 0..ROLES {
        let role_is = Criterion::new(
            ObjectType::Property,
            "name.value",
            Comparator::Eq,
            format!("role=role{role}"),
        );
        groups.push(group(&format!("role{role}"), vec![role_is]));
        let mut directives = Vec::new();
        for number in 0..DIRECTIVES {
            let id = format!("d{role}-{number}");
            let volume = match number % 2 {
                0 => format!("volume-{number}"),
                _ => format!("${{rudder.param.pool}}-{number}"),
            };
            directives_of_all.push(directive(&id, role * DIRECTIVES + number, &volume));
            techniques.push(technique(role * DIRECTIVES + number));
            directives.push(id);
        }
        let of_role = rule(&format!("rule{role}"), directives, &format!("role{role}"));
        rules.push(of_role);
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
        groups.push(group(&format!("group{number}"), vec![criterion, version]));
    }
    groups.push(group("one", vec![one]));
    techniques.push(technique(ALONE_TECHNIQUE));
    directives_of_all.push(directive(ALONE, ALONE_TECHNIQUE, "first"));
    rules.push(rule(ALONE, vec![ALONE.into()], "one"));
    let pool = GlobalParameter {
        id: "pool".into(),
        value: json!("pool-a"),
        description: String::new(),
        inherit_mode: Default::default(),
    };
    all.parameters.insert(pool.id.clone(), pool);
    all.groups = named(groups, |one| one.id.clone());
    all.techniques = named(techniques, Technique::key);
    all.directives = named(directives_of_all, |one| one.id.clone());
    all.rules = named(rules, |one| one.id.clone());
    all
}

fn named<T>(all: Vec<T>, name: impl Fn(&T) -> String) -> BTreeMap<String, T> {
    all.into_iter().map(|one| (name(&one), one)).collect()
}
