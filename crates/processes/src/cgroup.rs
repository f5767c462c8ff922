//! Control groups with limits, of version 1 and 2, made by writing their files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;

/// The quota of processor time is counted over so long, in microseconds: the kernel's own
/// default. Who has used its share stands still for the rest of it.
const PERIOD_US: u64 = 100_000;

/// The least quota that the kernel takes, in microseconds.
const LEAST_QUOTA_US: u64 = 1_000;

/// Names of groups begin so, then come the process that made them and the group's own.
const PREFIX: &str = "headroom-";

/// Tries to remove a group whose last process is still ending, and the time between two.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

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

/// The groups that a process makes, below the one that it is in itself.
#[derive(Debug)]
pub struct Groups {
    cpu: Option<Hierarchy>,
    memory: Option<Hierarchy>,
    pids: Option<Hierarchy>,
    owner: u32,
}

/// What a group may have at most; `None`: as much as there is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounds {
    /// Processors' worth of time.
    pub cpus: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes, and threads of them.
    pub tasks: Option<u64>,
}

/// A group with limits. It is removed when this is dropped, if no process is in it then.
#[derive(Debug, Default)]
pub struct Group {
    folders: Vec<PathBuf>,
}

/// What is written to limit one thing.
struct Limit<'a> {
    hierarchy: &'a Hierarchy,
    controller: &'static str,
    files: Vec<(&'static str, String)>,
}

impl Groups {
    /// Those that process `owner` shall make. `root` is `/` but for tests. Groups that were
    /// left behind by processes that are gone are removed.
    pub fn open(root: &Path, owner: u32) -> Self {
        let groups = Self::seen(root, owner);
        // One whose processes still end is removed at the next start.
        groups.remove(|owner| !crate::is_alive(root, owner));
        groups
    }

    fn seen(root: &Path, owner: u32) -> Self {
        Self {
            cpu: Hierarchy::of(root, "cpu"),
            memory: Hierarchy::of(root, "memory"),
            pids: Hierarchy::of(root, "pids"),
            owner,
        }
    }

    /// Removes the groups of some processes. Whether none of them is left.
    fn remove(&self, of: impl Fn(u32) -> bool) -> bool {
        let hierarchies = [&self.cpu, &self.memory, &self.pids].into_iter().flatten();
        let entries = hierarchies
            .flat_map(Hierarchy::folders)
            .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let mut none_left = true;
        for entry in entries {
            let owner = entry.file_name().to_str().and_then(owner);
            if owner.is_some_and(&of) {
                // Version 2 has one folder for all controllers.
                none_left &= fs::remove_dir(entry.path()).is_ok() || !entry.path().exists();
            }
        }
        none_left
    }

    /// A group for at most so many processors' worth of time, and so many bytes of memory.
    /// It is made below our own, or below the nearest one above it where we may.
    ///
    /// # Errors
    /// When a controller is missing or the kernel refuses; nothing is left behind.
    pub fn make(
        &self,
        name: &str,
        cpus: Option<f64>,
        memory: Option<u64>,
    ) -> Result<Group, GroupError> {
        let bounds = Bounds {
            cpus,
            memory,
            tasks: None,
        };
        self.bound(name, bounds)
    }

    /// A group with these bounds: see [`Groups::make`].
    ///
    /// # Errors
    /// See [`Groups::make`].
    pub fn bound(&self, name: &str, bounds: Bounds) -> Result<Group, GroupError> {
        let mut limits = Vec::new();
        if let Some(cpus) = bounds.cpus {
            limits.push(self.processors(cpus)?);
        }
        if let Some(bytes) = bounds.memory {
            limits.push(self.memory(bytes)?);
        }
        if let Some(tasks) = bounds.tasks {
            limits.push(self.tasks(tasks)?);
        }
        let name = format!("{PREFIX}{}-{name}", self.owner);
        let mut group = Group::default();
        // Version 2 has one folder for all controllers.
        for limits in limits.chunk_by(|one, other| one.hierarchy == other.hierarchy) {
            group.folders.push(make(limits, &name)?);
        }
        Ok(group)
    }

    fn tasks(&self, most: u64) -> Result<Limit<'_>, GroupError> {
        let hierarchy = self.pids.as_ref().ok_or(GroupError::NoController {
            what: "processes",
            controller: "pids",
        })?;
        Ok(Limit {
            hierarchy,
            controller: "pids",
            files: vec![("pids.max", most.to_string())],
        })
    }

    fn processors(&self, cpus: f64) -> Result<Limit<'_>, GroupError> {
        let hierarchy = self.cpu.as_ref().ok_or(GroupError::NoController {
            what: "processor time",
            controller: "cpu",
        })?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates, and a limit is positive"
        )]
        let quota = ((cpus * PERIOD_US as f64) as u64).max(LEAST_QUOTA_US);
        Ok(Limit {
            hierarchy,
            controller: "cpu",
            files: match hierarchy.unified {
                true => vec![("cpu.max", format!("{quota} {PERIOD_US}"))],
                false => vec![
                    ("cpu.cfs_period_us", PERIOD_US.to_string()),
                    ("cpu.cfs_quota_us", quota.to_string()),
                ],
            },
        })
    }

    fn memory(&self, bytes: u64) -> Result<Limit<'_>, GroupError> {
        let hierarchy = self.memory.as_ref().ok_or(GroupError::NoController {
            what: "memory",
            controller: "memory",
        })?;
        let file = match hierarchy.unified {
            true => "memory.max",
            false => "memory.limit_in_bytes",
        };
        Ok(Limit {
            hierarchy,
            controller: "memory",
            files: vec![(file, bytes.to_string())],
        })
    }
}

/// Makes the folder with limits of one hierarchy. What the nearest group says is worth more
/// than what those above it say.
fn make(limits: &[Limit<'_>], name: &str) -> Result<PathBuf, GroupError> {
    let mut error = None;
    let hierarchy = limits.first().map(|limit| limit.hierarchy);
    for parent in hierarchy.into_iter().flat_map(Hierarchy::folders) {
        match make_in(&parent, limits, name) {
            Ok(folder) => return Ok(folder),
            Err(found) => error = error.or(Some(found)),
        }
    }
    Err(error.unwrap_or(GroupError::NoController {
        what: "a process",
        controller: "cpu, memory",
    }))
}

fn make_in(parent: &Path, limits: &[Limit<'_>], name: &str) -> Result<PathBuf, GroupError> {
    for limit in limits.iter().filter(|limit| limit.hierarchy.unified) {
        let control = parent.join("cgroup.subtree_control");
        let enabled = fs::read_to_string(&control).unwrap_or_default();
        let mut enabled = enabled.split_ascii_whitespace();
        if !enabled.any(|one| one == limit.controller) {
            // In version 2 a group with processes cannot have groups with limits below it.
            write(&control, &format!("+{}", limit.controller))?;
        }
    }
    let folder = parent.join(name);
    fs::create_dir(&folder).map_err(|found| GroupError::System {
        doing: "make the control group",
        path: folder.clone(),
        found,
    })?;
    let mut files = limits.iter().flat_map(|limit| &limit.files);
    if let Err(error) = files.try_for_each(|(file, text)| write(&folder.join(file), text)) {
        let _ = fs::remove_dir(&folder);
        return Err(error);
    }
    // Without it processes would swap instead of meeting their limit. Kernels without swap
    // accounting do not have the file.
    let swap = folder.join("memory.swap.max");
    if limits.iter().any(|limit| limit.controller == "memory") && swap.exists() {
        let _ = fs::write(swap, "0");
    }
    Ok(folder)
}

impl Group {
    /// The folders of the group, one for each hierarchy: see [`crate::Program::groups`].
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Removes it once its processes have ended, for which it waits two seconds.
    ///
    /// # Errors
    /// When one has not, or the kernel refuses.
    pub fn remove(mut self) -> io::Result<()> {
        let mut folders = std::mem::take(&mut self.folders).into_iter();
        folders.try_for_each(|folder| {
            for _ in 0..TRIES {
                match fs::remove_dir(&folder) {
                    Err(error) if error.raw_os_error() == Some(Errno::EBUSY as i32) => {
                        std::thread::sleep(PAUSE);
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                    other => return other,
                }
            }
            fs::remove_dir(&folder)
        })
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

/// Did the kernel kill a process in the group with this folder to keep a limit of memory?
pub fn out_of_memory(folder: &Path) -> bool {
    memory_kills(folder) > 0
}

/// How many processes the kernel has killed so far in the group with this folder, to keep a limit
/// of memory.
pub fn memory_kills(folder: &Path) -> u64 {
    // Version 2 and version 1; either has a line `oom_kill` with the count.
    ["memory.events", "memory.oom_control"]
        .iter()
        .filter_map(|file| fs::read_to_string(folder.join(file)).ok())
        .filter_map(|text| {
            let mut counts = text
                .lines()
                .filter_map(|line| line.strip_prefix("oom_kill "));
            counts.find_map(|count| count.trim().parse::<u64>().ok())
        })
        .sum()
}

/// Where our own group is among those of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    top: PathBuf,
    own: PathBuf,
    /// Is it of version 2?
    unified: bool,
}

impl Hierarchy {
    /// That of a controller, by `/proc/self/cgroup`; `None`: there is none. `root` is `/`
    /// but for tests.
    pub fn of(root: &Path, controller: &str) -> Option<Self> {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let lines = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?))
        });
        let mount = root.join("sys/fs/cgroup");
        let mut ones = lines.clone();
        let one = ones.find(|(names, _)| names.split(',').any(|one| one == controller));
        if let Some((names, path)) = one {
            let tops = [mount.join(names), mount.join(controller)];
            let top = tops.into_iter().find(|top| top.is_dir())?;
            return Some(Self::seen(top, path, false));
        }
        let (_, path) = lines.clone().find(|(names, _)| names.is_empty())?;
        let tops = [mount.clone(), mount.join("unified")];
        let top = tops.into_iter().find(|top| {
            let known = fs::read_to_string(top.join("cgroup.controllers")).unwrap_or_default();
            known.split_ascii_whitespace().any(|one| one == controller)
        })?;
        Some(Self::seen(top, path, true))
    }

    /// What a container does not see of the path is left out.
    fn seen(top: PathBuf, path: &str, unified: bool) -> Self {
        let path = Path::new(path.trim_start_matches('/'));
        let outside = path.components().any(|part| part.as_os_str() == "..");
        let own = top.join(path);
        Self {
            own: match !outside && own.is_dir() {
                true => own,
                false => top.clone(),
            },
            top,
            unified,
        }
    }

    /// The folder of our own group and of those above it, nearest first.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let above = self.own.ancestors();
        above
            .take_while(|folder| folder.starts_with(&self.top))
            .map(Path::to_owned)
    }
}

/// Removes the groups of a process. Whether none is left.
pub(crate) fn remove(root: &Path, owner: u32) -> bool {
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
    fn groups_are_looked_for_from_our_own_upwards() {
        let root = machine(
            "4:memory:/a/b\n3:cpuset:/\n1:cpuacct,cpu:/no/such/one\n0::/user\n",
            &["memory/a/b", "cpu", "unified/user"],
        );
        let top = root.path().join("sys/fs/cgroup");
        fs::write(top.join("unified/cgroup.controllers"), "pids hugetlb").unwrap();
        let folders = |controller| {
            let hierarchy = Hierarchy::of(root.path(), controller)?;
            let below = |it: PathBuf| it.strip_prefix(&top).unwrap().display().to_string();
            Some(hierarchy.folders().map(below).collect::<Vec<_>>())
        };
        assert_eq!(
            folders("memory").unwrap(),
            ["memory/a/b", "memory/a", "memory"]
        );
        // A container does not see the whole path.
        assert_eq!(folders("cpu").unwrap(), ["cpu"]);
        assert_eq!(folders("pids").unwrap(), ["unified/user", "unified"]);
        assert_eq!(folders("io"), None);
        fs::write(root.path().join("proc/self/cgroup"), "nonsense\n1:x:/x\n").unwrap();
        assert_eq!(folders("memory"), None);
    }

    #[test]
    fn where_a_limit_cannot_be_had_nothing_is_left_and_the_group_above_is_asked() {
        let root = machine("0::/a\n", &["a/cgroup.subtree_control"]);
        let top = root.path().join("sys/fs/cgroup");
        fs::write(top.join("cgroup.controllers"), "memory\n").unwrap();
        let groups = Groups::open(root.path(), 7);
        let group = groups.make("leaf-0", None, Some(4096)).unwrap();
        assert_eq!(group.folders(), [top.join("headroom-7-leaf-0")]);
        assert!(!top.join("a/headroom-7-leaf-0").exists());
        // The error is that of the nearest one.
        let error = groups.make("leaf-0", None, Some(4096)).unwrap_err();
        assert!(
            error.to_string().contains("a/cgroup.subtree_control"),
            "{error}"
        );
    }

    #[test]
    fn a_kill_for_memory_is_told_by_both_versions() {
        for (file, text, expected) in [
            ("memory.events", "low 0\noom_kill 2\n", 2),
            ("memory.oom_control", "under_oom 0\noom_kill 1\n", 1),
            ("memory.events", "oom 3\noom_kill 0\n", 0),
            ("other", "oom_kill 1\n", 0),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(file), text).unwrap();
            assert_eq!(memory_kills(folder.path()), expected, "{file} {text}");
            assert_eq!(out_of_memory(folder.path()), expected > 0, "{file} {text}");
        }
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
