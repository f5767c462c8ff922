//! Targets: sets of nodes that a rule names.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::node_set::NodeSet;

/// Most simple targets of one rule.
pub const TARGETS: usize = 10_000;

/// A set of nodes by one word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// `special:all`.
    All,
    /// `special:all_exceptPolicyServers`.
    AllExceptPolicyServers,
    /// `special:all_policyServers`.
    AllPolicyServers,
    /// `policyServer:ID`: that server alone.
    PolicyServer(String),
    /// `group:ID`, or the identity alone.
    Group(String),
}

/// A target that has no known form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown target \"{0}\"; expected special:all, special:all_exceptPolicyServers, \
     special:all_policyServers, policyServer:ID or group:ID"
)]
pub struct TargetError(String);

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError(text[..text.floor_char_boundary(64)].to_owned());
        match text.split_once(':') {
            None if text.is_empty() => Err(wrong()),
            None => Ok(Self::Group(text.to_owned())),
            Some((_, "")) => Err(wrong()),
            Some(("special", "all")) => Ok(Self::All),
            Some(("special", "all_exceptPolicyServers")) => Ok(Self::AllExceptPolicyServers),
            Some(("special", "all_policyServers")) => Ok(Self::AllPolicyServers),
            Some(("policyServer", id)) => Ok(Self::PolicyServer(id.to_owned())),
            Some(("group", id)) => Ok(Self::Group(id.to_owned())),
            Some(_) => Err(wrong()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("special:all"),
            Self::AllExceptPolicyServers => f.write_str("special:all_exceptPolicyServers"),
            Self::AllPolicyServers => f.write_str("special:all_policyServers"),
            Self::PolicyServer(id) => write!(f, "policyServer:{id}"),
            Self::Group(id) => write!(f, "group:{id}"),
        }
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// What a rule's list of targets holds: one word, or some sets without others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RuleTarget {
    /// One set.
    Simple(Target),
    /// The union of some sets without the union of others.
    Composite {
        /// Nodes of any of these…
        include: Union,
        /// …that none of these has.
        exclude: Union,
    },
}

/// The union of sets; `and` is accepted as Rudder does, and means their intersection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "lowercase",
    expecting = "{or: [TARGET, …]} or {and: [TARGET, …]}"
)]
pub enum Union {
    /// Nodes of any.
    Or(Vec<Target>),
    /// Nodes of all; of none, if there is no set.
    And(Vec<Target>),
}

impl Union {
    /// Its sets.
    pub fn targets(&self) -> &[Target] {
        match self {
            Self::Or(targets) | Self::And(targets) => targets,
        }
    }
}

impl RuleTarget {
    /// How many simple targets it has.
    pub fn size(&self) -> usize {
        self.simple().count()
    }

    /// Its simple targets, the excluded ones last.
    pub fn simple(&self) -> impl Iterator<Item = &Target> {
        let (one, include, exclude) = match self {
            Self::Simple(target) => (Some(target), &[][..], &[][..]),
            Self::Composite { include, exclude } => (None, include.targets(), exclude.targets()),
        };
        one.into_iter().chain(include).chain(exclude)
    }
}

/// The sets that a rule's targets name and nowhere exclude.
pub fn named(targets: &[RuleTarget]) -> HashSet<&Target> {
    let (mut named, mut excluded) = (HashSet::new(), HashSet::new());
    for target in targets {
        match target {
            RuleTarget::Simple(target) => drop(named.insert(target)),
            RuleTarget::Composite { include, exclude } => {
                named.extend(include.targets());
                excluded.extend(exclude.targets());
            }
        }
    }
    named.retain(|target| !excluded.contains(target));
    named
}

/// The nodes that any of a rule's targets has and none excludes, as in Rudder, which makes one
/// target of them all; `of` tells those of one word.
pub fn nodes_of(targets: &[RuleTarget], of: &impl Fn(&Target) -> NodeSet) -> NodeSet {
    let (mut nodes, mut excluded) = (NodeSet::default(), NodeSet::default());
    for target in targets {
        match target {
            RuleTarget::Simple(target) => nodes.union_with(&of(target)),
            RuleTarget::Composite { include, exclude } => {
                nodes.union_with(&nodes_of_union(include, of));
                excluded.union_with(&nodes_of_union(exclude, of));
            }
        }
    }
    nodes.subtract(&excluded);
    nodes
}

fn nodes_of_union(union: &Union, of: &impl Fn(&Target) -> NodeSet) -> NodeSet {
    let sets = union.targets().iter().map(of);
    let join: fn(&mut NodeSet, &NodeSet) = match union {
        Union::Or(_) => NodeSet::union_with,
        Union::And(_) => NodeSet::intersect_with,
    };
    let joined = sets.reduce(|mut all, one| {
        join(&mut all, &one);
        all
    });
    joined.unwrap_or_default()
}
