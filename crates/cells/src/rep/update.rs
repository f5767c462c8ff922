//! Routes and tags of an instance, which may change while it runs.

use std::collections::BTreeMap;

use diego::models::{ActualLrpInternalRoute, DesiredLrp};
use serde::{Deserialize, Serialize};

use crate::bbs::model::desired::{hostnames, metric_tags};

/// Body of a request to update an instance; what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Update {
    pub(super) internal_routes: Option<Vec<InternalRoute>>,
    pub(super) metric_tags: Option<BTreeMap<String, String>>,
}

/// A name under which an instance is found within the platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct InternalRoute {
    hostname: String,
}

impl Update {
    /// Takes over what `newer` carries.
    pub(super) fn merge(&mut self, newer: Self) {
        if newer.internal_routes.is_some() {
            self.internal_routes = newer.internal_routes;
        }
        if newer.metric_tags.is_some() {
            self.metric_tags = newer.metric_tags;
        }
    }

    /// Internal routes: those of the update, else those desired.
    pub(super) fn routes(&self, desired: &DesiredLrp) -> Vec<ActualLrpInternalRoute> {
        let names = match &self.internal_routes {
            Some(routes) => routes.iter().map(|route| route.hostname.clone()).collect(),
            // What another component wrote in another form routes nothing here.
            None => hostnames(desired).unwrap_or_default(),
        };
        let route = |hostname| ActualLrpInternalRoute { hostname };
        names.into_iter().map(route).collect()
    }

    /// Metric tags: those of the update, else those desired, with values that
    /// depend on the instance filled in.
    pub(super) fn tags(
        &self,
        desired: &DesiredLrp,
        index: i32,
        instance_guid: &str,
    ) -> BTreeMap<String, String> {
        let given = self.metric_tags.clone();
        given.unwrap_or_else(|| metric_tags(&desired.metric_tags, index, instance_guid))
    }
}

#[cfg(test)]
mod tests {
    use diego::models::metric_tag_value::DynamicValue;
    use diego::models::{MetricTagValue, ProtoRoutes};

    use super::*;

    fn desired() -> DesiredLrp {
        let tag = |value: &str, dynamic: DynamicValue| MetricTagValue {
            r#static: value.into(),
            dynamic: dynamic.into(),
        };
        DesiredLrp {
            routes: Some(ProtoRoutes {
                routes: [(
                    "internal-router".into(),
                    br#"[{"hostname":"a.internal"}]"#.to_vec(),
                )]
                .into(),
            }),
            metric_tags: [
                ("app".into(), tag("shop", DynamicValue::Invalid)),
                ("n".into(), tag("", DynamicValue::Index)),
                ("id".into(), tag("", DynamicValue::InstanceGuid)),
            ]
            .into(),
            ..DesiredLrp::default()
        }
    }

    #[test]
    fn desired_values_hold_until_an_update() {
        let mut update = Update::default();
        assert_eq!(update.routes(&desired())[0].hostname, "a.internal");
        let tags = update.tags(&desired(), 3, "ig");
        assert_eq!(tags["app"], "shop");
        assert_eq!(tags["n"], "3");
        assert_eq!(tags["id"], "ig");

        let tags = [("app".to_owned(), "new".to_owned())].into();
        update.merge(Update {
            metric_tags: Some(tags),
            ..Update::default()
        });
        assert_eq!(
            update.routes(&desired())[0].hostname,
            "a.internal",
            "left unchanged"
        );
        assert_eq!(update.tags(&desired(), 3, "ig")["app"], "new");

        update.merge(Update {
            internal_routes: Some(vec![]),
            ..Update::default()
        });
        assert_eq!(update.routes(&desired()), [], "an empty list clears");
    }

    /// Bodies recorded from Diego's rep 5bbcd6b802a01a983283465a3970b60d2f31ddcf.
    #[test]
    fn recorded_updates_are_read() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/data/rep.json")).unwrap();
        let examples = file["examples"].as_array().unwrap();
        let updates: Vec<Update> = examples
            .iter()
            .filter(|example| example["go_type"] == "rep.LRPUpdate")
            .map(|example| serde_json::from_str(example["body"].as_str().unwrap()).unwrap())
            .collect();
        let hostname = "a.apps.internal".into();
        let everything = Update {
            internal_routes: Some(vec![InternalRoute { hostname }]),
            metric_tags: Some([("source_id".into(), "x".into())].into()),
        };
        assert_eq!(updates, [everything, Update::default()]);
    }
}
