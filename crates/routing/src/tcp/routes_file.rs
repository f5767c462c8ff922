//! TCP routes from a file, for a router without a routing API.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::TcpMapping;

/// Longest file that is read.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Why a file of routes is of no use.
#[derive(Debug, thiserror::Error)]
pub enum RoutesFileError {
    /// It cannot be read.
    #[error("read TCP routes from {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// It is too long.
    #[error("read TCP routes from {}: it has more than {MOST_BYTES} bytes", .0.display())]
    TooLong(PathBuf),
    /// It is not what it should be.
    #[error(
        "read TCP routes from {}: {cause}; expected a JSON list of mappings, as the routing \
         API gives it at /routing/v1/tcp_routes",
        path.display()
    )]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        cause: serde_json::Error,
    },
}

/// What no mapping of a file may lack, and the bounds of its numbers: what is missing the routing
/// API takes for 0.
#[derive(Deserialize)]
struct Stated {
    #[serde(rename = "port")]
    _port: u16,
    #[serde(rename = "backend_ip")]
    _backend_ip: String,
    #[serde(rename = "backend_port")]
    _backend_port: u16,
    #[serde(default, rename = "backend_tls_port")]
    _backend_tls_port: i32,
    #[serde(rename = "ttl")]
    _ttl: Option<u32>,
}

/// Reads the mappings of a file: a JSON list in the form of the routing API. Send them as
/// `Change::Full`, again before they are stale.
///
/// # Errors
/// When it cannot be read, is too long or is no such list.
pub fn read(path: &Path) -> Result<Vec<TcpMapping>, RoutesFileError> {
    let at = || path.to_path_buf();
    let failed = |cause| RoutesFileError::Read { path: at(), cause };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    let taken = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    if taken.map_err(failed)? as u64 > MOST_BYTES {
        return Err(RoutesFileError::TooLong(at()));
    }
    let no_list = |cause| RoutesFileError::Json { path: at(), cause };
    serde_json::from_str::<Vec<Stated>>(&text).map_err(no_list)?;
    serde_json::from_str(&text).map_err(no_list)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form in which the routing API lists a mapping.
    const LISTED: &str = r#"[{"router_group_guid":"g-1","backend_port":60000,"backend_tls_port":61000,
        "instance_id":"i-1","backend_ip":"10.1.2.3","port":1024,"backend_sni_hostname":"a.b",
        "modification_tag":{"guid":"m-1","index":7},"ttl":120,"isolation_segment":"",
        "terminate_frontend_tls":true,"alpns":"h2"},
        {"router_group_guid":"g-1","backend_port":1,"backend_ip":"10.1.2.4","port":1025,
        "modification_tag":{"guid":"","index":0},"ttl":null}]"#;

    #[test]
    fn a_list_of_the_routing_api_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("routes.json");
        std::fs::write(&path, LISTED).unwrap();
        let mappings = read(&path).unwrap();
        assert_eq!(mappings.len(), 2);
        let first = &mappings[0];
        assert_eq!((first.port, first.backend_tls_port), (1024, 61000));
        assert_eq!(first.backend_sni_hostname.as_deref(), Some("a.b"));
        assert_eq!(
            (&*first.modification_tag.guid, first.modification_tag.index),
            ("m-1", 7)
        );
        assert_eq!((first.ttl, mappings[1].ttl), (Some(120), None));
        assert!(first.terminate_frontend_tls && !mappings[1].terminate_frontend_tls);
        let again = serde_json::to_string(&mappings).unwrap();
        let again: Vec<TcpMapping> = serde_json::from_str(&again).unwrap();
        assert_eq!(again, mappings);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("routes.json");
        assert!(read(&path).unwrap_err().to_string().contains("routes.json"));
        std::fs::write(&path, "[{\"port\":1024,\n\"backend_ip\":7}]").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.contains("line 2") && error.contains("/routing/v1/tcp_routes"),
            "{error}"
        );
    }
}
