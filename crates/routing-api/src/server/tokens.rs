//! Who may do what: bearer tokens, signed by UAA, that carry scopes.

use std::path::{Path, PathBuf};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jsonwebtoken::errors::ErrorKind;
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

/// Algorithms of tokens that an RSA key signs.
const RSA: [Algorithm; 3] = [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512];

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
    /// Reads the key. Its kind fixes the algorithms: a token can choose one of RSA's that
    /// routing-api takes, or has the one of EC. With an `issuer` every token must name it.
    pub(crate) fn read(path: &Path, issuer: Option<&str>) -> Result<Self, KeyError> {
        let refuse = |cause: String| KeyError {
            path: path.to_owned(),
            cause,
        };
        let pem = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
        let rsa = DecodingKey::from_rsa_pem(&pem).map(|key| (key, RSA.to_vec()));
        let (key, algorithms) = rsa
            .or_else(|_| DecodingKey::from_ec_pem(&pem).map(|key| (key, vec![Algorithm::ES256])))
            .map_err(|error| refuse(error.to_string()))?;
        let mut validation = Validation {
            algorithms,
            leeway: 0,
            validate_nbf: true,
            // routing-api does not look at the audience either: the scope says enough.
            validate_aud: false,
            ..Validation::default()
        };
        // Zones of a UAA that have no key of their own sign with the same one, and only their
        // issuer tells their tokens apart.
        if let Some(issuer) = issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        Ok(Self { key, validation })
    }

    /// Checks that the request carries a good token with this scope.
    ///
    /// # Errors
    /// Why it does not, in the words of routing-api.
    pub(crate) fn check(&self, headers: &HeaderMap, scope: Scope) -> Result<(), String> {
        let value = headers.get(AUTHORIZATION);
        let value = value.and_then(|value| value.to_str().ok());
        let Some((kind, token)) = value.and_then(|value| value.split_once(' ')) else {
            return Err("invalid token format".to_owned());
        };
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(format!("Invalid token type: {kind}"));
        }
        let token = decode::<Claims>(token.trim(), &self.key, &self.validation);
        let token = token.map_err(|error| self.refusal(error.kind()).to_owned())?;
        let allows = match token.claims.scope {
            Scopes::List(list) => list.iter().any(|one| one == scope.name()),
            Scopes::Words(words) => words.split_whitespace().any(|one| one == scope.name()),
        };
        match allows {
            true => Ok(()),
            false => Err("You are not authorized to perform the requested action".to_owned()),
        }
    }

    fn refusal(&self, kind: &ErrorKind) -> &'static str {
        match kind {
            ErrorKind::InvalidToken => "token contains an invalid number of segments",
            ErrorKind::InvalidAlgorithm => "invalid signing method",
            ErrorKind::InvalidIssuer => "invalid issuer",
            ErrorKind::MissingRequiredClaim(claim) if claim == "iss" => "invalid issuer",
            ErrorKind::InvalidSignature if self.validation.algorithms == RSA => {
                "crypto/rsa: verification error"
            }
            ErrorKind::InvalidSignature => "crypto/ecdsa: verification error",
            ErrorKind::ExpiredSignature => "Token is expired",
            ErrorKind::ImmatureSignature => "Token is not valid yet",
            _ => "token is malformed",
        }
    }
}
