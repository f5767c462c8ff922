//! The JSON of expected reports, in the short names of Rudder 7.1 and later, and that of
//! the policy that an agent reads.

use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Draft, Entry, NodePolicy};
use crate::model::mode::PolicyMode;
use crate::model::schedule::AgentRun;
use crate::policy::compile::{Call, Component, ExpectedValue};
use crate::policy::content::Content;

struct Each<F>(F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((self.0)())
    }
}

/// What a node is expected to report.
pub struct ExpectedReports<'p>(pub &'p NodePolicy);

impl Serialize for ExpectedReports<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let policy = self.0;
        let mut rules: Vec<(&str, Vec<&Entry>)> = Vec::new();
        for entry in &policy.entries {
            let id = &*entry.draft.rule_id;
            match rules.iter_mut().find(|(rule, _)| *rule == id) {
                Some((_, entries)) => entries.push(entry),
                None => rules.push((id, vec![entry])),
            }
        }
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("ms", &policy.header.modes)?;
        map.serialize_entry("rs", &Each(|| rules.iter().map(Rule)))?;
        let overridden = Each(|| policy.overridden.iter().map(Overridden));
        map.serialize_entry("os", &overridden)?;
        map.end()
    }
}

struct Rule<'p>(&'p (&'p str, Vec<&'p Entry>));

impl Serialize for Rule<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (id, entries) = self.0;
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("rid", id)?;
        map.serialize_entry("ds", &Each(|| entries.iter().map(|entry| Directive(entry))))?;
        map.end()
    }
}

struct Directive<'p>(&'p Entry);

impl Serialize for Directive<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Entry {
            draft,
            mode,
            content,
        } = self.0;
        let compiled = &content.compiled;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("did", &*draft.directive_id)?;
        map.serialize_entry("pm", mode)?;
        if draft.system {
            map.serialize_entry("t", &["rudderSystem"])?;
        }
        if let Some(schedule) = &compiled.schedule {
            map.serialize_entry("sid", &**schedule)?;
        }
        map.serialize_entry("cs", &Components(content, &compiled.components))?;
        map.end()
    }
}

struct Components<'p>(&'p Content, &'p [Component]);

impl Serialize for Components<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.1.len()))?;
        for component in self.1 {
            list.serialize_element(&OneComponent(self.0, component))?;
        }
        list.end()
    }
}

struct OneComponent<'p>(&'p Content, &'p Component);

impl Serialize for OneComponent<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let content = self.0;
        let mut map = to.serialize_map(None)?;
        match self.1 {
            Component::Values { name, values } => {
                map.serialize_entry("vid", content.text(*name))?;
                let values = Each(|| values.iter().map(|value| OneValue(content, value)));
                map.serialize_entry("vs", &values)?;
            }
            Component::Block {
                name,
                id,
                logic,
                components,
            } => {
                map.serialize_entry("bid", content.text(*name))?;
                map.serialize_entry("rl", logic)?;
                map.serialize_entry("scs", &Components(content, components))?;
                if let Some(id) = id {
                    map.serialize_entry("id", &**id)?;
                }
            }
        }
        map.end()
    }
}

struct OneValue<'p>(&'p Content, &'p ExpectedValue);

impl Serialize for OneValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let content = self.0;
        match self.1 {
            ExpectedValue::None => to.collect_seq([""; 0]),
            ExpectedValue::Key(text) => match (content.text(*text), content.source(*text)) {
                ("None", "None") => to.collect_seq([""; 0]),
                (value, source) if value == source => to.collect_seq([value]),
                (value, source) => to.collect_seq([value, source]),
            },
            ExpectedValue::WithId(id, text) => {
                let mut map = to.serialize_map(Some(2))?;
                map.serialize_entry("id", &**id)?;
                map.serialize_entry("v", content.text(*text))?;
                map.end()
            }
        }
    }
}

struct Overridden<'p>(&'p super::OverriddenPair);

impl Serialize for Overridden<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (policy, by) = self.0;
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("p", &PolicyId(policy))?;
        map.serialize_entry("ob", &PolicyId(by))?;
        map.end()
    }
}

struct PolicyId<'p>(&'p Draft);

impl Serialize for PolicyId<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("rid", &*self.0.rule_id)?;
        map.serialize_entry("did", &*self.0.directive_id)?;
        map.end()
    }
}

/// What a node's agent reads.
pub struct PolicyDocument<'p>(pub &'p NodePolicy);

impl Serialize for PolicyDocument<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let policy = self.0;
        let header = &policy.header;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("configId", &*policy.config_id)?;
        map.serialize_entry("nodeId", &*header.node_id)?;
        map.serialize_entry("hostname", &*header.hostname)?;
        map.serialize_entry("kind", &header.kind)?;
        map.serialize_entry("policyServerId", &*header.server_id)?;
        map.serialize_entry("policyServerHostname", &*header.server_hostname)?;
        map.serialize_entry("complianceMode", &header.modes.compliance)?;
        map.serialize_entry("schedule", &Schedule(header.run, header.first_run))?;
        let conditions = Each(|| header.conditions.iter().map(|one| &**one));
        map.serialize_entry("conditions", &conditions)?;
        if let Some(properties) = &header.properties {
            let json: &RawValue = serde_json::from_str(properties).map_err(S::Error::custom)?;
            map.serialize_entry("properties", json)?;
        }
        map.serialize_entry("policies", &Each(|| policy.entries.iter().map(AgentEntry)))?;
        map.end()
    }
}

struct Schedule(AgentRun, u32);

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("interval", &self.0.interval)?;
        map.serialize_entry("firstRun", &self.1)?;
        map.end()
    }
}

struct AgentEntry<'p>(&'p Entry);

impl Serialize for AgentEntry<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Entry {
            draft,
            mode,
            content,
        } = self.0;
        let compiled = &content.compiled;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("rule", &*draft.rule_id)?;
        map.serialize_entry("directive", &*draft.directive_id)?;
        map.serialize_entry("name", &*draft.directive_name)?;
        map.serialize_entry("technique", &*compiled.technique)?;
        map.serialize_entry("version", &*compiled.version)?;
        map.serialize_entry("techniqueName", &*compiled.name)?;
        map.serialize_entry("mode", mode)?;
        if let Some(schedule) = &compiled.schedule {
            map.serialize_entry("schedule", &**schedule)?;
        }
        if compiled.calls.is_empty() {
            let values = |values: &'_ [u32]| {
                let values: Vec<_> = values.iter().map(|&value| content.text(value)).collect();
                values
            };
            let all = compiled.variables.iter();
            let variables: Vec<_> = all.map(|(name, list)| (&**name, values(list))).collect();
            map.serialize_entry("variables", &variables)?;
            map.serialize_entry("components", &Components(content, &compiled.components))?;
        } else {
            let calls = Each(|| compiled.calls.iter().map(|call| AgentCall(content, call)));
            map.serialize_entry("calls", &calls)?;
        }
        map.end()
    }
}

struct AgentCall<'p>(&'p Content, &'p Call);

impl Serialize for AgentCall<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (content, call) = (self.0, self.1);
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("id", &*call.id)?;
        map.serialize_entry("method", &*call.method)?;
        map.serialize_entry("component", content.text(call.name))?;
        let condition = content.text(call.condition);
        if !condition.is_empty() {
            map.serialize_entry("condition", condition)?;
        }
        if let Some(mode) = call.mode {
            map.serialize_entry::<_, PolicyMode>("mode", &mode)?;
        }
        if !call.reported {
            map.serialize_entry("reported", &false)?;
        }
        let params = call.params.iter();
        let params: Vec<_> = params
            .map(|(name, at)| (&**name, content.text(*at)))
            .collect();
        map.serialize_entry("params", &params)?;
        map.end()
    }
}
