//! Which clients an authority may send: certificates are good for some subjects only.

use rustls::pki_types::CertificateDer;

use super::Subject;

/// The subjects that clients of an authority may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectRule {
    /// The subject of an authority in the client's chain: only its clients are looked at.
    pub issuer: Subject,
    /// The subjects of theirs that are let in.
    pub allowed: Vec<Subject>,
}

impl SubjectRule {
    /// Whether a client with this chain is let in. A certificate that cannot be read is not.
    pub(super) fn allows(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> bool {
        let own = Subject::of(leaf);
        // Whatever leads from the certificate to its root is named as an issuer on the way;
        // what was shown beside that can only make a rule count.
        let applies = std::iter::once(leaf).chain(intermediates).any(|shown| {
            let names = [Subject::of_issuer(shown), Subject::of(shown)];
            // The client's own name is none of an authority.
            let names = &names[..if std::ptr::eq(shown, leaf) { 1 } else { 2 }];
            names.iter().any(|name| match name {
                Some(name) => name.is_same(&self.issuer),
                None => true,
            })
        });
        let allowed = || {
            own.as_ref()
                .is_some_and(|own| self.allowed.iter().any(|one| one.is_same(own)))
        };
        !applies || allowed()
    }
}
