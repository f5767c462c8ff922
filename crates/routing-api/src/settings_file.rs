//! Settings of the routing API from a TOML file.

use std::path::{Path, PathBuf};

use super::model::RouterGroup;
use super::settings::{ApiSettings, Database, PostgresSettings};
use document::{Form, Problems, Secret, Source, parse_toml};
use tokio_postgres::config::{Host, SslMode};

/// The database as the file names it.
#[derive(Debug, Clone, Default)]
struct DatabaseForm {
    /// A file, or an address.
    name: String,
    password: Secret,
    authority: Option<PathBuf>,
}

/// Reads a settings file.
///
/// # Errors
/// Every problem, with file, line and what was expected.
pub fn load(path: &Path) -> Result<ApiSettings, Problems> {
    let source = Source::read(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    read(&source, folder)
}

/// Reads settings. Files that they name are looked up from `folder` on.
///
/// # Errors
/// Every problem, with its place.
pub fn read(source: &Source, folder: &Path) -> Result<ApiSettings, Problems> {
    let root = parse_toml(source).map_err(|problems| Problems::of(source, problems))?;
    let mut form = Form::reading(&root, folder);
    let mut settings = ApiSettings::default();
    describe(&mut form, &mut settings, folder);
    form.finish(source)?;
    Ok(settings)
}

/// Settings as a file, with every key and what it means; secrets and router groups are left
/// out.
pub fn print(settings: &ApiSettings) -> String {
    let mut form = Form::printing();
    describe(&mut form, &mut settings.clone(), Path::new(""));
    form.into_text()
}

fn describe(form: &mut Form<'_>, settings: &mut ApiSettings, folder: &Path) {
    form.value(
        "listen",
        "Where plain connections are accepted. With [mtls] and without this: nowhere.",
        &mut settings.listen,
    );
    if form.has("mtls") && !form.has("listen") {
        settings.listen = None;
    }
    form.value(
        "admin_listen",
        "Where router groups can be locked for a backup; a loopback address.",
        &mut settings.admin_listen,
    );
    form.value(
        "status",
        "Where /health and /metrics answer beside the API, to whoever asks: for when it\n\
         serves nobody without a certificate. Without it, nowhere else.",
        &mut settings.status,
    );
    form.value(
        "token_key",
        "PEM file with the public key (RSA or EC) of bearer tokens. Without it calls need\n\
         none, and only this machine is served.",
        &mut settings.token_key,
    );
    form.value(
        "token_issuer",
        "The issuer (iss) that tokens must name, such as https://uaa.example/oauth/token;\n\
         \"\": any, also another identity zone of the same UAA.",
        &mut settings.token_issuer,
    );
    if settings.token_issuer.is_some() && settings.token_key.is_none() {
        form.wrong("token_issuer", "expected token_key beside it");
    }
    form.value(
        "open_to_all",
        "Serve plain connections from other machines although calls need no token.",
        &mut settings.open_to_all,
    );
    form.value(
        "max_ttl",
        "Longest time to live of a row, in whole seconds.",
        &mut settings.max_ttl,
    );
    if settings.max_ttl.as_secs() == 0 || settings.max_ttl.subsec_nanos() != 0 {
        form.wrong("max_ttl", "expected whole seconds, at least one");
    }
    database(form, settings, folder);
    settings.token_key = settings.token_key.take().map(|path| folder.join(path));
    form.size(
        "body",
        "Bytes of a request's body.",
        &mut settings.limits.body_bytes,
    );
    form.value(
        "connections",
        "Connections open at once, of each listener.",
        &mut settings.limits.connections,
    );
    let mtls = &mut settings.mtls;
    form.optional(
        "mtls",
        "A listener with mutual TLS. The paths name PEM files.",
        mtls,
        |form, mtls| {
            form.value("listen", "Where it listens.", &mut mtls.listen);
            let files = &mut mtls.files;
            for (key, about, path) in [
                ("certificate", "Its certificate.", &mut files.certificate),
                ("key", "The key of that.", &mut files.key),
                ("authority", "Authority of clients.", &mut files.authority),
            ] {
                form.value(key, about, path);
                *path = folder.join(&*path);
            }
        },
    );
    for key in ["certificate", "key", "authority"] {
        let missing = mtls.as_ref().is_some_and(|mtls| {
            let path = match key {
                "certificate" => &mtls.files.certificate,
                "key" => &mtls.files.key,
                _ => &mtls.files.authority,
            };
            path == folder || path.as_os_str().is_empty()
        });
        if missing {
            form.wrong("mtls", format!("expected \"{key}\" in [mtls], found none"));
        }
    }
    form.tables(
        "router_groups",
        &mut settings.router_groups,
        |form, group: &mut RouterGroup| {
            form.value("guid", "", &mut group.guid);
            form.value("name", "", &mut group.name);
            form.value("type", "", &mut group.kind);
            form.value("reservable_ports", "", &mut group.reservable_ports);
            if let Err(cause) = group.check() {
                let key = if group.name.is_empty() {
                    "type"
                } else {
                    "name"
                };
                form.wrong(key, cause);
            }
        },
    );
}

fn database(form: &mut Form<'_>, settings: &mut ApiSettings, folder: &Path) {
    let mut wanted = DatabaseForm::default();
    match &settings.database {
        Database::Sqlite(path) => wanted.name = path.display().to_string(),
        Database::Postgres(postgres) => {
            wanted.name = address(&postgres.config);
            wanted.authority.clone_from(&postgres.authority);
        }
    }
    form.value(
        "database",
        "An SQLite file, or postgres://user@host/name?sslmode=require.",
        &mut wanted.name,
    );
    form.secret_file(
        "database_password_file",
        "A file with the password of PostgreSQL.",
        &mut wanted.password,
    );
    form.value(
        "database_authority",
        "PEM file with the authority of PostgreSQL's certificate; without it, those of the web.",
        &mut wanted.authority,
    );
    let name = wanted.name.as_str();
    if !name.starts_with("postgres://") && !name.starts_with("postgresql://") {
        if name.is_empty() {
            form.wrong("database", "expected a file or postgres://…, found nothing");
        }
        settings.database = Database::Sqlite(folder.join(name));
        return;
    }
    match name.parse::<tokio_postgres::Config>() {
        // The library's words may repeat a part of the address, and with it a password.
        Err(_) => form.wrong(
            "database",
            "expected postgres://user@host:port/name?sslmode=require",
        ),
        Ok(mut config) => {
            if !wanted.password.is_empty() {
                config.password(wanted.password.as_bytes());
            }
            let authority = wanted.authority.map(|path| folder.join(path));
            let postgres = PostgresSettings { config, authority };
            settings.database = Database::Postgres(Box::new(postgres));
        }
    }
}

/// The address of PostgreSQL, without the password.
fn address(config: &tokio_postgres::Config) -> String {
    let escaped = |text: &str| {
        url::form_urlencoded::byte_serialize(text.as_bytes())
            .collect::<String>()
            .replace('+', "%20")
    };
    let hosts = config.get_hosts().iter().enumerate();
    let hosts: Vec<String> = hosts
        .map(|(at, host)| {
            let name = match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
                Host::Tcp(name) => name.clone(),
                Host::Unix(folder) => escaped(&folder.to_string_lossy()),
            };
            let ports = config.get_ports();
            // One port counts for every host.
            match ports.get(at).or(ports.first()) {
                Some(port) => format!("{name}:{port}"),
                None => name,
            }
        })
        .collect();
    let mode = match config.get_ssl_mode() {
        SslMode::Disable => "disable",
        SslMode::Require => "require",
        _ => "prefer",
    };
    format!(
        "postgres://{}@{}/{}?sslmode={mode}",
        escaped(config.get_user().unwrap_or_default()),
        hosts.join(","),
        escaped(config.get_dbname().unwrap_or_default()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source {
            name: "api.toml".into(),
            text: text.into(),
        }
    }

    #[test]
    fn wrong_values_of_every_key_are_told() {
        let tried = document::every_key::SettingsForm {
            read: &|source| read(source, Path::new(".")).map(|_| Vec::new()),
            write: document::every_key::toml,
            right: &[],
        };
        let found = tried.every_key();
        for key in ["max_ttl", "mtls.certificate", "router_groups.name"] {
            assert!(
                found.iter().any(|one| one == key),
                "{key} is not in {found:?}"
            );
        }
    }

    #[test]
    fn the_example_of_the_documentation_is_read() {
        let document = include_str!("../../../docs/routing.md");
        let (_, section) = document.split_once("### The routing API\n").unwrap();
        let example = section.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("db.secret"), "hush\n").unwrap();
        let settings = read(&source(example), folder.path()).unwrap();
        assert_eq!(settings.router_groups[0].name, "default-tcp");
        assert!(settings.mtls.is_some() && settings.status.is_some());
        let Database::Postgres(postgres) = settings.database else {
            panic!("not PostgreSQL");
        };
        assert_eq!(postgres.config.get_password(), Some(&b"hush"[..]));
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = r#"
            listen = "127.0.0.1:3300"
            token_key = "uaa.pem"
            token_issuer = "https://uaa.example/oauth/token"
            max_ttl = "60s"
            database = "postgres://api@db.example.com/routing?sslmode=require"
            body = "1MiB"
            [mtls]
            listen = "0.0.0.0:3001"
            certificate = "api.crt"
            key = "api.key"
            authority = "ca.crt"
            [[router_groups]]
            name = "default-tcp"
            type = "tcp"
            reservable_ports = "1024-1123"
        "#;
        let settings = read(&source(text), Path::new("/etc/api")).unwrap();
        assert_eq!(settings.token_key, Some("/etc/api/uaa.pem".into()));
        let issuer = settings.token_issuer.as_deref();
        assert_eq!(issuer, Some("https://uaa.example/oauth/token"));
        assert_eq!(settings.max_ttl.as_secs(), 60);
        assert_eq!(settings.limits.body_bytes, 1 << 20);
        assert_eq!(settings.router_groups[0].name, "default-tcp");
        let files = settings.mtls.unwrap().files;
        assert_eq!(files.key, Path::new("/etc/api/api.key"));
        assert!(matches!(settings.database, Database::Postgres(_)));
    }

    #[test]
    fn without_a_file_of_settings_the_defaults_hold() {
        let settings = read(&source(""), Path::new("/data")).unwrap();
        assert_eq!(settings.listen, ApiSettings::default().listen);
        let Database::Sqlite(path) = settings.database else {
            panic!("not SQLite");
        };
        assert_eq!(path, Path::new("/data/routing-api.sqlite"));
    }

    #[test]
    fn mistakes_are_shown_where_they_are() {
        for (text, place, said) in [
            (
                "lisen = \"127.0.0.1:1\"",
                "api.toml:1:1",
                "did you mean \"listen\"?",
            ),
            (
                "\nmax_ttl = \"0s\"",
                "api.toml:2:11",
                "expected whole seconds",
            ),
            (
                "[mtls]\nkey = \"a\"",
                "api.toml:1",
                "expected \"certificate\"",
            ),
            (
                "[[router_groups]]\nname = \"a\"\ntype = \"tcp\"",
                "api.toml:2:8",
                "missing reservable_ports in router group: a",
            ),
            (
                "database = \"postgres://u:secret@h:x/\"",
                "api.toml:1:12",
                "expected postgres://",
            ),
        ] {
            let problems = read(&source(text), Path::new("")).unwrap_err().to_string();
            assert!(problems.contains(place), "{problems}");
            assert!(problems.contains(said), "{problems}");
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        let text = print(&ApiSettings::default());
        let settings = read(&source(&text), Path::new("")).unwrap();
        assert_eq!(settings.listen, ApiSettings::default().listen);
        assert!(text.contains("[mtls]"), "{text}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("password"), "hush\n").unwrap();
        let given = r#"
            listen = ""
            status = "127.0.0.1:3080"
            token_key = "uaa.pem"
            database = "postgres://an%20api:hush@[::1]:5433,db.example/routing?sslmode=require"
            database_password_file = "password"
            database_authority = "db.pem"
            [mtls]
            listen = "0.0.0.0:3001"
            certificate = "api.crt"
            key = "api.key"
            authority = "ca.crt"
        "#;
        let settings = read(&source(given), folder.path()).unwrap();
        let text = print(&settings);
        assert!(!text.contains("hush"), "{text}");
        let again = read(&source(&text), Path::new("/elsewhere")).unwrap();
        assert_eq!(again.status, settings.status);
        assert_eq!(again.listen, None);
        assert_eq!(again.token_key, settings.token_key);
        let files = |settings: &ApiSettings| settings.mtls.clone().unwrap().files;
        assert_eq!(files(&again).authority, files(&settings).authority);
        let (Database::Postgres(again), Database::Postgres(settings)) =
            (again.database, settings.database)
        else {
            panic!("not PostgreSQL");
        };
        assert_eq!(again.authority, settings.authority);
        assert_eq!(again.config.get_user(), Some("an api"));
        assert_eq!(again.config.get_hosts(), settings.config.get_hosts());
        assert_eq!(again.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(again.config.get_password(), None);
    }
}
