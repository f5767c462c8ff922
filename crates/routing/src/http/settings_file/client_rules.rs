//! What is asked of clients' TLS, the same in both forms but for names: cipher suites, and
//! subjects that clients of an authority must have.

use document::Form;
use wire::tls::{Attribute, Subject, SubjectRule, cipher_suite};

use crate::http::settings::ClientTls;

/// Suites in IANA's spelling. One that is not offered here is left out with a warning: less is
/// offered then, not more.
pub(super) fn cipher_suites(
    form: &mut Form<'_>,
    key: &'static str,
    names: &[String],
) -> Vec<String> {
    let mut suites = Vec::new();
    for name in names {
        match cipher_suite(name) {
            Some(suite) => suites.push(suite.to_owned()),
            None => form.warn(
                key,
                format!("\"{name}\" is not offered here: suites have forward secrecy and an AEAD"),
            ),
        }
    }
    if suites.is_empty() && !names.is_empty() {
        form.wrong(
            key,
            "none of these suites is offered here; expected at least one with forward secrecy \
             and an AEAD, such as ECDHE-RSA-AES128-GCM-SHA256",
        );
    }
    suites
}

/// A rule that is being read.
#[derive(Default)]
struct Rule {
    issuer: Name,
    allowed: Vec<Name>,
}

/// A name that is being read: its attributes by kind.
#[derive(Default)]
struct Name(Vec<(Attribute, String)>);

/// The rules; `keys` are those of the list, of the authority and of the subjects.
pub(super) fn describe(form: &mut Form<'_>, keys: [&'static str; 3], tls: &mut ClientTls) {
    let [list, issuer, allowed] = keys;
    let mut rules: Vec<Rule> = Vec::new();
    form.tables(list, &mut rules, |form, rule| {
        form.section(issuer, "", |form| name(form, &mut rule.issuer));
        form.tables(allowed, &mut rule.allowed, name);
        // A rule for nobody's clients would be none, and nobody would know.
        if rule.issuer.0.is_empty() {
            let wanted = "expected the subject of an authority, found nothing";
            match form.has(issuer) {
                true => form.wrong(issuer, wanted),
                false => form.wrong(allowed, format!("expected {issuer} beside it: {wanted}")),
            }
        }
    });
    let rules = rules.into_iter().map(|rule| SubjectRule {
        issuer: Subject::new(rule.issuer.0),
        allowed: rule
            .allowed
            .into_iter()
            .map(|name| Subject::new(name.0))
            .collect(),
    });
    if form.has(list) {
        tls.subject_rules = rules.collect();
    }
}

/// A name, with the keys that gorouter has for its attributes.
fn name(form: &mut Form<'_>, name: &mut Name) {
    for (key, kind) in [
        ("common_name", Attribute::CommonName),
        ("serial_number", Attribute::SerialNumber),
    ] {
        let mut value = String::new();
        form.value(key, "", &mut value);
        if !value.is_empty() {
            name.0.push((kind, value));
        }
    }
    for (key, kind) in [
        ("country", Attribute::Country),
        ("organization", Attribute::Organization),
        ("organizational_unit", Attribute::OrganizationalUnit),
        ("locality", Attribute::Locality),
        ("province", Attribute::State),
        ("street_address", Attribute::Street),
        ("postal_code", Attribute::PostalCode),
    ] {
        let mut values: Vec<String> = Vec::new();
        form.value(key, "", &mut values);
        name.0.extend(values.into_iter().map(|value| (kind, value)));
    }
}
