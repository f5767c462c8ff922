//! Heads as the types of `http` have them.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version, request, uri};

use super::Http2Error;
use super::codec::{Block, Fields, is_of_connection};

/// All fields but pseudo-header fields. Their values are parts of one allocation.
pub(super) fn map(fields: &Fields) -> HeaderMap {
    let lines = fields.lines();
    let text = Bytes::copy_from_slice(lines);
    let mut map = HeaderMap::with_capacity(fields.iter().size_hint().0);
    let mut at = 0;
    for field in fields.iter() {
        let start = at + field.name.len() + 2;
        let value = text.slice(start..start + field.value.len());
        at += field.line.len();
        let value = HeaderValue::from_maybe_shared(value);
        // What was received was found to be good.
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(field.name), value) {
            map.append(name, value);
        }
    }
    map
}

/// The head of a request; `None`: it is none that these types can have.
pub(super) fn request(fields: &Fields) -> Option<request::Parts> {
    let mut parts = uri::Parts::default();
    if let Some(authority) = fields.authority() {
        parts.authority = Some(Authority::try_from(authority).ok()?);
        // Without an authority there is no place for it.
        parts.scheme = fields.scheme().and_then(|it| Scheme::try_from(it).ok());
    }
    if let Some(path) = fields.path() {
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    }
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(fields.method()).ok()?;
    *request.uri_mut() = Uri::from_parts(parts).ok()?;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = map(fields);
    Some(request.into_parts().0)
}

/// Whether a request can be written.
///
/// # Errors
/// [`Http2Error::Request`] if it cannot.
pub(super) fn check(request: &Request<()>) -> Result<(), Http2Error> {
    let uri = request.uri();
    if uri.scheme().is_none() || uri.authority().is_none() {
        // Section 8.3.1: `:scheme` and `:authority` come from there.
        return Err(Http2Error::Request(format!(
            "its URI is {uri}, expected an absolute one"
        )));
    }
    match of_connection(request.headers()) {
        Some(name) => Err(Http2Error::Request(format!(
            "{name} is of a connection of HTTP/1.1, and no field of HTTP/2"
        ))),
        None => Ok(()),
    }
}

/// A field that may not be in HTTP/2.
pub(super) fn of_connection(map: &HeaderMap) -> Option<&HeaderName> {
    map.keys()
        .find(|name| is_of_connection(name.as_str().as_bytes()))
}

/// Writes the head of a request that was checked.
pub(super) fn write_request(request: &Request<()>, block: &mut Block<'_>) {
    let uri = request.uri();
    block.method(request.method().as_str().as_bytes());
    block.scheme(uri.scheme_str().unwrap_or_default().as_bytes());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    block.authority(authority.as_bytes());
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    block.path(if path.is_empty() { "/" } else { path }.as_bytes());
    write(request.headers(), block);
}

/// Writes fields.
pub(super) fn write(map: &HeaderMap, block: &mut Block<'_>) {
    for (name, value) in map {
        block.lower_field(name.as_str().as_bytes(), value.as_bytes());
    }
}
