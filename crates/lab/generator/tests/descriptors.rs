//! Nothing is left open. Alone in its process: others would open descriptors meanwhile.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod target;
mod workload;

use std::time::Duration;

use target::{Behaviour, Target};
use workload::{closed, failures, plain, run};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn failures_and_replaced_connections_leave_no_descriptor() {
    let before = descriptors();
    {
        let behaviour = Behaviour {
            delay: Duration::from_secs(3600),
            ..Behaviour::default()
        };
        let target = Target::start(0, behaviour).unwrap();
        let mut workload = plain(target.address, 3);
        workload.timeout = Duration::from_millis(50);
        let seen = run(workload, &closed(9)).total.requests();
        assert_eq!(failures(&seen).len(), 1);
        let mut workload = plain(target.address, 3);
        workload.connections.requests_each = Some(1);
        workload.timeout = Duration::from_millis(50);
        run(workload, &closed(9));
    }
    assert_eq!(descriptors(), before);
}
