//! The ready experiments. They travel within the binary, so that whoever has nothing else
//! can run them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lab_experiment::catalogue::{Catalogue, OwnNetwork};
use lab_experiment::{Source, check};
use lab_store::Outcome;
use serde::Serialize;
use tempfile::TempDir;

use crate::catalogue::catalogue;
use crate::cli::ListArgs;
use crate::output::{eprint, json, print};

macro_rules! files {
    ($($path:literal)*) => {
        [$(($path, include_str!(concat!("../../../experiments/", $path)))),*]
    };
}

/// Everything in the folder `experiments`, by its path there.
const FILES: &[(&str, &str)] = &files! {
    "any-diego.toml"
    "benchmark-bbs.toml"
    "cluster-of-three.toml"
    "compliance/directives/login.yml"
    "compliance/directives/motd.yml"
    "compliance/make.sh"
    "compliance/rules/all.yml"
    "compliance/techniques/file.yml"
    "drivers/shop.py"
    "etcd-elections.toml"
    "evacuate-rolling.toml"
    "faults-of-a-web-server.toml"
    "fezzik-lrps.toml"
    "fezzik-tasks.toml"
    "full-disk.toml"
    "graph-1000-services.toml"
    "graph-bookinfo.toml"
    "graph-chain-100.toml"
    "graph-chain-3.toml"
    "graph-namespaces-vs-processes.toml"
    "graph-noisy-neighbour.toml"
    "graph-tree-fanout.toml"
    "graphs/bookinfo-failing-ratings.toml"
    "graphs/bookinfo-retrying-ratings.toml"
    "graphs/bookinfo-slow-ratings.toml"
    "graphs/bookinfo.toml"
    "graphs/chain-3.toml"
    "graphs/namespaces.toml"
    "graphs/noisy-neighbour-here.toml"
    "graphs/noisy-neighbour.toml"
    "graphs/tree-fanout.toml"
    "kill-10-cells.toml"
    "kill-database.toml"
    "knee-of-a-web-server.toml"
    "planted/connections.toml"
    "planted/datagrams.toml"
    "planted/descriptors.toml"
    "planted/generator.toml"
    "planted/handshakes.toml"
    "planted/loop-linear.toml"
    "planted/loop-square.toml"
    "planted/nothing-called.toml"
    "planted/nothing-closed.toml"
    "planted/nothing-resumed.toml"
    "planted/nothing.toml"
    "planted/pool.toml"
    "planted/ports.toml"
    "planted/processor.toml"
    "planted/queue.toml"
    "planted/retries.toml"
    "planted/stalls.toml"
    "postgres-failover-like.toml"
    "queue-worker.toml"
    "road-to-100-cells.toml"
    "router-drain.toml"
    "router-faults.toml"
    "router-http-100k.toml"
    "router-http2-faults.toml"
    "router-service-faults.toml"
    "router-tcp.toml"
    "router-tls-faults.toml"
    "router-vs.toml"
    "router-websocket-faults.toml"
    "rudder-inventories.toml"
    "rudder-policies.toml"
    "rudder-reports.toml"
    "rudder-soak.toml"
    "rudder-syslog.toml"
    "silent-cells.toml"
    "stress-10k.toml"
    "systems/drain-router.toml"
    "systems/echo.py"
    "systems/faults-router.toml"
    "systems/h2_backend.py"
    "systems/h2_client.py"
    "systems/h2_frames.py"
    "systems/http2-faults.sh"
    "systems/proxy.py"
    "systems/route_service.py"
    "systems/service-faults.sh"
    "systems/shop.py"
    "systems/silent.py"
    "systems/tls-faults.sh"
    "systems/websocket-router.toml"
    "systems/worker.py"
    "your-own-system.toml"
};

/// What a file says about the time and the programs that it needs.
const TAKES: &str = "# Takes ";

/// A ready experiment.
#[derive(Debug, Serialize)]
struct Ready {
    name: &'static str,
    about: String,
    /// How long, and what has to be installed.
    takes: &'static str,
}

/// Ready experiments written where they can be run from.
pub(crate) struct Unpacked {
    /// Gone with it.
    _folder: TempDir,
    pub(crate) file: PathBuf,
}

/// Writes the ready experiment `name` and all that it uses; `None`: there is none.
pub(crate) fn unpack(name: &Path) -> Result<Option<Unpacked>> {
    let Some(name) = name.to_str() else {
        return Ok(None);
    };
    if !experiments().any(|(known, _)| known == name) {
        return Ok(None);
    }
    let folder = TempDir::with_prefix("headroom-").context("make a folder for the experiment")?;
    write_all(&folder.path().join("experiments"))?;
    let file = folder
        .path()
        .join("experiments")
        .join(name)
        .with_added_extension("toml");
    Ok(Some(Unpacked {
        _folder: folder,
        file,
    }))
}

/// The ready experiment that a name was meant for which is none, and no path either.
pub(crate) fn meant(name: &Path) -> Option<&'static str> {
    let name = name.to_str().filter(|name| !name.contains('/'))?;
    let word = name.strip_suffix(".toml").unwrap_or(name);
    units::nearest(word, experiments().map(|(known, _)| known))
}

/// `headroom list`.
pub(crate) fn list(args: &ListArgs) -> Result<Outcome> {
    if let Some(folder) = &args.out {
        write_all(folder)?;
        eprint(format_args!("written to {}", folder.display()));
        return Ok(Outcome::Pass);
    }
    let anywhere = anywhere(catalogue());
    let all = experiments().map(|(name, text)| read(name, text, &anywhere));
    let all = all.collect::<Result<Vec<Ready>>>()?;
    if args.json {
        print(&json(&all)?)?;
        return Ok(Outcome::Pass);
    }
    let mut text = String::new();
    for ready in &all {
        text += &format!(
            "{}\n  {}\n  takes {}\n",
            ready.name, ready.about, ready.takes
        );
    }
    text += "\nheadroom run NAME runs one; headroom list --out DIR writes all of them to a folder, to be changed\n";
    print(&text)?;
    Ok(Outcome::Pass)
}

fn experiments() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES
        .iter()
        .filter_map(|(path, text)| Some((path.strip_suffix(".toml")?, *text)))
        .filter(|(name, _)| !name.contains('/'))
}

/// What this user may not do on this machine is told by `check` and `run`.
fn anywhere(catalogue: Catalogue) -> Catalogue {
    Catalogue {
        may_mount: true,
        own_network: OwnNetwork::default(),
        ..catalogue
    }
}

fn read(name: &'static str, text: &'static str, anywhere: &Catalogue) -> Result<Ready> {
    let source = Source {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    // A test checks them all, so that no user meets a mistake here.
    let plan = check(&source, &[], anywhere)
        .map_err(|mistakes| anyhow::anyhow!("{name} has {} mistakes", mistakes.len()))?;
    let takes = text.lines().find_map(|line| line.strip_prefix(TAKES));
    Ok(Ready {
        name,
        about: plan.about,
        takes: takes.unwrap_or("an unknown time").trim_end_matches('.'),
    })
}

/// Writes all files below a folder. One that is there already is not replaced.
fn write_all(folder: &Path) -> Result<()> {
    for (path, text) in FILES {
        let path = folder.join(path);
        let writing = || format!("write {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(writing)?;
        }
        let mut file = fs::File::create_new(&path).with_context(writing)?;
        std::io::Write::write_all(&mut file, text.as_bytes()).with_context(writing)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn below(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true if name.ends_with("__pycache__") => {}
                true => below(&entry.path(), &format!("{name}/"), found),
                false => drop(found.insert(name)),
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_travels_with_the_binary() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut there = BTreeSet::new();
        below(&folder, "", &mut there);
        let here: BTreeSet<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(here, there);
    }

    #[test]
    fn a_typing_mistake_is_told_with_what_was_meant() {
        let meant = |name: &str| meant(Path::new(name));
        for typed in [
            "faults-of-a-webserver",
            "Faults-of-a-web-server",
            "faults-of-a-webserver.toml",
        ] {
            assert_eq!(meant(typed), Some("faults-of-a-web-server"), "{typed}");
        }
        for other in ["my-service.toml", "experiments/faults-of-a-webserver", ""] {
            assert_eq!(meant(other), None, "{other}");
        }
    }

    #[test]
    fn every_experiment_is_listed_with_what_it_takes_to_whoever_may_do_nothing_here() {
        let nothing = Catalogue {
            may_mount: false,
            own_network: OwnNetwork(|| Err("the kernel says no".to_owned())),
            ..catalogue()
        };
        let anywhere = anywhere(nothing);
        let all: Vec<Ready> = experiments()
            .map(|(name, text)| read(name, text, &anywhere).unwrap())
            .collect();
        assert!(all.len() >= 14, "{all:?}");
        for ready in all {
            assert!(!ready.about.is_empty(), "{ready:?}");
            assert_ne!(ready.takes, "an unknown time", "{ready:?}");
        }
    }
}
