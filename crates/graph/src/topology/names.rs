//! What services may be called, and which one a name stands for.

use std::collections::HashMap;

use document::{Node, Problem};

use super::ServiceId;

/// What a name looks like, in words.
pub(super) const SERVICE_NAME: &str =
    "a name of 1 to 63 lower-case letters, digits, and inner dashes and underscores";

/// Problems for which the name that was likely meant is sought: of a file with very many
/// mistakes only the first are shown.
const FEW_PROBLEMS: usize = 100;

/// The service that a call names, which stands at `node`. If there is none that is noted,
/// with the name that was likely meant, or else with `otherwise`.
pub(super) fn named(
    names: &HashMap<String, ServiceId>,
    name: &str,
    node: &Node,
    otherwise: Option<String>,
    problems: &mut Vec<Problem>,
) -> Option<ServiceId> {
    let found = names.get(name).copied();
    if found.is_none() {
        let few = problems.len() < FEW_PROBLEMS;
        let names = names.keys().filter(|_| few);
        let mut names: Vec<&str> = names.map(String::as_str).collect();
        names.sort_unstable();
        let problem = Problem::new(node.span.clone(), format!("there is no service \"{name}\""));
        problems.push(match (units::nearest(name, names), otherwise) {
            (Some(near), _) => problem.suggest(near),
            (None, Some(help)) => problem.help(help),
            (None, None) => problem,
        });
    }
    found
}

/// Longest name, in bytes (RFC 1123 section 2.1, RFC 1035 section 2.3.4).
const MOST: usize = 63;

/// Whether a service may have this name: a label of DNS in lower case, but for underscores,
/// which only Kubernetes refuses (its manifests say so).
pub(super) fn is_service_name(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=MOST).contains(&bytes.len())
        && bytes
            .iter()
            .all(|&byte| letter(byte) || byte == b'-' || byte == b'_')
        && bytes.first().is_some_and(|&byte| letter(byte))
        && bytes.last().is_some_and(|&byte| letter(byte))
}

/// The name nearest to a foreign one: other characters become dashes. Empty if nothing is
/// left.
pub(super) fn service_name(foreign: &str) -> String {
    let plain = |character: char| match character.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    let name: String = foreign.chars().map(plain).collect();
    let mut name = name.trim_matches('-').to_owned();
    name.truncate(MOST);
    name.truncate(name.trim_end_matches('-').len());
    name
}
