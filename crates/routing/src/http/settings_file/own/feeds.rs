//! Where routes come from.

use crate::http::router::NatsSettings;
use crate::settings_keys::keys;
use document::Form;
use routing_api::client::describe_peer_tls;

pub(super) fn nats(form: &mut Form<'_>, nats: &mut NatsSettings) {
    keys! { form, nats;
        /// host:port of each server; tried in turn. None: the embedded endpoint, or 127.0.0.1:4222.
        servers: value,
        /// An endpoint of NATS within this process listens here.
        embedded: value,
        /// User; empty: none.
        user: value,
    }
    form.secret_file(
        "password_file",
        "Its password, in a file.",
        &mut nats.password,
    );
    form.time(
        "ping_interval",
        "Time between two pings.",
        &mut nats.ping_interval,
    );
    form.optional(
        "tls",
        "TLS towards the servers.",
        &mut nats.tls,
        describe_peer_tls,
    );
}
