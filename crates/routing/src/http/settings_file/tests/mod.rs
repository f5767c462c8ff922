mod domains;
mod gorouter;
mod keys;
mod releases;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::http::router::{DrainSettings, NatsSettings};
use crate::http::settings::{EnvelopeSettings, EnvelopesTo, ExtraField};
use crate::table::Segments;

fn source(text: &str) -> Source {
    Source {
        name: "gorouter.yml".to_owned(),
        text: text.to_owned(),
    }
}

fn toml(text: &str) -> Result<Loaded, Problems> {
    read_toml(&source(text), Path::new("."))
}

fn gorouter(text: &str) -> Result<Loaded, Problems> {
    read_gorouter(&source(text), Path::new("."))
}

fn address(text: &str) -> Option<SocketAddr> {
    Some(text.parse().unwrap())
}

#[test]
fn the_defaults_listen_on_loopback_only() {
    let settings = toml("").unwrap().settings;
    assert_eq!(settings, RouterSettings::default());
    for address in [
        settings.http.listen,
        settings.status.listen,
        settings.status.routes_listen,
    ] {
        assert!(address.unwrap().ip().is_loopback());
    }
    assert_eq!(settings.metrics_listen, None);
}

#[test]
fn the_printed_defaults_read_back_and_name_every_section() {
    let text = print(&RouterSettings::default());
    assert_eq!(toml(&text).unwrap().settings, RouterSettings::default());
    for section in [
        "[limits]",
        "[client_tls]",
        "[backends]",
        "[routes]",
        "# [nats]",
        "# [nats.tls]",
        "# [routing_api]",
        "# [envelopes]",
        "[status]",
        "[metrics]",
        "[drain]",
        "[access_log]",
        "[headers]",
        "[sticky]",
        "[route_services]",
        "[tracing]",
    ] {
        assert!(
            text.lines().any(|line| line == section),
            "no {section} in\n{text}"
        );
    }
}

#[test]
fn our_own_form_is_short() {
    let settings = toml(
        r#"
listen = "0.0.0.0:80"
threads = 2
start_delay = "0s"

[access_log]
file = "access.log"
extra_fields = ["failed_attempts", "backend_time"]

[nats]
embedded = "127.0.0.1:4222"

[metrics]
listen = "127.0.0.1:9090"

[headers]
add = { X-Frame-Options = "DENY" }

[routes]
sharding = "shared-and-segments"
isolation_segments = ["gold"]
"#,
    )
    .unwrap()
    .settings;
    assert_eq!(settings.http.listen, address("0.0.0.0:80"));
    assert_eq!(settings.http.threads, Some(2));
    let quiet = toml("[status]\nlisten = \"\"\nroutes_listen = \"\"").unwrap();
    assert_eq!(quiet.settings.status.listen, None);
    assert_eq!(settings.start_delay, Duration::ZERO);
    assert_eq!(
        settings.http.access_log.extra_fields,
        [ExtraField::FailedAttempts, ExtraField::BackendTime]
    );
    assert_eq!(settings.nats.unwrap().embedded, address("127.0.0.1:4222"));
    assert_eq!(settings.metrics_listen, address("127.0.0.1:9090"));
    assert_eq!(
        settings.http.headers.add,
        [("X-Frame-Options".to_owned(), "DENY".to_owned())]
    );
    assert_eq!(
        settings.table.segments,
        Segments::SharedAnd(vec!["gold".to_owned()])
    );
}

#[test]
fn the_example_of_the_documentation_serves() {
    let document = include_str!("../../../../../../docs/routing.md");
    let (_, section) = document
        .split_once("## Settings of the HTTP router\n")
        .unwrap();
    let example = section.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for secret in ["nats.password", "status.password"] {
        std::fs::write(folder.path().join(secret), "hush\n").unwrap();
    }
    let loaded = read_toml(&source(example), folder.path()).unwrap();
    assert_eq!(*loaded.settings.nats.unwrap().password, "hush");
    assert_eq!(loaded.settings.start_delay, Duration::from_secs(20));
}

#[test]
fn mistakes_in_our_own_form_say_what_was_expected() {
    for (text, expected) in [
        ("lisen = \"a\"", "did you mean \"listen\"?"),
        ("listen = \"8080\"", "expected an address with a port"),
        ("threads = 0", "expected a number from 1 to 1024"),
        (
            "[backends]\nattempts = 0",
            "expected a number from 1 to 100, found 0",
        ),
        (
            "[backends]\ntimeout = \"0s\"",
            "gorouter.yml:2:11: expected a length of time above 0, found 0",
        ),
        (
            "[backends]\nalgorithm = \"hash\"",
            "expected one of round-robin, least-connection, found \"hash\"",
        ),
        (
            "[routes]\nsharding = \"segments\"",
            "expected isolation_segments to name at least one",
        ),
        (
            "[routes]\nisolation_segments = [\"gold\"]",
            "expected sharding beside it, segments or shared-and-segments",
        ),
        (
            "[route_services]\nhairpin_hosts = [\"https://a.b\"]",
            "expected hosts like a.example or *.example.com, found \"https://a.b\"",
        ),
        (
            "[access_log]\nextra_fields = [\"dail_time\"]",
            "did you mean \"dial_time\"?",
        ),
        (
            "[envelopes]\nagent = \"127.0.0.1:3458\"",
            "agents let nobody in without",
        ),
        (
            "[envelopes]\ndatagrams = \"\"",
            "expected one of datagrams and agent",
        ),
        (
            "listen_tls = \"127.0.0.1:443\"",
            "expected [[client_tls.certificate]]",
        ),
        (
            "[[client_tls.certificate]]\nchain = \"none.pem\"",
            "cannot read ./none.pem: ",
        ),
        (
            "[nats]\npassword = \"x\"",
            "keys here: servers, embedded, user, password_file,",
        ),
    ] {
        let problems = toml(text).unwrap_err().to_string();
        assert!(problems.contains(expected), "{problems}\nlacks {expected}");
    }
}

#[test]
fn the_name_of_a_file_says_which_form_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (
        folder.path().join("r.toml"),
        folder.path().join("gorouter.yml"),
    );
    std::fs::write(&ours, "zone = \"a\"\n[nats]\npassword_file = \"p\"").unwrap();
    std::fs::write(folder.path().join("p"), "hush\n").unwrap();
    std::fs::write(&theirs, "zone: b\n").unwrap();
    let settings = load(&ours).unwrap().settings;
    assert_eq!(
        (
            settings.http.zone.as_str(),
            settings.nats.unwrap().password.as_str()
        ),
        ("a", "hush")
    );
    assert_eq!(load(&theirs).unwrap().settings.http.zone, "b");
    let problem = load(&folder.path().join("none.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        problem.contains("none.toml: cannot read the settings: "),
        "{problem}"
    );
}

prop_compose! {
    fn any_settings()(
        times in prop::collection::vec(1_u64..1 << 60, 8),
        numbers in prop::collection::vec(1_u32..100, 4),
        switches in prop::collection::vec(any::<bool>(), 8),
        zone in "\\PC{0,8}",
        names in prop::collection::vec("[a-z]{1,8}", 1..4),
        segments in 0..3,
        embedded in any::<Option<u16>>(),
    ) -> RouterSettings {
        let mut settings = RouterSettings::default();
        let time = |index: usize| Duration::from_nanos(times[index]);
        settings.start_delay = time(0);
        settings.prune_interval = time(1);
        settings.drain = DrainSettings { wait: time(2), timeout: time(3) };
        settings.table.stale_after = time(4);
        settings.http.idle_timeout = time(5);
        settings.http.backends.timeout = time(6);
        settings.http.backends.failed_for = time(7);
        settings.http.backends.attempts = numbers[0];
        settings.http.backends.in_flight = numbers[1];
        settings.http.threads = Some(numbers[2] as usize);
        settings.index = numbers[3];
        settings.http.listen = embedded.and_then(|_| address("[::1]:80"));
        settings.http.http2 = switches[0];
        settings.http.proxy_protocol = switches[1];
        settings.http.headers.force_https = switches[2];
        settings.http.sticky.secure = switches[3];
        settings.status.deprecated = switches[4];
        settings.suspend_pruning = switches[5];
        settings.http.tracing.w3c = switches[6];
        settings.http.access_log.stdout = switches[7];
        settings.http.envelopes = switches[0].then(|| EnvelopeSettings {
            to: EnvelopesTo::Datagrams { address: names.concat() },
            logs: switches[1],
            server_events: switches[2],
            client_events: switches[3],
            instance: settings.index.to_string(),
        });
        settings.http.zone = zone;
        settings.http.access_log.extra_headers.clone_from(&names);
        settings.http.headers.protected.clone_from(&names);
        settings.table.segments = match segments {
            0 => Segments::All,
            1 => Segments::Only(names.clone()),
            _ => Segments::SharedAnd(names.clone()),
        };
        settings.nats = embedded.map(|port| NatsSettings {
            servers: names,
            embedded: Some(SocketAddr::from(([127, 0, 0, 1], port))),
            ..NatsSettings::default()
        });
        settings
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(settings in any_settings()) {
        let text = print(&settings);
        match toml(&text) {
            Ok(loaded) => prop_assert_eq!(loaded.settings, settings),
            Err(problems) => prop_assert!(false, "{}\n{}", problems, text),
        }
    }
}
