//! What a workload must be for threads of this process to carry it out.

use lab_load::{GenerateError, Pace, Workload};
use wire::socket;

/// Descriptors that are needed besides connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Says what is wrong with a workload, if anything is.
pub(super) fn workload(workload: &Workload) -> Result<(), GenerateError> {
    let connections = &workload.connections;
    let (held, most) = (connections.held, connections.most);
    let threads = workload.threads;
    let several = workload.target.protocol.carries_several();
    if !(1..=256).contains(&threads) {
        return wrong("threads", &threads, "1 to 256");
    }
    if !(1..=1_000_000).contains(&held) || held < threads {
        let expected = "as many as threads or more, up to 1,000,000";
        return wrong("connections", &held, expected);
    }
    if !(held..=1_000_000).contains(&most) {
        let expected = "at least the connections held, up to 1,000,000";
        return wrong("most connections", &most, expected);
    }
    if connections.streams == 0 || (connections.streams > 1 && !several) {
        let expected = "1, or more with HTTP/2, gRPC and Redis";
        return wrong(
            "exchanges at a time on a connection",
            &connections.streams,
            expected,
        );
    }
    if connections.requests_each == Some(0) {
        return wrong("requests for each connection", &0, "1 or more");
    }
    if let Pace::Tick(tick) = workload.pace
        && !Pace::TICKS.contains(&tick)
    {
        return wrong("a tick", &units::write_duration(tick), "10us to 1s");
    }
    if let Some(lacks) = processes::lacking_processor(&workload.cpus) {
        return Err(GenerateError::new("keep threads to processors", lacks)
            .help("name processors that exist (--cpus)"));
    }
    if workload.timeout.is_zero() || connections.connect_within.is_zero() {
        return wrong("a timeout", &"0", "a time above 0");
    }
    let descriptors = socket::allow_most_descriptors().unwrap_or(u64::MAX);
    let needed = needed_descriptors(workload);
    if needed > descriptors {
        return Err(GenerateError::new(
            format!("hold {held} connections"),
            format!("that needs {needed} descriptors, and this process may open {descriptors}"),
        )
        .help(raise_descriptors(needed)));
    }
    Ok(())
}

/// Descriptors that are needed to hold a workload's connections.
pub(super) fn needed_descriptors(workload: &Workload) -> u64 {
    u64::from(workload.connections.held) + OTHER_DESCRIPTORS
}

/// How the limit of descriptors is raised. The soft one was raised to the hard one.
pub(super) fn raise_descriptors(needed: u64) -> String {
    format!(
        "hold fewer connections, or raise the limit: `ulimit -Hn {needed}` as root in the shell \
         that starts this, `docker run --ulimit nofile={needed}`, or `LimitNOFILE={needed}` in a \
         unit of systemd"
    )
}

fn wrong(what: &str, found: &dyn std::fmt::Display, expected: &str) -> Result<(), GenerateError> {
    Err(GenerateError::new(
        "check the workload",
        format!("{what}: {found}; expected {expected}"),
    ))
}
