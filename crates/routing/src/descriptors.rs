//! How many connections the process has descriptors for.

use telemetry::{Fields, Logger};

/// Lowers a bound of connections to what `most` makes of the descriptors that there may be, and
/// says so: a client that is accepted must not fail for want of one.
pub(crate) fn keep_to(connections: &mut usize, most: impl FnOnce(usize) -> usize, logger: &Logger) {
    let descriptors = match wire::socket::allow_most_descriptors() {
        Ok(descriptors) => usize::try_from(descriptors).unwrap_or(usize::MAX),
        Err(error) => return logger.error("allow-descriptors", &error, Fields::new()),
    };
    let most = most(descriptors).max(1);
    if *connections > most {
        let cause = "expected a higher limit on open files (ulimit -n)";
        let fields = Fields::new()
            .and("descriptors", descriptors)
            .and("connections", most);
        logger.error("fewer-connections-allowed", &cause, fields);
        *connections = most;
    }
}
