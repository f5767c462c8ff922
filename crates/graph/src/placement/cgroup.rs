//! Control groups with limits, of version 1 and 2, made by writing their files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The quota of processor time is counted over so long, in microseconds: the kernel's own
/// default. A service that has used its share stands still for the rest of it.
const PERIOD_US: u64 = 100_000;

/// The least quota that the kernel takes, in microseconds.
const LEAST_QUOTA_US: u64 = 1_000;

/// Names of groups begin so, then come the process that made them and the instance.
const PREFIX: &str = "headroom-";

/// Why a limit could not be set.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The kernel has no such controller here.
    #[error(
        "limit {what}: this machine has no control group with the controller \"{controller}\"; leave out the limits, or enable it"
    )]
    NoController {
        /// What should be limited.
        what: &'static str,
        /// What is missing.
        controller: &'static str,
    },
    /// The group could not be made or written.
    #[error("{doing} {}: {found}; {}", path.display(), advice(found))]
    System {
        /// What was being done.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the kernel says.
        found: io::Error,
    },
}

fn advice(found: &io::Error) -> &'static str {
    match found.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "run as root, or in a group of your own (systemd-run --user --scope -p Delegate=yes), or leave out the limits"
        }
        _ => "leave out the limits, or say what is wrong with the groups of this machine",
    }
}

/// The groups of a process, below the one that it is in itself.
#[derive(Debug)]
pub struct Groups {
    cpu: Option<Controller>,
    memory: Option<Controller>,
    owner: u32,
}

/// Where groups of a controller are made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Controller {
    folder: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A group with limits. It is removed when this is dropped, if no process is in it then.
#[derive(Debug)]
pub struct Group {
    folders: Vec<PathBuf>,
}

impl Groups {
    /// Those that process `owner` shall make. `root` is `/` but for tests. Groups that were
    /// left behind by processes that are gone are removed.
    pub fn open(root: &Path, owner: u32) -> Self {
        let groups = Self::seen(root, owner);
        // One whose processes still end is removed at the next start.
        groups.remove(|owner| !super::is_alive(root, owner));
        groups
    }

    fn seen(root: &Path, owner: u32) -> Self {
        let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        Self {
            cpu: controller(root, &text, "cpu"),
            memory: controller(root, &text, "memory"),
            owner,
        }
    }

    /// Removes the groups of some processes. Whether none of them is left.
    fn remove(&self, of: impl Fn(u32) -> bool) -> bool {
        let controllers = [&self.cpu, &self.memory].into_iter().flatten();
        let entries = controllers
            .flat_map(Controller::folders)
            .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let mut none_left = true;
        for entry in entries {
            let owner = entry.file_name().to_str().and_then(owner);
            if owner.is_some_and(&of) {
                // Version 2 has one folder for both controllers.
                none_left &= fs::remove_dir(entry.path()).is_ok() || !entry.path().exists();
            }
        }
        none_left
    }

    /// A group for an instance: at most so many processors' worth of time, and so many
    /// bytes of memory.
    ///
    /// # Errors
    /// When a controller is missing or the kernel refuses; nothing is left behind.
    pub fn make(
        &self,
        instance: &str,
        cpus: Option<f64>,
        memory: Option<u64>,
    ) -> Result<Group, GroupError> {
        let name = format!("{PREFIX}{}-{instance}", self.owner);
        let mut group = Group {
            folders: Vec::new(),
        };
        if let Some(cpus) = cpus {
            let controller = self.cpu.as_ref().ok_or(GroupError::NoController {
                what: "processor time",
                controller: "cpu",
            })?;
            let folder = group.folder(controller, &name, "cpu")?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "`as` saturates, and a limit is positive"
            )]
            let quota = ((cpus * PERIOD_US as f64) as u64).max(LEAST_QUOTA_US);
            match controller.version {
                Version::One => {
                    write(&folder.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                    write(&folder.join("cpu.cfs_quota_us"), &quota.to_string())?;
                }
                Version::Two => write(&folder.join("cpu.max"), &format!("{quota} {PERIOD_US}"))?,
            }
        }
        if let Some(bytes) = memory {
            let controller = self.memory.as_ref().ok_or(GroupError::NoController {
                what: "memory",
                controller: "memory",
            })?;
            let folder = group.folder(controller, &name, "memory")?;
            let file = match controller.version {
                Version::One => "memory.limit_in_bytes",
                Version::Two => "memory.max",
            };
            write(&folder.join(file), &bytes.to_string())?;
        }
        Ok(group)
    }
}

impl Group {
    /// The folders of the group, one for each hierarchy: see [`join`].
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The group's folder of a controller, made if it is not there.
    fn folder(
        &mut self,
        controller: &Controller,
        name: &str,
        which: &'static str,
    ) -> Result<PathBuf, GroupError> {
        let parent = controller.parent(which)?;
        let folder = parent.join(name);
        // Version 2 has one folder for both controllers.
        if !self.folders.contains(&folder) {
            fs::create_dir(&folder).map_err(|found| GroupError::System {
                doing: "make the control group",
                path: folder.clone(),
                found,
            })?;
            self.folders.push(folder.clone());
        }
        Ok(folder)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            // One that still has processes is removed at the next start.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Puts the calling process into a group, by its folder. To be done before it takes memory.
///
/// # Errors
/// When the kernel refuses.
pub fn join(folder: &Path) -> Result<(), GroupError> {
    // 0: whoever writes.
    write(&folder.join("cgroup.procs"), "0")
}

impl Controller {
    /// Folders in which groups may be made, the best first. In version 2 a group with
    /// processes cannot have groups with limits below it, hence the one above it.
    fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.clone()];
        if self.version == Version::Two {
            folders.extend(self.folder.parent().map(Path::to_owned));
        }
        folders
    }

    /// The folder in which groups with this controller can be made.
    fn parent(&self, controller: &'static str) -> Result<PathBuf, GroupError> {
        if self.version == Version::One {
            return Ok(self.folder.clone());
        }
        let mut last = None;
        for folder in self.folders() {
            let file = folder.join("cgroup.subtree_control");
            let enabled = fs::read_to_string(&file).unwrap_or_default();
            let enabled = enabled
                .split_ascii_whitespace()
                .any(|one| one == controller);
            let done = match enabled {
                true => Ok(()),
                false => write(&file, &format!("+{controller}")),
            };
            match done {
                Ok(()) => return Ok(folder),
                // What its own group says is worth more than what the one above says.
                Err(error) => last = last.or(Some(error)),
            }
        }
        Err(last.unwrap_or(GroupError::NoController {
            what: "a service",
            controller,
        }))
    }
}

/// Where groups of a controller are made, by `/proc/self/cgroup`.
fn controller(root: &Path, groups: &str, name: &str) -> Option<Controller> {
    let lines = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let mount = root.join("sys/fs/cgroup");
    let one = lines
        .clone()
        .find(|(controllers, _)| controllers.split(',').any(|one| one == name));
    if let Some((controllers, path)) = one {
        let mounts = [mount.join(controllers), mount.join(name)];
        let top = mounts.into_iter().find(|top| top.is_dir())?;
        return Some(Controller {
            folder: seen(&top, path),
            version: Version::One,
        });
    }
    let (_, path) = lines
        .clone()
        .find(|(controllers, _)| controllers.is_empty())?;
    let tops = [mount.clone(), mount.join("unified")];
    let top = tops.into_iter().find(|top| {
        let known = fs::read_to_string(top.join("cgroup.controllers")).unwrap_or_default();
        known.split_ascii_whitespace().any(|one| one == name)
    })?;
    Some(Controller {
        folder: seen(&top, path),
        version: Version::Two,
    })
}

/// The folder of a group; what a container does not see of it is left out.
fn seen(top: &Path, path: &str) -> PathBuf {
    let path = Path::new(path.trim_start_matches('/'));
    let outside = path.components().any(|part| part.as_os_str() == "..");
    let folder = top.join(path);
    match !outside && folder.is_dir() {
        true => folder,
        false => top.to_owned(),
    }
}

/// Removes the groups of a process. Whether none is left.
pub(super) fn remove(root: &Path, owner: u32) -> bool {
    Groups::seen(root, owner).remove(|other| other == owner)
}

/// The process that made a group.
fn owner(name: &str) -> Option<u32> {
    let (owner, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    owner.parse().ok()
}

fn write(path: &Path, text: &str) -> Result<(), GroupError> {
    fs::write(path, text).map_err(|found| GroupError::System {
        doing: "write",
        path: path.to_owned(),
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with these groups. Files of a real one are there from the beginning.
    fn machine(groups: &str, folders: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("proc/self")).unwrap();
        fs::write(at("proc/self/cgroup"), groups).unwrap();
        for folder in folders {
            fs::create_dir_all(at("sys/fs/cgroup").join(folder)).unwrap();
        }
        root
    }

    fn text(root: &tempfile::TempDir, path: &str) -> String {
        fs::read_to_string(root.path().join("sys/fs/cgroup").join(path)).unwrap_or_default()
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        let root = machine(
            "4:memory:/box\n1:cpu,cpuacct:/\n0::/\n",
            &["cpu,cpuacct", "memory/box"],
        );
        let groups = Groups::open(root.path(), 7);
        let group = groups.make("leaf-0", Some(0.5), Some(1 << 20)).unwrap();
        assert_eq!(group.folders().len(), 2);
        let of = |file: &str| text(&root, file);
        assert_eq!(
            of("cpu,cpuacct/headroom-7-leaf-0/cpu.cfs_quota_us"),
            "50000"
        );
        assert_eq!(
            of("cpu,cpuacct/headroom-7-leaf-0/cpu.cfs_period_us"),
            "100000"
        );
        let memory = "memory/box/headroom-7-leaf-0/memory.limit_in_bytes";
        assert_eq!(of(memory), "1048576");
    }

    #[test]
    fn version_2_has_one_folder() {
        let root = machine("0::/a/b\n", &["a/b"]);
        let top = root.path().join("sys/fs/cgroup");
        fs::write(top.join("cgroup.controllers"), "cpuset cpu memory\n").unwrap();
        let groups = Groups::open(root.path(), 7);
        let group = groups.make("leaf-0", Some(2.0), Some(4096)).unwrap();
        assert_eq!(group.folders(), [top.join("a/b/headroom-7-leaf-0")]);
        assert_eq!(
            text(&root, "a/b/headroom-7-leaf-0/cpu.max"),
            "200000 100000"
        );
        assert_eq!(text(&root, "a/b/headroom-7-leaf-0/memory.max"), "4096");
        assert_eq!(text(&root, "a/b/cgroup.subtree_control"), "+memory");
    }

    #[test]
    fn a_missing_controller_is_told() {
        let root = machine("0::/\n", &[""]);
        let groups = Groups::open(root.path(), 7);
        let error = groups.make("leaf-0", Some(0.5), None).unwrap_err();
        assert!(error.to_string().contains("\"cpu\""), "{error}");
        assert!(
            groups
                .make("leaf-0", None, None)
                .unwrap()
                .folders()
                .is_empty()
        );
    }

    #[test]
    fn groups_of_the_dead_are_removed() {
        let root = machine(
            "1:cpu:/\n",
            &["cpu/headroom-8-x-0", "cpu/headroom-9-x-0", "cpu/other-8-x"],
        );
        fs::create_dir_all(root.path().join("proc/9")).unwrap();
        Groups::open(root.path(), 7);
        let left = fs::read_dir(root.path().join("sys/fs/cgroup/cpu")).unwrap();
        let mut left: Vec<_> = left.map(|one| one.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["headroom-9-x-0", "other-8-x"]);
        assert!(remove(root.path(), 9));
        assert!(
            !root
                .path()
                .join("sys/fs/cgroup/cpu/headroom-9-x-0")
                .exists()
        );
    }
}
