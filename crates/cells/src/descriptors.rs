//! File descriptors, of which a server must keep some back for its own calls and files.

use telemetry::{Fields, Logger};

/// Of all descriptors the part that is kept back: for the database, the log, and calls to
/// others.
const RESERVE: usize = 4;

/// Raises the process's limit as far as it may, and says how many of `wanted` connections a
/// server can have at once, at least one.
pub(crate) fn connections(wanted: usize, logger: &Logger) -> usize {
    let limit = match wire::socket::allow_most_descriptors() {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(cause) => {
            logger.error("failed-to-raise-descriptors", &cause, Fields::new());
            return wanted;
        }
    };
    let possible = within(wanted, limit);
    if possible < wanted {
        let fields = Fields::new().and("descriptors", limit);
        let fields = fields.and("connections", possible).and("wanted", wanted);
        logger.info("fewer-connections-than-wanted", fields);
    }
    possible
}

fn within(wanted: usize, limit: usize) -> usize {
    wanted.min(limit - limit / RESERVE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_kept_back() {
        assert_eq!(within(16_384, 1024), 768);
        assert_eq!(within(16_384, 1 << 20), 16_384);
        assert_eq!(within(16_384, 0), 1);
    }
}
