//! Rules for what a container may reach.

use std::net::IpAddr;

use diego::models::SecurityGroupRule;

use super::Problems;

/// Problems of one rule.
pub(super) fn rule(rule: &SecurityGroupRule) -> Problems {
    let mut problems = Problems::new();
    match rule.protocol.as_str() {
        "tcp" | "udp" => {
            ports(&mut problems, rule);
            problems.field_if(rule.icmp_info.is_some(), "icmp_info");
        }
        "icmp" | "icmpv6" => {
            no_ports(&mut problems, rule);
            let name = if rule.protocol == "icmp" {
                "icmp_info"
            } else {
                "icmpv6_info"
            };
            problems.field_if(rule.icmp_info.is_none(), name);
        }
        "all" => {
            no_ports(&mut problems, rule);
            problems.field_if(rule.icmp_info.is_some(), "icmp_info");
        }
        _ => problems.field("protocol"),
    }
    let found = destinations(&rule.destinations);
    if !found.is_empty() {
        problems.field(&format!("destinations [ {} ]", found.join(", ")));
    }
    problems
}

fn ports(problems: &mut Problems, rule: &SecurityGroupRule) {
    match (&rule.port_range, rule.ports.is_empty()) {
        (Some(_), false) => problems.text("Invalid: ports and port_range provided"),
        (None, true) => problems.text("Missing required field: ports or port_range"),
        (None, false) => {
            for port in &rule.ports {
                problems.field_if(*port == 0, "ports");
            }
        }
        (Some(range), true) => {
            problems.field_if(range.start == 0, "port_range");
            problems.field_if(range.end == 0, "port_range");
            problems.field_if(range.start > range.end, "port_range");
        }
    }
}

fn no_ports(problems: &mut Problems, rule: &SecurityGroupRule) {
    problems.field_if(rule.port_range.is_some(), "port_range");
    problems.field_if(!rule.ports.is_empty(), "ports");
}

const INVALID: &str = "Invalid IP";

/// What is wrong with lists of destinations. A space beside a comma is part of an address, and
/// wrong.
fn destinations(lists: &[String]) -> Vec<String> {
    if lists.is_empty() {
        return vec!["Must have at least 1 destination".to_owned()];
    }
    let parts = lists.iter().flat_map(|list| list.split(','));
    parts.flat_map(destination).collect()
}

/// What is wrong with an address, a CIDR block, or two addresses with a dash between: the first
/// such sign decides which it is.
fn destination(text: &str) -> Vec<String> {
    let one = |bad: bool, cause: &str| match bad {
        true => vec![cause.to_owned()],
        false => Vec::new(),
    };
    match text.find(['-', '/']) {
        None => one(text.parse::<IpAddr>().is_err(), INVALID),
        Some(at) if text[at..].starts_with('/') => one(
            !is_block(&text[..at], &text[at + 1..]),
            &format!("invalid CIDR address: {text}"),
        ),
        Some(at) => match (bytes(&text[..at]), bytes(&text[at + 1..])) {
            // The original names each byte by which the range ends before it begins.
            (Some(from), Some(to)) => {
                let pairs = from.iter().zip(&to).take_while(|(from, to)| from >= to);
                let wrong = pairs.filter(|(from, to)| from > to);
                wrong.map(|_| INVALID.to_owned()).collect()
            }
            _ => one(true, INVALID),
        },
    }
}

fn is_block(base: &str, bits: &str) -> bool {
    let most = match base.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    digits && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

/// An address in the form in which the original compares all.
fn bytes(text: &str) -> Option<[u8; 16]> {
    let address = match text.parse::<IpAddr>().ok()? {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    Some(address.octets())
}
