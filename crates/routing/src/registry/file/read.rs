//! A file of routes as messages.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use crate::registry::message::Message;
use crate::table::{Bound, Modification, Nanos, Registered, RouteKey, Table};

/// Bytes of a file that are read; more is an error. A million routes fit.
const MOST_BYTES: u64 = 512 * 1024 * 1024;

/// Why a file is no list of routes.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("read the routes of {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// A line is wrong.
    #[error("{}:{line}: {found}; expected {expected}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is there.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
}

/// Registrations of a file that a table did not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// How many.
    pub registrations: u64,
    /// Why the first of them was not taken.
    pub bound: Bound,
}

/// The routes of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Routes(Vec<Message<'static>>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(default, borrow)]
    route: Vec<Spanned<Message<'a>>>,
}

/// The keys of each route of a file, with their places.
#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    route: Vec<BTreeMap<Spanned<String>, IgnoredAny>>,
}

/// The keys that there are. What messages say beside them is ignored; a person who writes a
/// file is told.
const KEYS: [&str; 16] = [
    "host",
    "port",
    "tls_port",
    "uris",
    "app",
    "private_instance_id",
    "private_instance_index",
    "protocol",
    "server_cert_domain_san",
    "stale_threshold_in_seconds",
    "tags",
    "route_service_url",
    "isolation_segment",
    "availability_zone",
    "endpoint_updated_at_ns",
    "options",
];

const ROUTE: &str = "a route: uris, host, and port or tls_port";

impl Routes {
    /// Reads a file: TOML if its name ends so, else one JSON object on each line.
    ///
    /// # Errors
    /// When it cannot be read or a line is wrong; then none of its routes count.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let io = |cause| FileError::Io {
            path: path.to_owned(),
            cause,
        };
        let mut text = String::new();
        let file = File::open(path).map_err(io)?;
        let read = file
            .take(MOST_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(io)?;
        if read as u64 > MOST_BYTES {
            let most = MOST_BYTES / (1024 * 1024);
            return Err(io(std::io::Error::other(format!(
                "it has more than {most} MiB"
            ))));
        }
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            Self::toml(path, &text)
        } else {
            Self::lines(path, &text)
        }
    }

    /// Reads TOML.
    fn toml(path: &Path, text: &str) -> Result<Self, FileError> {
        let line_at = |at: usize| {
            text.as_bytes()[..at.min(text.len())]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1
        };
        let wrong = |at: usize, found: String| FileError::Line {
            path: path.to_owned(),
            line: line_at(at),
            found,
            expected: ROUTE,
        };
        let document: Document<'_> = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            wrong(at, error.message().to_owned())
        })?;
        // What could be read once can be read twice.
        let written: Written = toml::from_str(text).map_err(|error| wrong(0, error.to_string()))?;
        let keys = written.route.iter().flat_map(BTreeMap::keys);
        if let Some(unknown) = keys
            .filter(|key| !KEYS.contains(&key.get_ref().as_str()))
            .min_by_key(|key| key.span().start)
        {
            let found = format!("unknown key {:?}", unknown.get_ref());
            return Err(wrong(unknown.span().start, found));
        }
        let mut routes = Vec::with_capacity(document.route.len());
        for route in document.route {
            let at = route.span().start;
            let message = route.into_inner().into_owned();
            check(&message).map_err(|found| wrong(at, found))?;
            routes.push(message);
        }
        Ok(Self(routes))
    }

    /// Reads JSON lines; empty ones are skipped.
    fn lines(path: &Path, text: &str) -> Result<Self, FileError> {
        let mut routes = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let parsed = serde_json::from_str(line).map_err(|error| error.to_string());
            let checked = parsed.and_then(|message: Message<'_>| {
                check(&message)?;
                Ok(message.into_owned())
            });
            routes.push(checked.map_err(|found| FileError::Line {
                path: path.to_owned(),
                line: number + 1,
                found,
                expected: ROUTE,
            })?);
        }
        Ok(Self(routes))
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|message| message.uris().count()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Registers all of them, and removes those of `previous` that are no more. `Some`: the
    /// table is at a bound of its own and did not take them all.
    pub fn apply(
        &self,
        table: &Table,
        previous: Option<&Self>,
        http2: bool,
        now: Nanos,
    ) -> Option<Refused> {
        // First what is new: a route whose endpoints all change is never without one.
        let refused = self.register(table, http2, now);
        let Some(previous) = previous.filter(|previous| *previous != self) else {
            return refused;
        };
        self.remove_others(previous, table, now);
        // What is gone has made room.
        refused.and_then(|_| self.register(table, http2, now))
    }

    fn register(&self, table: &Table, http2: bool, now: Nanos) -> Option<Refused> {
        let mut refused: Option<Refused> = None;
        let mut identity = String::new();
        for message in &self.0 {
            message.identity(&mut identity);
            let registration = message.registration(&identity, http2, None);
            for key in message.uris().flat_map(RouteKey::new) {
                let registered = table.register_with(&key, &registration, now);
                if let Registered::Refused(bound) = registered {
                    let none = Refused {
                        registrations: 0,
                        bound,
                    };
                    refused.get_or_insert(none).registrations += 1;
                }
            }
        }
        refused
    }

    /// Removes what `previous` has and this has not.
    fn remove_others(&self, previous: &Self, table: &Table, now: Nanos) {
        let kept: HashSet<_> = self.ends().collect();
        for (key, identity) in previous.ends().filter(|end| !kept.contains(end)) {
            if let Ok(key) = RouteKey::new(&key) {
                table.unregister(&key, &identity, &Modification::default(), now);
            }
        }
    }

    /// Every key with every endpoint.
    fn ends(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().flat_map(|message| {
            let mut identity = String::new();
            message.identity(&mut identity);
            let keys = message.uris().flat_map(RouteKey::new);
            keys.map(move |key| (key.as_str().to_owned(), identity.clone()))
        })
    }
}

/// What a person who writes a file must not forget; messages are taken without it.
fn check(message: &Message<'_>) -> Result<(), String> {
    message.check().map_err(|error| error.to_string())?;
    if message.host.is_empty() {
        return Err("the route has no host".to_owned());
    }
    let bracketed = message.host.starts_with('[') && message.host.ends_with(']');
    if message.host.contains(':') && !bracketed {
        let host = &*message.host;
        return Err(format!(
            "the host {host:?} has a colon (a port stands in port, IPv6 in brackets)"
        ));
    }
    if !message.is_tls() && message.port.unwrap_or(0) == 0 {
        return Err("the route has no port".to_owned());
    }
    let mut uris = message.uris().peekable();
    if uris.peek().is_none() {
        return Err("the route has no uris".to_owned());
    }
    uris.try_for_each(|uri| match RouteKey::new(uri) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{uri:?}: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Lookup, TableSettings};

    fn toml(text: &str) -> Result<Routes, FileError> {
        Routes::toml(Path::new("r.toml"), text)
    }

    const TWO: &str = "[[route]]\nuris = [\"a.ex.com/p\", \"b.ex.com\"]\nhost = \"h\"\nport = 1\n\
        tags = { component = \"c\" }\n\n[[route]]\nuris = [\"a.ex.com/p\"]\nhost = \"h\"\nport = 2\n";

    #[test]
    fn both_forms_say_the_same() {
        let lines = "{\"uris\":[\"a.ex.com/p\",\"b.ex.com\"],\"host\":\"h\",\"port\":1,\"tags\":{\"component\":\"c\"}}\n\n\
            {\"uris\":[\"a.ex.com/p\"],\"host\":\"h\",\"port\":2}\n";
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("r.toml"), folder.path().join("r.jsonl"));
        std::fs::write(&one, TWO).unwrap();
        std::fs::write(&other, lines).unwrap();
        let routes = Routes::read(&one).unwrap();
        assert_eq!(routes, Routes::read(&other).unwrap());
        assert_eq!(routes.len(), 3);
        assert!(Routes::read(&folder.path().join("none")).is_err());
    }

    #[test]
    fn what_is_gone_from_the_file_is_gone_from_the_table() {
        let table = Table::new(TableSettings::default());
        let before = toml(TWO).unwrap();
        before.apply(&table, None, true, 1);
        assert_eq!(table.len(), 2);
        let after = toml("[[route]]\nuris = [\"a.ex.com/p\"]\nhost = \"h\"\nport = 2\n").unwrap();
        after.apply(&table, Some(&before), true, 2);
        assert_eq!(table.len(), 1);
        let Lookup::Found(pool) = table.lookup(b"a.ex.com", b"/p") else {
            panic!("the route is there");
        };
        assert_eq!(pool.endpoints().len(), 1);
        assert_eq!(&*pool.endpoints()[0].identity, "h:2");
    }

    #[test]
    fn what_the_table_has_no_room_for_is_told_and_what_is_gone_makes_room() {
        let table = Table::new(TableSettings {
            most_routes: 1,
            ..TableSettings::default()
        });
        let before = toml(TWO).unwrap();
        let refused = Refused {
            registrations: 1,
            bound: Bound::Routes(1),
        };
        assert_eq!(before.apply(&table, None, true, 1), Some(refused));
        let after = toml("[[route]]\nuris = [\"c.ex.com\"]\nhost = \"h\"\nport = 2\n").unwrap();
        assert_eq!(after.apply(&table, Some(&before), true, 2), None);
        assert!(matches!(table.lookup(b"c.ex.com", b"/"), Lookup::Found(_)));
    }

    #[test]
    fn errors_name_the_line_and_what_is_wrong() {
        for (text, expected) in [
            (
                "[[route]]\nhost = \"h\"\nport = 1\n",
                "r.toml:1: the route has no uris",
            ),
            (
                "\n[[route]]\nuris = [\"a\"]\nport = 1\n",
                "r.toml:2: the route has no host",
            ),
            ("[[route]]\nuris = [\"a\"]\nhost = \"h\"\n", "no port"),
            (
                "[[route]]\nuris = [\"/\"]\nhost = \"h\"\nport = 1\n",
                "names no host",
            ),
            (
                "[[route]]\nuris = [\"a\"]\nhost = 5\n",
                "r.toml:3: invalid type",
            ),
            ("[[route]]\nport = 99999\n", "r.toml:2: "),
            ("[[routes]]\nport = 1\n", "unknown field"),
            (
                "[[route]]\nuris = [\"a\"]\nprot = 5\nhost = \"h\"\nport = 1\n",
                "r.toml:3: unknown key \"prot\"",
            ),
            (
                "[[route]]\nuris = [\"a\"]\nhost = \"h:1\"\nport = 1\n",
                "the host \"h:1\" has a colon",
            ),
            ("x = [", "r.toml:1: "),
        ] {
            let error = toml(text).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("; expected a route"),
                "{error}"
            );
        }
        let error = Routes::lines(Path::new("r"), "\n{}\n")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("r:2: "), "{error}");
    }
}
