//! Which requests are valid. An error names every field that is not.

mod action;
mod actual;
mod desired;
mod egress;
mod parts;
mod task;

#[cfg(test)]
mod tests;

pub(crate) use desired::routes_are_json;

use diego::error::{Type, error, with_text};
use diego::models::{
    ActualLrPsByProcessGuidsRequest, ActualLrPsRequest, ActualLrpGroupByProcessGuidAndIndexRequest,
    ActualLrpGroupsByProcessGuidRequest, ActualLrpGroupsRequest, DesiredLrPsRequest, Error,
    TasksRequest, UpsertDomainRequest,
};

/// Longest guid and domain, in characters.
const NAME_CHARS: usize = 255;
/// Longest root file system, in characters.
const ROOT_FS_CHARS: usize = 1024;
/// Longest annotation, in bytes.
const ANNOTATION_BYTES: usize = 10 * 1024;

/// A request that can be checked before anything is looked up.
pub trait Validate {
    /// Names each bad field.
    fn check(&self, _: &mut Problems) {}

    /// Does what is valid fit the records too?
    ///
    /// # Errors
    /// InvalidRequest with the general text.
    fn storable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Is the request valid by itself?
    ///
    /// # Errors
    /// InvalidRequest with a text that names each bad field, or with the general one.
    fn validate(&self) -> Result<(), Error> {
        let mut problems = Problems::new();
        self.check(&mut problems);
        problems.into_result()?;
        self.storable()
    }
}

/// What is wrong with a request, field by field.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    fn new() -> Self {
        Self::default()
    }

    fn field(&mut self, name: &str) {
        self.0.push(format!("Invalid field: {name}"));
    }

    fn field_if(&mut self, bad: bool, name: &str) {
        if bad {
            self.field(name);
        }
    }

    fn text(&mut self, text: impl Into<String>) {
        self.0.push(text.into());
    }

    fn none(&self) -> bool {
        self.0.is_empty()
    }

    fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Names `name`, then its own problems, if it has any.
    fn within(&mut self, name: &str, inner: Self) {
        if !inner.none() {
            self.field(name);
            self.append(inner);
        }
    }

    fn into_result(self) -> Result<(), Error> {
        if self.none() {
            return Ok(());
        }
        Err(with_text(Type::InvalidRequest, self.0.join(", ")))
    }
}

/// A guid: letters, digits, `_` and `-`.
fn is_guid(guid: &str) -> bool {
    !guid.is_empty()
        && guid
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Is it a URL with a scheme, as Go's `url.Parse` sees it?
fn is_root_fs(root_fs: &str) -> bool {
    let Some((scheme, rest)) = root_fs.split_once(':') else {
        return false;
    };
    let starts = scheme
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic());
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let controls = root_fs.bytes().any(|byte| byte < b' ' || byte == 0x7f);
    let authority = rest.strip_prefix("//");
    let authority = authority.and_then(|rest| rest.split(['/', '?', '#']).next());
    starts
        && scheme.bytes().all(legal)
        && !controls
        && (!rest.starts_with('/') || escapes(rest))
        && authority.is_none_or(is_authority)
}

/// Is it a host that a URL may have, with a port of digits or none?
fn is_authority(text: &str) -> bool {
    let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let legal = |byte: u8| {
        byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte)
    };
    let name_ends = host.rfind(']').map_or(0, |at| at + 1);
    let port = host[name_ends..].rsplit_once(':');
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let whole =
        name_ends == 0 || host[name_ends..].is_empty() || host[name_ends..].starts_with(':');
    host.bytes().all(legal) && whole && port.is_none_or(|(_, port)| digits(port))
}

/// Is every `%` of a path followed by two hexadecimal digits?
fn escapes(path: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

/// What the database of the original cannot hold is refused after validation,
/// with the general text.
fn fits<const N: usize>(names: [&str; N], root_fs: &str) -> Result<(), Error> {
    if is_longer(root_fs, ROOT_FS_CHARS) {
        return Err(error(Type::InvalidRequest));
    }
    names_fit(names)
}

/// As [`fits`], for names that a call brings into an existing record.
pub(super) fn names_fit<const N: usize>(names: [&str; N]) -> Result<(), Error> {
    if names.iter().any(|name| is_longer(name, NAME_CHARS)) {
        return Err(error(Type::InvalidRequest));
    }
    Ok(())
}

fn is_longer(text: &str, most: usize) -> bool {
    text.len() > most && text.chars().count() > most
}

impl Validate for ActualLrPsRequest {}
impl Validate for ActualLrpGroupsRequest {}
impl Validate for DesiredLrPsRequest {}
impl Validate for TasksRequest {}

impl Validate for UpsertDomainRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(self.domain.is_empty(), "domain");
    }

    fn storable(&self) -> Result<(), Error> {
        names_fit([&self.domain])
    }
}

impl Validate for ActualLrPsByProcessGuidsRequest {
    fn check(&self, problems: &mut Problems) {
        if self.process_guids.is_empty() {
            problems.text("process_guids must not be empty");
        }
    }
}

impl Validate for ActualLrpGroupsByProcessGuidRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(self.process_guid.is_empty(), "process_guid");
    }
}

impl Validate for ActualLrpGroupByProcessGuidAndIndexRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(self.process_guid.is_empty(), "process_guid");
        problems.field_if(self.index < 0, "index");
    }
}
