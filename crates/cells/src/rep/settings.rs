//! Settings that cells cannot start with.

use std::path::PathBuf;
use std::time::Duration;

use net::tls::TlsError;

use super::config::{Config, ExecutorKind};

/// Why cells could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error("start cells: {0}")]
    Listen(#[from] std::io::Error),
    /// The certificates cannot be used.
    #[error("start cells: {0}")]
    Tls(#[from] TlsError),
    /// Processes could not be ended with the rep.
    #[error("start cells: {0}")]
    Reaper(#[from] processes::ReaperError),
    /// Containers cannot be kept to their limits.
    #[error("start cells: {0}")]
    Limits(#[from] processes::GroupError),
    /// Containers cannot have networks of their own.
    #[error("start cells: {0}")]
    Network(#[from] processes::NetworkError),
    /// Certificates of containers cannot be signed.
    #[error("start cells: the authority of instance identities, {}: {problem}", path.display())]
    InstanceIdentity {
        /// The file of its certificate, or of its key.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The BBS cannot be reached at such an address.
    #[error("start cells: use the address of the BBS: {0}")]
    Bbs(#[source] net::ClientError),
    /// There are not so many ports after the first one.
    #[error(
        "start cells: {count} cells from port {first} on would pass port 65535: choose a lower port, or port 0 to let the system choose"
    )]
    Ports {
        /// The first cell's port.
        first: u16,
        /// Number of cells.
        count: u32,
    },
    /// A setting makes no sense.
    #[error("start cells: {setting} is {found}, but must be {expected}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What is allowed.
        expected: &'static str,
    },
}

/// Says what is wrong with settings that can be told before anything starts.
pub(super) fn check(config: &Config) -> Result<(), Error> {
    let capacity = config.capacity;
    for (setting, found) in [
        ("the capacity of containers", capacity.containers),
        ("the capacity of memory in MiB", capacity.memory.0),
        ("the capacity of disk in MiB", capacity.disk.0),
    ] {
        if found < 0 {
            return Err(Error::Setting {
                setting,
                found: found.to_string(),
                expected: "0 or more",
            });
        }
    }
    let count = |count: u32| (count.to_string(), count > 0);
    let time = |time: Duration| (format!("{time:?}"), !time.is_zero());
    let mut above_zero = vec![
        ("the number of cells", count(config.count)),
        ("the number of zones", count(config.zones)),
        ("the heartbeat", time(config.heartbeat)),
        ("the bulk interval", time(config.bulk_interval)),
        (
            "the interval of an evacuation",
            time(config.evacuation_interval),
        ),
    ];
    if let ExecutorKind::Process(process) = &config.executor {
        let (healthy, unhealthy) = (process.healthy_interval, process.unhealthy_interval);
        above_zero.extend([
            ("the interval of checks", time(healthy)),
            ("the interval of checks until they pass", time(unhealthy)),
        ]);
        let identity = process.identity.as_ref();
        above_zero.extend(identity.map(|it| {
            let setting = "the validity period of instance identities";
            (setting, time(it.validity))
        }));
    }
    for (setting, (found, good)) in above_zero {
        if !good {
            return Err(Error::Setting {
                setting,
                found,
                expected: "above 0",
            });
        }
    }
    // One that is renewed later than that is lost between.
    let jitter = config.heartbeat_jitter.clamp(0.0, 1.0);
    let renewed = config.heartbeat.mul_f64(1.0 + jitter);
    // Locket knows whole seconds.
    let lives = Duration::from_secs(config.presence_ttl.as_secs().max(1));
    if lives <= renewed {
        return Err(Error::Setting {
            setting: "the life of a presence, in whole seconds",
            found: format!("{lives:?}"),
            expected: "longer than the longest time between two heartbeats",
        });
    }
    if config.listen.port() != 0
        && u64::from(config.listen.port()) + u64::from(config.count) > 65_536
    {
        let (first, count) = (config.listen.port(), config.count);
        return Err(Error::Ports { first, count });
    }
    Ok(())
}
