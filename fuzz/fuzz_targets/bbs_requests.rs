//! Any bytes as any request of the BBS: decoding and checking never panics.
//!
//! `cargo +nightly fuzz run bbs_requests`

#![no_main]

use cells::bbs::model::validate::Validate;
use cells::bbs::model::versions;
use diego::models::*;
use libfuzzer_sys::fuzz_target;
use prost::Message;

macro_rules! check {
    ($bytes:expr, $choice:expr, $($message:ty),* $(,)?) => {{
        let mut number = 0u8;
        $(
            if number == $choice
                && let Ok(request) = <$message>::decode($bytes)
            {
                let _ = request.validate();
            }
            number += 1;
        )*
        let _ = number;
    }};
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    check!(
        bytes,
        choice % 25,
        UpsertDomainRequest,
        DesireTaskRequest,
        StartTaskRequest,
        CompleteTaskRequest,
        FailTaskRequest,
        RejectTaskRequest,
        TaskGuidRequest,
        TaskByGuidRequest,
        TasksRequest,
        DesireLrpRequest,
        UpdateDesiredLrpRequest,
        RemoveDesiredLrpRequest,
        DesiredLrPsRequest,
        DesiredLrpByProcessGuidRequest,
        ActualLrPsRequest,
        ActualLrPsByProcessGuidsRequest,
        ActualLrpGroupByProcessGuidAndIndexRequest,
        ClaimActualLrpRequest,
        StartActualLrpRequest,
        CrashActualLrpRequest,
        FailActualLrpRequest,
        RemoveActualLrpRequest,
        RetireActualLrpRequest,
        EvacuateRunningActualLrpRequest,
        EvacuateCrashedActualLrpRequest,
    );
    if let Ok(lrp) = DesiredLrp::decode(bytes) {
        let _ = versions::desired_v0(lrp);
    }
    if let Ok(task) = Task::decode(bytes) {
        let _ = versions::task_v2(task);
    }
});
