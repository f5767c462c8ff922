use telemetry::{Level, Sink};

use super::*;
use crate::bbs::Limits;

/// More than the 65,536 that once were all that could wait.
const MANY: usize = 70_000;

#[test]
fn whatever_is_to_be_done_waits_until_it_is() {
    let logger = Logger::new("bbs", Sink::nothing(), Level::Info);
    let outbound = Outbound::new(Pools::new(&Limits::default()), &Arc::default(), &logger);
    for number in 0..MANY {
        let guid = || Arc::<str>::from(format!("g-{number}"));
        let trace = || Arc::<str>::from("");
        for work in [
            Work::PlaceTask(guid()),
            Work::Callback(guid()),
            Work::PlaceLrp {
                process_guid: guid(),
                indices: vec![0],
                trace: trace(),
            },
            Work::StopInstances {
                process_guid: guid(),
                trace: trace(),
            },
        ] {
            outbound.dispatch(work);
        }
    }
    let lengths = outbound.lengths().map(|(_, length)| length);
    assert_eq!(lengths, [MANY; 4]);
}

#[test]
fn cancellations_have_a_bound_and_those_beyond_it_are_told() {
    let sink = Sink::memory();
    let metrics = Arc::default();
    let outbound = Outbound::new(
        Pools::new(&Limits::default()),
        &metrics,
        &Logger::new("bbs", sink.clone(), Level::Info),
    );
    for number in 0..=CANCELLATIONS {
        outbound.dispatch(Work::CancelTask {
            task_guid: format!("t-{number}").into(),
            cell: "c".into(),
            trace: "".into(),
        });
    }
    assert_eq!(outbound.lengths()[3].1, CANCELLATIONS);
    assert_eq!(metrics.dropped_work.now(), 1);
    assert!(sink.kept().contains("bbs.outbound.cancellation-left-out"));
}
