//! What containers leave behind, and what a rep does.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use nix::unistd::geteuid;
use processes::{RunTag, is_alive};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::limits::Limits;

/// Before the process and the time that made a folder of containers.
const PREFIX: &str = "rep-";
/// Between two looks at all processes of the machine: what ends meanwhile shares the next one.
const PAUSE: Duration = Duration::from_millis(200);

/// The folder of all containers of one rep. It goes with the rep.
pub(super) struct Folder {
    pub(super) path: PathBuf,
}

impl Folder {
    /// Makes one below `root`, where those of reps that are gone are removed. `None`: below this
    /// user's own among the system's temporary files.
    pub(super) fn make(root: Option<&Path>, made_unix_ns: i64) -> io::Result<Self> {
        let root = match root {
            Some(root) => root.to_owned(),
            None => users_own(&std::env::temp_dir())?,
        };
        let using = |cause| told("use", &root, &cause);
        make_folder(&root)?;
        // Working folders of processes are elsewhere: a relative path would lead them astray.
        let root = fs::canonicalize(&root).map_err(using)?;
        for left in left_below(&root).map_err(using)? {
            // One that cannot be removed is no reason not to start.
            let _ = remove_folder(&left);
        }
        let name = format!("{PREFIX}{}-{made_unix_ns}", std::process::id());
        let path = root.join(name);
        make_folder(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now goes when the next rep starts.
        let _ = remove_folder(&self.path);
    }
}

/// Folders of reps whose process is gone.
fn left_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut left = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'))
            .and_then(|(process, _)| process.parse::<u32>().ok());
        if process.is_some_and(|process| !is_alive(Path::new("/"), process)) {
            left.push(entry.path());
        }
    }
    Ok(left)
}

/// This user's folder below one in which everybody may make some. One that somebody else has made
/// there before is refused: they could read and change what containers keep.
fn users_own(everybodys: &Path) -> io::Result<PathBuf> {
    let user = geteuid().as_raw();
    let path = everybodys.join(format!("headroom-containers-{user}"));
    make_folder(&path)?;
    let found = fs::symlink_metadata(&path).map_err(|cause| told("use", &path, &cause))?;
    if found.is_dir() && found.uid() == user {
        return Ok(path);
    }
    let problem = "it belongs to somebody else; remove it, or name another one with --containers";
    Err(told("use", &path, &io::Error::other(problem)))
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|cause| told("make", path, &cause))
}

fn told(doing: &str, path: &Path, cause: &io::Error) -> io::Error {
    io::Error::new(cause.kind(), format!("{doing} {}: {cause}", path.display()))
}

/// Removes a folder with all that is in it.
fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

/// Lets their owner into folders that containers have closed, as Go closes those of modules.
fn open_up(folder: &Path) -> io::Result<()> {
    let mut closed = vec![folder.to_owned()];
    while let Some(folder) = closed.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            // Of a link this says that it is one, wherever it leads.
            if entry.file_type()?.is_dir() {
                closed.push(entry.path());
            }
        }
    }
    Ok(())
}

/// A container that is no more.
pub(super) struct RemovedContainer {
    /// Carried by its processes.
    pub(super) tag: RunTag,
    pub(super) folder: Option<PathBuf>,
    /// Among the containers of all cells.
    pub(super) name: String,
}

/// How many containers of each name have left something.
type Names = watch::Sender<HashMap<String, usize>>;

/// Ends processes of containers that left their groups, and then removes the rest.
pub(super) struct Leftovers {
    /// Closed, it ends the thread.
    left: Sender<(RemovedContainer, PendingCleanup)>,
    going: Arc<Names>,
}

/// What a container left is there until this is dropped.
struct PendingCleanup {
    name: String,
    all: Arc<Names>,
}

impl PendingCleanup {
    fn new(name: &str, all: &Arc<Names>) -> Self {
        all.send_modify(|all| *all.entry(name.to_owned()).or_default() += 1);
        Self {
            name: name.to_owned(),
            all: Arc::clone(all),
        }
    }
}

impl Drop for PendingCleanup {
    fn drop(&mut self) {
        self.all.send_modify(|all| {
            let others = all
                .get(&self.name)
                .map_or(0, |count| count.saturating_sub(1));
            if others == 0 {
                all.remove(&self.name);
            } else {
                all.insert(self.name.clone(), others);
            }
        });
    }
}

impl Leftovers {
    /// Starts the thread that looks for them. Must be called within a runtime.
    pub(super) fn start(limits: Option<Arc<Limits>>) -> io::Result<Self> {
        let runtime = Handle::current();
        let (left, received) = channel();
        std::thread::Builder::new()
            .name("leftovers".into())
            .spawn(move || work(&received, &runtime, limits.as_ref()))?;
        Ok(Self {
            left,
            going: Arc::default(),
        })
    }

    /// Removes what a container left, soon.
    pub(super) fn remove(&self, left: RemovedContainer) {
        let going = PendingCleanup::new(&left.name, &self.going);
        // It fails when the thread is gone, and the rep with it.
        let _ = self.left.send((left, going));
    }

    /// Waits until nothing is left of former containers of this name, whose tag, folder and group
    /// are those of the next: a task that was rejected may come back at once.
    pub(super) async fn wait_removed(&self, name: &str) {
        let mut going = self.going.subscribe();
        // The sender lives as long as this.
        let _ = going.wait_for(|all| !all.contains_key(name)).await;
    }
}

fn work(
    received: &Receiver<(RemovedContainer, PendingCleanup)>,
    runtime: &Handle,
    limits: Option<&Arc<Limits>>,
) {
    while let Ok(first) = received.recv() {
        let all: Vec<_> = std::iter::once(first).chain(received.try_iter()).collect();
        // Those that even a kill does not end are left to the reaper.
        RunTag::sweep_all(all.iter().map(|(left, _)| &left.tag));
        for (left, going) in all {
            let limits = limits.cloned();
            runtime.spawn_blocking(move || {
                // A folder that cannot be removed, or was never made, is not an error here.
                let _ = left.folder.as_deref().map(remove_folder);
                if let Some(limits) = limits {
                    limits.remove(&left.name);
                }
                drop(going);
            });
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_user_has_a_folder_of_their_own_and_one_of_somebody_else_is_refused() {
        let everybodys = tempfile::tempdir().unwrap();
        let own = users_own(everybodys.path()).unwrap();
        assert_eq!(own, users_own(everybodys.path()).unwrap());
        let user = geteuid().as_raw();
        assert!(own.ends_with(format!("headroom-containers-{user}")));
        // It leads where its maker likes.
        let other = everybodys.path().join("other");
        fs::rename(&own, &other).unwrap();
        symlink(&other, &own).unwrap();
        let refused = users_own(everybodys.path()).unwrap_err().to_string();
        assert!(refused.contains(own.to_str().unwrap()) && refused.contains("--containers"));
    }

    #[test]
    fn folders_that_were_closed_are_removed_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (folder, other) = (root.path().join("c"), root.path().join("other"));
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&other, folder.join("a/link")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for (path, closed) in [("a/b", 0), ("a", 0o555)] {
            fs::set_permissions(folder.join(path), Permissions::from_mode(closed)).unwrap();
        }
        fs::set_permissions(&other, Permissions::from_mode(0o555)).unwrap();
        open_up(&folder).unwrap();
        assert_eq!(mode(&folder.join("a")), 0o700);
        assert_eq!(mode(&folder.join("a/b")), 0o700);
        assert_eq!(mode(&other), 0o555);
        fs::set_permissions(folder.join("a"), Permissions::from_mode(0o555)).unwrap();
        remove_folder(&folder).unwrap();
        assert!(!folder.exists() && other.exists());
    }

    #[test]
    fn folders_of_reps_that_are_gone_are_removed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        // No process has a number beyond the kernel's greatest.
        let gone = root.path().join("rep-4194305-1");
        let others = ["rep-1-1", "rep-x-1", "rep-4194305", "mine", ".cache"];
        fs::create_dir_all(gone.join("guid")).unwrap();
        for other in others {
            fs::create_dir(root.path().join(other)).unwrap();
        }
        let folder = Folder::make(Some(root.path()), 7).unwrap();
        assert!(!gone.exists() && folder.path.is_dir());
        let again = Folder::make(Some(root.path()), 8).unwrap();
        assert!(folder.path.is_dir() && again.path != folder.path);
        let (path, _) = (folder.path.clone(), drop(folder));
        assert!(!path.exists());
        for other in others {
            assert!(root.path().join(other).is_dir(), "{other}");
        }
    }
}
