//! What a node inherits: global parameters, over them the properties of its groups, a group's
//! over those of the groups that its query names, and over all the node's own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::property::{InheritMode, Property, merge};

/// A group that a node belongs to, as inheritance sees it.
#[derive(Debug, Clone, Copy)]
pub struct GroupLayer<'a> {
    /// Its identity.
    pub id: &'a str,
    /// What its members inherit.
    pub properties: &'a [Property],
    /// The groups that its query names and that must all hold, in order: each is inherited
    /// from, a later one over an earlier one.
    pub parents: &'a [String],
}

/// A property, or why it has no value.
#[derive(Debug, Clone, PartialEq)]
pub enum Inherited {
    /// Its value.
    Value(Value),
    /// Groups of which none inherits from the other give it different values.
    Conflict(Vec<String>),
    /// The groups that give it inherit from each other in a circle, or name the same groups in
    /// contradictory orders.
    Circle(Vec<String>),
}

/// Properties by name.
pub type Properties = BTreeMap<String, Inherited>;

/// How values of a property are laid over each other, by its name; of all others in the usual way.
pub type Modes = BTreeMap<String, InheritMode>;

/// The mode of a property.
pub fn mode_of(modes: &Modes, name: &str) -> InheritMode {
    modes.get(name).copied().unwrap_or_default()
}

/// What the members of exactly these groups inherit. Groups that are connected by inheritance
/// are laid over each other, those named by a query first; the same property in groups that
/// are not connected must have one value.
pub fn inherit(
    groups: &[GroupLayer<'_>],
    globals: impl IntoIterator<Item = (String, Value)>,
    modes: &Modes,
) -> Properties {
    let mut groups: Vec<_> = groups.to_vec();
    groups.sort_unstable_by_key(|group| group.id);
    let place: BTreeMap<&str, usize> = groups.iter().map(|group| group.id).zip(0..).collect();
    let below = edges(&groups, &place);

    // For each name what each connected part of the groups says.
    let mut said: BTreeMap<&str, Vec<(&str, Inherited)>> = BTreeMap::new();
    for part in connected(&below) {
        let order = in_order(&part, &below);
        let names = |list: &[usize]| list.iter().map(|&at| groups[at].id.to_owned()).collect();
        let mut values: BTreeMap<&str, (&str, Inherited)> = BTreeMap::new();
        for &at in order.as_ref().unwrap_or(&part) {
            for property in groups[at].properties {
                let value = match (&order, values.get(property.name.as_str())) {
                    (None, _) => Inherited::Circle(names(&part)),
                    (Some(_), Some((_, Inherited::Value(under)))) => {
                        let mode = mode_of(modes, &property.name);
                        Inherited::Value(merge(under, &property.value, mode))
                    }
                    (Some(_), _) => Inherited::Value(property.value.clone()),
                };
                values.insert(&property.name, (groups[at].id, value));
            }
        }
        for (name, value) in values {
            said.entry(name).or_default().push(value);
        }
    }

    let mut all: Properties = globals
        .into_iter()
        .map(|(name, value)| (name, Inherited::Value(value)))
        .collect();
    for (name, values) in said {
        let value = agreed(values);
        let value = match (all.get(name), value) {
            (Some(Inherited::Value(global)), Inherited::Value(value)) => {
                Inherited::Value(merge(global, &value, mode_of(modes, name)))
            }
            (_, value) => value,
        };
        all.insert(name.to_owned(), value);
    }
    all
}

/// Places of groups by connected parts, in each the nearest to a node first: before all that lie
/// below it. Groups in a circle are in the order of identities, the last first.
pub fn nearest_first(groups: &[GroupLayer<'_>]) -> Vec<Vec<usize>> {
    let place: BTreeMap<&str, usize> = groups.iter().map(|group| group.id).zip(0..).collect();
    let below = edges(groups, &place);
    let parts = connected(&below).into_iter();
    let parts = parts.map(|part| {
        let mut part = in_order(&part, &below).unwrap_or(part);
        part.reverse();
        part
    });
    parts.collect()
}

/// The one thing that all say, or that they do not agree.
fn agreed(values: Vec<(&str, Inherited)>) -> Inherited {
    let circle = values
        .iter()
        .find(|(_, value)| matches!(value, Inherited::Circle(_)));
    if let Some((_, circle)) = circle {
        return circle.clone();
    }
    if values.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        let first = values.into_iter().next();
        return first.map_or(Inherited::Conflict(Vec::new()), |(_, value)| value);
    }
    let groups = values.iter().map(|(group, _)| (*group).to_owned());
    Inherited::Conflict(groups.collect())
}

/// A node's own properties over what it inherits; only names that are its own are in the
/// result. An own value that is no object settles a conflict, for nothing shows through it.
pub fn lay_own(inherited: &Properties, own: &[Property], modes: &Modes) -> Properties {
    let laid = own.iter().map(|property| {
        let value = match inherited.get(&property.name) {
            Some(Inherited::Value(under)) => {
                let mode = mode_of(modes, &property.name);
                Inherited::Value(merge(under, &property.value, mode))
            }
            Some(conflict) if property.value.is_object() => conflict.clone(),
            _ => Inherited::Value(property.value.clone()),
        };
        (property.name.clone(), value)
    });
    laid.collect()
}

/// For each group the groups that lie directly below it.
fn edges(groups: &[GroupLayer<'_>], place: &BTreeMap<&str, usize>) -> Vec<BTreeSet<usize>> {
    let mut below = vec![BTreeSet::new(); groups.len()];
    for (at, group) in groups.iter().enumerate() {
        let named = group.parents.iter();
        // A group that the node does not belong to gives it nothing: it was named by a query
        // that is inverted.
        let chain: Vec<usize> = named
            .filter_map(|id| place.get(id.as_str()).copied())
            .collect();
        for pair in chain.windows(2) {
            below[pair[1]].insert(pair[0]);
        }
        if let Some(&last) = chain.last() {
            below[at].insert(last);
        }
    }
    below
}

/// The connected parts of the groups, each in the order of identities.
fn connected(below: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut beside: Vec<Vec<usize>> = vec![Vec::new(); below.len()];
    for (at, under) in below.iter().enumerate() {
        for &other in under {
            beside[at].push(other);
            beside[other].push(at);
        }
    }
    let mut seen = vec![false; below.len()];
    let mut parts = Vec::new();
    for start in 0..below.len() {
        let mut part = Vec::new();
        let mut left = vec![start];
        while let Some(at) = left.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                part.push(at);
                left.extend(&beside[at]);
            }
        }
        if !part.is_empty() {
            part.sort_unstable();
            parts.push(part);
        }
    }
    parts
}

/// The groups of a part, each after all that lie below it, by identity where that leaves a
/// choice; none if there is a circle.
fn in_order(part: &[usize], below: &[BTreeSet<usize>]) -> Option<Vec<usize>> {
    let mut left: BTreeSet<usize> = part.iter().copied().collect();
    let mut order = Vec::with_capacity(part.len());
    while !left.is_empty() {
        let free = |at: &&usize| below[**at].iter().all(|under| !left.contains(under));
        let next = *left.iter().find(free)?;
        left.remove(&next);
        order.push(next);
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    type Spec<'a> = (&'a str, Vec<Property>, Vec<String>);

    fn group<'a>(id: &'a str, value: &str, parents: &[&str]) -> Spec<'a> {
        let own = (!value.is_empty()).then(|| Property::new("foo", json!(value)));
        let parents = parents.iter().map(|&one| one.to_owned()).collect();
        (id, own.into_iter().collect(), parents)
    }

    fn foo(groups: &[Spec<'_>], global: Option<&str>) -> Inherited {
        let layers: Vec<_> = groups
            .iter()
            .map(|(id, properties, parents)| GroupLayer {
                id,
                properties,
                parents,
            })
            .collect();
        let global = global.map(|value| ("foo".to_owned(), json!(value)));
        inherit(&layers, global, &Modes::new())
            .remove("foo")
            .unwrap()
    }

    fn value(text: &str) -> Inherited {
        Inherited::Value(json!(text))
    }

    fn conflict(groups: &[&str]) -> Inherited {
        Inherited::Conflict(groups.iter().map(|&one| one.to_owned()).collect())
    }

    /// The cases are those of Rudder's own test of merged group properties.
    #[test]
    fn rudders_cases() {
        let (one, two) = (group("parent1", "bar1", &[]), group("parent2", "bar2", &[]));
        let child = group("child", "baz", &["parent1"]);
        assert_eq!(foo(&[one.clone(), child.clone()], None), value("baz"));
        let apart = foo(&[one.clone(), two.clone(), child], None);
        assert_eq!(apart, conflict(&["child", "parent2"]));
        let both = group("child", "", &["parent1", "parent2"]);
        assert_eq!(
            foo(&[one.clone(), two.clone(), both.clone()], None),
            value("bar2")
        );
        // A group that only names both settles what is between them, also for others.
        let other = group("parent4", "bar4", &["parent1"]);
        let settled = [one.clone(), two.clone(), both];
        assert_eq!(foo(&settled, None), value("bar2"));
        assert_eq!(
            foo(&[one.clone(), two.clone()], None),
            conflict(&["parent1", "parent2"])
        );
        assert_eq!(foo(&[one.clone(), other], None), value("bar4"));
        // An inverted query names a group that the node does not belong to.
        assert_eq!(foo(&[group("child", "baz", &["gone"])], None), value("baz"));
        let same = group("parent3", "bar1", &[]);
        assert_eq!(foo(&[one.clone(), same], None), value("bar1"));
        assert_eq!(foo(&[one], Some("global")), value("bar1"));
        assert_eq!(foo(&[], Some("global")), value("global"));
    }

    #[test]
    fn a_mode_holds_at_every_layer() {
        let groups = [group("a", "1", &[]), group("b", "2", &["a"])];
        let layers: Vec<_> = groups
            .iter()
            .map(|(id, properties, parents)| GroupLayer {
                id,
                properties,
                parents,
            })
            .collect();
        for (word, expected) in [("maa", "012"), ("map", "210"), ("moo", "2")] {
            let mode = InheritMode::try_from(word.to_owned()).unwrap();
            let modes = Modes::from([("foo".to_owned(), mode)]);
            let global = Some(("foo".to_owned(), json!("0")));
            assert_eq!(
                inherit(&layers, global, &modes)["foo"],
                value(expected),
                "{word}"
            );
        }
    }

    #[test]
    fn contradictory_orders_are_a_circle() {
        let groups = [
            group("a", "1", &[]),
            group("b", "2", &[]),
            group("c", "", &["a", "b"]),
            group("d", "", &["b", "a"]),
        ];
        let all = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(foo(&groups, None), Inherited::Circle(all));
    }

    #[test]
    fn a_nodes_own_value_is_laid_over_all() {
        let inherited = Properties::from([
            ("a".into(), Inherited::Value(json!({"x": 1, "y": 1}))),
            ("b".into(), conflict(&["g", "h"])),
            ("d".into(), value("text")),
        ]);
        let appended = InheritMode::try_from("maa".to_owned()).unwrap();
        let modes = Modes::from([("d".to_owned(), appended)]);
        let own = |name: &str, value| lay_own(&inherited, &[Property::new(name, value)], &modes);
        assert_eq!(
            own("a", json!({"y": 2}))["a"],
            Inherited::Value(json!({"x": 1, "y": 2}))
        );
        assert_eq!(own("b", json!("mine"))["b"], value("mine"));
        assert_eq!(own("b", json!({"k": 1}))["b"], conflict(&["g", "h"]));
        assert_eq!(own("c", json!(1))["c"], Inherited::Value(json!(1)));
        assert_eq!(own("d", json!(" more"))["d"], value("text more"));
    }

    proptest! {
        /// The order in which groups are given changes nothing.
        #[test]
        fn inheritance_does_not_depend_on_the_order(
            links in proptest::collection::vec((0usize..6, 0usize..6), 0..8),
            values in proptest::collection::vec(0u8..3, 6),
            shuffled in Just([0usize, 1, 2, 3, 4, 5]).prop_shuffle(),
        ) {
            let names = ["a", "b", "c", "d", "e", "f"];
            let mut groups: Vec<Spec<'_>> = (0..6)
                .map(|at| group(names[at], ["", "x", "y"][values[at] as usize], &[]))
                .collect();
            for (child, parent) in links {
                groups[child].2.push(names[parent].to_owned());
            }
            groups.push(group("z", "x", &[]));
            let straight = foo(&groups, Some("g"));
            let mut mixed: Vec<_> = shuffled.iter().map(|&at| groups[at].clone()).collect();
            mixed.insert(3, groups[6].clone());
            prop_assert_eq!(foo(&mixed, Some("g")), straight);
        }
    }
}
