//! Who may do what: bearer tokens, signed by UAA, that carry scopes.

use std::path::{Path, PathBuf};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// `routing.routes.read`
    ReadRoutes,
    /// `routing.routes.write`
    WriteRoutes,
    /// `routing.router_groups.read`
    ReadGroups,
    /// `routing.router_groups.write`
    WriteGroups,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::ReadRoutes => "routing.routes.read",
            Self::WriteRoutes => "routing.routes.write",
            Self::ReadGroups => "routing.router_groups.read",
            Self::WriteGroups => "routing.router_groups.write",
        }
    }
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("read the key of tokens from {}: {cause}; expected the PEM of a public key, RSA or EC (P-256)", path.display())]
pub struct KeyError {
    /// The file.
    path: PathBuf,
    /// What is wrong with it.
    cause: String,
}

/// Checks tokens.
pub(crate) struct Tokens {
    key: DecodingKey,
    validation: Validation,
}

/// Scopes as a list, as UAA writes them, or as words in one text (RFC 8693).
#[derive(Deserialize)]
#[serde(untagged)]
enum Scopes {
    List(Vec<String>),
    Words(String),
}

#[derive(Deserialize)]
struct Claims {
    scope: Scopes,
}

impl Tokens {
    /// Reads the key. Its kind fixes the algorithm: a token cannot choose another one. With an
    /// `issuer` every token must name it.
    pub(crate) fn read(path: &Path, issuer: Option<&str>) -> Result<Self, KeyError> {
        let refuse = |cause: String| KeyError {
            path: path.to_owned(),
            cause,
        };
        let pem = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
        let rsa = DecodingKey::from_rsa_pem(&pem).map(|key| (key, Algorithm::RS256));
        let (key, algorithm) = rsa
            .or_else(|_| DecodingKey::from_ec_pem(&pem).map(|key| (key, Algorithm::ES256)))
            .map_err(|error| refuse(error.to_string()))?;
        let mut validation = Validation::new(algorithm);
        validation.leeway = 0;
        validation.validate_nbf = true;
        // routing-api does not look at the audience either: the scope says enough.
        validation.validate_aud = false;
        // Zones of a UAA that have no key of their own sign with the same one, and only their
        // issuer tells their tokens apart.
        if let Some(issuer) = issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        Ok(Self { key, validation })
    }

    /// Whether the request carries a good token with this scope.
    pub(crate) fn allow(&self, headers: &HeaderMap, scope: Scope) -> bool {
        let Some(token) = headers.get(AUTHORIZATION).and_then(|value| {
            let (kind, token) = value.to_str().ok()?.split_once(' ')?;
            kind.eq_ignore_ascii_case("bearer").then_some(token.trim())
        }) else {
            return false;
        };
        let Ok(token) = decode::<Claims>(token, &self.key, &self.validation) else {
            return false;
        };
        match token.claims.scope {
            Scopes::List(list) => list.iter().any(|one| one == scope.name()),
            Scopes::Words(words) => words.split_whitespace().any(|one| one == scope.name()),
        }
    }
}
