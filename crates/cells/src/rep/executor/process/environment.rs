//! The environment of a container's processes.

use std::collections::BTreeMap;
use std::path::Path;

use diego::models::EnvironmentVariable;
use serde_json::json;

use super::super::{Definition, Job};
use super::mounted;

/// Variables of a process: the container's, those that the cell adds to them, its own, and those of the
/// network, each before those that are named earlier.
pub(super) fn of(
    job: &Job,
    folder: &Path,
    cell: &[EnvironmentVariable],
    own: &[EnvironmentVariable],
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
    let home = folder.display().to_string();
    set(
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
    );
    set("HOME", home.clone());
    set("TMPDIR", home);
    if let Definition::Lrp(_, index) = job.definition {
        set("INSTANCE_GUID", job.guid.clone());
        set("CF_INSTANCE_GUID", job.guid.clone());
        set("INSTANCE_INDEX", index.to_string());
        set("CF_INSTANCE_INDEX", index.to_string());
    }
    for variable in job.env().iter().chain(cell).chain(own) {
        let value = mounted::value_behind(job, folder, &variable.value);
        // What a program is given is one text, whose name ends at its first `=`.
        let text = format!("{}={value}", variable.name);
        if let Some((name, value)) = text.split_once('=') {
            set(name, value.to_owned());
        }
    }
    // What the network is nobody can say otherwise.
    set("CF_INSTANCE_IP", job.address.clone());
    set("CF_INSTANCE_INTERNAL_IP", job.address.clone());
    let ports: Vec<_> = job
        .ports
        .iter()
        .map(|port| json!({"external": port.host_port, "internal": port.container_port}))
        .collect();
    set("CF_INSTANCE_PORTS", json!(ports).to_string());
    let port = job.ports.first().map(|port| port.host_port.to_string());
    let address = port.as_ref().map(|port| format!("{}:{port}", job.address));
    set("CF_INSTANCE_PORT", port.unwrap_or_default());
    set("CF_INSTANCE_ADDR", address.unwrap_or_default());
    // Without port translation the process must listen on the host port itself: of the
    // container's port that it would listen on, which is its first one unless it is told.
    let wanted: Option<u32> = env.get("PORT").and_then(|port| port.parse().ok());
    let behind = match wanted {
        None if env.contains_key("PORT") => None,
        None => job.ports.first(),
        Some(wanted) => job.ports.iter().find(|port| port.container_port == wanted),
    };
    if let Some(port) = behind {
        env.insert("PORT".into(), port.host_port.to_string());
    }
    env
}

/// The first name of a variable that no process can be given.
pub(super) fn invalid_variable<'a>(
    job: &'a Job,
    own: &'a [EnvironmentVariable],
) -> Option<&'a str> {
    let mut all = job.env().iter().chain(own);
    let unfit = all.find(|one| {
        let texts = [&one.name, &one.value];
        matches!(one.name.chars().next(), None | Some('='))
            || texts.iter().any(|it| it.contains('\0'))
    });
    unfit.map(|one| one.name.as_str())
}

/// Arguments of a check, with the host ports behind the container's: without port translation
/// nothing listens on the others. A port stands alone, or after `=` or `:`.
pub(super) fn ports_behind(args: &[String], job: &Job) -> Vec<String> {
    let behind = |arg: &String| {
        let from = arg.rfind(['=', ':']).map_or(0, |at| at + 1);
        let port = arg[from..].parse().ok();
        match port.map(|port| (port, job.host_port(port))) {
            Some((port, host)) if port != host => format!("{}{host}", &arg[..from]),
            _ => arg.clone(),
        }
    };
    args.iter().map(behind).collect()
}
