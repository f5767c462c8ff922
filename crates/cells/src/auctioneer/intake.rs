//! Reading requests as the original does: keys match whatever their case, null
//! stands for "nothing", and entries that make no sense are left out.

use diego::auction::{LrpStartRequest, Task};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

const LRP_KEYS: &[&str] = &[
    "process_guid",
    "domain",
    "indices",
    "MemoryMB",
    "DiskMB",
    "MaxPids",
    "PlacementTags",
    "VolumeDrivers",
    "RootFs",
];

const TASK_KEYS: &[&str] = &[
    "TaskGuid",
    "Domain",
    "MemoryMB",
    "DiskMB",
    "MaxPids",
    "PlacementTags",
    "VolumeDrivers",
    "RootFs",
    "state",
    "failed",
];

/// Requests to place instances, and how many were left out.
pub(super) fn lrps(body: &[u8]) -> serde_json::Result<(Vec<LrpStartRequest>, usize)> {
    read(body, LRP_KEYS, |lrp: &LrpStartRequest| {
        !lrp.process_guid.is_empty()
            && !lrp.domain.is_empty()
            && !lrp.indices.is_empty()
            && !lrp.placement.root_fs.is_empty()
            && lrp.resource.memory_mb >= 0
            && lrp.resource.disk_mb >= 0
    })
}

/// Requests to place tasks, and how many were left out.
pub(super) fn tasks(body: &[u8]) -> serde_json::Result<(Vec<Task>, usize)> {
    read(body, TASK_KEYS, |task: &Task| {
        !task.task_guid.is_empty()
            && !task.placement.root_fs.is_empty()
            && task.resource.memory_mb >= 0
            && task.resource.disk_mb >= 0
    })
}

fn read<T: DeserializeOwned>(
    body: &[u8],
    keys: &[&str],
    valid: impl Fn(&T) -> bool,
) -> serde_json::Result<(Vec<T>, usize)> {
    let entries: Option<Vec<Option<Map<String, Value>>>> = serde_json::from_slice(body)?;
    let entries = entries.unwrap_or_default();
    let count = entries.len();
    let mut kept = Vec::with_capacity(count);
    for entry in entries {
        // As in Go, null is an entry without a guid, which is left out.
        let entry = entry.unwrap_or_default();
        let entry: T = serde_json::from_value(Value::Object(canonical(entry, keys)))?;
        if valid(&entry) {
            kept.push(entry);
        }
    }
    let left_out = count - kept.len();
    Ok((kept, left_out))
}

/// The entry with its keys spelt as in `keys`. Null values go: a missing key
/// means the same.
fn canonical(entry: Map<String, Value>, keys: &[&str]) -> Map<String, Value> {
    entry
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| {
            let known = keys.iter().find(|known| known.eq_ignore_ascii_case(&key));
            (known.map_or(key, |known| (*known).to_owned()), value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_match_in_any_case_and_null_is_nothing() {
        let body = br#"[{"TASKGUID":"t","rootfs":"a:b","memorymb":3,"DOMAIN":null,"extra":1}]"#;
        let (tasks, left_out) = tasks(body).unwrap();
        assert_eq!(left_out, 0);
        assert_eq!(tasks[0].task_guid, "t");
        assert_eq!(tasks[0].resource.memory_mb, 3);
        assert_eq!(tasks[0].domain, "");
    }

    #[test]
    fn a_value_of_the_wrong_kind_refuses_the_whole_body() {
        assert!(tasks(br#"[{"TaskGuid":7}]"#).is_err());
        assert!(lrps(br#"[{"indices":"0"}]"#).is_err());
        assert!(lrps(b"[7]").is_err());
    }

    #[test]
    fn null_is_an_entry_without_a_guid() {
        let body = br#"[null, {"TaskGuid":"t","rootfs":"a:b"}]"#;
        let (tasks, left_out) = tasks(body).unwrap();
        assert_eq!((tasks.len(), left_out), (1, 1));
        assert_eq!(lrps(b"[null]").unwrap().1, 1);
    }
}
