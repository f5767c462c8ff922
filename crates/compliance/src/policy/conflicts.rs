//! Which directives hold on a node when several of one technique come together.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::technique::PolicyGeneration;

/// A directive as one rule brings it to nodes. All nodes of the rule share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Identity of the rule.
    pub rule_id: Arc<str>,
    /// Name of the rule.
    pub rule_name: Arc<str>,
    /// Identity of the directive.
    pub directive_id: Arc<str>,
    /// Name of the directive.
    pub directive_name: Arc<str>,
    /// Identity of the technique, whatever its version: of a unique one a node has one.
    pub technique: Arc<str>,
    /// 0 (highest) to 10.
    pub priority: u8,
    /// Is it one of the server's own?
    pub system: bool,
    /// May a node have several of the technique?
    pub multi_instance: bool,
    /// How several become policies.
    pub generation: PolicyGeneration,
}

impl Draft {
    /// By names of rule and directive, in any case of letters as in Rudder; identities decide
    /// between equal names.
    pub fn by_name(&self, other: &Self) -> Ordering {
        let (a, b) = (self, other);
        in_any_case(&a.rule_name, &b.rule_name)
            .then_with(|| in_any_case(&a.directive_name, &b.directive_name))
            .then_with(|| a.rule_id.cmp(&b.rule_id))
            .then_with(|| a.directive_id.cmp(&b.directive_id))
    }
}

/// Compares texts without regard to the case of letters. Most drafts of a node are of the same
/// few rules, whose names are ASCII.
fn in_any_case(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    if a.is_ascii() && b.is_ascii() {
        let small = a.bytes().map(|byte| byte.to_ascii_lowercase());
        return small.cmp(b.bytes().map(|byte| byte.to_ascii_lowercase()));
    }
    let small = a.chars().flat_map(char::to_lowercase);
    small.cmp(b.chars().flat_map(char::to_lowercase))
}

/// A policy that holds on a node: one draft, or several of a merged technique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved<D> {
    /// The draft that reports name.
    pub main: D,
    /// All drafts whose values it has, in the order of their values. Just the main one unless
    /// the technique is merged.
    pub parts: Vec<D>,
}

/// A draft that does not hold, and the one that does instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overridden<D> {
    /// The one that does not hold.
    pub draft: D,
    /// The one that holds.
    pub by: D,
}

/// What holds on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution<D> {
    /// Policies, in their order: system first, then by names of rule and directive.
    pub policies: Vec<Resolved<D>>,
    /// What is overridden.
    pub overridden: Vec<Overridden<D>>,
    /// Directives of one unique technique with one priority: only their names decide, and a
    /// new name decides otherwise.
    pub unstable: Vec<Overridden<D>>,
}

/// Resolves the drafts of a node: of a unique technique the one with the lowest priority number
/// holds, then the first by names; of a technique with instances a directive that several rules
/// bring holds once, under the first; values of a merged one come together in the order of
/// priority and names.
pub fn resolve<D: AsRef<Draft> + Clone>(drafts: &[D]) -> Resolution<D> {
    let mut techniques: BTreeMap<(bool, &str), Vec<&D>> = BTreeMap::new();
    for draft in drafts {
        let facts = draft.as_ref();
        let key = (!facts.system, &*facts.technique);
        techniques.entry(key).or_default().push(draft);
    }
    let mut all = Resolution {
        policies: Vec::new(),
        overridden: Vec::new(),
        unstable: Vec::new(),
    };
    for mut drafts in techniques.into_values() {
        drafts.sort_by(|a, b| {
            let (a, b) = (a.as_ref(), b.as_ref());
            a.priority.cmp(&b.priority).then_with(|| a.by_name(b))
        });
        // Versions of a technique may differ in this: the strictest holds.
        if drafts.iter().all(|draft| draft.as_ref().multi_instance) {
            instances(drafts, &mut all);
        } else {
            unique(&drafts, &mut all);
        }
    }
    let order = |a: &D, b: &D| {
        let (a, b) = (a.as_ref(), b.as_ref());
        b.system.cmp(&a.system).then_with(|| a.by_name(b))
    };
    all.policies.sort_by(|a, b| order(&a.main, &b.main));
    all.overridden.sort_by(|a, b| order(&a.draft, &b.draft));
    all
}

fn unique<D: AsRef<Draft> + Clone>(drafts: &[&D], all: &mut Resolution<D>) {
    let Some((&first, rest)) = drafts.split_first() else {
        return;
    };
    all.policies.push(Resolved {
        main: first.clone(),
        parts: vec![first.clone()],
    });
    for &draft in rest {
        let pair = Overridden {
            draft: draft.clone(),
            by: first.clone(),
        };
        let (one, other) = (draft.as_ref(), first.as_ref());
        if one.priority == other.priority && one.directive_id != other.directive_id {
            all.unstable.push(pair.clone());
        }
        all.overridden.push(pair);
    }
}

fn instances<D: AsRef<Draft> + Clone>(mut drafts: Vec<&D>, all: &mut Resolution<D>) {
    let by_name = |a: &&D, b: &&D| a.as_ref().by_name(b.as_ref());
    let merged = |draft: &&D| draft.as_ref().generation == PolicyGeneration::Merged;
    let is_merged = drafts.iter().any(merged);
    let in_values_order = drafts.clone();
    drafts.sort_by(by_name);
    let mut first: BTreeMap<&str, &D> = BTreeMap::new();
    for &draft in &drafts {
        match first.get(&*draft.as_ref().directive_id) {
            Some(&by) => all.overridden.push(Overridden {
                draft: draft.clone(),
                by: by.clone(),
            }),
            None => {
                first.insert(&draft.as_ref().directive_id, draft);
                if !is_merged {
                    all.policies.push(Resolved {
                        main: draft.clone(),
                        parts: vec![draft.clone()],
                    });
                }
            }
        }
    }
    if !is_merged {
        return;
    }
    let mut seen = std::collections::BTreeSet::new();
    let parts: Vec<D> = in_values_order
        .into_iter()
        .filter(|draft| seen.insert(draft.as_ref().directive_id.clone()))
        .cloned()
        .collect();
    if let Some(main) = drafts.first() {
        all.policies.push(Resolved {
            main: (*main).clone(),
            parts,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(rule: &str, directive: &str, technique: &str, priority: u8) -> Arc<Draft> {
        let kind = technique.chars().next();
        Arc::new(Draft {
            rule_id: format!("id-{rule}").into(),
            rule_name: rule.into(),
            directive_id: format!("id-{directive}").into(),
            directive_name: directive.into(),
            technique: technique.into(),
            priority,
            system: kind == Some('s'),
            multi_instance: matches!(kind, Some('i' | 'm')),
            generation: match kind {
                Some('m') => PolicyGeneration::Merged,
                _ => PolicyGeneration::Separated,
            },
        })
    }

    fn words(list: &[Arc<Draft>]) -> (Vec<String>, Vec<String>, usize) {
        let word = |one: &Arc<Draft>| format!("{}/{}", one.rule_name, one.directive_name);
        let resolution = resolve(list);
        let policies = resolution.policies.iter().map(|policy| {
            let parts: Vec<_> = policy.parts.iter().map(word).collect();
            format!("{}: {}", word(&policy.main), parts.join(" "))
        });
        let overridden = resolution.overridden.iter();
        let overridden =
            overridden.map(|pair| format!("{} by {}", word(&pair.draft), word(&pair.by)));
        let counts = (policies.collect(), overridden.collect());
        (counts.0, counts.1, resolution.unstable.len())
    }

    #[test]
    fn the_highest_priority_of_a_unique_technique_holds() {
        let (policies, overridden, unstable) = words(&[
            draft("a", "low", "unique", 5),
            draft("b", "high", "unique", 0),
            draft("c", "last", "unique", 5),
        ]);
        assert_eq!(policies, ["b/high: b/high"]);
        assert_eq!(overridden, ["a/low by b/high", "c/last by b/high"]);
        assert_eq!(unstable, 0);
    }

    #[test]
    fn names_decide_between_equal_priorities_and_that_is_told() {
        let (policies, overridden, unstable) = words(&[
            draft("b", "x", "unique", 5),
            draft("a", "y", "unique", 5),
            draft("c", "y", "unique", 5),
        ]);
        assert_eq!(policies, ["a/y: a/y"]);
        assert_eq!(overridden, ["b/x by a/y", "c/y by a/y"]);
        assert_eq!(unstable, 1);
    }

    #[test]
    fn a_directive_that_several_rules_bring_holds_once() {
        let (policies, overridden, _) = words(&[
            draft("b", "x", "instances", 0),
            draft("a", "x", "instances", 5),
            draft("a", "y", "instances", 5),
        ]);
        // Its priority is the directive's own, so the test's two differ only to show that names
        // decide.
        assert_eq!(policies, ["a/x: a/x", "a/y: a/y"]);
        assert_eq!(overridden, ["b/x by a/x"]);
    }

    #[test]
    fn values_of_a_merged_technique_come_by_priority_and_reports_name_the_first_by_name() {
        let (policies, overridden, _) = words(&[
            draft("a", "x", "merged", 5),
            draft("b", "y", "merged", 1),
            draft("c", "x", "merged", 5),
        ]);
        assert_eq!(policies, ["a/x: b/y a/x"]);
        assert_eq!(overridden, ["c/x by a/x"]);
    }

    #[test]
    fn system_comes_first_then_names_of_rules_and_directives() {
        let (policies, ..) = words(&[
            draft("20 b", "x", "one", 5),
            draft("10 a", "z", "two", 5),
            draft("zz", "x", "system", 5),
            draft("10 a", "y", "three", 5),
        ]);
        let mains: Vec<_> = policies
            .iter()
            .map(|one| one.split(':').next().unwrap())
            .collect();
        assert_eq!(mains, ["zz/x", "10 a/y", "10 a/z", "20 b/x"]);
    }

    #[test]
    fn the_case_of_letters_is_no_order() {
        let (policies, overridden, _) = words(&[
            draft("Web", "x", "unique", 5),
            draft("base", "y", "unique", 5),
            draft("Éa", "x", "one", 5),
            draft("éA", "B", "two", 5),
            draft("éa", "a", "three", 5),
        ]);
        assert_eq!(
            policies,
            ["base/y: base/y", "éa/a: éa/a", "éA/B: éA/B", "Éa/x: Éa/x"]
        );
        assert_eq!(overridden, ["Web/x by base/y"]);
    }
}
