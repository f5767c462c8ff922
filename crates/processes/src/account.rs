//! Users of this machine.

use std::ffi::CString;
use std::io;

use nix::unistd::{User, getgrouplist};

/// A user of this machine, with the groups that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// The number of its own group.
    pub gid: u32,
    /// The numbers of all its groups.
    pub groups: Vec<u32>,
}

impl Account {
    /// The user of this name; `None`: this machine has none.
    ///
    /// # Errors
    /// When the list of users, or that of groups, cannot be read.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        let Some(user) = User::from_name(name)? else {
            return Ok(None);
        };
        let groups = getgrouplist(&CString::new(name)?, user.gid)?;
        Ok(Some(Self {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.iter().map(|group| group.as_raw()).collect(),
        }))
    }
}
