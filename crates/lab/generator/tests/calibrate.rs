//! Calibration of the machine that the tests run on.

use std::time::Duration;

use lab_generator::calibrate;

#[test]
fn a_machine_has_a_floor() {
    let floor = calibrate::measure(Duration::from_millis(500)).unwrap();
    assert!(floor.measured_unix_ns > 0);
    // No upper bounds: the machine may be as busy as it likes.
    for (what, time) in [
        ("ping-pong", floor.ping_pong_p50),
        ("spinning", floor.ping_pong_spin_p50),
        ("timer", floor.timer_p99),
        ("clock", floor.clock),
        ("gap", floor.longest_gap),
    ] {
        assert!(time > 0.0, "{what}: {floor:?}");
    }
    assert!(floor.ping_pong_p50 <= floor.ping_pong_p99, "{floor:?}");
    assert!(floor.timer_p50 <= floor.timer_p99, "{floor:?}");
    for share in [floor.gap_share, floor.steal] {
        assert!((0.0..=1.0).contains(&share), "{floor:?}");
    }
}
