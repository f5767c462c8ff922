//! What methods, header fields, assertions and values may be.

use units::UnitError;

use crate::request::field;
use crate::request::variable::NAMES;
use crate::request::{Assertion, Body, Source, Step};
use crate::workload::Protocol;

pub(super) fn method(step: &Step, protocol: Protocol) -> Result<String, UnitError> {
    let method = step.method.as_str();
    let known = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
    ];
    let upper = method.to_ascii_uppercase();
    match protocol {
        Protocol::Grpc => Ok("POST".to_owned()),
        Protocol::WebSocket => Ok("GET".to_owned()),
        Protocol::Tcp | Protocol::Udp | Protocol::Redis | Protocol::Postgres => Ok(String::new()),
        _ if method.is_empty() && step.body == Body::Empty => Ok("GET".to_owned()),
        _ if method.is_empty() => Ok("POST".to_owned()),
        _ if upper == "CONNECT" => Err(UnitError::new(
            0..method.len(),
            "CONNECT opens a tunnel and is not supported",
        )),
        _ if upper != method && known.contains(&upper.as_str()) => {
            Err(UnitError::new(0..method.len(), "methods are written in capitals").suggest(upper))
        }
        _ if field::is_token(method) => Ok(method.to_owned()),
        _ => Err(
            UnitError::new(0..method.len(), format!("\"{method}\" is no method"))
                .meant(method, known),
        ),
    }
}

pub(super) fn check_field(name: &str, protocol: Protocol) -> Result<(), UnitError> {
    field::check_name(name)?;
    let is = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    let all = 0..name.len();
    if is(&["content-length", "transfer-encoding"]) {
        return Err(UnitError::new(
            all,
            "the length of the body is told by us; leave this field out",
        ));
    }
    let one_connection = ["connection", "keep-alive", "proxy-connection", "upgrade"];
    if protocol != Protocol::Http1 && is(&one_connection) {
        return Err(UnitError::new(
            all,
            "this field belongs to requests of HTTP/1.1; leave it out",
        ));
    }
    match is(&["upgrade", "expect"]) {
        true => Err(UnitError::new(
            all,
            "upgrades and expectations are not supported; leave this field out",
        )),
        false => Ok(()),
    }
}

pub(super) fn check_assertion(assertion: &Assertion) -> Result<(), String> {
    match assertion {
        Assertion::Status(ranges) if ranges.is_empty() => Err("no status is given".to_owned()),
        Assertion::Status(ranges) => match ranges.iter().find(|(low, high)| low > high) {
            Some((low, high)) => Err(format!(
                "the first status, {low}, is above the second, {high}"
            )),
            None => Ok(()),
        },
        Assertion::Size(low, high) if low > high => Err(format!(
            "the smallest size, {low}, is above the largest, {high}"
        )),
        Assertion::Rows(low, high) if low > high => Err(format!(
            "the smallest number of rows, {low}, is above the largest, {high}"
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_value_name(name: &str) -> Result<(), String> {
    let mut letters = name.chars();
    let first = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !letters.all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
        return Err(
            "the name of a value has letters, digits, - . and _, a letter first".to_owned(),
        );
    }
    match NAMES.contains(&name) {
        true => Err(format!(
            "{{{name}}} is a variable already; choose another name"
        )),
        false => Ok(()),
    }
}

pub(super) fn check_source(source: &Source) -> Result<(), UnitError> {
    match source {
        Source::Json(pointer) if !(pointer.is_empty() || pointer.starts_with('/')) => {
            let meant = pointer
                .trim_start_matches("$.")
                .replace(['.', '['], "/")
                .replace(']', "");
            let message = "a JSON pointer begins with / and has / between names";
            Err(UnitError::new(0..pointer.len(), message).suggest(format!("/{meant}")))
        }
        Source::Header(name) => field::check_name(name),
        _ => Ok(()),
    }
}
