//! What package managers are asked, and what their answers mean.

use crate::agent::system::{Installed, Manager, Package};

/// The arguments of one call, the program first.
pub(super) type Args = Vec<String>;

/// Settings of apt-get without which it would ask, or give up at another's lock.
const APT: [&str; 9] = [
    "apt-get",
    "--yes",
    "--quiet",
    "--option",
    "Dpkg::Options::=--force-confdef",
    "--option",
    "Dpkg::Options::=--force-confold",
    "--option",
    "DPkg::Lock::Timeout=60",
];
const ZYPPER: [&str; 3] = ["zypper", "--non-interactive", "--quiet"];

impl Manager {
    /// All of them, in the order in which a machine is asked for them.
    pub(super) const ALL: [Self; 4] = [Self::Apt, Self::Dnf, Self::Yum, Self::Zypper];

    /// Its program.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Apt => "apt-get",
            Self::Dnf => "dnf",
            Self::Yum => "yum",
            Self::Zypper => "zypper",
        }
    }

    /// By Rudder's word for a provider; none for what the machine has.
    pub(in crate::agent) fn of_provider(word: &str) -> Result<Option<Self>, String> {
        match word {
            "" | "default" => Ok(None),
            "apt" => Ok(Some(Self::Apt)),
            "dnf" => Ok(Some(Self::Dnf)),
            // Where yum is another name of dnf, it is there as well.
            "yum" => Ok(Some(Self::Yum)),
            "zypper" => Ok(Some(Self::Zypper)),
            other => Err(format!(
                "this agent has no provider {other:?}; expected default, apt, dnf, yum or zypper"
            )),
        }
    }
}

fn args(fixed: &[&str], more: &[&str]) -> Args {
    let all = fixed.iter().chain(more);
    all.map(|one| (*one).to_owned()).collect()
}

/// Asks which versions are installed.
pub(super) fn installed(manager: Manager, name: &str) -> Args {
    match manager {
        Manager::Apt => args(
            &[
                "dpkg-query",
                "--show",
                "--showformat=${Package}\\t${Architecture}\\t${Version}\\t${db:Status-Status}\\n",
                "--",
            ],
            &[name],
        ),
        Manager::Dnf | Manager::Yum | Manager::Zypper => args(
            &[
                "rpm",
                "--query",
                "--queryformat",
                "%{NAME}\\t%{ARCH}\\t%{EVR}\\tinstalled\\n",
                "--",
            ],
            &[name],
        ),
    }
}

/// The installed packages of this name, and of this architecture if one is asked for. Both
/// package managers also list what they only know of.
pub(super) fn of_list(list: &str, package: &Package) -> Vec<Installed> {
    let fields = list
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let found = fields.filter_map(|fields| match fields[..] {
        [name, architecture, version, "installed"] if name == package.name => Some(Installed {
            version: version.to_owned(),
            architecture: architecture.to_owned(),
        }),
        _ => None,
    });
    let fits = |one: &Installed| {
        let wanted = package.architecture.as_deref();
        wanted.is_none_or(|wanted| {
            one.architecture == wanted || matches!(&*one.architecture, "all" | "noarch")
        })
    };
    found.filter(fits).collect()
}

/// Installs a package: of this version, or the newest that is known.
pub(super) fn install(manager: Manager, package: &Package, version: Option<&str>) -> Args {
    let named = |join: &str, before: bool| {
        let (name, of) = (&package.name, &package.architecture);
        let version = version.map(|version| format!("{join}{version}"));
        let version = version.unwrap_or_default();
        match (manager, of) {
            (_, None) => format!("{name}{version}"),
            (Manager::Apt, Some(of)) => format!("{name}:{of}{version}"),
            (_, Some(of)) if before => format!("{name}.{of}{version}"),
            (_, Some(of)) => format!("{name}{version}.{of}"),
        }
    };
    match manager {
        Manager::Apt => {
            let older = version.map_or(&[][..], |_| &["--allow-downgrades"]);
            let fixed = [&APT[..], older, &["install", "--"]].concat();
            args(&fixed, &[&named("=", true)])
        }
        Manager::Dnf | Manager::Yum => args(
            &[manager.program(), "--assumeyes", "--quiet", "install"],
            &[&named("-", false)],
        ),
        Manager::Zypper => {
            let fixed = [
                "install",
                "--auto-agree-with-licenses",
                "--oldpackage",
                "--",
            ];
            args(&[&ZYPPER[..], &fixed].concat(), &[&named("=", true)])
        }
    }
}

/// Brings an installed package to the newest version that is known.
pub(super) fn upgrade(manager: Manager, package: &Package) -> Args {
    match manager {
        Manager::Apt => install(manager, package, None),
        Manager::Dnf | Manager::Yum => args(
            &[manager.program(), "--assumeyes", "--quiet", "upgrade"],
            &[&full_name(manager, package)],
        ),
        Manager::Zypper => args(
            &[&ZYPPER[..], &["update", "--auto-agree-with-licenses", "--"]].concat(),
            &[&full_name(manager, package)],
        ),
    }
}

/// Removes a package.
pub(super) fn remove(manager: Manager, package: &Package) -> Args {
    let name = full_name(manager, package);
    match manager {
        Manager::Apt => args(&[&APT[..], &["remove", "--"]].concat(), &[&name]),
        Manager::Dnf | Manager::Yum => args(
            &[manager.program(), "--assumeyes", "--quiet", "remove"],
            &[&name],
        ),
        Manager::Zypper => args(&[&ZYPPER[..], &["remove", "--"]].concat(), &[&name]),
    }
}

fn full_name(manager: Manager, package: &Package) -> String {
    let name = &package.name;
    match (&package.architecture, manager) {
        (None, _) => name.clone(),
        (Some(of), Manager::Apt) => format!("{name}:{of}"),
        (Some(of), _) => format!("{name}.{of}"),
    }
}

/// Has apt-get learn what there is: it alone does not do so by itself.
pub(super) fn learn(manager: Manager) -> Option<Args> {
    match manager {
        Manager::Apt => Some(args(&APT, &["update"])),
        Manager::Dnf | Manager::Yum | Manager::Zypper => None,
    }
}

/// Asks for a version that is newer than what is installed.
pub(super) fn updates(manager: Manager, package: &Package) -> Args {
    let name = full_name(manager, package);
    match manager {
        Manager::Apt => args(&["apt-cache", "policy", "--"], &[&name]),
        Manager::Dnf | Manager::Yum => {
            args(&[manager.program(), "--quiet", "check-update"], &[&name])
        }
        Manager::Zypper => args(&ZYPPER, &["list-updates", "--type", "package"]),
    }
}

/// Does this exit code mean that there was an answer?
pub(super) fn is_answer(manager: Manager, code: Option<i32>) -> bool {
    match manager {
        Manager::Apt | Manager::Zypper => code == Some(0),
        // 100: there is something newer.
        Manager::Dnf | Manager::Yum => matches!(code, Some(0 | 100)),
    }
}

/// The newer version that such an answer names.
pub(super) fn newer(manager: Manager, answer: &str, package: &Package) -> Option<String> {
    let name = package.name.as_str();
    match manager {
        Manager::Apt => {
            let field = |key: &str| {
                let mut lines = answer.lines().map(str::trim);
                lines.find_map(|line| line.strip_prefix(key).map(str::trim))
            };
            let candidate = field("Candidate:").filter(|version| *version != "(none)")?;
            (field("Installed:") != Some(candidate)).then(|| candidate.to_owned())
        }
        Manager::Dnf | Manager::Yum => answer.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let (of, version) = (words.next()?, words.next()?);
            let (found, _) = of.rsplit_once('.')?;
            (found == name).then(|| version.to_owned())
        }),
        Manager::Zypper => answer.lines().find_map(|line| {
            let columns: Vec<_> = line.split('|').map(str::trim).collect();
            match columns[..] {
                [_, _, found, _, version, ..] if found == name => Some(version.to_owned()),
                _ => None,
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(architecture: Option<&str>) -> Package {
        Package {
            name: "nginx".into(),
            architecture: architecture.map(str::to_owned),
            manager: None,
        }
    }

    #[test]
    fn lists_tell_what_is_installed() {
        let list = "nginx\tamd64\t1.2-3\tinstalled\nnginx\ti386\t1.1-1\tinstalled\n\
                    nginx\tarm64\t1.0\tconfig-files\nnginx-doc\tall\t9\tinstalled\n\
                    package nginx is not installed\n";
        let versions = |architecture| -> Vec<String> {
            let found = of_list(list, &package(architecture));
            found.into_iter().map(|one| one.version).collect()
        };
        assert_eq!(versions(None), ["1.2-3", "1.1-1"]);
        assert_eq!(versions(Some("i386")), ["1.1-1"]);
        assert_eq!(versions(Some("arm64")), [""; 0]);
    }

    #[test]
    fn each_manager_is_asked_in_its_own_words() {
        use Manager::{Apt, Dnf, Yum, Zypper};
        let last = |args: Args| args.last().cloned().unwrap_or_default();
        for (manager, plain, whole) in [
            (Apt, "nginx=1.2", "nginx:i386=1.2"),
            (Dnf, "nginx-1.2", "nginx-1.2.i386"),
            (Yum, "nginx-1.2", "nginx-1.2.i386"),
            (Zypper, "nginx=1.2", "nginx.i386=1.2"),
        ] {
            assert_eq!(last(install(manager, &package(None), Some("1.2"))), plain);
            let of = package(Some("i386"));
            assert_eq!(last(install(manager, &of, Some("1.2"))), whole);
            assert_eq!(last(install(manager, &package(None), None)), "nginx");
            let removed = remove(manager, &package(None));
            assert_eq!(removed[0], manager.program());
            assert!(removed.contains(&"remove".to_owned()), "{removed:?}");
        }
        assert!(
            !install(Apt, &package(None), None).contains(&"--allow-downgrades".to_owned()),
            "the newest version may be no older one"
        );
    }

    #[test]
    fn answers_name_newer_versions() {
        use Manager::{Apt, Dnf, Zypper};
        let apt = "nginx:\n  Installed: 1.1\n  Candidate: 1.2\n  Version table:\n";
        let dnf = "\nnginx.x86_64    1:1.2-3.el9    updates\nnginx-core.x86_64 7 x\n";
        let zypper = "S | Repository | Name  | Current | Available | Arch\n\
                      --+------------+-------+---------+-----------+-------\n\
                      v | main       | nginx | 1.1     | 1.2       | x86_64\n";
        for (manager, answer, version) in [
            (Apt, apt, Some("1.2")),
            (Apt, "nginx:\n  Installed: 1.2\n  Candidate: 1.2\n", None),
            (
                Apt,
                "nginx:\n  Installed: (none)\n  Candidate: (none)\n",
                None,
            ),
            (Dnf, dnf, Some("1:1.2-3.el9")),
            (Dnf, "", None),
            (Zypper, zypper, Some("1.2")),
            (Zypper, "No updates found.\n", None),
        ] {
            let found = newer(manager, answer, &package(None));
            assert_eq!(found.as_deref(), version, "{manager:?} {answer:?}");
        }
    }
}
