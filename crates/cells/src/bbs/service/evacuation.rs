//! Calls of cells that are being emptied.

use diego::models::Error;
use diego::models::error::Type;
use diego::models::{
    ActualLrpInstanceKey, ActualLrpKey, EvacuateClaimedActualLrpRequest,
    EvacuateCrashedActualLrpRequest, EvacuateRunningActualLrpRequest,
    EvacuateStoppedActualLrpRequest, EvacuationResponse, RemoveEvacuatingActualLrpRequest,
};
use http::Response;
use net::{Body, Incoming};

use super::{Answered, RequestRejection, Service, answer};
use crate::bbs::apply::{Command, Evacuate, Evacuation, Reply};
use crate::bbs::model::actual::Running;

fn failed(error: Error, keep_container: bool) -> Response<Body> {
    answer::message(&EvacuationResponse {
        error: Some(error),
        keep_container,
    })
}

/// Whether a cell keeps what it has claimed when this came of moving it away: what could not be
/// done may still have to be, and the cell asks again.
fn keeps_claimed(error: &Error) -> bool {
    error.r#type() != Type::ResourceNotFound
}

/// A bad request about an instance that still runs must not end it.
fn invalid(unread: RequestRejection, keep_container: bool) -> Response<Body> {
    match unread {
        RequestRejection::Invalid(error) => failed(error, keep_container),
        RequestRejection::Broken(error) => answer::closing(failed(error, keep_container)),
    }
}

impl Service {
    pub(super) async fn evacuate_claimed(&self, body: Incoming) -> Answered {
        let request = match self.read::<EvacuateClaimedActualLrpRequest>(body).await {
            Ok(request) => request,
            Err(unread) => return Ok(invalid(unread, true)),
        };
        let (key, instance) = (request.actual_lrp_key, request.actual_lrp_instance_key);
        Ok(self.evacuate(key, instance, Evacuation::Claimed).await)
    }

    pub(super) async fn evacuate_crashed(&self, body: Incoming) -> Answered {
        let request = match self.read::<EvacuateCrashedActualLrpRequest>(body).await {
            Ok(request) => request,
            Err(unread) => return Ok(invalid(unread, false)),
        };
        let (key, instance) = (request.actual_lrp_key, request.actual_lrp_instance_key);
        let crashed = Evacuation::Crashed(request.error_message);
        Ok(self.evacuate(key, instance, crashed).await)
    }

    pub(super) async fn evacuate_stopped(&self, body: Incoming) -> Answered {
        let request = match self.read::<EvacuateStoppedActualLrpRequest>(body).await {
            Ok(request) => request,
            Err(unread) => return Ok(invalid(unread, false)),
        };
        let (key, instance) = (request.actual_lrp_key, request.actual_lrp_instance_key);
        Ok(self.evacuate(key, instance, Evacuation::Stopped).await)
    }

    pub(super) async fn evacuate_running(&self, body: Incoming, old_form: bool) -> Answered {
        let request = match self.read::<EvacuateRunningActualLrpRequest>(body).await {
            Ok(request) => request,
            Err(unread) => return Ok(invalid(unread, true)),
        };
        let (key, instance) = (request.actual_lrp_key, request.actual_lrp_instance_key);
        let mut running = Running {
            net_info: request.actual_lrp_net_info.unwrap_or_default(),
            internal_routes: request.actual_lrp_internal_routes,
            metric_tags: request.metric_tags,
            routable: request.routable.unwrap_or(true),
            availability_zone: request.availability_zone,
        };
        if old_form {
            running.internal_routes.clear();
            running.metric_tags.clear();
        }
        let running = Evacuation::Running(Box::new(running));
        Ok(self.evacuate(key, instance, running).await)
    }

    pub(super) async fn remove_evacuating(&self, body: Incoming) -> Answered {
        let request: RemoveEvacuatingActualLrpRequest = self.read(body).await?;
        let evacuate = Evacuate {
            key: request.actual_lrp_key.unwrap_or_default(),
            instance: request.actual_lrp_instance_key.unwrap_or_default(),
            what: Evacuation::Done,
        };
        self.order(Command::Evacuate(Box::new(evacuate))).await
    }

    async fn evacuate(
        &self,
        key: Option<ActualLrpKey>,
        instance: Option<ActualLrpInstanceKey>,
        what: Evacuation,
    ) -> Response<Body> {
        let runs = matches!(what, Evacuation::Running(_));
        let claimed = matches!(what, Evacuation::Claimed);
        let evacuate = Evacuate {
            key: key.unwrap_or_default(),
            instance: instance.unwrap_or_default(),
            what,
        };
        match self
            .commands
            .run(Command::Evacuate(Box::new(evacuate)))
            .await
        {
            Ok(reply) => answer::message(&EvacuationResponse {
                error: None,
                keep_container: matches!(reply, Reply::Keep(true)),
            }),
            Err(error) => {
                let keeps = runs || claimed && keeps_claimed(&error);
                failed(error, keeps)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_moved_away_is_kept_unless_it_is_gone() {
        let of = |kind: Type| Error {
            r#type: kind.into(),
            message: String::new(),
        };
        assert!(keeps_claimed(&of(Type::UnknownError)));
        assert!(keeps_claimed(&of(Type::ResourceConflict)));
        assert!(!keeps_claimed(&of(Type::ResourceNotFound)));
    }
}
