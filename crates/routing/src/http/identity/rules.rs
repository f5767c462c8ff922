//! Who may call a route.

use super::CallerIdentity;
use crate::table::{Endpoint, PoolSettings};

/// What a route says about its callers (`route_policy_scope` and `route_policies` of its
/// options).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules<'a> {
    scope: Scope,
    policies: &'a str,
}

/// How far callers may be from an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Any,
    Organization,
    Space,
    /// One that this router does not know: nobody is near enough.
    Unknown,
}

/// Why a caller is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// Its certificate names no application, or it has shown none.
    Unidentified,
    /// The endpoint is in another space or organization.
    OutOfScope,
    /// The route names nobody.
    NoPolicies,
    /// The route names others.
    NotNamed,
}

impl<'a> Rules<'a> {
    /// The rules of a route; `None`: anyone may call it.
    pub fn of(pool: &'a PoolSettings) -> Option<Self> {
        let scope = match &*pool.policy_scope {
            "" => return None,
            "any" => Scope::Any,
            "org" => Scope::Organization,
            "space" => Scope::Space,
            _ => Scope::Unknown,
        };
        let policies = &*pool.policies;
        Some(Self { scope, policies })
    }

    /// Whether a caller may call the route, whichever endpoint it will be.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&self, caller: Option<&CallerIdentity>) -> Result<(), Denial> {
        let caller = caller.ok_or(Denial::Unidentified)?;
        if self.scope == Scope::Unknown {
            return Err(Denial::OutOfScope);
        }
        if self.policies().next().is_none() {
            return Err(Denial::NoPolicies);
        }
        let named = self.policy_of(caller).is_some();
        named.then_some(()).ok_or(Denial::NotNamed)
    }

    fn policies(&self) -> impl Iterator<Item = &'a str> {
        let policies = self.policies.split(',').map(str::trim);
        policies.filter(|policy| !policy.is_empty())
    }

    /// The first policy that names a caller.
    fn policy_of(&self, caller: &CallerIdentity) -> Option<&'a str> {
        self.policies().find(|policy| {
            let is = |kind: &str, guid: &str| {
                !guid.is_empty() && policy.strip_prefix(kind) == Some(guid)
            };
            *policy == "cf:any"
                || is("cf:app:", &caller.app)
                || is("cf:space:", &caller.space)
                || is("cf:org:", &caller.organization)
        })
    }

    /// Whether a caller is near enough to an endpoint, as its tags `space_id` and
    /// `organization_id` say.
    ///
    /// # Errors
    /// Why not.
    pub fn reaches(
        &self,
        caller: Option<&CallerIdentity>,
        endpoint: &Endpoint,
    ) -> Result<(), Denial> {
        let caller = caller.ok_or(Denial::Unidentified)?;
        let near = |tag: &str, guid: &str| {
            let tags = endpoint.tags.as_deref().unwrap_or_default();
            !guid.is_empty()
                && tags
                    .iter()
                    .any(|(name, value)| **name == *tag && **value == *guid)
        };
        let reached = match self.scope {
            Scope::Any => true,
            Scope::Organization => near("organization_id", &caller.organization),
            Scope::Space => near("space_id", &caller.space),
            Scope::Unknown => false,
        };
        reached.then_some(()).ok_or(Denial::OutOfScope)
    }

    /// What let a caller in or turned it away, in the words of gorouter's log
    /// (`route_policy`). `endpoint`: the one that was chosen, if any was.
    pub fn deciding(&self, caller: Option<&CallerIdentity>, endpoint: Option<&Endpoint>) -> String {
        let reaches = |()| endpoint.map_or(Ok(()), |endpoint| self.reaches(caller, endpoint));
        match (self.admit(caller).and_then(reaches), self.scope) {
            (Ok(()), _) => {
                let policy = caller.and_then(|caller| self.policy_of(caller));
                format!("route:{}", policy.unwrap_or_default())
            }
            (Err(Denial::Unidentified), _) => "identity_extraction".to_owned(),
            (Err(Denial::NoPolicies), _) => "route:no_route_policies".to_owned(),
            (Err(Denial::NotNamed), _) => "route:route_policies".to_owned(),
            (Err(Denial::OutOfScope), scope) => {
                let scope = match scope {
                    Scope::Organization => "org",
                    Scope::Space => "space",
                    Scope::Any | Scope::Unknown => "unknown",
                };
                format!("domain:scope={scope}:post-selection")
            }
        }
    }
}

impl Denial {
    /// Its name in `X-Cf-RouterError` and in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unidentified => "caller_unidentified",
            Self::OutOfScope => "caller_out_of_scope",
            Self::NoPolicies => "route_without_policies",
            Self::NotNamed => "caller_not_in_policies",
        }
    }
}
