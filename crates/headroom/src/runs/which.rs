//! Which run is meant.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use lab_store::RunFile;

use super::stored;

/// Most runs that are named to choose from.
const NAMED: usize = 5;

/// The folder of the run that is meant: by a path, by a name or its beginning within `folder`, or
/// the latest that has ended.
pub(super) fn path(meant: Option<&Path>, folder: &Path) -> Result<PathBuf> {
    let Some(meant) = meant else {
        let latest = stored(folder)?;
        let ended = latest.iter().rev().find(|run| {
            run.found
                .as_ref()
                .is_ok_and(|found| found.verdict.is_some())
        });
        return match ended {
            Some(run) => Ok(run.folder.path().to_owned()),
            None => bail!("no run in {} has ended", folder.display()),
        };
    };
    let is_run = |path: &Path| path.join(RunFile::Environment.relative_path()).is_file();
    if is_run(&folder.join(meant)) {
        return Ok(folder.join(meant));
    }
    // A path that leads to no run is told as such by whoever opens it.
    if is_run(meant) || meant.components().count() > 1 {
        return Ok(meant.to_owned());
    }
    let ids: Vec<String> = stored(folder)?.iter().map(|run| run.folder.id()).collect();
    let begin = meant.to_string_lossy();
    let fitting: Vec<&str> = ids
        .iter()
        .map(String::as_str)
        .filter(|id| id.starts_with(&*begin))
        .collect();
    match fitting[..] {
        [id] => Ok(folder.join(id)),
        [] => bail!(
            "no run in {} begins with {begin}; there {}",
            folder.display(),
            named(&ids)
        ),
        _ => bail!(
            "{begin} may be {} runs in {}: {}",
            fitting.len(),
            folder.display(),
            latest_of(&fitting)
        ),
    }
}

fn named(ids: &[String]) -> String {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    match ids.len() {
        0 => "are none".to_owned(),
        1 => format!("is {}", ids[0]),
        _ => format!("are {}", latest_of(&ids)),
    }
}

/// The last few, and how many others there are.
fn latest_of(ids: &[&str]) -> String {
    let latest = &ids[ids.len().saturating_sub(NAMED)..];
    let older = ids.len() - latest.len();
    match older {
        0 => latest.join(", "),
        _ => format!("{} and {older} older ones", latest.join(", ")),
    }
}
