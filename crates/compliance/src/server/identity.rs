//! The server's key, its certificate and the administrator's token: files of its folder, made at
//! the first start.

use std::path::Path;

use super::{Config, files};
use crate::private;
use crate::trust::{self, Identity, TrustError, write_secret};

/// The server's key and certificate, made at the first start.
pub(super) fn identity(config: &Config) -> Result<Identity, TrustError> {
    let (certificate, key) = (
        config.data.join(files::CERTIFICATE),
        config.data.join(files::KEY),
    );
    if key.exists() {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| TrustError::file("read", path, error))
        };
        return Ok(Identity {
            key: read(&key)?,
            certificate: read(&certificate)?,
        });
    }
    let mut names = vec!["localhost".to_owned(), config.listen.ip().to_string()];
    names.extend(config.names.iter().cloned());
    names.dedup();
    let identity = Identity::make(None, &names)?;
    // The key comes last: without it both are made anew.
    private::write(&certificate, identity.certificate.as_bytes())
        .map_err(|error| TrustError::file("write", &certificate, error))?;
    write_secret(&key, identity.key.as_bytes())?;
    Ok(identity)
}

/// The token of the REST API, made at the first start.
pub(super) fn token(data: &Path) -> Result<String, TrustError> {
    let path = data.join(files::TOKEN);
    if path.exists() {
        let read = std::fs::read_to_string(&path);
        let token = read.map_err(|error| TrustError::file("read", &path, error))?;
        let token = token.trim().to_owned();
        if token.len() < 32 {
            let cause = "it is shorter than 32 characters; remove it, and a new one is made";
            return Err(TrustError::file("use", &path, cause));
        }
        return Ok(token);
    }
    let token = trust::random_token()?;
    write_secret(&path, token.as_bytes())?;
    Ok(token)
}
