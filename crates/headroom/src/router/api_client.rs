//! How the command line says that the routing API is called.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use document::Secret;
use routing_api::client::{ClientSettings, TokenSettings};

use super::args::ApiClientArgs;

/// Puts what the flags say over settings.
pub(crate) fn put_over(
    settings: &mut ClientSettings,
    url: &str,
    args: &ApiClientArgs,
) -> Result<()> {
    url.clone_into(&mut settings.url);
    let tls = &mut settings.tls;
    put_text(&mut tls.authorities, args.api_authority.as_ref())?;
    put_text(&mut tls.certificate, args.api_cert.as_ref())?;
    put_text(&mut tls.key, args.api_key.as_ref())?;
    if let Some(url) = &args.token_url {
        let tokens = settings.tokens.get_or_insert_with(TokenSettings::default);
        tokens.url.clone_from(url);
        if let Some(client) = &args.token_client {
            tokens.client.clone_from(client);
        }
        if let Some(path) = &args.token_secret_file {
            tokens.secret = Secret::from(text(path)?.trim_end_matches(['\n', '\r']));
        }
        put_text(&mut tokens.authorities, args.token_authority.as_ref())?;
    }
    Ok(())
}

fn put_text(into: &mut String, path: Option<&PathBuf>) -> Result<()> {
    if let Some(path) = path {
        *into = text(path)?;
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}
