//! A request's memory grows to what its program needs, and no further.

use super::plan::{MS, Plan, call, cpu, topology};
use crate::Nanos;
use crate::script::{Arrival, Command, Outcome, Program, Request};
use crate::topology::ServiceId;
use traces::ids::Run;
use traces::{SpanId, TraceId};

#[test]
fn the_second_request_finds_all_the_memory_that_it_needs() {
    let steps = vec![cpu(MS), call(1), call(2)];
    let program = Program::compile(&topology(1, vec![Plan::new(steps)]), ServiceId(0));
    let mut request = Request::default();
    let mut commands = Vec::new();
    let mut places = Vec::new();
    for number in 0..100 {
        let trace = TraceId::of_request(1, Run(0), number);
        let arrival = Arrival {
            endpoint: 0,
            trace,
            span: SpanId(1),
            came: 0,
            now: 0,
            deadline: Nanos::MAX,
        };
        request.begin(&program, &arrival, &mut commands);
        while let Some(command) = commands.pop() {
            let (operation_id, outcome) = match command {
                Command::Call { operation_id, .. } => (operation_id, Outcome::Answered(200)),
                Command::Work { operation_id, .. } => (operation_id, Outcome::Done),
                _ => continue,
            };
            request.ended(&program, operation_id, outcome, 0, &mut commands);
        }
        assert!(request.is_finished());
        places.push((
            request.frames.as_ptr(),
            request.frames.capacity(),
            request.operations.as_ptr(),
            request.operations.capacity(),
        ));
    }
    assert!(places.iter().all(|place| *place == places[0]));
}
