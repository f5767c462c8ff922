use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::*;
use crate::http::settings::ForwardedClientCert;
use crate::table::{Endpoint, PoolSettings};

fn domains(names: &[&str]) -> Vec<MtlsDomain> {
    let domain = |name: &&str| MtlsDomain {
        name: (*name).to_owned(),
        authorities: "PEM".to_owned(),
        ..MtlsDomain::default()
    };
    names.iter().map(domain).collect()
}

#[test]
fn a_wildcard_stands_for_one_label() {
    let domains = domains(&["*.apps.internal", "own.apps.internal", "one.example"]);
    let found = |host: &str| find(&domains, host.as_bytes());
    for (host, domain) in [
        ("a.apps.internal", Some(0)),
        ("A.Apps.INTERNAL", Some(0)),
        ("own.apps.internal", Some(1)),
        ("one.example", Some(2)),
        ("a.b.apps.internal", None),
        (".apps.internal", None),
        ("apps.internal", None),
        ("xapps.internal", None),
        ("a.apps.internal.", None),
        ("a.one.example", None),
        ("", None),
    ] {
        assert_eq!(found(host), domain, "{host}");
    }
}

#[test]
fn host_and_handshake_must_agree() {
    let domains = domains(&["*.apps.internal", "*.partners.example"]);
    for (host, handshake, expected) in [
        ("a.apps.internal", Some(0), true),
        ("b.apps.internal:8443", Some(0), true),
        ("public.example", None, true),
        // A client without a certificate asks for a domain that wants one.
        ("a.apps.internal", None, false),
        // The certificate was for another domain.
        ("a.apps.internal", Some(1), false),
        ("public.example", Some(0), false),
    ] {
        assert_eq!(
            fits_handshake(&domains, host.as_bytes(), handshake),
            expected,
            "{host}"
        );
    }
}

#[test]
fn domains_that_are_of_no_use_are_told() {
    assert_eq!(fault(&domains(&["*.a", "a", "b.c"])), None);
    let told = |names: &[&str]| fault(&domains(names)).unwrap();
    for name in ["", "*.", "*", "a.*.b", "*.*.a", "a b", "a:80", "*..a"] {
        assert!(told(&[name]).contains("expected a name"), "{name}");
    }
    assert!(told(&["a", "A"]).starts_with("domain 2 (\"A\"): expected each domain once"));
    let open = MtlsDomain {
        name: "a".to_owned(),
        ..MtlsDomain::default()
    };
    assert_eq!(open.client_cert, ForwardedClientCert::SanitizeSet);
    let told = fault(&[open]).unwrap();
    assert!(told.contains("expected authorities"), "{told}");
}

/// The certificate of something with these units, as authorities of platforms make it.
fn certificate(name: &str, units: &[&str]) -> Vec<u8> {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    // rcgen keeps one value of a kind; two fit, one by the name of the kind, one by its number.
    for (at, unit) in units.iter().enumerate() {
        subject.push(
            match at {
                0 => DnType::OrganizationalUnitName,
                _ => DnType::CustomDnType(vec![2, 5, 4, 11]),
            },
            *unit,
        );
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().to_vec()
}

#[test]
fn an_identity_is_read_from_the_units() {
    let caller = Caller::new(2, &certificate("instance", &["app:a1", "space:s1"]));
    let identity = caller.identity.as_ref().unwrap();
    assert_eq!((&*identity.app, &*identity.space), ("a1", "s1"));
    assert_eq!(identity.organization, "");
    assert_eq!(caller.domain, 2);
    for units in [
        &[][..],
        &["space:s1"],
        &["app:"],
        &["application:a1"],
        // Which one would it be?
        &["app:a1", "app:a2"],
    ] {
        let caller = Caller::new(0, &certificate("instance", units));
        assert_eq!(caller.identity, None, "{units:?}");
    }
    assert_eq!(Caller::new(0, b"nonsense").identity, None);
}

#[test]
fn subjects_are_written_as_envoy_does() {
    let der = certificate("instance", &["app:a1", "space:s1"]);
    let caller = Caller::new(0, &der);
    let (hash, subject) = caller.envoy().split_once(';').unwrap();
    assert_eq!(hash.len(), "Hash=".len() + 64);
    assert_eq!(subject, "Subject=\"CN=instance,OU=app:a1,OU=space:s1\"");
    // Nothing in a name becomes another attribute, another field or another line.
    let caller = Caller::new(0, &certificate("x,OU=app:evil\"\r\nA: b/OU=é", &[]));
    let (_, subject) = caller.envoy().split_once(';').unwrap();
    assert_eq!(
        subject,
        "Subject=\"CN=x\\2COU\\3Dapp:evil\\22\\0D\\0AA: b\\2FOU\\3D\\C3\\A9\""
    );
}

fn caller(app: &str, space: &str, organization: &str) -> CallerIdentity {
    CallerIdentity {
        app: app.to_owned(),
        space: space.to_owned(),
        organization: organization.to_owned(),
    }
}

fn route(scope: &str, policies: &str) -> PoolSettings {
    PoolSettings {
        policy_scope: scope.into(),
        policies: policies.into(),
        ..PoolSettings::default()
    }
}

#[test]
fn policies_name_who_may_call() {
    let caller = caller("a1", "s1", "o1");
    for (policies, expected) in [
        ("cf:any", Ok(())),
        ("cf:app:a1", Ok(())),
        ("cf:space:s1", Ok(())),
        ("cf:org:o1", Ok(())),
        ("cf:app:a2, cf:space:s1", Ok(())),
        ("", Err(Denial::NoPolicies)),
        (" , ", Err(Denial::NoPolicies)),
        ("cf:app:a2,cf:space:s2,cf:org:o2", Err(Denial::NotNamed)),
        ("cf:app:", Err(Denial::NotNamed)),
        ("cf:app:a", Err(Denial::NotNamed)),
        ("cf:app:a11", Err(Denial::NotNamed)),
        ("cf:space:a1", Err(Denial::NotNamed)),
        ("cf:ANY", Err(Denial::NotNamed)),
        ("spiffe:a1", Err(Denial::NotNamed)),
    ] {
        let pool = route("any", policies);
        let rules = Rules::of(&pool).unwrap();
        assert_eq!(rules.admit(Some(&caller)), expected, "{policies}");
        assert_eq!(rules.admit(None), Err(Denial::Unidentified));
    }
    // What the certificate does not say is no guid of anything.
    let pool = route("any", "cf:space:,cf:org:");
    let unknown = self::caller("a1", "", "");
    let admitted = Rules::of(&pool).unwrap().admit(Some(&unknown));
    assert_eq!(admitted, Err(Denial::NotNamed));
    assert_eq!(Rules::of(&route("", "cf:app:a1")), None);
    let pool = route("galaxy", "cf:any");
    let admitted = Rules::of(&pool).unwrap().admit(Some(&caller));
    assert_eq!(admitted, Err(Denial::OutOfScope));
}

#[test]
fn what_decided_is_told_as_in_gorouters_log() {
    let caller = caller("a1", "s1", "o1");
    let there = Endpoint::default();
    for (scope, policies, expected) in [
        ("any", "cf:app:a2, cf:space:s1,cf:any", "route:cf:space:s1"),
        ("any", "", "route:no_route_policies"),
        ("any", "cf:app:a2", "route:route_policies"),
        ("org", "cf:any", "domain:scope=org:post-selection"),
        ("space", "cf:any", "domain:scope=space:post-selection"),
        ("galaxy", "cf:any", "domain:scope=unknown:post-selection"),
    ] {
        let pool = route(scope, policies);
        let rules = Rules::of(&pool).unwrap();
        let deciding = rules.deciding(Some(&caller), Some(&there));
        assert_eq!(deciding, expected, "{scope} {policies}");
        assert_eq!(rules.deciding(None, None), "identity_extraction");
    }
    // No endpoint was chosen: nobody is out of its reach.
    let pool = route("org", "cf:any");
    let deciding = Rules::of(&pool).unwrap().deciding(Some(&caller), None);
    assert_eq!(deciding, "route:cf:any");
}

#[test]
fn a_scope_ends_at_the_endpoint() {
    let endpoint = |tags: &[(&str, &str)]| {
        let tags = tags.iter().map(|(a, b)| ((*a).into(), (*b).into()));
        Endpoint {
            tags: Some(tags.collect()),
            ..Endpoint::default()
        }
    };
    let there = endpoint(&[("organization_id", "o1"), ("space_id", "s1")]);
    let caller = caller("a1", "s1", "o1");
    let neighbour = self::caller("a1", "s2", "o1");
    let stranger = self::caller("a1", "s1", "o2");
    let nameless = self::caller("a1", "", "");
    let out = Err(Denial::OutOfScope);
    for (scope, who, expected) in [
        ("any", &stranger, Ok(())),
        ("any", &nameless, Ok(())),
        ("org", &caller, Ok(())),
        ("org", &neighbour, Ok(())),
        ("org", &stranger, out),
        ("org", &nameless, out),
        ("space", &caller, Ok(())),
        ("space", &neighbour, out),
        ("space", &nameless, out),
        ("galaxy", &caller, out),
    ] {
        let pool = route(scope, "cf:any");
        let rules = Rules::of(&pool).unwrap();
        assert_eq!(
            rules.reaches(Some(who), &there),
            expected,
            "{scope} {who:?}"
        );
        assert_eq!(rules.reaches(None, &there), Err(Denial::Unidentified));
    }
    // Nobody is in the same space as an endpoint that says nothing of it.
    for silent in [
        endpoint(&[]),
        endpoint(&[("space_id", "")]),
        Endpoint::default(),
    ] {
        let pool = route("space", "cf:any");
        let reached = Rules::of(&pool).unwrap().reaches(Some(&nameless), &silent);
        assert_eq!(reached, out);
    }
}

proptest! {
    /// Whoever is let in was named: by `cf:any`, or by a policy that is one of its own.
    #[test]
    fn nobody_is_let_in_by_accident(
        policies in prop::collection::vec("(cf:(any|app|space|org))?:?[ab]{0,2}", 0..4),
        app in "[ab]{1,2}",
        space in "[ab]{0,2}",
    ) {
        let identity = caller(&app, &space, "");
        let pool = route("any", &policies.join(","));
        let admitted = Rules::of(&pool).unwrap().admit(Some(&identity)).is_ok();
        let own = [Some("cf:any".to_owned()), Some(format!("cf:app:{app}")),
            (!space.is_empty()).then(|| format!("cf:space:{space}"))];
        let named = policies.iter().any(|policy| own.iter().flatten().any(|own| own == policy));
        prop_assert_eq!(admitted, named);
    }

    /// A host is of a domain only if both have the same number of labels.
    #[test]
    fn a_wildcard_never_spans_labels(host in "[a-b.]{0,8}") {
        let domains = domains(&["*.a.b"]);
        if find(&domains, host.as_bytes()).is_some() {
            prop_assert!(host.ends_with(".a.b"));
            prop_assert_eq!(host.split('.').count(), 3);
        }
    }

    #[test]
    fn what_stands_in_a_field_is_plain(name in "\\PC{0,40}") {
        let caller = Caller::new(0, &certificate(&name, &[]));
        let text = caller.envoy();
        prop_assert!(text.bytes().all(|byte| (b' '..0x7f).contains(&byte)), "{}", text);
        prop_assert_eq!(text.matches('"').count(), 2);
        prop_assert!(!text[text.find('"').unwrap()..].contains(','));
    }
}
