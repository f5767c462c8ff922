//! The client's part of a settings file, the same for everybody who calls the routing API.

use super::{ClientSettings, PeerTls, TokenSettings};
use document::Form;

/// The keys of a table that says how the routing API is reached.
pub fn describe(form: &mut Form<'_>, api: &mut ClientSettings) {
    form.value(
        "url",
        "Its address, for instance \"https://routing-api.example:3001\".",
        &mut api.url,
    );
    form.section("tls", "TLS towards it.", |form| {
        describe_peer_tls(form, &mut api.tls)
    });
    form.optional(
        "tokens",
        "Where tokens come from (UAA, by client credentials); without it calls carry none.",
        &mut api.tokens,
        tokens,
    );
}

/// The keys of TLS towards a server.
pub fn describe_peer_tls(form: &mut Form<'_>, tls: &mut PeerTls) {
    form.file(
        "authorities",
        "Authorities of the server, a file in PEM; without it those of the public web.",
        &mut tls.authorities,
    );
    form.file(
        "certificate",
        "The own certificate, a file in PEM.",
        &mut tls.certificate,
    );
    form.file("key", "Its key, a file in PEM.", &mut tls.key);
}

fn tokens(form: &mut Form<'_>, tokens: &mut TokenSettings) {
    form.value(
        "url",
        "The token endpoint, without /oauth/token; https, or a loopback address.",
        &mut tokens.url,
    );
    form.value("client", "Name of the client.", &mut tokens.client);
    form.secret_file("secret_file", "Its secret, in a file.", &mut tokens.secret);
    form.file(
        "authorities",
        "Authorities of the endpoint, a file in PEM.",
        &mut tokens.authorities,
    );
    form.value("insecure", "Accept any certificate.", &mut tokens.insecure);
}
