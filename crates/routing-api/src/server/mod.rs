//! The API over HTTP: which path does what.

mod admin;
mod answers;
mod bodies;
mod status;
mod tokens;

use std::sync::{Arc, RwLockReadGuard};

use bytes::Bytes;
use commit::View;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use telemetry::{Fields, Logger, prometheus};

use super::events::{Hub, Stream};
use super::ledger::{Commands, wall_clock};
use super::metrics::{Gauges, Metrics};
use super::model::{ApiError, ErrorName, RouterGroup, read_list, read_object};
use super::state::{Command, Reply, State};

pub(crate) use admin::{Admin, GroupLocks};
pub(crate) use bodies::Bodies;
use bodies::BodyRejection;
pub(crate) use status::Status;
pub use tokens::KeyError;
pub(crate) use tokens::{Scope, Tokens};

/// What answers requests.
pub(crate) struct Service {
    pub(crate) state: View<State>,
    pub(crate) commands: Commands,
    pub(crate) hub: Arc<Hub>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) bodies: Bodies,
    pub(crate) group_locks: Arc<GroupLocks>,
    pub(crate) logger: Logger,
}

/// A call of the API.
enum Call<'a> {
    ListGroups,
    CreateGroup,
    UpdateGroup(&'a str),
    DeleteGroup(&'a str),
    ListTcp,
    UpsertTcp,
    DeleteTcp,
    TcpEvents,
    ListHttp,
    UpsertHttp,
    DeleteHttp,
    HttpEvents,
    Health,
    Metrics,
}

const GROUPS: &str = "/routing/v1/router_groups";
const TCP: &str = "/routing/v1/tcp_routes";
const TCP_UPSERT: &str = "/routing/v1/tcp_routes/create";
const TCP_DELETE: &str = "/routing/v1/tcp_routes/delete";
const TCP_EVENTS: &str = "/routing/v1/tcp_routes/events";
const HTTP: &str = "/routing/v1/routes";
const HTTP_EVENTS: &str = "/routing/v1/events";
const HEALTH: &str = "/health";
const METRICS: &str = "/metrics";

/// Which call a request means.
fn call<'a>(method: &Method, path: &'a str) -> Option<Call<'a>> {
    let group = path
        .strip_prefix(GROUPS)
        .and_then(|rest| rest.strip_prefix('/'))
        .filter(|guid| !guid.is_empty() && !guid.contains('/'));
    Some(match (method.as_str(), path, group) {
        ("PUT", _, Some(guid)) => Call::UpdateGroup(guid),
        ("DELETE", _, Some(guid)) => Call::DeleteGroup(guid),
        ("GET", GROUPS, _) => Call::ListGroups,
        ("POST", GROUPS, _) => Call::CreateGroup,
        ("GET", TCP, _) => Call::ListTcp,
        ("POST", TCP_UPSERT, _) => Call::UpsertTcp,
        ("POST", TCP_DELETE, _) => Call::DeleteTcp,
        ("GET", TCP_EVENTS, _) => Call::TcpEvents,
        ("GET", HTTP, _) => Call::ListHttp,
        ("POST", HTTP, _) => Call::UpsertHttp,
        ("DELETE", HTTP, _) => Call::DeleteHttp,
        ("GET", HTTP_EVENTS, _) => Call::HttpEvents,
        ("GET", HEALTH, _) => Call::Health,
        ("GET", METRICS, _) => Call::Metrics,
        _ => return None,
    })
}

/// The methods that a path has, as routing-api tells them: HEAD is none, although GET may be one.
fn allowed(path: &str) -> String {
    let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
    let has = methods.iter().filter(|method| call(method, path).is_some());
    has.map(Method::as_str).collect::<Vec<_>>().join(", ")
}

impl Call<'_> {
    /// The scope that a caller needs; `None`: anybody may.
    fn scope(&self) -> Option<Scope> {
        match self {
            Self::ListGroups => Some(Scope::ReadGroups),
            Self::CreateGroup | Self::UpdateGroup(_) | Self::DeleteGroup(_) => {
                Some(Scope::WriteGroups)
            }
            Self::ListTcp | Self::TcpEvents | Self::ListHttp | Self::HttpEvents => {
                Some(Scope::ReadRoutes)
            }
            Self::UpsertTcp | Self::DeleteTcp | Self::UpsertHttp | Self::DeleteHttp => {
                Some(Scope::WriteRoutes)
            }
            Self::Health | Self::Metrics => None,
        }
    }
}

/// Why there is no answer of the usual kind.
enum Refused {
    /// The API's error.
    Error(ApiError),
    /// The body did not arrive.
    Unread(BodyRejection),
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl Handler for Service {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        Metrics::add(&self.metrics.requests, 1);
        let (head, body) = request.into_parts();
        let answered = match call(&head.method, head.uri.path()) {
            None => return answers::no_call(&allowed(head.uri.path())),
            Some(call) => self.answer(&call, &head, body).await,
        };
        answered.unwrap_or_else(|refused| self.refuse(&head, refused))
    }
}

impl Service {
    async fn answer(
        &self,
        call: &Call<'_>,
        head: &Parts,
        body: Incoming,
    ) -> Result<Response<Body>, Refused> {
        self.authorize(call.scope(), &head.headers)?;
        self.group_locks.check(call)?;
        let (created, gone) = (StatusCode::CREATED, StatusCode::NO_CONTENT);
        match call {
            Call::Health => self.health(),
            Call::Metrics => Ok(self.metrics_page()),
            Call::ListGroups => self.list_groups(head.uri.query()),
            Call::CreateGroup => {
                let group: RouterGroup = read_object(&self.bytes(body).await?)?;
                match self.commands.run(Command::CreateGroup(group)).await? {
                    Reply::Created(group) => Ok(answers::json(StatusCode::CREATED, &*group)),
                    reply => Ok(group_answer(&reply)),
                }
            }
            Call::UpdateGroup(guid) => {
                let group: RouterGroup = read_object(&self.bytes(body).await?)?;
                let command = Command::UpdateGroup {
                    guid: unescaped(guid),
                    reservable_ports: group.reservable_ports,
                };
                let reply = self.commands.run(command).await?;
                Ok(answers::warned(group_answer(&reply)))
            }
            Call::DeleteGroup(guid) => {
                let command = Command::DeleteGroup(unescaped(guid));
                Ok(group_answer(&self.commands.run(command).await?))
            }
            Call::ListTcp => {
                let segments = query(head.uri.query(), "isolation_segment");
                let rows = self.state()?.tcp_mappings(&segments, wall_clock());
                let list: Vec<_> = rows.iter().map(|row| &row.value).collect();
                Ok(answers::json(StatusCode::OK, &list))
            }
            Call::ListHttp => {
                let rows = self.state()?.http_routes(wall_clock());
                let list: Vec<_> = rows.iter().map(|row| &row.value).collect();
                Ok(answers::json(StatusCode::OK, &list))
            }
            Call::UpsertTcp => self.write(body, Command::UpsertTcp, created).await,
            Call::DeleteTcp => self.write(body, Command::DeleteTcp, gone).await,
            Call::UpsertHttp => self.write(body, Command::UpsertHttp, created).await,
            Call::DeleteHttp => self.write(body, Command::DeleteHttp, gone).await,
            Call::TcpEvents => self.events(Stream::Tcp),
            Call::HttpEvents => self.events(Stream::Http),
        }
    }

    /// Everything that is stored.
    fn state(&self) -> Result<RwLockReadGuard<'_, State>, ApiError> {
        let state = self.state.read();
        if state.lost {
            return Err(ApiError::database("the database is out of reach"));
        }
        Ok(state)
    }

    fn authorize(&self, scope: Option<Scope>, headers: &HeaderMap) -> Result<(), ApiError> {
        let (Some(tokens), Some(scope)) = (&self.tokens, scope) else {
            return Ok(());
        };
        tokens.check(headers, scope).map_err(|cause| {
            Metrics::add(&self.metrics.token_errors, 1);
            ApiError::new(ErrorName::UnauthorizedError, cause)
        })
    }

    async fn bytes(&self, body: Incoming) -> Result<Bytes, Refused> {
        self.bodies.read(body).await.map_err(Refused::Unread)
    }

    /// Does what a call asks for with the list in its body.
    async fn write<T: DeserializeOwned + Send>(
        &self,
        body: Incoming,
        command: fn(Vec<T>) -> Command,
        status: StatusCode,
    ) -> Result<Response<Body>, Refused> {
        let list = read_list(&self.bytes(body).await?)?;
        self.commands.run(command(list)).await?;
        Ok(answers::bare(status))
    }

    fn events(&self, stream: Stream) -> Result<Response<Body>, Refused> {
        // Without a database nobody could tell what happens.
        drop(self.state()?);
        Ok(net::events::answer(self.hub.subscribe(stream)))
    }

    fn list_groups(&self, asked: Option<&str>) -> Result<Response<Body>, Refused> {
        let name = query(asked, "name").into_iter().next().unwrap_or_default();
        let groups: Vec<Arc<RouterGroup>> = {
            let state = self.state()?;
            let wanted = |group: &&Arc<RouterGroup>| name.is_empty() || group.name == name;
            state.groups.values().filter(wanted).cloned().collect()
        };
        if groups.is_empty() && !name.is_empty() {
            let message = format!("router group '{name}' not found");
            return Err(ApiError::new(ErrorName::ResourceNotFoundError, message).into());
        }
        Ok(answers::json(StatusCode::OK, &groups))
    }

    fn health(&self) -> Result<Response<Body>, Refused> {
        drop(self.state()?);
        Ok(net::plain_text(StatusCode::OK, "ok\n"))
    }

    fn metrics_page(&self) -> Response<Body> {
        let gauges = {
            let state = self.state.read();
            Gauges {
                tcp_routes: state.tcp.len(),
                http_routes: state.http.len(),
                router_groups: state.groups.len(),
                tcp_subscriptions: self.hub.subscribers(Stream::Tcp),
                http_subscriptions: self.hub.subscribers(Stream::Http),
                writer: self.commands.counts(),
                database_up: !state.lost,
            }
        };
        let page = self.metrics.page(&gauges);
        net::response(StatusCode::OK, prometheus::CONTENT_TYPE, page)
    }

    fn refuse(&self, head: &Parts, refused: Refused) -> Response<Body> {
        let log = |cause: &dyn std::fmt::Display, status: StatusCode| {
            let fields = Fields::new()
                .and("method", head.method.as_str())
                .and("path", head.uri.path())
                .and("status", status.as_u16())
                .and("cause", cause.to_string());
            // No error of ours, and anybody can make many: such lines may be dropped.
            self.logger.info("refused", fields);
        };
        match refused {
            Refused::Error(error) => {
                let response = answers::error(&error);
                log(&error, response.status());
                response
            }
            Refused::Unread(BodyRejection::Body(cause)) => {
                let status = match cause {
                    net::BodyError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                    net::BodyError::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
                    net::BodyError::Broken(_) => StatusCode::BAD_REQUEST,
                };
                log(&cause, status);
                let error = ApiError::process(cause);
                answers::closing(answers::json(status, &error))
            }
            Refused::Unread(BodyRejection::Busy) => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                let error = ApiError::process("too many bodies are being read; try again later");
                log(&error, status);
                answers::closing(answers::json(status, &error))
            }
        }
    }
}

fn group_answer(reply: &Reply) -> Response<Body> {
    match reply {
        Reply::Group(group) | Reply::Created(group) => answers::json(StatusCode::OK, &**group),
        Reply::NoGroup => answers::bare(StatusCode::NOT_FOUND),
        Reply::Done | Reply::Pruned(_) => answers::bare(StatusCode::NO_CONTENT),
    }
}

/// The values of one name in a query.
fn query(query: Option<&str>, name: &str) -> Vec<String> {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let values = pairs.filter(|(key, _)| key == name);
    values.map(|(_, value)| value.into_owned()).collect()
}

/// A part of a path without its escapes.
fn unescaped(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}
