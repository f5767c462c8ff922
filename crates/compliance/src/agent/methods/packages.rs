//! Methods on packages.

use super::{Change, Found, Planned, Problem, name_of};
use crate::agent::Invocation;
use crate::agent::system::{Act, Installed, Manager, Package, System};

/// What is wanted of a package.
enum DesiredPackage<'c> {
    Absent(Option<&'c str>),
    Any,
    Latest,
    Version(&'c str),
}

pub(super) fn plan<S: System>(system: &S, call: &Invocation<'_>) -> Option<Planned> {
    let present = match call.method {
        "package_present" => Ok(true),
        "package_absent" => Ok(false),
        "package_state" => match call.param("state") {
            None | Some("present") => Ok(true),
            Some("absent") => Ok(false),
            Some(other) => Err(Problem::new(format!(
                "the state is {other:?}; expected present or absent"
            ))),
        },
        _ => return None,
    };
    Some(present.and_then(|present| planned(system, call, present)))
}

fn planned<S: System>(system: &S, call: &Invocation<'_>, present: bool) -> Planned {
    if call.key().starts_with('/') {
        return Err(Problem::new(
            "this agent installs no packages from files; put it into a repository and name it",
        ));
    }
    let name = name_of(call, "package", "+._-")?;
    let provider = call.param("provider").unwrap_or_default();
    let architecture = call.param("architecture");
    let package = Package {
        name: name.to_owned(),
        architecture: architecture
            .filter(|one| *one != "default")
            .map(|one| plain("architecture", one))
            .transpose()?
            .map(str::to_owned),
        manager: Manager::of_provider(provider).map_err(Problem::new)?,
    };
    let version = call.param("version").filter(|version| *version != "any");
    let version = version.map(|one| plain("version", one)).transpose()?;
    let desired = match (present, version) {
        (false, version) => DesiredPackage::Absent(version),
        (true, None) => DesiredPackage::Any,
        (true, Some("latest")) => DesiredPackage::Latest,
        (true, Some(version)) => DesiredPackage::Version(version),
    };
    let found = system.packages(&package)?;
    let newer = match desired {
        DesiredPackage::Latest if !found.is_empty() => system.update(&package)?,
        _ => None,
    };
    Ok(decide(package, &desired, &found, newer.as_deref()))
}

/// A text that cannot be taken for an option or for several words.
fn plain<'t>(what: &str, text: &'t str) -> Result<&'t str, Problem> {
    let good = |one: char| one.is_ascii_alphanumeric() || ".+-~:^_".contains(one);
    if text.chars().all(good) && !text.starts_with('-') {
        return Ok(text);
    }
    let message = format!("{text:?} is no {what}; expected letters, digits and .+-~:^_");
    Err(Problem::new(message))
}

fn decide(
    package: Package,
    desired: &DesiredPackage<'_>,
    found: &[Installed],
    newer: Option<&str>,
) -> Found {
    let has = |version: &str| found.iter().any(|one| is_version(&one.version, version));
    let versions = || {
        let versions: Vec<_> = found.iter().map(|one| one.version.as_str()).collect();
        versions.join(", ")
    };
    let install = |version: Option<&str>| Act::Install(package.clone(), version.map(str::to_owned));
    let (why, act) = match *desired {
        DesiredPackage::Absent(None) if found.is_empty() => return Found::Right,
        DesiredPackage::Absent(Some(version)) if !has(version) => return Found::Right,
        DesiredPackage::Any if !found.is_empty() => return Found::Right,
        DesiredPackage::Version(version) if has(version) => return Found::Right,
        DesiredPackage::Absent(_) => (
            format!("version {} is installed", versions()),
            Act::Uninstall(package),
        ),
        DesiredPackage::Any | DesiredPackage::Latest if found.is_empty() => {
            ("it is not installed".to_owned(), install(None))
        }
        DesiredPackage::Any | DesiredPackage::Latest => match newer {
            None => return Found::Right,
            Some(newer) => (
                format!("version {} is installed, {newer} is newer", versions()),
                install(None),
            ),
        },
        DesiredPackage::Version(version) if found.is_empty() => (
            format!("it is not installed; expected version {version}"),
            install(Some(version)),
        ),
        DesiredPackage::Version(version) => (
            format!("version {} is installed; expected {version}", versions()),
            install(Some(version)),
        ),
    };
    Found::Wrong(why, vec![Change::Act(act)])
}

/// Is a version meant by this text? rpm's `1:2.3-4` may be named without what is before the colon
/// and what is behind the last dash.
fn is_version(installed: &str, wanted: &str) -> bool {
    let without_epoch = installed
        .split_once(':')
        .map_or(installed, |(_, rest)| rest);
    let of = |version: &str| {
        let short = version.rsplit_once('-').map_or(version, |(short, _)| short);
        wanted == version || wanted == short
    };
    of(installed) || of(without_epoch)
}

#[cfg(test)]
mod tests {
    use super::is_version;

    #[test]
    fn versions_may_be_shortened() {
        for (installed, wanted, is) in [
            ("1.2-3", "1.2-3", true),
            ("1.2-3", "1.2", true),
            ("1:1.2-3.el9", "1.2-3.el9", true),
            ("1:1.2-3.el9", "1.2", true),
            ("1:1.2-3", "1:1.2", true),
            ("1.2", "1.2", true),
            ("1.20-3", "1.2", false),
            ("1.2-3", "1.2-4", false),
            ("2:1.2", "1:1.2", false),
        ] {
            assert_eq!(is_version(installed, wanted), is, "{installed} {wanted}");
        }
    }
}
