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
        /// Its password, in a file.
        password_file = password: secret_file,
        /// Time between two pings.
        ping_interval: time,
    }
    form.optional(
        "tls",
        "TLS towards the servers.",
        &mut nats.tls,
        describe_peer_tls,
    );
}
