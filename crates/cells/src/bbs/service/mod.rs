//! The API over HTTP: which path does what.

mod actual;
mod answer;
mod desired;
mod evacuation;
mod locket;
mod logs;
mod streams;
mod tasks;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use commit::View;
use diego::error::{Type, error, with_text};
use diego::models::{Error, PingResponse};
use diego::{TRACE_HEADER, path};
use http::{Method, Request, Response, StatusCode};
use net::{Body, ConnectionFailure, Handler, Incoming};
use prost::Message;
use telemetry::{Fields, Level, Logger, prometheus};

use super::Limits;
use super::apply::{Command, Reply};
use super::convergence::Passes;
use super::events::{Hub, Stream};
use super::ledger::Commands;
use super::locket::Locket;
use super::metrics::{Gauges, Metrics};
use super::model::validate::Validate;
use super::outbound::{Outbound, Reps};
use super::presence::Presences;
use super::state::State;
use crate::{answers, pool};
pub(super) use logs::Logs;

/// What answers requests.
pub(crate) struct Service {
    pub(super) limits: Limits,
    /// Are LRPs without metric tags taken?
    pub(super) old_clients: bool,
    pub(super) state: View<State>,
    pub(super) commands: Commands,
    pub(super) presences: Arc<Presences>,
    pub(super) locket: Locket,
    pub(super) reps: Arc<Reps>,
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) passes: Arc<Passes>,
    pub(super) outbound: Arc<Outbound>,
    pub(super) logs: Logs,
}

/// A request that was refused before it was understood.
enum RequestRejection {
    /// The protocol's error.
    Invalid(Error),
    /// The body did not arrive, and what follows on the connection is unknown.
    Broken(Error),
}

impl From<RequestRejection> for Response<Body> {
    fn from(unread: RequestRejection) -> Self {
        match unread {
            RequestRejection::Invalid(error) => answer::error(error),
            RequestRejection::Broken(error) => answer::closing(answer::error(error)),
        }
    }
}

type Answered = Result<Response<Body>, RequestRejection>;

impl Handler for Service {
    fn connection_failed(&self, failure: &ConnectionFailure) {
        let logger = &self.logs.request;
        logger.error("no-connection", failure, Fields::new());
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let start = Instant::now();
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let log = |event| {
            // Fields cost more than the check, and few look at these lines.
            if self.logs.request.enabled(Level::Debug) {
                let fields = Fields::new().and("method", head.method.as_str());
                self.logs.request.debug(event, fields.and("request", path));
            }
        };
        log("serving");
        let response = match wanted_method(path) {
            None => answers::no_such_path(),
            Some(wanted) if wanted != head.method => answer::wrong_method(&wanted),
            Some(_) => {
                let trace = head
                    .headers
                    .get(TRACE_HEADER)
                    .and_then(|trace| trace.to_str().ok());
                let answered = self.route(path, body, trace.unwrap_or_default()).await;
                answered.unwrap_or_else(Response::from)
            }
        };
        self.metrics.requests.add(1);
        self.metrics.request_time.add(start.elapsed());
        log("done");
        response
    }
}

/// Where the numbers of the service can be read.
const METRICS: &str = "/metrics";

/// The method of a path; `None` when there is no such path.
fn wanted_method(path: &str) -> Option<Method> {
    match path {
        path::GROUP_EVENTS | path::GROUP_EVENTS_R0 | METRICS => Some(Method::GET),
        path if is_post(path) => Some(Method::POST),
        _ => None,
    }
}

macro_rules! routes {
    ($($path:path => |$service:ident, $body:ident, $trace:ident| $call:expr;)*) => {
        fn is_post(path: &str) -> bool {
            matches!(path, $($path)|*)
        }

        impl Service {
            async fn route(&self, path: &str, body: Incoming, trace: &str) -> Answered {
                match path {
                    $($path => {
                        let ($service, $body, $trace) = (self, body, trace);
                        let _ = $trace;
                        $call
                    })*
                    path::GROUP_EVENTS => {
                        self.events(body, Stream::Groups { old_form: false }).await
                    }
                    path::GROUP_EVENTS_R0 => {
                        self.events(body, Stream::Groups { old_form: true }).await
                    }
                    METRICS => Ok(self.metrics_text()),
                    _ => Ok(answers::no_such_path()),
                }
            }
        }
    };
}

routes! {
    path::PING => |_service, _body, _trace| Ok(answer::message(&PingResponse { available: true }));
    path::DOMAINS => |service, _body, _trace| Ok(service.domains());
    path::UPSERT_DOMAIN => |service, body, _trace| service.upsert_domain(body).await;
    path::CELLS => |service, _body, _trace| Ok(service.cells());

    path::TASKS => |service, body, _trace| service.tasks(body, false).await;
    path::TASKS_R2 => |service, body, _trace| service.tasks(body, true).await;
    path::TASK_BY_GUID => |service, body, _trace| service.task(body, false).await;
    path::TASK_BY_GUID_R2 => |service, body, _trace| service.task(body, true).await;
    path::DESIRE_TASK => |service, body, _trace| service.desire_task(body).await;
    path::START_TASK => |service, body, _trace| service.start_task(body).await;
    path::COMPLETE_TASK => |service, body, _trace| service.complete_task(body).await;
    path::FAIL_TASK => |service, body, _trace| service.fail_task(body).await;
    path::CANCEL_TASK => |service, body, trace| service.cancel_task(body, trace).await;
    path::REJECT_TASK => |service, body, _trace| service.reject_task(body).await;
    path::RESOLVING_TASK => |service, body, _trace| service.resolving_task(body).await;
    path::DELETE_TASK => |service, body, _trace| service.delete_task(body).await;

    path::DESIRE_LRP => |service, body, trace| service.desire_lrp(body, trace).await;
    path::UPDATE_DESIRED_LRP => |service, body, trace| service.update_lrp(body, trace).await;
    path::REMOVE_DESIRED_LRP => |service, body, trace| service.remove_lrp(body, trace).await;
    path::DESIRED_LRPS => |service, body, _trace| service.desired_lrps(body, false).await;
    path::DESIRED_LRPS_R2 => |service, body, _trace| service.desired_lrps(body, true).await;
    path::DESIRED_LRP_BY_PROCESS_GUID =>
        |service, body, _trace| service.desired_lrp(body, false).await;
    path::DESIRED_LRP_BY_PROCESS_GUID_R2 =>
        |service, body, _trace| service.desired_lrp(body, true).await;
    path::DESIRED_LRP_SCHEDULING_INFOS => |service, body, _trace| service.scheduling_infos(body).await;
    path::DESIRED_LRP_SCHEDULING_INFO => |service, body, _trace| service.scheduling_info(body).await;
    path::DESIRED_LRP_ROUTING_INFOS => |service, body, _trace| service.routing_infos(body).await;

    path::ACTUAL_LRPS => |service, body, _trace| service.actual_lrps(body).await;
    path::ACTUAL_LRPS_BY_PROCESS_GUIDS =>
        |service, body, _trace| service.actual_lrps_by_process_guids(body).await;
    path::ACTUAL_LRP_GROUPS => |service, body, _trace| service.groups(body).await;
    path::ACTUAL_LRP_GROUPS_BY_PROCESS_GUID =>
        |service, body, _trace| service.groups_by_process_guid(body).await;
    path::ACTUAL_LRP_GROUP_BY_PROCESS_GUID_AND_INDEX =>
        |service, body, _trace| service.group(body).await;
    path::CLAIM_ACTUAL_LRP => |service, body, _trace| service.claim(body).await;
    path::START_ACTUAL_LRP => |service, body, _trace| service.start(body, false).await;
    path::START_ACTUAL_LRP_R0 => |service, body, _trace| service.start(body, true).await;
    path::CRASH_ACTUAL_LRP => |service, body, _trace| service.crash(body).await;
    path::FAIL_ACTUAL_LRP => |service, body, _trace| service.fail(body).await;
    path::REMOVE_ACTUAL_LRP => |service, body, _trace| service.remove(body).await;
    path::RETIRE_ACTUAL_LRP => |service, body, trace| service.retire(body, trace).await;
    path::REMOVE_EVACUATING_ACTUAL_LRP => |service, body, _trace| service.remove_evacuating(body).await;
    path::EVACUATE_CLAIMED_ACTUAL_LRP => |service, body, _trace| service.evacuate_claimed(body).await;
    path::EVACUATE_CRASHED_ACTUAL_LRP => |service, body, _trace| service.evacuate_crashed(body).await;
    path::EVACUATE_STOPPED_ACTUAL_LRP => |service, body, _trace| service.evacuate_stopped(body).await;
    path::EVACUATE_RUNNING_ACTUAL_LRP =>
        |service, body, _trace| service.evacuate_running(body, false).await;
    path::EVACUATE_RUNNING_ACTUAL_LRP_R0 =>
        |service, body, _trace| service.evacuate_running(body, true).await;

    path::TASK_EVENTS =>
        |service, _body, _trace| Ok(service.all_events(Stream::Tasks { old_form: false }));
    path::TASK_EVENTS_R0 =>
        |service, _body, _trace| Ok(service.all_events(Stream::Tasks { old_form: true }));
    path::INSTANCE_EVENTS =>
        |service, body, _trace| service.events(body, Stream::Instances { old_form: false }).await;
    path::INSTANCE_EVENTS_R0 =>
        |service, body, _trace| service.events(body, Stream::Instances { old_form: true }).await;

    path::LOCKET_LOCK => |service, body, _trace| service.locket(path::LOCKET_LOCK, body).await;
    path::LOCKET_RELEASE => |service, body, _trace| service.locket(path::LOCKET_RELEASE, body).await;
    path::LOCKET_FETCH => |service, body, _trace| service.locket(path::LOCKET_FETCH, body).await;
    path::LOCKET_FETCH_ALL => |service, body, _trace| service.locket(path::LOCKET_FETCH_ALL, body).await;
}

impl Service {
    /// The bytes of a request's body.
    async fn bytes(&self, body: Incoming) -> Result<Bytes, RequestRejection> {
        let limits = &self.limits;
        let read = net::read_body(body, limits.body_bytes, limits.body_within).await;
        read.map_err(|cause| {
            self.metrics.refused.add(1);
            RequestRejection::Broken(with_text(Type::InvalidRequest, cause.to_string()))
        })
    }

    /// The request in a body, checked.
    async fn read<M: Message + Default + Validate>(
        &self,
        body: Incoming,
    ) -> Result<M, RequestRejection> {
        self.read_with(body, |_| ()).await
    }

    /// The request in a body, completed and then checked.
    async fn read_with<M: Message + Default + Validate>(
        &self,
        body: Incoming,
        complete: impl FnOnce(&mut M),
    ) -> Result<M, RequestRejection> {
        let bytes = self.bytes(body).await?;
        let checked = M::decode(bytes)
            .map_err(|_| error(Type::InvalidRequest))
            .and_then(|mut request: M| {
                complete(&mut request);
                request.validate().map(|()| request)
            });
        checked.map_err(|error| {
            self.metrics.refused.add(1);
            RequestRejection::Invalid(error)
        })
    }

    /// Does a command that answers nothing but success.
    async fn run(&self, command: Command) -> Result<(), Error> {
        match self.commands.run(command).await? {
            Reply::Refused(error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Answers a command that answers nothing but success.
    async fn order(&self, command: Command) -> Answered {
        Ok(answer::lifecycle(self.run(command).await))
    }

    /// The same, with a line for its success.
    async fn order_logged(
        &self,
        command: Command,
        logger: &Logger,
        event: &str,
        fields: Fields,
    ) -> Answered {
        let result = self.run(command).await;
        if result.is_ok() {
            logger.info(event, fields);
        }
        Ok(answer::lifecycle(result))
    }

    fn metrics_text(&self) -> Response<Body> {
        let (gauges, counts, gone_dark) = {
            let state = self.state.read();
            let gauges = Gauges {
                writer: self.commands.counts(),
                subscribers: self.hub.subscribers(),
                tasks: state.tasks.len(),
                processes: state.processes.len(),
                outbound: self.outbound.lengths(),
            };
            (gauges, state.counts().clone(), state.gone_dark())
        };
        let mut page = self.metrics.page(gauges);
        self.passes.write(&mut page, &counts);
        pool::write(&mut page, "bbs", &self.outbound.pool_counts());
        page.counter(
            "bbs_lrps_gone_dark_total",
            "Times that a desired instance lost the last of its copies that run and are routable.",
            gone_dark,
        );
        page.gauge(
            "bbs_cells_present",
            "Cells that hold their presence.",
            self.presences.cells(Instant::now()).len(),
        );
        let text = page.into_text();
        net::response(StatusCode::OK, prometheus::CONTENT_TYPE, text)
    }
}
