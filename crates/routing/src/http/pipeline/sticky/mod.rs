//! Cookies that bind a client to an instance (section "sticky sessions" of gorouter's
//! behaviour): the application's own cookie, `__VCAP_ID__` beside it, and since 2026, if the
//! settings say so, `__VCAP_ID_META__`: a browser does not send a cookie's attributes, and
//! without them a cookie for another instance could not be like the first one.

mod attributes;

use self::attributes::{Attributes, SameSite};
use crate::http::settings::StickySettings;

/// The cookie that names the instance.
pub(crate) const INSTANCE_COOKIE: &[u8] = b"__VCAP_ID__";

/// The cookie that keeps the attributes of that one.
const METADATA_COOKIE: &[u8] = b"__VCAP_ID_META__";

/// How long `Authorization: Negotiate` binds.
const NEGOTIATE_SECONDS: i64 = 60;

/// The cookies of a `Cookie` field: name and value. As in Go one may have no value, and those
/// with a value that none can have are left out.
fn cookies(field: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    field.split(|byte| *byte == b';').filter_map(|cookie| {
        let cookie = cookie.trim_ascii();
        let equals = memchr::memchr(b'=', cookie);
        let (name, value) = match equals {
            Some(equals) => (&cookie[..equals], &cookie[equals + 1..]),
            None => (cookie, &[][..]),
        };
        Some((name.trim_ascii(), value_of(value)?))
    })
}

/// A cookie's value without its quotes; `None`: no cookie has it.
fn value_of(value: &[u8]) -> Option<&[u8]> {
    let value = match value {
        [b'"', inner @ .., b'"'] => inner,
        value => value,
    };
    value
        .iter()
        .all(|byte| is_value_byte(*byte))
        .then_some(value)
}

/// Whether a cookie of that name binds.
fn binds(settings: &StickySettings, name: &[u8]) -> bool {
    let plain = name.strip_prefix(b"__Host-").unwrap_or(name);
    settings
        .cookies
        .iter()
        .any(|cookie| cookie.as_bytes() == name || cookie.as_bytes() == plain)
}

/// What the cookies of a request say.
#[derive(Debug, Default)]
pub(crate) struct RequestCookies {
    /// The instance that `__VCAP_ID__` names; empty: there is none.
    pub(crate) instance: Vec<u8>,
    /// What `__VCAP_ID_META__` keeps; empty: nothing.
    metadata: Vec<u8>,
    /// There is a cookie of the application that binds.
    pub(crate) bound: bool,
    /// `Authorization: Negotiate`, and that binds too.
    negotiate: bool,
    /// There was an `Authorization`.
    authorized: bool,
}

impl RequestCookies {
    pub(crate) fn clear(&mut self) {
        self.instance.clear();
        self.metadata.clear();
        (self.bound, self.negotiate, self.authorized) = (false, false, false);
    }

    /// Reads a `Cookie` field; the first `__VCAP_ID__` counts.
    pub(crate) fn read(&mut self, settings: &StickySettings, field: &[u8]) {
        for (name, value) in cookies(field) {
            if name == INSTANCE_COOKIE {
                if self.instance.is_empty() {
                    self.instance.extend_from_slice(value);
                }
            } else if settings.metadata && name == METADATA_COOKIE {
                if self.metadata.is_empty() {
                    self.metadata.extend_from_slice(value);
                }
            } else {
                self.bound |= binds(settings, name);
            }
        }
    }

    /// Reads an `Authorization` field; the first one counts.
    pub(crate) fn read_authorization(&mut self, settings: &StickySettings, field: &[u8]) {
        if !std::mem::replace(&mut self.authorized, true) {
            self.negotiate = settings.auth_negotiate && starts_with_negotiate(field);
        }
    }

    /// Whether no other instance will do than the one that is asked for.
    pub(crate) fn must(&self) -> bool {
        self.negotiate
    }

    /// The instance that is asked for; empty: none.
    pub(crate) fn instance(&self) -> &[u8] {
        if self.bound || self.negotiate {
            &self.instance
        } else {
            &[]
        }
    }
}

/// What the answer's fields say.
#[derive(Debug, Default)]
pub(crate) struct ResponseCookies {
    /// Attributes of the application's cookies that bind.
    sessions: Vec<Attributes>,
    /// The application set `__VCAP_ID__` itself.
    own: bool,
    /// `WWW-Authenticate: Negotiate`; `None`: there is no such field.
    negotiate: Option<bool>,
}

/// Cookies of one answer that bind, each with a pair of its own; what is beyond binds not.
/// An application that moves to partitioned cookies sets two.
const MOST_SESSIONS: usize = 16;

/// Who answered, and where his cookies count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StickyBinding<'a> {
    /// The instance; empty: it has no id, and nobody is bound to it.
    pub(crate) instance: &'a str,
    /// The path of its route.
    pub(crate) path: &'a str,
}

impl ResponseCookies {
    /// Reads a `Set-Cookie` field.
    pub(crate) fn read(&mut self, settings: &StickySettings, field: &[u8]) {
        let mut parts = field.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().and_then(|pair| {
            let equals = memchr::memchr(b'=', pair)?;
            value_of(&pair[equals + 1..])?;
            Some(pair[..equals].trim_ascii())
        });
        let most = if settings.metadata { MOST_SESSIONS } else { 1 };
        match name {
            Some(INSTANCE_COOKIE) => self.own = true,
            Some(name) if self.sessions.len() < most && binds(settings, name) => {
                self.sessions.push(Attributes::of_cookie(parts));
            }
            _ => {}
        }
    }

    /// Reads a `WWW-Authenticate` field; the first one counts.
    pub(crate) fn read_authenticate(&mut self, field: &[u8]) {
        self.negotiate
            .get_or_insert_with(|| starts_with_negotiate(field));
    }

    /// Gives each cookie that binds the client to the instance to `add`, if there is to be
    /// one, at `now` (seconds since 1970).
    pub(crate) fn bind(
        &self,
        settings: &StickySettings,
        asked: &RequestCookies,
        bond: StickyBinding<'_>,
        now: i64,
        mut add: impl FnMut(&[u8]),
    ) {
        let negotiate = self.negotiate == Some(true) && settings.auth_negotiate;
        let wanted = asked.instance();
        let other = wanted != bond.instance.as_bytes();
        let stale = (negotiate || !wanted.is_empty()) && other;
        let nothing_new = !stale && self.sessions.is_empty();
        if bond.instance.is_empty() || self.own || nothing_new {
            return;
        }
        let mut cookie = Vec::new();
        let mut set = |name: &[u8], value: &dyn Fn(&mut Vec<u8>), like: &Attributes| {
            cookie.clear();
            cookie.extend_from_slice(name);
            cookie.push(b'=');
            value(&mut cookie);
            cookie.extend_from_slice(b"; Path=");
            let path = bond.path.bytes();
            cookie.extend(path.filter(|byte| (0x20..0x7f).contains(byte) && *byte != b';'));
            like.write(&mut cookie);
            add(&cookie);
        };
        let instance = |out: &mut Vec<u8>| write_value(bond.instance, out);
        let forced = |like: Attributes| Attributes {
            secure: like.secure || settings.secure,
            ..like
        };
        if negotiate && other {
            let like = forced(Attributes {
                max_age: Some(NEGOTIATE_SECONDS),
                same_site: Some(SameSite::Strict),
                ..Attributes::default()
            });
            set(INSTANCE_COOKIE, &instance, &like);
        } else if !settings.metadata {
            // Before it kept attributes, gorouter took over only the end of a cookie.
            let like = self.sessions.first().copied().unwrap_or_default();
            let max_age = like.max_age.filter(|age| *age <= 0);
            let like = forced(Attributes { max_age, ..like });
            if !negotiate {
                set(INSTANCE_COOKIE, &instance, &like);
            }
        } else if self.sessions.is_empty() {
            let like = Attributes::of_metadata(&asked.metadata, now);
            set(INSTANCE_COOKIE, &instance, &forced(like));
        } else {
            for like in self.sessions.iter().copied().map(forced) {
                set(INSTANCE_COOKIE, &instance, &like);
                let kept = |out: &mut Vec<u8>| like.write_metadata(now, out);
                set(METADATA_COOKIE, &kept, &like);
            }
        }
    }
}

/// Appends the id of an instance as a cookie's value, as Go writes it.
fn write_value(instance: &str, out: &mut Vec<u8>) {
    let quoted = instance.bytes().any(|byte| matches!(byte, b' ' | b','));
    out.extend(quoted.then_some(b'"'));
    out.extend(instance.bytes().filter(|byte| is_value_byte(*byte)));
    out.extend(quoted.then_some(b'"'));
}

/// Whether a field begins with the scheme `Negotiate`.
fn starts_with_negotiate(field: &[u8]) -> bool {
    field
        .get(..9)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"negotiate"))
}

/// Whether a byte may stand in a cookie's value, as Go has it.
fn is_value_byte(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) && !matches!(byte, b'"' | b';' | b'\\')
}
