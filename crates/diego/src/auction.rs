//! JSON bodies of the auctioneer and of reps, with the keys that Go's types have.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Go writes an empty list as null; read both.
fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Go writes an empty list that was never made as null; so do we in answers.
fn empty_is_null<S, T>(list: &Vec<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    T: Serialize,
{
    if list.is_empty() {
        serializer.serialize_none()
    } else {
        list.serialize(serializer)
    }
}

/// What a piece of work needs of a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Placement {
    /// Tags that the cell must carry.
    #[serde(deserialize_with = "null_is_empty")]
    pub placement_tags: Vec<String>,
    /// Volume drivers that the cell must have.
    #[serde(deserialize_with = "null_is_empty")]
    pub volume_drivers: Vec<String>,
    /// Root file system as a URL, for instance `preloaded:cflinuxfs4`.
    pub root_fs: String,
}

/// Resources that a piece of work takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// Memory in MiB.
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i32,
    /// Disk in MiB.
    #[serde(rename = "DiskMB")]
    pub disk_mb: i32,
    /// Most processes.
    #[serde(rename = "MaxPids")]
    pub max_pids: i32,
}

/// An entry of `POST /v1/lrps` of the auctioneer: instances of one process to place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "FlatLrpStartRequest")]
pub struct LrpStartRequest {
    /// The process.
    pub process_guid: String,
    /// Its domain.
    pub domain: String,
    /// Indices to place.
    pub indices: Vec<i32>,
    /// What its instances need.
    #[serde(flatten)]
    pub placement: Placement,
    /// What each instance takes.
    #[serde(flatten)]
    pub resource: Resource,
}

/// An entry of `POST /v1/tasks` of the auctioneer, and a task on a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "FlatTask")]
pub struct Task {
    /// The task.
    #[serde(rename = "TaskGuid")]
    pub task_guid: String,
    /// Its domain.
    #[serde(rename = "Domain")]
    pub domain: String,
    /// What it needs.
    #[serde(flatten)]
    pub placement: Placement,
    /// What it takes.
    #[serde(flatten)]
    pub resource: Resource,
    /// `Invalid` in a request; `Running` or `Completed` in a cell's state.
    pub state: String,
    /// Did it fail?
    pub failed: bool,
}

/// One instance to start on a cell, or running there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "FlatLrp")]
pub struct Lrp {
    /// The instance; chosen by the rep that takes the work, empty until then.
    pub instance_guid: String,
    /// The process.
    pub process_guid: String,
    /// Index of the instance.
    pub index: i32,
    /// Domain of the process.
    pub domain: String,
    /// What it needs.
    #[serde(flatten)]
    pub placement: Placement,
    /// What it takes.
    #[serde(flatten)]
    pub resource: Resource,
    /// `CLAIMED`, `RUNNING`, `SHUTDOWN` or `CRASHED` in a cell's state.
    pub state: String,
}

/// Reads a struct whose parts are flattened into it. `flatten` would gather every
/// field in a map first, and states of cells are read by the hundred in every round
/// of an auction.
macro_rules! read_flat {
    ($flat:ident => $whole:ident { $($(#[$attribute:meta])* $field:ident: $kind:ty,)* }) => {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct $flat {
            $($(#[$attribute])* $field: $kind,)*
            #[serde(rename = "PlacementTags", deserialize_with = "null_is_empty")]
            placement_tags: Vec<String>,
            #[serde(rename = "VolumeDrivers", deserialize_with = "null_is_empty")]
            volume_drivers: Vec<String>,
            #[serde(rename = "RootFs")]
            root_fs: String,
            #[serde(rename = "MemoryMB")]
            memory_mb: i32,
            #[serde(rename = "DiskMB")]
            disk_mb: i32,
            #[serde(rename = "MaxPids")]
            max_pids: i32,
        }

        impl From<$flat> for $whole {
            fn from(flat: $flat) -> Self {
                Self {
                    $($field: flat.$field,)*
                    placement: Placement {
                        placement_tags: flat.placement_tags,
                        volume_drivers: flat.volume_drivers,
                        root_fs: flat.root_fs,
                    },
                    resource: Resource {
                        memory_mb: flat.memory_mb,
                        disk_mb: flat.disk_mb,
                        max_pids: flat.max_pids,
                    },
                }
            }
        }
    };
}

read_flat!(FlatLrpStartRequest => LrpStartRequest {
    process_guid: String,
    domain: String,
    #[serde(deserialize_with = "null_is_empty")]
    indices: Vec<i32>,
});

read_flat!(FlatTask => Task {
    #[serde(rename = "TaskGuid")]
    task_guid: String,
    #[serde(rename = "Domain")]
    domain: String,
    state: String,
    failed: bool,
});

read_flat!(FlatLrp => Lrp {
    instance_guid: String,
    process_guid: String,
    index: i32,
    domain: String,
    state: String,
});

/// Body of `POST /work` of a rep, and its answer: the part that was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Instances.
    #[serde(
        rename = "LRPs",
        deserialize_with = "null_is_empty",
        serialize_with = "empty_is_null"
    )]
    pub lrps: Vec<Lrp>,
    /// Tasks.
    #[serde(
        rename = "Tasks",
        deserialize_with = "null_is_empty",
        serialize_with = "empty_is_null"
    )]
    pub tasks: Vec<Task>,
    /// The cell that the work is meant for; may be left out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cell_id: String,
}

/// Capacity of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Memory in MiB.
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i32,
    /// Disk in MiB.
    #[serde(rename = "DiskMB")]
    pub disk_mb: i32,
    /// Containers.
    #[serde(rename = "Containers")]
    pub containers: i32,
}

/// Root file systems that a provider of a cell offers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RootFsProvider {
    /// Any root file system of the scheme.
    Arbitrary,
    /// Only the named ones; Go writes a set as a map to empty objects.
    FixedSet {
        /// The names.
        set: BTreeMap<String, Empty>,
    },
}

/// An empty JSON object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// In Go it is a map, whose keys are sorted.
impl Serialize for RootFsProvider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Arbitrary => map.serialize_entry("type", "arbitrary")?,
            Self::FixedSet { set } => {
                map.serialize_entry("set", set)?;
                map.serialize_entry("type", "fixed_set")?;
            }
        }
        map.end()
    }
}

impl RootFsProvider {
    /// A provider of exactly these names.
    pub fn fixed(names: &BTreeSet<String>) -> Self {
        Self::FixedSet {
            set: names.iter().map(|name| (name.clone(), Empty {})).collect(),
        }
    }
}

/// Answer of `GET /state` of a rep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellState {
    /// Address of the rep; preferred over the one in its presence.
    pub rep_url: String,
    /// The cell.
    pub cell_id: String,
    /// Number of the cell within its zone.
    pub cell_index: i32,
    /// Providers by URL scheme.
    #[serde(rename = "RootFSProviders", deserialize_with = "null_is_empty")]
    pub root_fs_providers: BTreeMap<String, RootFsProvider>,
    /// What is free.
    #[serde(rename = "AvailableResources")]
    pub available_resources: Resources,
    /// What there is.
    #[serde(rename = "TotalResources")]
    pub total_resources: Resources,
    /// Instances on the cell.
    #[serde(rename = "LRPs", deserialize_with = "null_is_empty")]
    pub lrps: Vec<Lrp>,
    /// Tasks on the cell.
    #[serde(rename = "Tasks", deserialize_with = "null_is_empty")]
    pub tasks: Vec<Task>,
    /// Containers that do not run yet.
    #[serde(rename = "StartingContainerCount")]
    pub starting_container_count: i32,
    /// Availability zone.
    #[serde(rename = "Zone")]
    pub zone: String,
    /// Is the cell being emptied? Then it takes no work.
    #[serde(rename = "Evacuating")]
    pub evacuating: bool,
    /// Volume drivers on the cell.
    #[serde(rename = "VolumeDrivers", deserialize_with = "null_is_empty")]
    pub volume_drivers: Vec<String>,
    /// Tags that work must ask for to come here.
    #[serde(rename = "PlacementTags", deserialize_with = "null_is_empty")]
    pub placement_tags: Vec<String>,
    /// Tags that work may ask for.
    #[serde(rename = "OptionalPlacementTags", deserialize_with = "null_is_empty")]
    pub optional_placement_tags: Vec<String>,
    /// Memory in MiB that each instance's proxy takes beside its own.
    #[serde(rename = "ProxyMemoryAllocationMB")]
    pub proxy_memory_allocation_mb: i32,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_flat_is_read_flat(
            names in proptest::collection::vec("[a-z]{0,3}", 0..4),
            numbers in any::<[i32; 4]>(),
            texts in any::<[String; 5]>(),
        ) {
            let [memory_mb, disk_mb, max_pids, index] = numbers;
            let [guid, process, domain, root_fs, state] = texts;
            let placement = Placement {
                placement_tags: names.clone(),
                volume_drivers: names,
                root_fs,
            };
            let resource = Resource { memory_mb, disk_mb, max_pids };
            let lrp = Lrp {
                instance_guid: guid.clone(),
                process_guid: process.clone(),
                index,
                domain: domain.clone(),
                placement: placement.clone(),
                resource,
                state: state.clone(),
            };
            let task = Task {
                task_guid: guid,
                domain: domain.clone(),
                placement: placement.clone(),
                resource,
                state,
                failed: index < 0,
            };
            let request = LrpStartRequest {
                process_guid: process,
                domain,
                indices: vec![index],
                placement,
                resource,
            };
            let json = serde_json::to_string(&(&lrp, &task, &request)).unwrap();
            let read: (Lrp, Task, LrpStartRequest) = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(read, (lrp, task, request));
        }
    }

    #[test]
    fn providers_are_written_with_their_keys_sorted_and_read_back() {
        let fixed = RootFsProvider::fixed(&["a".to_owned()].into());
        for (provider, text) in [
            (RootFsProvider::Arbitrary, r#"{"type":"arbitrary"}"#),
            (fixed, r#"{"set":{"a":{}},"type":"fixed_set"}"#),
        ] {
            assert_eq!(serde_json::to_string(&provider).unwrap(), text);
            assert_eq!(
                serde_json::from_str::<RootFsProvider>(text).unwrap(),
                provider
            );
        }
    }

    #[test]
    fn what_is_absent_or_null_is_empty() {
        let json = r#"{"PlacementTags":null,"unknown":[1],"process_guid":"p"}"#;
        let lrp: Lrp = serde_json::from_str(json).unwrap();
        let process_guid = "p".into();
        assert_eq!(
            lrp,
            Lrp {
                process_guid,
                ..Lrp::default()
            }
        );
    }
}
