//! Who is hit: members of a group, drawn from a seed.

use std::collections::BTreeSet;

use units::nearest;

use crate::seed;

/// Which members of a group a fault hits.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberSelector {
    /// These, in this order.
    Named(Vec<String>),
    /// So many, drawn from the seed.
    Count(usize),
    /// This share, above 0 and at most 1, drawn from the seed. Of `n` members `share × n` are
    /// hit, rounded to the nearest whole number, halves up, and at least one.
    Share(f64),
    /// All.
    Every,
}

/// Why nobody can be chosen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChooseError {
    /// The group is empty.
    #[error(
        "choose whom \"{fault}\" hits: there is nothing to choose from; start it before the fault, or name another target"
    )]
    Nobody {
        /// The fault.
        fault: String,
    },
    /// No member has this name.
    #[error("choose whom \"{fault}\" hits: there is no \"{name}\"{}", advice(near.as_deref()))]
    Unknown {
        /// The fault.
        fault: String,
        /// The name.
        name: String,
        /// A member that may have been meant.
        near: Option<String>,
    },
    /// A name stands twice, among the members or those that were named.
    #[error("choose whom \"{fault}\" hits: \"{name}\" stands there twice; name each thing once")]
    Twice {
        /// The fault.
        fault: String,
        /// The name.
        name: String,
    },
    /// There are not that many.
    #[error(
        "choose whom \"{fault}\" hits: {asked} were asked for and there are {there}; ask for 1 to {there}, or for all"
    )]
    Count {
        /// The fault.
        fault: String,
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        there: usize,
    },
    /// A share is none.
    #[error(
        "choose whom \"{fault}\" hits: a share of {share} was asked for; it must be above 0 and at most 1"
    )]
    Share {
        /// The fault.
        fault: String,
        /// What was asked for.
        share: f64,
    },
}

fn advice(near: Option<&str>) -> String {
    near.map_or_else(
        || "; see what the file names".into(),
        |near| format!("; did you mean \"{near}\"?"),
    )
}

/// Whom the fault named `fault` hits the `turn`th time that it comes, as places in `members`,
/// in rising order but for [`MemberSelector::Named`].
///
/// Every member has a lot, which depends on the seed, the fault, the turn and the member's own
/// name; the smallest lots are hit. So neither another fault, nor the order of the members, nor
/// a member that joins changes the lots of the others; a member that joins displaces at most one
/// of a fixed number.
///
/// # Errors
/// When nobody is there, a name is unknown or stands twice, or the number or share is none.
pub fn choose(
    who: &MemberSelector,
    members: &[String],
    seed: u64,
    fault: &str,
    turn: u64,
) -> Result<Vec<usize>, ChooseError> {
    let fault_name = || fault.to_owned();
    if members.is_empty() {
        return Err(ChooseError::Nobody {
            fault: fault_name(),
        });
    }
    refuse_twice(members, fault)?;
    let count = match who {
        MemberSelector::Every => return Ok((0..members.len()).collect()),
        MemberSelector::Named(names) => {
            refuse_twice(names, fault)?;
            return names
                .iter()
                .map(|name| find(name, members, fault))
                .collect();
        }
        MemberSelector::Count(count) => *count,
        MemberSelector::Share(share) if *share > 0.0 && *share <= 1.0 => {
            part_of(*share, members.len())
        }
        MemberSelector::Share(share) => {
            return Err(ChooseError::Share {
                fault: fault_name(),
                share: *share,
            });
        }
    };
    if count == 0 || count > members.len() {
        return Err(ChooseError::Count {
            fault: fault_name(),
            asked: count,
            there: members.len(),
        });
    }
    let stream = seed::place(seed::named(seed, fault), &[turn]);
    let mut places: Vec<usize> = (0..members.len()).collect();
    places.sort_by_cached_key(|place| (seed::named(stream, &members[*place]), *place));
    places.truncate(count);
    places.sort_unstable();
    Ok(places)
}

/// Which `count` of so many members without names, which have numbers from 0, a fault hits the
/// `turn`th time that it comes; their numbers, rising. Lots are drawn as by [`choose`].
pub fn choose_numbers(count: u32, members: u32, seed: u64, fault: &str, turn: u64) -> Vec<u32> {
    let stream = seed::place(seed::named(seed, fault), &[turn]);
    let lot = |number: &u32| (seed::place(stream, &[u64::from(*number)]), *number);
    let mut lots: Vec<(u64, u32)> = (0..members).map(|number| lot(&number)).collect();
    let count = count.min(members) as usize;
    if count < lots.len() {
        // The smallest come first, in any order.
        lots.select_nth_unstable(count);
        lots.truncate(count);
    }
    let mut numbers: Vec<u32> = lots.into_iter().map(|(_, number)| number).collect();
    numbers.sort_unstable();
    numbers
}

/// A share of `count`, rounded to the nearest whole number, halves up, and at least one. `share`
/// is above 0 and at most 1.
pub fn part_of(share: f64, count: usize) -> usize {
    // A share is written in decimals: 0.15 of 10 is 1.5 although the product of the doubles may
    // be a hair less.
    ((share * count as f64 + 0.5 + 1e-9).floor() as usize).clamp(1, count.max(1))
}

fn refuse_twice(names: &[String], fault: &str) -> Result<(), ChooseError> {
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => Err(ChooseError::Twice {
            fault: fault.into(),
            name: name.clone(),
        }),
    }
}

fn find(name: &str, members: &[String], fault: &str) -> Result<usize, ChooseError> {
    let place = members.iter().position(|member| member == name);
    place.ok_or_else(|| ChooseError::Unknown {
        fault: fault.into(),
        name: name.into(),
        near: nearest(name, members.iter().map(String::as_str)).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests;
