//! Objects that a folder defines or the API makes: to list, to look at, to create, to change and
//! to delete. What the folder defined is not changed behind its back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::answers::{API, ApiError, FOLDER};
use super::route::{Answer, Call, Later};
use super::schema::{Field, Schema, Wrong, may};
use crate::definitions::{Definitions, Edit, Made, Object};
use crate::policy::system::is_reserved;
use crate::server::edit::MakeEdit;
use crate::server::generator::Task;
use crate::server::service::Service;
use crate::trust::random_id;

/// Objects that name another one, of which a refusal tells.
const NAMED: usize = 10;

/// Labels, each an object.
pub(super) static TAGS: Schema = Schema::List(&Schema::Map(&Schema::Any), 1_000);

/// Who manages an object.
pub(super) const MANAGED_BY: Field = may("managedBy", &Schema::Word(&[FOLDER, API]))
    .note("only shown: folder, if headroom compliance apply brought it, or api");
/// What it is to be a copy of.
pub(super) const SOURCE: Field = may("source", &Schema::Identity)
    .note("only to create it: the one whose fields it has where it names none, disabled");
/// One of the server's own?
pub(super) const SYSTEM: Field = may("system", &Schema::Flag).note("only shown");

/// Adds what is shown of an object.
pub(super) type Show<'s, T> = Box<dyn Fn(&T, &mut Map<String, Value>) + 's>;

/// A kind of object.
pub(super) trait Managed: Serialize + DeserializeOwned + Clone + Send + 'static {
    /// `rule`
    const KIND: &'static str;
    /// `rules`
    const LIST: &'static str;
    /// Fields without which none is created.
    const NEEDED: &'static [&'static str];
    /// Is it deleted if there is none? So that to delete again is no error.
    const GONE_IS_DELETED: bool = true;
    /// Fields that say which one it is, as a path names them.
    const IDENTITY: &'static [&'static str] = &["id"];

    /// All of them.
    fn table(all: &Definitions) -> &BTreeMap<String, Self>;
    /// Those that the API made.
    fn made(made: &Made) -> &BTreeSet<String>;
    /// As one of all kinds.
    fn object(self) -> Object;
    /// What is wrong with it among the others; fields are named as the API does.
    fn wrong(&self, all: &Definitions) -> Vec<Wrong>;
    /// Who names it, and could not without it.
    fn users(id: &str, all: &Definitions) -> Vec<String>;

    /// What adds to each of some objects what the API shows beside what is defined.
    fn show<'s>(_: &'s Service, _: &'s Definitions) -> Show<'s, Self> {
        Box::new(|_, _| {})
    }
    /// Adds to fields that are to change what follows of them and is not defined.
    fn carry_over(_: &Service, _: &str, _: &mut Map<String, Value>) {}
    /// Adds to fields that are to change what they leave of those that were.
    fn keep(&self, _: &mut Map<String, Value>) {}
    /// Fills in what may be left out, and takes out what is only shown.
    fn complete(_: &mut Map<String, Value>, _: &Definitions) {}
    /// Fills in what may be left out of what it consists of.
    fn fill(&mut self) {}
}

/// What a kind is called, and where definitions have it.
macro_rules! kind {
    ($kind:literal, $table:ident, $object:ident) => {
        const KIND: &'static str = $kind;
        const LIST: &'static str = stringify!($table);

        fn table(
            all: &$crate::definitions::Definitions,
        ) -> &std::collections::BTreeMap<String, Self> {
            &all.$table
        }

        fn made(made: &$crate::definitions::Made) -> &std::collections::BTreeSet<String> {
            &made.$table
        }

        fn object(self) -> $crate::definitions::Object {
            $crate::definitions::Object::$object(self)
        }
    };
}
pub(super) use kind;

/// The key in the table of one that a path names.
fn key_of(call: &Call<'_>) -> String {
    call.arguments.join("/")
}

/// The key in the table of one with these fields.
fn key<T: Managed>(body: &Map<String, Value>) -> Option<String> {
    let parts = T::IDENTITY.iter().map(|name| body.get(*name)?.as_str());
    Some(parts.collect::<Option<Vec<_>>>()?.join("/"))
}

fn all_fields<T: Managed>(one: &T) -> Map<String, Value> {
    match json!(one) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The fields of one, some of which are changed.
fn changed<T: Managed>(one: &T, mut body: Map<String, Value>) -> Map<String, Value> {
    one.keep(&mut body);
    let mut whole = all_fields(one);
    whole.extend(body);
    whole
}

fn shown<T: Managed>(show: &Show<'_, T>, all: &Definitions, id: &str, one: &T) -> Value {
    let mut object = all_fields(one);
    let by = match T::made(&all.made).contains(id) {
        true => API,
        false => FOLDER,
    };
    object.insert("managedBy".into(), by.into());
    show(one, &mut object);
    object.into()
}

/// All of a kind.
pub(super) fn list<T: Managed>(service: &Service, _: &Call<'_>) -> Answer {
    Ok(json!({T::LIST: listed::<T>(service, |_| true)}))
}

/// Those that are wanted.
pub(super) fn listed<T: Managed>(service: &Service, wanted: impl Fn(&T) -> bool) -> Vec<Value> {
    let all = Arc::clone(&service.view.read().definitions);
    let show = T::show(service, &all);
    let list = T::table(&all).iter().filter(|(_, one)| wanted(one));
    list.map(|(id, one)| shown(&show, &all, id, one)).collect()
}

/// One of a kind.
pub(super) fn one<T: Managed>(service: &Service, call: &Call<'_>) -> Answer {
    by_id::<T>(service, &key_of(call))
}

fn by_id<T: Managed>(service: &Service, id: &str) -> Answer {
    let all = Arc::clone(&service.view.read().definitions);
    match T::table(&all).get(id) {
        Some(one) => {
            let show = T::show(service, &all);
            Ok(json!({T::LIST: [shown(&show, &all, id, one)]}))
        }
        None => Err(ApiError::not_found(T::KIND, id)),
    }
}

/// Makes one; without an identity it gets one.
pub(super) fn create<'a, T: Managed>(service: &'a Service, call: &'a Call<'a>) -> Later<'a> {
    Box::pin(async move {
        let mut body = with_source::<T>(service, fields(call))?;
        let missing = T::NEEDED.iter().filter(|name| !body.contains_key(**name));
        let missing: Vec<_> = missing
            .map(|name| Wrong::new(*name, "it is missing; without it nothing can be created"))
            .collect();
        if !missing.is_empty() {
            return Err(ApiError::wrong(missing));
        }
        let id = match key::<T>(&body) {
            Some(id) => id,
            None => {
                let id = random_id().map_err(ApiError::unavailable)?;
                body.insert("id".into(), id.clone().into());
                id
            }
        };
        let known = id.clone();
        let make = MakeEdit::new(move |all| {
            if T::table(all).contains_key(&known) {
                let by = of_folder::<T>(all, &known);
                let why = format!(
                    "there is a {} \"{known}\" already; change it by POST /{}/{known}, or choose \
                     another id",
                    T::KIND,
                    T::LIST
                );
                return Err(ApiError::managed(if by { FOLDER } else { API }, why));
            }
            Ok(Edit::Put(fitting::<T>(body, all)?.object()))
        });
        edited(service, make).await?;
        by_id::<T>(service, &id)
    })
}

/// Changes some fields of one.
pub(super) fn update<'a, T: Managed>(service: &'a Service, call: &'a Call<'a>) -> Later<'a> {
    Box::pin(async move {
        let (mut body, id) = (fields(call), key_of(call));
        for (name, given) in T::IDENTITY.iter().zip(&call.arguments) {
            if let Some(other) = body.get(*name).filter(|other| **other != **given) {
                let message =
                    format!("{other} is another than that of the address; they cannot change");
                return Err(ApiError::field(*name, message));
            }
        }
        T::carry_over(service, &id, &mut body);
        let make = MakeEdit::new(move |all| {
            let whole = changed(own::<T>(all, &id)?, body);
            Ok(Edit::Put(fitting::<T>(whole, all)?.object()))
        });
        edited(service, make).await?;
        by_id::<T>(service, &key_of(call))
    })
}

/// What one would be with other fields; nothing changes.
pub(super) fn check<T: Managed>(service: &Service, call: &Call<'_>) -> Answer {
    let (body, id) = (fields(call), key_of(call));
    let all = Arc::clone(&service.view.read().definitions);
    let whole = changed(own::<T>(&all, &id)?, body);
    let changed = fitting::<T>(whole, &all)?;
    let show = T::show(service, &all);
    Ok(json!({T::LIST: [shown(&show, &all, &id, &changed)]}))
}

/// Deletes one, and tells what it was.
pub(super) fn remove<'a, T: Managed>(service: &'a Service, call: &'a Call<'a>) -> Later<'a> {
    Box::pin(async move {
        let id = key_of(call);
        if T::GONE_IS_DELETED && !is_reserved(&id) {
            let all = Arc::clone(&service.view.read().definitions);
            if !T::table(&all).contains_key(&id) {
                return Ok(json!({T::LIST: [{"id": id}]}));
            }
        }
        let was = by_id::<T>(service, &id)?;
        let make = MakeEdit::new(move |all| {
            let one = own::<T>(all, &id)?;
            let users = T::users(&id, all);
            if users.is_empty() {
                return Ok(Edit::Remove(one.clone().object()));
            }
            let first = users.iter().take(NAMED).cloned().collect::<Vec<_>>();
            let more = match users.len() - first.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Err(ApiError::conflict(format!(
                "the {} \"{id}\" is still named by {}{more}; change that first",
                T::KIND,
                first.join(", ")
            )))
        });
        edited(service, make).await?;
        Ok(was)
    })
}

fn fields(call: &Call<'_>) -> Map<String, Value> {
    let mut fields = call.json.as_object().cloned().unwrap_or_default();
    fields.remove("managedBy");
    fields.remove("system");
    fields
}

/// A body with the fields of the one that it is to be a copy of, where it has none itself. A copy
/// is disabled until somebody looked at it.
fn with_source<T: Managed>(
    service: &Service,
    mut body: Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    let Some(source) = body.remove("source") else {
        return Ok(body);
    };
    let all = Arc::clone(&service.view.read().definitions);
    let source = source.as_str().unwrap_or_default();
    let Some(mut whole) = T::table(&all).get(source).map(all_fields) else {
        let message = format!("there is no {} \"{source}\"", T::KIND);
        return Err(ApiError::field("source", message));
    };
    for name in T::IDENTITY.iter().chain(&["system"]) {
        whole.remove(*name);
    }
    if whole.contains_key("enabled") {
        whole.insert("enabled".into(), false.into());
    }
    whole.extend(body);
    Ok(whole)
}

fn of_folder<T: Managed>(all: &Definitions, id: &str) -> bool {
    T::table(all).contains_key(id) && !T::made(&all.made).contains(id)
}

/// One that the API may change.
fn own<'d, T: Managed>(all: &'d Definitions, id: &str) -> Result<&'d T, ApiError> {
    let one = T::table(all).get(id);
    let one = one.ok_or_else(|| ApiError::not_found(T::KIND, id))?;
    if of_folder::<T>(all, id) {
        let why = format!(
            "the {} \"{id}\" is managed by the folder that headroom compliance apply brought; \
             change it there",
            T::KIND
        );
        return Err(ApiError::managed(FOLDER, why));
    }
    Ok(one)
}

/// An object of these fields, if it fits the others.
fn fitting<T: Managed>(mut body: Map<String, Value>, all: &Definitions) -> Result<T, ApiError> {
    let id = body.get("id").and_then(Value::as_str).unwrap_or_default();
    if is_reserved(id) {
        let message = format!("\"{id}\" is one of the server's own; choose another id");
        return Err(ApiError::field("id", message));
    }
    T::complete(&mut body, all);
    let mut one: T = serde_json::from_value(Value::Object(body))
        .map_err(|error| ApiError::bad(format!("the body: {error}")))?;
    one.fill();
    let wrong = one.wrong(all);
    match wrong.is_empty() {
        true => Ok(one),
        false => Err(ApiError::wrong(wrong)),
    }
}

/// What is wrong, with the API's names of fields; what has none is put to `whole`.
pub(super) fn named(
    found: Vec<crate::definitions::Wrong>,
    whole: &str,
    field: impl Fn(&str) -> &str,
) -> Vec<Wrong> {
    let name = |path: &[String]| match path {
        [] => whole.to_owned(),
        [first, rest @ ..] => rest.iter().fold(field(first).to_owned(), |name, step| {
            match step.parse::<usize>() {
                Ok(place) => format!("{name}[{place}]"),
                Err(_) => format!("{name}.{step}"),
            }
        }),
    };
    let all = found.into_iter();
    all.map(|one| Wrong::new(name(&one.path), one.message))
        .collect()
}

pub(super) async fn edited(service: &Service, make: MakeEdit) -> Result<(), ApiError> {
    asked(service, |answer| Task::Edit { make, answer }).await?
}

/// Gives the generator something to do, and returns what it answers.
pub(super) async fn asked<T>(
    service: &Service,
    task: impl FnOnce(oneshot::Sender<T>) -> Task,
) -> Result<T, ApiError> {
    let (answer, hear) = oneshot::channel();
    let gone = || ApiError::unavailable("the server stops");
    let sent = service.tasks.send(task(answer)).await;
    sent.map_err(|_| gone())?;
    hear.await.map_err(|_| gone())
}

/// The calls of a kind.
macro_rules! routes {
    ($kind:ty, $list:literal, $one:literal, $details:literal, $schema:expr, $list_schema:expr) => {
        &[
            Route::get(
                $list,
                concat!("list", $one, "s"),
                concat!("All ", $list),
                ($list, $list_schema),
                Work::Now(managed::list::<$kind>),
            ),
            Route::get(
                concat!($list, "/{id}"),
                $details,
                concat!("One of the ", $list),
                ($list, $list_schema),
                Work::Now(managed::one::<$kind>),
            ),
            Route::put(
                $list,
                concat!("create", $one),
                concat!("Make one of the ", $list),
                ($list, $list_schema),
                Work::Later(managed::create::<$kind>),
            )
            .takes($schema),
            Route::post(
                concat!($list, "/{id}"),
                concat!("update", $one),
                concat!(
                    "Change one of the ",
                    $list,
                    ": fields that are left out stay"
                ),
                ($list, $list_schema),
                Work::Later(managed::update::<$kind>),
            )
            .takes($schema),
            Route::delete(
                concat!($list, "/{id}"),
                concat!("delete", $one),
                concat!(
                    "Delete one of the ",
                    $list,
                    " that nothing names; of one that is not there only the id is answered"
                ),
                ($list, $list_schema),
                Work::Later(managed::remove::<$kind>),
            ),
        ]
    };
}
pub(super) use routes;
