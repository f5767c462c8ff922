//! Settings of the TCP router from a short TOML file.

use std::path::Path;

mod route;

use super::{FixedRoute, StatusTlsSettings, TcpSettings, TerminationSettings};
use crate::settings_keys::keys;
use document::{Form, Problems, Source, parse_toml};
use routing_api::client::PeerTls;

/// What a file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub settings: TcpSettings,
    /// Its `[[route]]` tables, for a router without a routing API.
    /// [`keep`](super::fixed::keep) tells them.
    pub routes: Vec<FixedRoute>,
}

/// Reads a settings file. Files that it names are looked up in its own folder.
///
/// # Errors
/// Every problem, with file, line and what was expected.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    let source = Source::read(path)?;
    read(&source, path.parent().unwrap_or(Path::new(".")))
}

/// Reads settings. Files that they name are looked up from `folder` on.
///
/// # Errors
/// Every problem, with its place.
pub fn read(source: &Source, folder: &Path) -> Result<Loaded, Problems> {
    let root = parse_toml(source).map_err(|problems| Problems::of(source, problems))?;
    let mut form = Form::reading(&root, folder);
    let mut settings = TcpSettings::default();
    describe(&mut form, &mut settings);
    let routes = route::routes(&mut form);
    form.finish(source)?;
    Ok(Loaded { settings, routes })
}

/// Settings as a file, with every key and what it means. Certificates are left out.
pub fn print(settings: &TcpSettings) -> String {
    let mut form = Form::printing();
    describe(&mut form, &mut settings.clone());
    form.into_text()
}

/// Every setting, those without a table first, as TOML wants it.
fn describe(form: &mut Form<'_>, settings: &mut TcpSettings) {
    keys! { form, settings;
        /// Address on which external ports are opened; "0.0.0.0": all of this machine's.
        listen: value,
        /// Where /health and /metrics answer; without it, nowhere.
        status: value,
        /// Threads of the data path; without it, one for each processor.
        threads: value,
    }
    if settings
        .threads
        .is_some_and(|threads| !(1..=1024).contains(&threads))
    {
        form.wrong("threads", "expected a number from 1 to 1024");
    }
    form.value(
        "splice",
        "Carry long transfers through the kernel's pipes instead of copying.",
        &mut settings.splice,
    );
    form.optional(
        "status_tls",
        "The same within TLS.",
        &mut settings.status_tls,
        status_tls,
    );
    form.section("limits", "What clients may take.", |form| {
        limits(form, settings)
    });
    form.section("timeouts", "How long something may take.", |form| {
        timeouts(form, settings)
    });
    form.section("backends", "Which backend is tried.", |form| {
        keys! { form, settings;
            /// Backends tried for one connection.
            attempts: within(1..=1000),
            /// One that could not be reached is passed over for so long when there are others.
            failed_for: value,
        }
    });
    form.section("routes", "The table of routes.", |form| {
        routes(form, settings)
    });
    form.section("drain", "What SIGUSR2 begins.", |form| {
        keys! { form, settings;
            /// Health fails, and connections are still accepted for so long.
            wait = drain_wait: value,
            /// Then established connections go on, at most for so long.
            timeout = drain_timeout: value,
        }
    });
    form.optional(
        "termination",
        "TLS of clients that ends here: [[termination.certificate]] with chain and key, files \
         in PEM.",
        &mut settings.termination,
        termination,
    );
    form.optional(
        "backend_tls",
        "TLS to backends.",
        &mut settings.backend_tls,
        backend_tls,
    );
    form.optional(
        "routing_api",
        "The routing API that routes come from.",
        &mut settings.routing_api,
        |form, api| {
            routing_api::client::describe(form, api);
            if api.url.is_empty() {
                form.wrong(
                    "url",
                    "expected the address of the routing API, found nothing",
                );
            }
        },
    );
}

fn status_tls(form: &mut Form<'_>, tls: &mut StatusTlsSettings) {
    form.value("listen", "Where they answer.", &mut tls.listen);
    form.file(
        "certificate",
        "The certificate with its chain, a file in PEM.",
        &mut tls.certificate,
    );
    form.file("key", "Its key, a file in PEM.", &mut tls.key);
}

fn limits(form: &mut Form<'_>, settings: &mut TcpSettings) {
    keys! { form, settings;
        /// Connections of clients at once; above it, they wait in the kernel's queue.
        connections: within(1..=10_000_000),
        /// The same for each port.
        port_connections: within(1..=10_000_000),
        /// Connections that wait for each port and thread until they are accepted.
        backlog: within(1..=65_535),
    }
}

fn timeouts(form: &mut Form<'_>, settings: &mut TcpSettings) {
    keys! { form, settings;
        /// A connection to a backend.
        connect = connect_timeout: time,
        /// Silence in both directions; "0s": no limit.
        idle = idle_timeout: value,
        /// A whole ClientHello where routes depend on it; then the port's own route is taken.
        hello = hello_timeout: time,
        /// A TLS handshake, with clients and with backends.
        handshake = handshake_timeout: time,
    }
}

fn routes(form: &mut Form<'_>, settings: &mut TcpSettings) {
    form.value(
        "isolation_segments",
        "Segments whose mappings of the routing API are served, \"\" for those without one;\n\
         none named: all.",
        &mut settings.isolation_segments,
    );
    keys! { form, settings;
        /// Age at which a mapping without its own TTL is pruned.
        stale_after: value,
        /// Time between two looks for stale mappings.
        prune_every: value,
        /// Time after which a port that could not be opened is tried again.
        bind_again: value,
    }
}

fn termination(form: &mut Form<'_>, termination: &mut TerminationSettings) {
    form.tables(
        "certificate",
        &mut termination.certificates,
        |form, (chain, key)| {
            form.file("chain", "", chain);
            form.file("key", "", key);
        },
    );
}

fn backend_tls(form: &mut Form<'_>, tls: &mut PeerTls) {
    keys! { form, tls;
        /// Authorities of backends, a file in PEM; without it, those of the public web.
        authorities: file,
        /// The own certificate with its chain, a file in PEM.
        certificate: file,
        /// Its key, a file in PEM.
        key: file,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tcp::TcpMapping;

    fn source(text: &str) -> Source {
        Source {
            name: "tcp.toml".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        let settings = TcpSettings {
            status: Some(([127, 0, 0, 1], 8080).into()),
            threads: Some(3),
            connections: 7,
            idle_timeout: Duration::ZERO,
            drain_wait: Duration::from_millis(1500),
            splice: false,
            ..TcpSettings::default()
        };
        let text = print(&settings);
        let read = read(&source(&text), Path::new(".")).unwrap();
        assert_eq!(read.settings, settings, "{text}");
    }

    #[test]
    fn certificates_are_read_from_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["chain.pem", "key.pem", "ca.pem"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let text = "[[termination.certificate]]\nchain = \"chain.pem\"\nkey = \"key.pem\"\n\
            [backend_tls]\nauthorities = \"ca.pem\"\n\
            [status_tls]\nlisten = \"[::1]:1\"\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\n";
        let settings = read(&source(text), folder.path()).unwrap().settings;
        let status = settings.status_tls.unwrap();
        assert_eq!(
            (&*status.certificate, &**status.key),
            ("chain.pem", "key.pem")
        );
        assert_eq!(status.listen, "[::1]:1".parse().unwrap());
        let pair = ("chain.pem".to_owned(), "key.pem".to_owned());
        assert_eq!(settings.termination.unwrap().certificates, [pair]);
        assert_eq!(settings.backend_tls.unwrap().authorities, "ca.pem");
    }

    #[test]
    fn the_routing_api_of_the_documentation_is_read() {
        let document = include_str!("../../../../../docs/routing.md");
        let (_, section) = document
            .split_once("### A TCP router that proves itself\n")
            .unwrap();
        let example = section.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "ca.pem",
            "tcp-router.pem",
            "tcp-router.key",
            "uaa.secret",
            "uaa-ca.pem",
        ] {
            std::fs::write(folder.path().join(name), format!("hush {name}\n")).unwrap();
        }
        let settings = read(&source(example), folder.path()).unwrap().settings;
        assert_eq!(settings.isolation_segments, ["gold"]);
        let shown = format!("{settings:?}{}", print(&settings));
        for secret in ["hush uaa.secret", "hush tcp-router.key"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        let api = settings.routing_api.unwrap();
        assert_eq!(&*api.tls.key, "hush tcp-router.key\n");
        let tokens = api.tokens.unwrap();
        assert_eq!(
            (&*tokens.client, &**tokens.secret),
            ("tcp_router", "hush uaa.secret")
        );
        let nowhere = read(&source("[routing_api]\nurl = \"\""), folder.path());
        let problems = nowhere.unwrap_err().to_string();
        assert!(
            problems.contains("expected the address of the routing API"),
            "{problems}"
        );
    }

    #[test]
    fn wrong_values_of_every_key_are_told() {
        let tried = document::every_key::SettingsForm {
            read: &|source| read(source, Path::new(".")).map(|_| Vec::new()),
            write: document::every_key::toml,
            right: &[],
        };
        let found = tried.every_key();
        for key in [
            "status_tls.listen",
            "termination.certificate.chain",
            "route.port",
        ] {
            assert!(
                found.iter().any(|one| one == key),
                "{key} is not in {found:?}"
            );
        }
    }

    #[test]
    fn routes_stand_in_the_file_too() {
        let text = "\
[[route]]
port = 1024
backend = \"10.0.0.7:9000\"
[[route]]
port = 1024
backend = \"db.example:5432\"
server_name = \"db.example\"
terminate_tls = true
protocols = [\"h2\", \"http/1.1\"]
instance = \"i-1\"
show_certificate = true
[[route]]
port = 1025
backend = \"[::1]:9\"
health = \"http://[::1]:10/health\"
";
        let routes = read(&source(text), Path::new(".")).unwrap().routes;
        let plain = |port, host: &str, backend_port| TcpMapping {
            port,
            backend_ip: host.to_owned(),
            backend_port,
            ..TcpMapping::default()
        };
        let named = TcpMapping {
            backend_sni_hostname: Some("db.example".to_owned()),
            terminate_frontend_tls: true,
            alpns: "h2,http/1.1".to_owned(),
            backend_tls_port: 5432,
            instance_id: "i-1".to_owned(),
            enable_backend_mtls: true,
            ..plain(1024, "db.example", 5432)
        };
        let mut expected =
            [plain(1024, "10.0.0.7", 9000), named, plain(1025, "::1", 9)].map(FixedRoute::from);
        expected[2].health = Some("http://[::1]:10/health".parse().unwrap());
        assert_eq!(routes, expected);
    }

    #[test]
    fn a_route_that_is_none_says_why() {
        for (text, expected) in [
            (
                "[[route]]\nbackend = \"a:1\"",
                "expected port in [[route]] 1",
            ),
            ("[[route]]\nport = 5", "expected backend in [[route]] 1"),
            (
                "[[route]]\nport = 0\nbackend = \"a:1\"",
                "tcp.toml:2:8: expected a number from 1 to 65535, found 0",
            ),
            (
                "[[route]]\nport = 1\nbackend = \"::1:9\"",
                "tcp.toml:3:11: expected host:port such as \"10.0.0.7:9000\", found \"::1:9\"",
            ),
            ("[[route]]\nport = 1\nbackend = \":9\"", "found \":9\""),
            ("[[route]]\nport = 1\nbackend = \"a:0\"", "found \"a:0\""),
            ("[[route]]\nprot = 1", "did you mean \"port\"?"),
            (
                "[[route]]\nport = 1\nbackend = \"a:1\"\nhealth = \"a:2\"",
                "expected an address such as http://10.0.0.7:8080/health",
            ),
            ("route = 7", "expected a list of tables"),
        ] {
            let problems = read(&source(text), Path::new(".")).unwrap_err().to_string();
            assert!(problems.contains(expected), "{problems}\nlacks {expected}");
        }
    }

    #[test]
    fn problems_name_their_place() {
        let text = "lisen = \"0.0.0.0\"\n[backends]\nattempts = 0\n";
        let problems = read(&source(text), Path::new(".")).unwrap_err().to_string();
        assert!(problems.contains("tcp.toml:1"), "{problems}");
        assert!(problems.contains("did you mean \"listen\"?"), "{problems}");
        assert!(problems.contains("tcp.toml:3"), "{problems}");
        assert!(problems.contains("from 1 to 1000, found 0"), "{problems}");
    }
}
