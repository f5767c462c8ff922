//! The floors of machines in a file: a home folder may be shared by several of them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_load::summary::Floor;
use measure::{Clock, Machine};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::CalibrateError;

/// Version of the file.
const SCHEMA: u32 = 1;
/// Most machines that are remembered; beyond it the oldest is forgotten.
const MACHINES: usize = 64;
/// Largest file that is read.
const FILE_BYTES: u64 = 1 << 20;
/// Age from which on a floor says nothing: neighbours of a virtual machine change.
const OLD: Duration = Duration::from_secs(30 * 24 * 3600);

/// Why there is no floor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FloorError {
    /// It was never measured.
    #[error("the floor of this machine is not known; `headroom calibrate` measures it")]
    Never,
    /// It was measured on other machines, or before the kernel or processors changed.
    #[error(
        "the floor was measured on another machine or kernel ({0}) and is not used; `headroom calibrate` measures this one"
    )]
    Elsewhere(String),
    /// It is too old.
    #[error(
        "the floor of this machine was measured {0} days ago and is not used; `headroom calibrate` measures it again"
    )]
    Old(u64),
    /// The file cannot be read.
    #[error(
        "the floor of this machine cannot be read: {0}; `headroom calibrate` measures it again"
    )]
    Unreadable(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    schema: u32,
    machines: BTreeMap<String, Floor>,
}

/// Keeps the floor of this machine in `$XDG_STATE_HOME/headroom/floor.json`, or in
/// `~/.local/state/headroom/floor.json`; gives the file. What was known of this machine
/// before is replaced; a reader sees the old file or the new one.
///
/// # Errors
/// When there is no folder or it cannot be written.
pub fn keep(floor: &Floor) -> Result<PathBuf, CalibrateError> {
    let path = path(variable).ok_or(CalibrateError::NoFolder)?;
    keep_in(&path, &id(&Machine::detect()), floor)?;
    Ok(path)
}

/// The floor of this machine.
///
/// # Errors
/// When it was never measured, or too long ago, or elsewhere; the text says what to do.
pub fn recall() -> Result<Floor, FloorError> {
    let path = path(variable).ok_or(FloorError::Never)?;
    let now = Clock::start().origin_unix_ns();
    recall_from(&path, &id(&Machine::detect()), now)
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

fn path(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // The XDG rules: a relative path counts as none.
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("headroom/floor.json"))
}

/// What must be equal for a floor to hold.
fn id(machine: &Machine) -> String {
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    format!(
        "{}, {} {cores}, {}",
        machine.cpu_model, machine.cores, machine.kernel
    )
}

fn read(path: &Path) -> Result<File, FloorError> {
    let unreadable = |found: String| FloorError::Unreadable(format!("{}: {found}", path.display()));
    let size = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(FloorError::Never),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    if size > FILE_BYTES {
        return Err(unreadable(format!(
            "it has {size} bytes; at most {FILE_BYTES} are expected"
        )));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let file: File =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    match file.schema {
        SCHEMA => Ok(file),
        other => Err(unreadable(format!(
            "it has version {other}; {SCHEMA} is expected"
        ))),
    }
}

fn recall_from(path: &Path, id: &str, now_unix_ns: i64) -> Result<Floor, FloorError> {
    let mut machines = read(path)?.machines;
    let Some(floor) = machines.remove(id) else {
        let newest = machines
            .into_iter()
            .max_by_key(|(_, floor)| floor.measured_unix_ns);
        return Err(newest.map_or(FloorError::Never, |(id, _)| FloorError::Elsewhere(id)));
    };
    // A clock that was set back since makes it young, not old.
    let age = now_unix_ns.saturating_sub(floor.measured_unix_ns);
    let age = Duration::from_nanos(u64::try_from(age).unwrap_or(0));
    match age > OLD {
        true => Err(FloorError::Old(age.as_secs() / (24 * 3600))),
        false => Ok(floor),
    }
}

fn keep_in(path: &Path, id: &str, floor: &Floor) -> Result<(), CalibrateError> {
    // A file that cannot be read is replaced: measuring again is all that can be done.
    let mut machines = read(path).map(|file| file.machines).unwrap_or_default();
    machines.insert(id.to_owned(), floor.clone());
    while machines.len() > MACHINES {
        let others = machines.iter().filter(|(other, _)| *other != id);
        let oldest = others.min_by_key(|(_, floor)| floor.measured_unix_ns);
        let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
            break;
        };
        machines.remove(&oldest);
    }
    let file = File {
        schema: SCHEMA,
        machines,
    };
    let failed = |found| CalibrateError::Keep {
        path: path.to_owned(),
        found,
    };
    let text = serde_json::to_vec_pretty(&file).map_err(|error| failed(error.into()))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    // Renamed into place once it is whole and on disk.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::File::create(&new)
        .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

    fn floor(measured_unix_ns: i64) -> Floor {
        Floor {
            measured_unix_ns,
            ping_pong_p50: 6e-5,
            ping_pong_p99: 1e-4,
            ping_pong_spin_p50: 3e-5,
            timer_p50: 1e-5,
            timer_p99: 1e-4,
            longest_gap: 0.004,
            gap_share: 0.01,
            steal: 0.0,
            clock: 2e-8,
        }
    }

    fn file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/floor.json");
        (folder, path)
    }

    #[test]
    fn it_is_kept_for_its_machine_for_a_month() {
        let (_folder, path) = file();
        assert_eq!(recall_from(&path, "one", 0), Err(FloorError::Never));
        keep_in(&path, "one", &floor(1)).unwrap();
        keep_in(&path, "two", &floor(2)).unwrap();
        keep_in(&path, "one", &floor(DAY_NS)).unwrap();
        assert_eq!(recall_from(&path, "one", DAY_NS * 31), Ok(floor(DAY_NS)));
        assert_eq!(recall_from(&path, "two", 3), Ok(floor(2)));
        assert_eq!(
            recall_from(&path, "one", 0),
            Ok(floor(DAY_NS)),
            "a clock set back"
        );
        assert_eq!(
            recall_from(&path, "one", DAY_NS * 42),
            Err(FloorError::Old(41))
        );
        assert_eq!(
            recall_from(&path, "three", 3),
            Err(FloorError::Elsewhere("one".into()))
        );
        let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing but the file: {left:?}");
    }

    #[test]
    fn a_broken_file_is_said_and_replaced() {
        let (_folder, path) = file();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for (text, found) in [
            ("{", "EOF"),
            (r#"{"schema": 2, "machines": {}}"#, "it has version 2"),
        ] {
            fs::write(&path, text).unwrap();
            let error = recall_from(&path, "one", 0).unwrap_err().to_string();
            assert!(
                error.contains(found) && error.contains("headroom calibrate"),
                "{error}"
            );
        }
        keep_in(&path, "one", &floor(1)).unwrap();
        assert_eq!(recall_from(&path, "one", 2), Ok(floor(1)));
    }

    #[test]
    fn the_oldest_machine_is_forgotten() {
        let (_folder, path) = file();
        for number in 0..=MACHINES {
            let measured = i64::try_from(number).unwrap();
            keep_in(&path, &format!("m{number}"), &floor(measured)).unwrap();
        }
        let newest = format!("m{MACHINES}");
        assert_eq!(
            recall_from(&path, "m0", 100),
            Err(FloorError::Elsewhere(newest))
        );
        assert_eq!(recall_from(&path, "m1", 100), Ok(floor(1)));
    }

    #[test]
    fn the_folder_follows_the_xdg_rules() {
        let path = |state: &str, home: &str| {
            let (state, home) = (PathBuf::from(state), PathBuf::from(home));
            path(|name| {
                Some(if name == "HOME" {
                    home.clone()
                } else {
                    state.clone()
                })
            })
        };
        assert_eq!(path("/s", "/h"), Some("/s/headroom/floor.json".into()));
        assert_eq!(
            path("s", "/h"),
            Some("/h/.local/state/headroom/floor.json".into())
        );
        assert_eq!(path("", ""), None);
    }
}
