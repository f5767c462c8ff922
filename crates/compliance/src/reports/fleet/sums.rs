//! Sums over the fleet, to which each change of a node is added.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::DirectiveLevel;
use crate::reports::level::FleetLevel;
use crate::reports::matching::Types;

/// A set of nodes and the rules that target it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) rules: HashSet<u32>,
    /// All rules on its nodes.
    pub(super) global: FleetLevel,
    /// Only the rules that target it.
    pub(super) targeted: FleetLevel,
}

impl Group {
    fn change(&mut self, level: &DirectiveLevel, sign: Sign) {
        if !level.types.has(Types::USER) {
            return;
        }
        sign.apply(&mut self.global, level);
        if self.rules.contains(&level.rule) {
            sign.apply(&mut self.targeted, level);
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Sign {
    Add,
    Subtract,
}

impl Sign {
    fn apply(self, sum: &mut FleetLevel, level: &DirectiveLevel) {
        match self {
            Self::Add => *sum += &level.level,
            Self::Subtract => *sum -= &level.level,
        }
    }
}

/// Levels of everything that has nodes in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) user: FleetLevel,
    pub(super) system: FleetLevel,
    pub(super) rules: HashMap<u32, FleetLevel>,
    pub(super) directives: HashMap<u32, FleetLevel>,
    pub(super) groups: Vec<Group>,
    pub(super) changed: ChangedNumbers,
}

/// Numbers of what has changed since somebody asked: never more than there are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedNumbers {
    pub(super) rules: BTreeSet<u32>,
    pub(super) directives: BTreeSet<u32>,
    pub(super) groups: BTreeSet<u32>,
}

impl Sums {
    /// Replaces what a node shows, and says whether that changes anything. Both are sorted.
    pub(super) fn replace(
        &mut self,
        groups: &[u32],
        old: &[DirectiveLevel],
        new: &[DirectiveLevel],
    ) -> bool {
        let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
        let mut changed = false;
        loop {
            let (take_old, take_new) = match (old.peek(), new.peek()) {
                (None, None) => return changed,
                (Some(_), None) => (true, false),
                (None, Some(_)) => (false, true),
                (Some(old), Some(new)) => (old.key() <= new.key(), new.key() <= old.key()),
            };
            let gone = old.next_if(|_| take_old);
            let come = new.next_if(|_| take_new);
            if let (Some(gone), Some(come)) = (gone, come)
                && (gone.level, gone.types) == (come.level, come.types)
            {
                continue;
            }
            changed = true;
            for (level, sign) in [(gone, Sign::Subtract), (come, Sign::Add)] {
                if let Some(level) = level {
                    self.change(groups, level, sign);
                }
            }
        }
    }

    fn change(&mut self, groups: &[u32], level: &DirectiveLevel, sign: Sign) {
        self.changed.rules.insert(level.rule);
        self.changed.directives.insert(level.directive);
        for (sum, types) in [
            (&mut self.user, Types::USER),
            (&mut self.system, Types::SYSTEM),
        ] {
            if level.types.has(types) {
                sign.apply(sum, level);
            }
        }
        for (sums, number) in [
            (&mut self.rules, level.rule),
            (&mut self.directives, level.directive),
        ] {
            let sum = sums.entry(number).or_default();
            sign.apply(sum, level);
            if sum.total() == 0 {
                sums.remove(&number);
            }
        }
        for group in groups {
            self.change_group(*group, level, sign);
        }
    }

    pub(super) fn change_group(&mut self, group: u32, level: &DirectiveLevel, sign: Sign) {
        self.changed.groups.insert(group);
        if let Some(group) = self.groups.get_mut(group as usize) {
            group.change(level, sign);
        }
    }
}
