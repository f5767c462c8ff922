//! Which cells have what a piece of work asks for, apart from free room.

use std::collections::{BTreeSet, HashMap, HashSet};

use diego::auction::{CellState, Placement, RootFsProvider};

use super::UNREACHABLE;

/// How far a cell gets through the checks, which have an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// There is no cell.
    Unreachable,
    /// It lacks the root file system.
    RootFs,
    /// It lacks a volume driver.
    Drivers,
    /// Its placement tags do not match.
    Tags,
    /// It has everything.
    Fits,
}

impl Stage {
    /// The protocol's text for work whose furthest cell stopped here.
    pub(super) fn text(self, tags: &[String]) -> String {
        match self {
            Self::Unreachable => UNREACHABLE.into(),
            Self::RootFs => "found no compatible cell for required rootfs".into(),
            Self::Drivers => "found no compatible cell with required volume drivers".into(),
            Self::Tags | Self::Fits => match tags {
                [] => "found no compatible cell with no placement tags".into(),
                [tag] => format!(r#"found no compatible cell with placement tag "{tag}""#),
                [most @ .., last] => {
                    let most: Vec<String> = most.iter().map(|tag| format!(r#""{tag}""#)).collect();
                    let most = most.join(", ");
                    format!(r#"found no compatible cell with placement tags {most} and "{last}""#)
                }
            },
        }
    }
}

/// What decides about stages; equal needs share one answer.
#[derive(PartialEq, Eq, Hash)]
struct Needs {
    scheme: String,
    /// `None` when no cell tells the names of this scheme apart.
    name: Option<String>,
    drivers: BTreeSet<String>,
    tags: BTreeSet<String>,
}

/// Answers by needs, each computed once.
pub(super) struct FitCache<'a> {
    cells: &'a [CellState],
    /// Schemes of which some cell has only a fixed set of names.
    fixed: HashSet<&'a str>,
    known: HashMap<Needs, usize>,
    /// How far each cell gets, in the order of the cells, by number of the needs.
    stages: Vec<Vec<Stage>>,
}

impl<'a> FitCache<'a> {
    pub(super) fn new(cells: &'a [CellState]) -> Self {
        let fixed = cells
            .iter()
            .flat_map(|cell| &cell.root_fs_providers)
            .filter(|(_, provider)| matches!(provider, RootFsProvider::FixedSet { .. }))
            .map(|(scheme, _)| scheme.as_str())
            .collect();
        Self {
            cells,
            fixed,
            known: HashMap::new(),
            stages: Vec::new(),
        }
    }

    /// A number for what is asked for; equal needs have the same.
    pub(super) fn needs(&mut self, placement: &Placement) -> usize {
        let (scheme, name) = split_root_fs(&placement.root_fs);
        let name = self.fixed.contains(scheme.as_str()).then_some(name);
        let needs = Needs {
            scheme,
            name,
            drivers: placement.volume_drivers.iter().cloned().collect(),
            tags: placement.placement_tags.iter().cloned().collect(),
        };
        if let Some(number) = self.known.get(&needs) {
            return *number;
        }
        let stages = self.cells.iter().map(|cell| stage(cell, &needs)).collect();
        self.stages.push(stages);
        let number = self.stages.len() - 1;
        self.known.insert(needs, number);
        number
    }

    /// How far each cell gets, in the order of the cells, with these needs.
    pub(super) fn stages(&self, needs: usize) -> &[Stage] {
        &self.stages[needs]
    }
}

fn stage(cell: &CellState, needs: &Needs) -> Stage {
    let root_fs = match cell.root_fs_providers.get(&needs.scheme) {
        None => false,
        Some(RootFsProvider::Arbitrary) => true,
        Some(RootFsProvider::FixedSet { set }) => needs
            .name
            .as_ref()
            .is_some_and(|name| set.contains_key(name)),
    };
    let has = |list: &[String], wanted: &String| list.contains(wanted);
    if !root_fs {
        Stage::RootFs
    } else if !needs
        .drivers
        .iter()
        .all(|driver| has(&cell.volume_drivers, driver))
    {
        Stage::Drivers
    } else if cell
        .placement_tags
        .iter()
        .all(|tag| needs.tags.contains(tag))
        && needs
            .tags
            .iter()
            .all(|tag| has(&cell.placement_tags, tag) || has(&cell.optional_placement_tags, tag))
    {
        Stage::Fits
    } else {
        Stage::Tags
    }
}

/// Scheme and opaque part of a root file system's URL: `preloaded:cflinuxfs4` has
/// `cflinuxfs4`; a hierarchical one (`docker:///x`) has none.
fn split_root_fs(url: &str) -> (String, String) {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let name = if rest.starts_with('/') {
        ""
    } else {
        rest.split(['?', '#']).next().unwrap_or("")
    };
    (scheme.to_ascii_lowercase(), name.to_owned())
}
