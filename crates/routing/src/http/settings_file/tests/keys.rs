//! Every key of both forms, with values that it cannot have.

use std::path::Path;

use crate::http::router::RouterSettings;
use crate::http::settings_file::{gorouter, print, read_toml};
use document::every_key::{SettingsForm, toml, yaml};
use document::{Form, Problems, parse_yaml};

#[test]
fn wrong_values_of_every_key_of_our_own_form_are_told() {
    let tried = SettingsForm {
        read: &|source| read_toml(source, Path::new(".")).map(|loaded| loaded.warnings),
        write: toml,
        // "" says that there is no limit of its own.
        right: &[
            ("backends.timeout_http1", "\"\""),
            ("backends.timeout_http2", "\"\""),
        ],
    };
    let found = tried.every_key();
    // Every key that is printed was found, in its table.
    let mut table = String::new();
    for line in print(&RouterSettings::default()).lines() {
        let line = line.trim_start_matches("# ");
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_owned() + ".";
        } else if let Some((key, _)) = line.split_once(" = ")
            && !key.contains(' ')
        {
            let key = format!("{table}{key}");
            assert!(found.contains(&key), "{key} is not in {found:?}");
        }
    }
}

#[test]
fn wrong_values_of_every_key_of_gorouters_are_told() {
    let tried = SettingsForm {
        // Strictly: nothing is coerced, and whoever gives an unknown key is told the known ones.
        read: &|source| {
            let root = parse_yaml(source).map_err(|problems| Problems::of(source, problems))?;
            let mut form = Form::reading(&root, Path::new("."));
            gorouter::read(&mut form);
            form.finish(source)
        },
        write: yaml,
        // Authorities may stand in one text or in several.
        right: &[
            ("ca_certs", "\"one\""),
            ("client_ca_certs", "\"one\""),
            ("domains.ca_certs", "\"one\""),
            ("nats.ca_certs", "\"one\""),
            ("oauth.ca_certs", "\"one\""),
            ("routing_api.ca_certs", "\"one\""),
        ],
    };
    let found = tried.every_key();
    for key in [
        "port",
        "status.routes.port",
        "tls_pem.cert_chain",
        "oauth.client_secret",
    ] {
        assert!(
            found.iter().any(|one| one == key),
            "{key} is not in {found:?}"
        );
    }
    assert!(found.len() > 130, "{} keys: {found:?}", found.len());
}
