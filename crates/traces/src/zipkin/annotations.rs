//! Spans of version 1: annotations, each of an endpoint, say what version 2 has fields for.

use super::read::{Annotation, BinaryAnnotation, Endpoint, Half, Read};
use crate::SpanKind;
use crate::attributes::Value;

/// Whether a span is of version 1. What version 2 alone has decides first.
pub(super) fn is_first_version(read: &Read<'_>) -> bool {
    let has_endpoint = |one: &Annotation<'_>| one.endpoint.is_some();
    let mut annotations = read.annotations.iter().flatten();
    read.kind.is_none()
        && read.local_endpoint.is_none()
        && (read.binary_annotations.is_some() || annotations.any(has_endpoint))
}

/// The span, or both sides of a call: one span of version 1 may tell of both.
pub(super) fn halves<'r>(read: &'r Read<'_>) -> Vec<Half<'r>> {
    let client = side(read, SpanKind::Client, ["cs", "cr"]);
    let server = side(read, SpanKind::Server, ["sr", "ss"]);
    match (client, server) {
        (None, None) => vec![local(read)],
        (Some(client), Some(server)) => {
            let shared = true;
            vec![client, Half { shared, ..server }]
        }
        (one, other) => one.into_iter().chain(other).collect(),
    }
}

/// A side of a call, by the annotations of its beginning and its end. `None`: neither is there.
fn side<'r>(read: &'r Read<'_>, kind: SpanKind, ends: [&str; 2]) -> Option<Half<'r>> {
    let [from, to] = ends.map(|end| {
        let mut all = read.annotations.iter().flatten();
        all.find(|one| one.value.as_str() == Some(end))
    });
    let service = from.or(to)?.endpoint.as_ref();
    let begun = from.and_then(|one| one.timestamp.as_u64());
    let ended = to.and_then(|one| one.timestamp.as_u64());
    let own = begun.zip(ended);
    let own = own.map(|(begun, ended)| (begun, ended.saturating_sub(begun)));
    let is_own = |one: &&BinaryAnnotation<'_>| {
        let said = one.endpoint.as_ref().and_then(Endpoint::name);
        said.is_none() || said == service.and_then(Endpoint::name)
    };
    let callee = binary(read).find(|one| kind == SpanKind::Client && one.key == "sa");
    Some(Half {
        kind,
        shared: false,
        times: own.or_else(|| read.times()),
        service,
        other: callee.and_then(|one| one.endpoint.as_ref()),
        tags: binary(read).filter(is_own).map(tag).collect(),
    })
}

/// A stretch within a service.
fn local<'r>(read: &'r Read<'_>) -> Half<'r> {
    let annotations = read.annotations.iter().flatten();
    let annotations = annotations.filter_map(|one| one.endpoint.as_ref());
    let mut endpoints = binary(read)
        .filter_map(|one| one.endpoint.as_ref())
        .chain(annotations);
    Half {
        kind: SpanKind::Internal,
        shared: false,
        times: read.times(),
        service: endpoints.find(|one| one.name().is_some()),
        other: None,
        tags: binary(read).map(tag).collect(),
    }
}

fn binary<'r, 'a>(read: &'r Read<'a>) -> impl Iterator<Item = &'r BinaryAnnotation<'a>> {
    read.binary_annotations.iter().flatten()
}

fn tag<'r>(one: &'r BinaryAnnotation<'_>) -> (&'r str, Value<'r>) {
    (&*one.key, (&one.value).into())
}
