//! The stacks of a run's worst seconds, as a tree that the page draws.

use std::collections::HashMap;

use lab_store::{ProfileRecord, RunFile, RunFolder, StoreError, SystemSamples};
use serde::Serialize;

/// Parts of a tree that are seen less often than one in so many samples are left out; each is narrower
/// than a pixel.
const PART: u64 = 1000;
/// Most parts of a tree.
const MOST: usize = 4000;

/// Where processor time went.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct PageProfile {
    from_s: f64,
    to_s: f64,
    why: String,
    per_second: u64,
    samples: u64,
    lost: u64,
    systems: Vec<SystemSamples>,
    note: Option<String>,
    /// Names of functions.
    names: Vec<String>,
    /// Parts of the tree, each behind the one that it is in: the place of that one (-1: none), the
    /// number of its name, and how often it was seen.
    tree: Vec<(i32, u32, u64)>,
}

/// Reads it; `None`: the run has none.
pub(crate) fn read(run: &RunFolder) -> Result<Option<PageProfile>, StoreError> {
    if !run.file(RunFile::Profile).exists() {
        return Ok(None);
    }
    let record: ProfileRecord = run.read_json(RunFile::Profile)?;
    let text = match record.samples {
        0 => String::new(),
        _ => run.read_text(RunFile::Stacks)?,
    };
    let (names, tree) = tree(&text);
    Ok(Some(PageProfile {
        from_s: record.from_s,
        to_s: record.to_s,
        why: record.why,
        per_second: record.per_second,
        samples: record.samples,
        lost: record.lost,
        systems: record.systems,
        note: record.note,
        names,
        tree,
    }))
}

#[derive(Default)]
struct Part<'a> {
    samples: u64,
    below: HashMap<&'a str, Part<'a>>,
}

/// The tree of folded stacks: names, and parts with the largest first. Lines that are none are left out.
fn tree(text: &str) -> (Vec<String>, Vec<(i32, u32, u64)>) {
    let mut root = Part::default();
    for line in text.lines() {
        let Some((stack, samples)) = line.rsplit_once(' ') else {
            continue;
        };
        let Ok(samples) = samples.parse::<u64>() else {
            continue;
        };
        let mut part = &mut root;
        part.samples += samples;
        for frame in stack.split(';') {
            part = part.below.entry(frame).or_default();
            part.samples += samples;
        }
    }
    let least = (root.samples / PART).max(1);
    let (mut names, mut numbers) = (Vec::new(), HashMap::new());
    let mut tree = Vec::new();
    let mut todo = vec![(-1_i32, root)];
    while let Some((place, part)) = todo.pop() {
        let mut below: Vec<(&str, Part<'_>)> = part.below.into_iter().collect();
        below.retain(|(_, part)| part.samples >= least);
        below.sort_by(|one, other| one.1.samples.cmp(&other.1.samples).then(other.0.cmp(one.0)));
        let room = MOST.saturating_sub(tree.len());
        let below = below.split_off(below.len().saturating_sub(room));
        for (name, part) in below.into_iter().rev() {
            let number = *numbers.entry(name).or_insert_with(|| {
                names.push(name.to_owned());
                names.len() as u32 - 1
            });
            tree.push((place, number, part.samples));
            todo.push((tree.len() as i32 - 1, part));
        }
    }
    (names, tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_become_a_tree_with_the_largest_first() {
        let (names, tree) =
            tree("web;main;read 2\nweb;main;work 5\nweb;main 1\ndb;main 3\nno line\n");
        let shown: Vec<(i32, &str, u64)> = tree
            .iter()
            .map(|(place, name, samples)| (*place, names[*name as usize].as_str(), *samples))
            .collect();
        assert_eq!(
            shown,
            [
                (-1, "web", 8),
                (-1, "db", 3),
                (1, "main", 3),
                (0, "main", 8),
                (3, "work", 5),
                (3, "read", 2),
            ]
        );
        assert_eq!(names.len(), 5);
        // Each stands behind what it is in.
        assert!(tree.iter().zip(0..).all(|((place, ..), at)| *place < at));
    }

    #[test]
    fn what_is_too_small_to_see_is_left_out_and_there_is_a_bound() {
        let (_, narrow) = tree("a;b 1\na;c 999\n");
        assert_eq!(narrow.len(), 3);
        let (_, narrow) = tree("a;b 1\na;c 9999\n");
        assert_eq!(narrow.len(), 2);
        let deep = format!("{} 5", vec!["f"; 9000].join(";"));
        assert_eq!(tree(&deep).1.len(), MOST);
    }
}
