//! Requests about actual LRPs.

use diego::models::{
    ActualLrpInstanceKey, ActualLrpKey, ActualLrpNetInfo, ClaimActualLrpRequest,
    CrashActualLrpRequest, EvacuateClaimedActualLrpRequest, EvacuateCrashedActualLrpRequest,
    EvacuateRunningActualLrpRequest, EvacuateStoppedActualLrpRequest, FailActualLrpRequest,
    RemoveActualLrpRequest, RemoveEvacuatingActualLrpRequest, RetireActualLrpRequest,
    StartActualLrpRequest,
};

use super::{Problems, Validate};

fn key(problems: &mut Problems, key: Option<&ActualLrpKey>) {
    match key {
        None => problems.field("actual_lrp_key"),
        Some(key) => {
            problems.field_if(key.process_guid.is_empty(), "process_guid");
            problems.field_if(key.index < 0, "index");
            problems.field_if(key.domain.is_empty(), "domain");
        }
    }
}

fn instance_parts(problems: &mut Problems, key: &ActualLrpInstanceKey) {
    problems.field_if(key.cell_id.is_empty(), "cell_id");
    problems.field_if(key.instance_guid.is_empty(), "instance_guid");
}

fn instance(problems: &mut Problems, key: Option<&ActualLrpInstanceKey>) {
    match key {
        None => problems.field("actual_lrp_instance_key"),
        Some(key) => instance_parts(problems, key),
    }
}

fn net_info(problems: &mut Problems, info: Option<&ActualLrpNetInfo>) {
    match info {
        None => problems.field("actual_lrp_net_info"),
        Some(info) => problems.field_if(info.address.is_empty(), "address"),
    }
}

impl Validate for ClaimActualLrpRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(self.process_guid.is_empty(), "process_guid");
        instance(problems, self.actual_lrp_instance_key.as_ref());
    }
}

impl Validate for RemoveActualLrpRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(self.process_guid.is_empty(), "process_guid");
        problems.field_if(self.index < 0, "index");
    }
}

macro_rules! validate_with {
    ($($request:ty: $($check:ident($field:ident)),+;)*) => {
        $(impl Validate for $request {
            fn check(&self, problems: &mut Problems) {
                $($check(problems, self.$field.as_ref());)+
            }
        })*
    };
}

validate_with! {
    StartActualLrpRequest:
        key(actual_lrp_key), instance(actual_lrp_instance_key), net_info(actual_lrp_net_info);
    CrashActualLrpRequest: key(actual_lrp_key), instance(actual_lrp_instance_key);
    RetireActualLrpRequest: key(actual_lrp_key);
    EvacuateClaimedActualLrpRequest: key(actual_lrp_key), instance(actual_lrp_instance_key);
    EvacuateStoppedActualLrpRequest: key(actual_lrp_key), instance(actual_lrp_instance_key);
    EvacuateRunningActualLrpRequest:
        key(actual_lrp_key), instance(actual_lrp_instance_key), net_info(actual_lrp_net_info);
    RemoveEvacuatingActualLrpRequest: key(actual_lrp_key), instance(actual_lrp_instance_key);
}

impl Validate for FailActualLrpRequest {
    fn check(&self, problems: &mut Problems) {
        key(problems, self.actual_lrp_key.as_ref());
        problems.field_if(self.error_message.is_empty(), "error_message");
    }
}

impl Validate for EvacuateCrashedActualLrpRequest {
    fn check(&self, problems: &mut Problems) {
        key(problems, self.actual_lrp_key.as_ref());
        instance(problems, self.actual_lrp_instance_key.as_ref());
        problems.field_if(self.error_message.is_empty(), "error_message");
    }
}
