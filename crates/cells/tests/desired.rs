//! Parts of what tests desire: as little as a BBS takes.

use std::collections::BTreeMap;

use diego::models::{Action, MetricTagValue, RunAction};

/// A program that ends well.
pub(crate) fn action() -> Option<Action> {
    let run = RunAction {
        path: "/bin/true".into(),
        user: "vcap".into(),
        ..RunAction::default()
    };
    Some(Action::from(run))
}

/// Tags of an LRP's metrics: their source, without which there is no LRP.
pub(crate) fn tags(source: &str) -> BTreeMap<String, MetricTagValue> {
    let source = MetricTagValue {
        r#static: source.into(),
        ..MetricTagValue::default()
    };
    [("source_id".into(), source)].into()
}
