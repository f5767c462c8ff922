//! `headroom router nats`.

use std::path::Path;

use anyhow::{Context, Result};
use nats::Password;
use nats::server::{Server, ServerConfig};
use telemetry::Fields;

use super::args::NatsArgs;
use crate::server::{control_runtime, ended, logger, on_signal};

/// Serves until a signal.
pub(super) fn serve(args: &NatsArgs) -> Result<()> {
    let config = ServerConfig {
        listen: args.listen,
        user: user(args.user.as_deref(), args.password_file.as_deref())?,
        ..ServerConfig::default()
    };
    control_runtime()?.block_on(net::local(async {
        let mut shutdown = on_signal()?;
        let logger = logger("nats", &args.log)?;
        let server = Server::start(config).await?;
        logger.info(
            "started",
            Fields::new().and("address", server.address().to_string()),
        );
        shutdown.requested().await;
        let stats = server.gauge().read();
        server.stop().await;
        let fields = Fields::new()
            .and("in-messages", stats.in_messages)
            .and("out-messages", stats.out_messages)
            .and("slow-consumers", stats.slow_consumers);
        logger.info("stopped", fields);
        ended(&logger, anyhow::Ok(()))
    }))
}

/// A user with the password from a file.
pub(crate) fn user(name: Option<&str>, file: Option<&Path>) -> Result<Option<(String, Password)>> {
    let (Some(name), Some(file)) = (name, file) else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("read the password from {}", file.display()))?;
    let password = Password::new(text.trim_end_matches(['\n', '\r']));
    Ok(Some((name.to_owned(), password)))
}
