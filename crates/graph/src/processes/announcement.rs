//! How a child says that it is ready.

use std::net::SocketAddr;

use serde::Deserialize;

/// What the message of that line ends with, behind a dot. It is written whatever level of
/// lines is asked for: others wait for it.
pub const READY: &str = "ready";

/// Where a child is, as the fields of a line of its log say: `address`, where it takes
/// requests, and `admin`, where it is watched and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Announcement {
    /// Where it takes requests.
    pub address: SocketAddr,
    /// Its control server.
    pub admin: SocketAddr,
}

#[derive(Deserialize)]
struct Line<'a> {
    message: &'a str,
    data: Announcement,
}

impl Announcement {
    /// Reads a line of a log; `None`: it is another one.
    pub fn read(line: &str) -> Option<Self> {
        let line: Line<'_> = serde_json::from_str(line).ok()?;
        let (_, last) = line.message.rsplit_once('.')?;
        (last == READY).then_some(line.data)
    }
}
