//! Cookies that bind a client to an instance (section "sticky sessions" of gorouter's
//! behaviour): the application's own cookie, and `__VCAP_ID__` beside it.

use super::text::{MONTHS, decimal, digits};
use crate::http::settings::StickySettings;

/// The cookie that names the instance.
pub(crate) const INSTANCE_COOKIE: &[u8] = b"__VCAP_ID__";

/// The cookies of a `Cookie` field: name and value.
fn cookies(field: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    field.split(|byte| *byte == b';').filter_map(|cookie| {
        let cookie = cookie.trim_ascii();
        let equals = memchr::memchr(b'=', cookie)?;
        let (name, value) = (&cookie[..equals], &cookie[equals + 1..]);
        Some((name.trim_ascii(), unquoted(value)))
    })
}

fn unquoted(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inner @ .., b'"'] => inner,
        value => value,
    }
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
pub(crate) struct Asked {
    /// The instance that `__VCAP_ID__` names; empty: there is none.
    pub(crate) instance: Vec<u8>,
    /// There is a cookie of the application that binds.
    pub(crate) bound: bool,
    /// `Authorization: Negotiate`, and that binds too.
    pub(crate) negotiate: bool,
}

impl Asked {
    pub(crate) fn clear(&mut self) {
        self.instance.clear();
        (self.bound, self.negotiate) = (false, false);
    }

    /// Reads a `Cookie` field; the first `__VCAP_ID__` counts.
    pub(crate) fn read(&mut self, settings: &StickySettings, field: &[u8]) {
        for (name, value) in cookies(field) {
            if name == INSTANCE_COOKIE {
                if self.instance.is_empty() {
                    self.instance.extend_from_slice(value);
                }
            } else {
                self.bound |= binds(settings, name);
            }
        }
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
pub(crate) struct Given {
    /// Attributes of the application's cookie, if it set one that binds.
    cookie: Option<Attributes>,
    /// The application set `__VCAP_ID__` itself.
    own: bool,
    /// `WWW-Authenticate: Negotiate`.
    negotiate: bool,
}

/// Attributes that go over from the application's cookie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Attributes {
    secure: bool,
    partitioned: bool,
    /// `Max-Age` was 0 or less.
    expired: bool,
    same_site: Option<&'static str>,
    /// As HTTP writes dates.
    expires: Option<[u8; 29]>,
}

impl Given {
    /// Reads a `Set-Cookie` field.
    pub(crate) fn read(&mut self, settings: &StickySettings, field: &[u8]) {
        let mut parts = field.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().and_then(|pair| {
            let equals = memchr::memchr(b'=', pair)?;
            Some(pair[..equals].trim_ascii())
        });
        match name {
            Some(INSTANCE_COOKIE) => self.own = true,
            Some(name) if self.cookie.is_none() && binds(settings, name) => {
                self.cookie = Some(attributes(parts));
            }
            _ => {}
        }
    }

    /// Reads a `WWW-Authenticate` field.
    pub(crate) fn read_authenticate(&mut self, field: &[u8]) {
        self.negotiate |= starts_with_negotiate(field);
    }

    /// Appends the value of the cookie that binds the client to `instance`, if it is to
    /// have one.
    pub(crate) fn write(
        &self,
        settings: &StickySettings,
        asked: &[u8],
        instance: &str,
        path: &str,
        out: &mut Vec<u8>,
    ) {
        let negotiate = self.negotiate && settings.auth_negotiate;
        let stale = (negotiate || !asked.is_empty()) && asked != instance.as_bytes();
        let app = self.cookie.as_ref().filter(|_| !negotiate);
        if instance.is_empty() || self.own || !(stale || app.is_some()) {
            return;
        }
        out.extend_from_slice(INSTANCE_COOKIE);
        out.push(b'=');
        let value = instance.bytes().filter(|byte| is_value_byte(*byte));
        let quoted = instance.bytes().any(|byte| matches!(byte, b' ' | b','));
        out.extend(quoted.then_some(b'"'));
        out.extend(value);
        out.extend(quoted.then_some(b'"'));
        out.extend_from_slice(b"; Path=");
        out.extend(
            path.bytes()
                .filter(|byte| (0x20..0x7f).contains(byte) && *byte != b';'),
        );
        let none = Attributes::default();
        let like = app.unwrap_or(&none);
        if let Some(expires) = &like.expires {
            out.extend_from_slice(b"; Expires=");
            out.extend_from_slice(expires);
        }
        if negotiate {
            out.extend_from_slice(b"; Max-Age=");
            decimal(60, out);
        } else if like.expired {
            out.extend_from_slice(b"; Max-Age=0");
        }
        out.extend_from_slice(b"; HttpOnly");
        if like.secure || settings.secure {
            out.extend_from_slice(b"; Secure");
        }
        let same_site = if negotiate {
            Some("Strict")
        } else {
            like.same_site
        };
        if let Some(same_site) = same_site {
            out.extend_from_slice(b"; SameSite=");
            out.extend_from_slice(same_site.as_bytes());
        }
        if like.partitioned {
            out.extend_from_slice(b"; Partitioned");
        }
    }
}

/// Whether a field begins with the scheme `Negotiate`.
pub(crate) fn starts_with_negotiate(field: &[u8]) -> bool {
    field
        .get(..9)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"negotiate"))
}

/// Whether a byte may stand in a cookie's value, as Go has it.
fn is_value_byte(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) && !matches!(byte, b'"' | b';' | b'\\')
}

fn attributes<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Attributes {
    let mut like = Attributes::default();
    for part in parts {
        let equals = memchr::memchr(b'=', part);
        let (name, value) = equals.map_or((part, &[][..]), |at| (&part[..at], &part[at + 1..]));
        match name.to_ascii_lowercase().as_slice() {
            b"secure" => like.secure = true,
            b"partitioned" => like.partitioned = true,
            b"max-age" => like.expired = is_expired(value),
            b"samesite" => {
                like.same_site = match value.to_ascii_lowercase().as_slice() {
                    b"lax" => Some("Lax"),
                    b"strict" => Some("Strict"),
                    b"none" => Some("None"),
                    _ => None,
                }
            }
            b"expires" => like.expires = expires(value),
            _ => {}
        }
    }
    like
}

/// Whether a `Max-Age` ends the cookie: 0, or a negative number.
fn is_expired(value: &[u8]) -> bool {
    let (negative, digits) = match value {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    number && (negative || digits == b"0")
}

/// A date of `Expires`, as HTTP writes it: `Wed, 21 Oct 2026 07:28:00 GMT`, with spaces or
/// hyphens within the day.
fn expires(value: &[u8]) -> Option<[u8; 29]> {
    let mut date: [u8; 29] = value.try_into().ok()?;
    for hyphen in [7, 11] {
        if date[hyphen] == b'-' {
            date[hyphen] = b' ';
        }
    }
    let number = |range: std::ops::Range<usize>| {
        let text = std::str::from_utf8(&date[range]).ok()?;
        text.parse::<u64>().ok()
    };
    let month = MONTHS
        .iter()
        .position(|month| month.as_bytes() == &date[8..11])?;
    let (day, year) = (number(5..7)?, number(12..16)?);
    let clock = (number(17..19)?, number(20..22)?, number(23..25)?);
    let whole =
        (1..=31).contains(&day) && year >= 1601 && clock.0 < 24 && clock.1 < 60 && clock.2 < 60;
    let mut again = date[..5].to_vec();
    digits::<2>(day, &mut again);
    again.push(b' ');
    again.extend_from_slice(MONTHS[month].as_bytes());
    again.push(b' ');
    digits::<4>(year, &mut again);
    again.push(b' ');
    digits::<2>(clock.0, &mut again);
    again.push(b':');
    digits::<2>(clock.1, &mut again);
    again.push(b':');
    digits::<2>(clock.2, &mut again);
    again.extend_from_slice(b" GMT");
    (whole && again == date && date[3..5] == *b", " && date[..3].is_ascii()).then_some(date)
}
