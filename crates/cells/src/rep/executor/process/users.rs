//! Whom the programs of containers run as, and whose their files are.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

use nix::unistd::{Gid, Uid, geteuid, setfsgid, setfsuid};
use processes::Account;

/// The user whom the platform's own root file systems have for programs of its users. Where the
/// machine has none, what names it runs as the rep: nearly everything names it.
const USUAL: &str = "vcap";

/// The account that an action names; `None`: that of the rep, as only root may take another.
///
/// # Errors
/// When the machine has no such user; in the words of what runs Diego's containers.
pub(super) fn account(name: &str) -> Result<Option<Account>, String> {
    if name.is_empty() || !geteuid().is_root() {
        return Ok(None);
    }
    match Account::named(name) {
        Ok(None) if name == USUAL => Ok(None),
        Ok(None) => Err(format!(
            "unable to find user {name}: no matching entries in passwd file"
        )),
        Ok(account) => Ok(account.filter(|account| account.uid != 0)),
        Err(cause) => Err(format!("unable to find user {name}: {cause}")),
    }
}

/// Makes the folder of a container the account's, and lets it in there: into `containers`, which
/// has those of all, and what that lies in, whose names it still cannot list. A folder that is
/// another account's already stays so, and this one may read it.
pub(super) fn let_in(account: &Account, containers: &Path, folder: &Path) -> io::Result<()> {
    for above in containers.parent().into_iter().chain([containers]) {
        open(above, 0o011)?;
    }
    let owner = fs::metadata(folder)?.uid();
    match owner == account.uid || owner == geteuid().as_raw() {
        true => change_owner(account, folder),
        false => open(folder, 0o055),
    }
}

fn open(folder: &Path, more: u32) -> io::Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode();
    match mode & more == more {
        true => Ok(()),
        false => fs::set_permissions(folder, Permissions::from_mode(mode | more)),
    }
}

/// Makes a file or a folder the account's; of a link that took its place, the link.
pub(super) fn change_owner(account: &Account, path: &Path) -> io::Result<()> {
    lchown(path, Some(account.uid), Some(account.gid))
}

/// While it lives, files that this thread makes are an account's, and it may do no more with
/// others than that one.
pub(super) struct FileCredentials(Uid, Gid);

impl FileCredentials {
    pub(super) fn as_account(account: &Account) -> Self {
        // The group first: whoever is no longer root may not choose one.
        let gid = setfsgid(Gid::from_raw(account.gid));
        Self(setfsuid(Uid::from_raw(account.uid)), gid)
    }
}

impl Drop for FileCredentials {
    fn drop(&mut self) {
        setfsuid(self.0);
        setfsgid(self.1);
    }
}
