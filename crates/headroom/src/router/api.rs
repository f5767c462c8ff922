//! `headroom router api`.

use anyhow::{Context, Result};
use routing_api::{self as api, ApiSettings, Database, settings_file};

use super::args::ApiArgs;
use crate::output;
use crate::server::{control_runtime, ended, logger, on_signal};

/// The database's file within the folder that was named.
const DATABASE: &str = "routing-api.sqlite";

/// Serves until a signal.
pub(super) fn serve(args: &ApiArgs) -> Result<()> {
    let settings = settings(args)?;
    if args.print_settings {
        return output::print(&settings_file::print(&settings));
    }
    if let Database::Sqlite(path) = &settings.database
        && let (Some(folder), Some(_)) = (path.parent(), &args.data)
    {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("make the folder {}", folder.display()))?;
    }
    control_runtime()?.block_on(net::local(async {
        let shutdown = on_signal()?;
        let logger = logger("routing-api", &args.log)?;
        let result = api::run(settings, logger.clone(), shutdown).await;
        ended(&logger, result)
    }))
}

/// The settings of the file, and the flags over them.
fn settings(args: &ApiArgs) -> Result<ApiSettings> {
    let mut settings = match &args.config {
        Some(path) => {
            settings_file::load(path).map_err(|problems| anyhow::anyhow!("\n{problems}"))?
        }
        None => ApiSettings::default(),
    };
    settings.listen = args.listen.or(settings.listen);
    if let Some(folder) = &args.data {
        settings.database = Database::Sqlite(folder.join(DATABASE));
    }
    if args.token_key.is_some() {
        settings.token_key.clone_from(&args.token_key);
    }
    settings.status = args.health.or(settings.status);
    Ok(settings)
}
