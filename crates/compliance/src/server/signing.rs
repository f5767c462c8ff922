//! Signatures of policies: each is signed when it is first fetched, and the signature is kept as long as
//! the policy holds. What nobody fetches costs nothing, as the policies of a fleet that are as they
//! were.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{KeyPair, PKCS_ED25519};

use super::state::{ServedPolicy, State};
use super::{files, now};
use crate::policy::signature::{IssueNumber, PolicySignature, PolicySigner};
use crate::trust::{TrustError, write_secret};

/// Signatures that are kept beyond those of policies that hold, until they are looked through.
const SPARE: usize = 1_024;

/// The server's key for policies, and what it signed.
pub(crate) struct Signing {
    signer: PolicySigner,
    /// The key that others check by, PEM.
    pub(crate) key: String,
    issued: Mutex<Issued>,
}

struct Issued {
    last: IssueNumber,
    /// By nodes: the configuration and its signature.
    signatures: HashMap<Arc<str>, (Arc<str>, PolicySignature)>,
}

impl Signing {
    /// With the key in the server's folder, which is made at the first start. Numbers of this start are
    /// above those of all before it: by the clock, and if that was put back by the start that is
    /// noted in the folder.
    pub(super) fn open(folder: &Path) -> Result<Self, TrustError> {
        let (secret, shown) = (
            folder.join(files::POLICY_KEY),
            folder.join(files::POLICY_VERIFICATION_KEY),
        );
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| TrustError::file("read", path, error))
        };
        if !secret.exists() {
            let made = KeyPair::generate_for(&PKCS_ED25519);
            let made = made.map_err(|error| TrustError::Make(error.to_string()))?;
            write_secret(&secret, made.serialize_pem().as_bytes())?;
        }
        let signer = PolicySigner::from_pem(read(&secret)?.as_bytes())
            .map_err(|error| TrustError::file("use", &secret, error))?;
        let key = signer.key().to_pem();
        crate::private::write(&shown, key.as_bytes())
            .map_err(|error| TrustError::file("write", &shown, error))?;
        let noted = folder.join(files::POLICY_START);
        let before = match noted.exists() {
            false => None,
            true => Some(read(&noted)?.trim().parse::<u32>().map_err(|_| {
                let cause = "it is no number of seconds since 1970; write one that is not below \
                             that of the last start";
                TrustError::file("use", &noted, cause)
            })?),
        };
        let clock = u32::try_from(now() / 1_000).unwrap_or(u32::MAX);
        let start = clock.max(before.map_or(0, |before| before.saturating_add(1)));
        write_secret(&noted, format!("{start}\n").as_bytes())?;
        let issued = Issued {
            last: IssueNumber::of_start(start),
            signatures: HashMap::new(),
        };
        Ok(Self {
            signer,
            key,
            issued: Mutex::new(issued),
        })
    }

    /// The policy that a node has now, and its document with the signature.
    pub(super) fn signed<S: Deref<Target = State>>(
        &self,
        node: &str,
        state: impl FnOnce() -> S,
    ) -> Option<(ServedPolicy, Option<Vec<u8>>)> {
        // It is looked up once nobody else signs: a later policy never has a lower number.
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state();
        let served = state.policies.get(node)?.clone();
        if issued.signatures.len() > state.policies.len() + SPARE {
            let policies = &state.policies;
            issued
                .signatures
                .retain(|node, _| policies.contains_key(node));
        }
        drop(state);
        let known = issued.signatures.get(node);
        let signature = match known.filter(|(config_id, _)| *config_id == served.config_id) {
            Some((_, signature)) => *signature,
            None => {
                issued.last = issued.last.next();
                let signature = self.signer.sign(node, issued.last, &served.document);
                let config_id = Arc::clone(&served.config_id);
                issued
                    .signatures
                    .insert(node.into(), (config_id, signature));
                signature
            }
        };
        drop(issued);
        let document = signature.attach(&served.document);
        Some((served, document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::signature::PolicyKey;
    use crate::server::pack;

    fn state(policies: &[(&str, &str)]) -> State {
        let mut state = State::default();
        for (node, config_id) in policies {
            let served = ServedPolicy {
                config_id: (*config_id).into(),
                digest: [0; 32],
                document: pack(config_id.as_bytes()).into(),
            };
            state.policies.insert((*node).into(), served);
        }
        state
    }

    #[test]
    fn a_policy_is_signed_once_and_a_later_one_has_a_higher_number() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Signing::open(folder.path()).unwrap();
        let signing = open();
        let key = PolicyKey::from_pem(signing.key.as_bytes()).unwrap();
        let fetch = |signing: &Signing, config_id| {
            let state = state(&[("a", config_id)]);
            let (served, document) = signing.signed("a", || &state).unwrap();
            assert_eq!(&*served.config_id, config_id);
            let document = document.unwrap();
            (key.verify("a", &document).unwrap(), document)
        };
        let first = fetch(&signing, "1");
        assert_eq!(fetch(&signing, "1"), first);
        let second = fetch(&signing, "2");
        assert!(second.0 > first.0);
        // The server begins again, perhaps with an older database: what it has is the newest.
        let again = open();
        assert_eq!(again.key, signing.key);
        assert!(fetch(&again, "1").0 > second.0);
        let none = State::default();
        assert!(signing.signed("b", || &none).is_none());
    }

    #[test]
    fn a_clock_that_was_put_back_does_not_make_lower_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let noted = folder.path().join(files::POLICY_START);
        std::fs::write(&noted, "4000000000\n").unwrap();
        let signing = Signing::open(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&noted).unwrap(), "4000000001\n");
        let last = signing.issued.lock().unwrap().last;
        assert_eq!(last, IssueNumber::of_start(4_000_000_001));
        std::fs::write(&noted, "soon").unwrap();
        let error = Signing::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("no number of seconds"), "{error}");
    }

    #[test]
    fn signatures_of_nodes_that_are_gone_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let signing = Signing::open(folder.path()).unwrap();
        for number in 0..=SPARE + 1 {
            let node = format!("node-{number}");
            let state = state(&[(&node, "1")]);
            signing.signed(&node, || &state).unwrap();
        }
        let state = state(&[("last", "1")]);
        signing.signed("last", || &state).unwrap();
        assert!(signing.issued.lock().unwrap().signatures.len() <= 2);
    }
}
