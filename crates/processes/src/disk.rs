//! Small file systems in memory (tmpfs), each for one process to fill.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// What such a file system is called in the list of mounts, before its owner's number.
const SOURCE: &str = "headroom-disk-";
/// `CAP_SYS_ADMIN`, which mounting needs, among the bits of `CapEff` (capabilities(7)).
const SYS_ADMIN: u32 = 21;

/// Why there is no file system.
#[derive(Debug, thiserror::Error)]
#[error("mount a file system of {bytes} bytes at {}: {found}; {}", path.display(), advice(found))]
pub struct DiskError {
    /// Its size.
    pub bytes: u64,
    /// Where.
    pub path: PathBuf,
    /// What the kernel says.
    pub found: io::Error,
}

fn advice(found: &io::Error) -> &'static str {
    match found.kind() {
        io::ErrorKind::PermissionDenied => {
            "run as root, or in a container that has CAP_SYS_ADMIN, or leave out `disk`"
        }
        _ => "make the folder writable, or leave out `disk`",
    }
}

/// Whether this process may mount file systems.
pub fn may_mount() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    has_capability(&status, SYS_ADMIN)
}

fn has_capability(status: &str, number: u32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> number & 1 == 1)
}

/// Mounts an empty file system of a size at a folder, which is made. It belongs to process
/// `owner`; those of processes that are gone are unmounted.
///
/// # Errors
/// When the folder cannot be made, or the kernel refuses.
pub fn mount_disk(path: &Path, bytes: u64, owner: u32) -> Result<(), DiskError> {
    let failed = |found| DiskError {
        bytes,
        path: path.to_owned(),
        found,
    };
    unmount(|_, owner| !crate::is_alive(Path::new("/"), owner));
    fs::create_dir_all(path).map_err(failed)?;
    let source = format!("{SOURCE}{owner}");
    let options = format!("size={bytes},mode=0777");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some(&*source), path, Some("tmpfs"), flags, Some(&*options))
        .map_err(|errno| failed(errno.into()))
}

/// Unmounts the file systems of a process. Whether none is left.
pub fn unmount_disks(owner: u32) -> bool {
    unmount(|_, of| of == owner)
}

/// Unmounts the file systems of ours that are mounted below a folder. Whether none is left.
pub fn unmount_disks_below(folder: &Path) -> bool {
    unmount(|path, _| path.starts_with(folder))
}

fn unmount(these: impl Fn(&Path, u32) -> bool) -> bool {
    let list = || fs::read("/proc/self/mountinfo").unwrap_or_default();
    for (path, owner) in disks(&list()) {
        if these(&path, owner) {
            // Whoever still has a file open there keeps it until its end.
            let _ = umount2(&path, MntFlags::MNT_DETACH);
        }
    }
    !disks(&list())
        .iter()
        .any(|(path, owner)| these(path, *owner))
}

/// Where file systems of ours are mounted, and whose they are, by `/proc/PID/mountinfo`.
fn disks(mounts: &[u8]) -> Vec<(PathBuf, u32)> {
    // Those of others may stand in folders whose names are no text.
    let mounts = String::from_utf8_lossy(mounts);
    let lines = mounts.lines().filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let source = file_system.split(' ').nth(1)?;
        let owner = source.strip_prefix(SOURCE)?.parse().ok()?;
        Some((unescaped(mount.split(' ').nth(4)?), owner))
    });
    lines.collect()
}

/// White space and backslashes are written as three octal digits (proc_pid_mountinfo(5)).
fn unescaped(path: &str) -> PathBuf {
    let mut text = path.to_owned();
    for (written, meant) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        text = text.replace(written, meant);
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_found_among_the_mounts() {
        let mounts = b"22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            31 22 8:1 / /media/caf\xe9 rw - vfat /dev/sda1 rw\n\
            97 22 0:52 / /a\\040b/disks/db rw,nosuid,nodev - tmpfs headroom-disk-4711 rw,size=1024k\n\
            98 22 0:53 / /tmp rw - tmpfs headroom-disk-x rw\n";
        assert_eq!(disks(mounts), [(PathBuf::from("/a b/disks/db"), 4711)]);
    }

    #[test]
    fn a_capability_is_a_bit() {
        assert!(has_capability("CapEff:\t0000000000200000\n", SYS_ADMIN));
        assert!(!has_capability("CapEff:\t00000000a80425fb\n", SYS_ADMIN));
        assert!(!has_capability("", SYS_ADMIN));
    }

    #[test]
    fn a_disk_is_as_large_as_it_was_asked_for_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b");
        let owner = std::process::id();
        let mounted = mount_disk(&path, 1 << 20, owner);
        if !may_mount() {
            let error = mounted.unwrap_err().to_string();
            assert!(error.contains("CAP_SYS_ADMIN"), "{error}");
            return;
        }
        mounted.unwrap();
        fs::write(path.join("half"), vec![0; 1 << 19]).unwrap();
        let error = fs::write(path.join("more"), vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        // A process that is gone leaves nothing behind; ours stays.
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let left = folder.path().join("left");
        mount_disk(&left, 1 << 20, gone.id()).unwrap();
        fs::write(left.join("file"), "x").unwrap();
        assert!(unmount_disks(gone.id()));
        assert!(!left.join("file").exists() && path.join("half").exists());
        assert!(unmount_disks_below(&folder.path().join("a")));
        assert!(path.join("half").exists());
        assert!(unmount_disks_below(folder.path()));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
}
