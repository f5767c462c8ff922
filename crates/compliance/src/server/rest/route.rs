//! A call of the API as data.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::super::service::Service;
use super::super::state::Access;
use super::answers::ApiError;
use super::query::Query;
use super::schema::{Field, Schema};

/// What a call does: Rudder creates by PUT and changes by POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Put,
    Post,
    Delete,
}

impl Verb {
    /// The method of HTTP.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// What a call takes as its body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Input {
    Nothing,
    /// JSON that is checked first.
    Checked(&'static Schema),
    /// JSON that is read as what it describes: it may be large.
    Read(&'static Schema),
}

/// The data of an answer, or why there is none.
pub(super) type Answer = Result<Value, ApiError>;

/// An answer that takes time.
pub(super) type Later<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Who does it.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// At once.
    Now(fn(&Service, &Call<'_>) -> Answer),
    /// After something else.
    Later(for<'a> fn(&'a Service, &'a Call<'a>) -> Later<'a>),
}

/// A call.
pub(super) struct Route {
    pub(super) method: Verb,
    /// Below the version; `{id}` is an argument.
    pub(super) path: &'static str,
    /// Its name in answers.
    pub(super) action: &'static str,
    pub(super) summary: &'static str,
    /// What a token must allow.
    pub(super) access: Access,
    /// What may follow `?`.
    pub(super) query: &'static [Field],
    pub(super) input: Input,
    /// What is in `data`, by its key; without one it is all of `data`.
    pub(super) output: (&'static str, &'static Schema),
    pub(super) work: Work,
    /// Is its answer long, so that few are made at once, and on threads of their own?
    pub(super) long: bool,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident: $method:ident, $access:ident;)*) => {
        $($(#[$doc])*
        pub(super) const fn $name(
            path: &'static str,
            action: &'static str,
            summary: &'static str,
            output: (&'static str, &'static Schema),
            work: Work,
        ) -> Self {
            Self {
                method: Verb::$method,
                path,
                action,
                summary,
                access: Access::$access,
                query: &[],
                input: Input::Nothing,
                output,
                work,
                long: false,
            }
        })*
    };
}

impl Route {
    constructors! {
        /// A call that reads and takes nothing else than its path.
        get: Get, Read;
        /// One that makes something.
        put: Put, Write;
        /// One that changes something.
        post: Post, Write;
        /// One that deletes something.
        delete: Delete, Write;
    }

    /// One whose answer may be long.
    pub(super) const fn long(mut self) -> Self {
        self.long = true;
        self
    }

    /// For tokens that allow this.
    pub(super) const fn by(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// With a body that is checked.
    pub(super) const fn takes(mut self, schema: &'static Schema) -> Self {
        self.input = Input::Checked(schema);
        self
    }

    /// With a body that is read as what this describes.
    pub(super) const fn reads(mut self, schema: &'static Schema) -> Self {
        self.input = Input::Read(schema);
        self
    }

    /// With parameters.
    pub(super) const fn with_query(mut self, query: &'static [Field]) -> Self {
        self.query = query;
        self
    }

    /// The arguments in a path, if it is one of this call.
    pub(super) fn arguments<'p>(&self, path: &[&'p str]) -> Option<Vec<&'p str>> {
        let mut arguments = Vec::new();
        let mut parts = self.path.split('/');
        for given in path {
            match parts.next()? {
                part if part.starts_with('{') => arguments.push(*given),
                part if part == *given => {}
                _ => return None,
            }
        }
        parts.next().is_none().then_some(arguments)
    }
}

/// Calls: of each the method, its path, name and summary; then what it answers, what it does, and
/// what else makes a [`Route`] of it.
macro_rules! routes {
    ($(
        $method:ident $path:literal $action:literal $summary:literal
        => $key:literal: $output:expr, $when:ident($work:expr) $(, $more:ident($with:expr))*;
    )*) => {
        &[$(
            $crate::server::rest::route::Route::$method(
                $path,
                $action,
                $summary,
                ($key, &$output),
                $crate::server::rest::route::Work::$when($work),
            )
            $(.$more($with))*,
        )*]
    };
}
pub(super) use routes;

/// What is asked.
pub(super) struct Call<'a> {
    /// Those of the path, in order.
    pub(super) arguments: Vec<&'a str>,
    pub(super) query: Query,
    /// As it came.
    pub(super) body: Bytes,
    /// The same, if the call has it checked.
    pub(super) json: Value,
    /// Whose token it came with; for the log.
    pub(super) account: String,
    /// Its turn among calls whose answers are long.
    pub(super) turn: Option<Turn>,
}

/// A turn lasts for as long as somebody works in it, whether the caller is there or not.
pub(super) type Turn = Arc<OwnedSemaphorePermit>;

/// Does on a thread of its own what would keep others waiting on this one.
pub(super) async fn run_blocking<T: Send + 'static>(
    turn: Option<Turn>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let work = move || {
        let done = work();
        drop(turn);
        done
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        let details = format!("the answer could not be made: {error}; the server's log says why");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, details)
    })
}

impl Service {
    /// Waits for a turn; `None`: the server ends, and nobody waits for another.
    pub(super) async fn turn(&self) -> Option<Turn> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        turn.ok().map(Arc::new)
    }
}

impl Call<'_> {
    /// Does what takes long in the call's turn, on a thread of its own.
    pub(super) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        run_blocking(self.turn.clone(), work).await
    }

    /// The first argument; a call without one has none.
    pub(super) fn id(&self) -> &str {
        self.arguments.first().copied().unwrap_or_default()
    }

    /// A checked body as a value; what the schema does not know of is told of the body.
    pub(super) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_value(self.json.clone())
            .map_err(|error| ApiError::bad(format!("the body: {error}")))
    }
}
