//! Commands about actual LRPs.

use std::sync::Arc;

use diego::models::{
    ActualLrpKey, ClaimActualLrpRequest, CrashActualLrpRequest, Error, FailActualLrpRequest,
    RemoveActualLrpRequest, StartActualLrpRequest,
};

use super::{Reply, Transaction, not_found, untraced};
use crate::bbs::model::actual::{self, Crash, Running};

impl Transaction<'_> {
    pub(super) fn claim(&mut self, request: ClaimActualLrpRequest) -> Result<Reply, Error> {
        let (guid, index) = (request.process_guid, request.index);
        let instance = request.actual_lrp_instance_key.unwrap_or_default();
        self.change_slot(&guid, index, &untraced(), |slot, context| {
            actual::claim(slot, &instance, context.now)
        })?;
        Ok(Reply::Done)
    }

    pub(super) fn start(&mut self, request: StartActualLrpRequest) -> Result<Reply, Error> {
        let key = request.actual_lrp_key.unwrap_or_default();
        let instance = request.actual_lrp_instance_key.unwrap_or_default();
        let running = Running {
            net_info: request.actual_lrp_net_info.unwrap_or_default(),
            internal_routes: request.actual_lrp_internal_routes,
            metric_tags: request.metric_tags,
            routable: request.routable.unwrap_or(true),
            availability_zone: request.availability_zone,
        };
        self.change_slot(
            &key.process_guid,
            key.index,
            &untraced(),
            |slot, context| actual::start(slot, &key, &instance, running, context),
        )?;
        Ok(Reply::Done)
    }

    pub(super) fn crash(&mut self, request: CrashActualLrpRequest) -> Result<Reply, Error> {
        let key = request.actual_lrp_key.unwrap_or_default();
        let instance = request.actual_lrp_instance_key.unwrap_or_default();
        let before = self.slot(&key.process_guid, key.index)?;
        let mut after = before.clone();
        let crash = actual::crash(
            &mut after,
            &instance,
            &request.error_message,
            self.context.now,
        )?;
        let crashed = crash != Crash::SuspectGone;
        self.put_slot(
            &key.process_guid,
            key.index,
            before,
            after,
            crashed,
            &untraced(),
        );
        if crash != Crash::Restart {
            return Ok(Reply::Done);
        }
        if !self.place(&key.process_guid, vec![key.index], &untraced()) {
            return Ok(Reply::Refused(not_found()));
        }
        Ok(Reply::Created(vec![key.index]))
    }

    pub(super) fn fail(&mut self, request: FailActualLrpRequest) -> Result<Reply, Error> {
        let key = request.actual_lrp_key.unwrap_or_default();
        self.change_slot(
            &key.process_guid,
            key.index,
            &untraced(),
            |slot, context| actual::fail(slot, &request.error_message, context.now),
        )?;
        Ok(Reply::Done)
    }

    pub(super) fn remove(&mut self, request: &RemoveActualLrpRequest) -> Result<Reply, Error> {
        let instance = request.actual_lrp_instance_key.as_ref();
        self.change_slot(
            &request.process_guid,
            request.index,
            &untraced(),
            |slot, _| actual::remove(slot, instance),
        )?;
        Ok(Reply::Done)
    }

    pub(super) fn retire(&mut self, key: &ActualLrpKey, trace: &Arc<str>) -> Result<Reply, Error> {
        let retired = self.change_slot(&key.process_guid, key.index, trace, |slot, _| {
            actual::retire(slot)
        })?;
        Ok(Reply::Retire(retired))
    }
}
